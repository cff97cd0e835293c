/* checkpoint: a damaged checkpoint is skipped for an older complete one, or reported by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint_support.h"
#include "engine/checkpoint/digest.h"

static const char *const files[] = {"index.json",
                                    "complete",
                                    "model-0.safetensors",
                                    "model-1.safetensors",
                                    "optimizer-0.safetensors",
                                    "optimizer-1.safetensors"};

#define FILES (sizeof(files) / sizeof(files[0]))

static void path_of(char *out, size_t size, const fake_world *world, const char *file)
{
    snprintf(out, size, "%s/step-00000100/%s", world->parent, file);
}

static void put(const fake_world *world, const char *file, const char *bytes, size_t length)
{
    char path[256];
    FILE *out;

    path_of(path, sizeof(path), world, file);
    out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
}

static void get(dt_strbuf *out, const fake_world *world, const char *file)
{
    char path[256];

    path_of(path, sizeof(path), world, file);
    assert_int_equal(dt_file_read(out, path, 1 << 20, NULL), DT_OK);
}

/* Makes the steps 50 and 100, both complete. */
static void two_of_them(fake_world *world, const char *parent)
{
    fake_world_init(world, parent);
    world->ranks = 2;
    world->layout = FAKE_FLAT;
    world->info.step = 50;
    fake_must_save(world);
    world->info.step = 100;
    fake_must_save(world);
}

static int64_t newest_step(const fake_world *world)
{
    dt_arena arena;
    const char *path;
    int64_t step;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_checkpoint_find_newest(&path, world->parent, &arena, NULL), DT_OK);
    assert_non_null(path);
    step = strtoll(strstr(path, "step-") + 5, NULL, 10);
    dt_arena_release(&arena);
    return step;
}

/* Loading step 100 must fail, and the message must name the file. */
static void expect_refused(fake_world *world, const char *file)
{
    dt_checkpoint *checkpoint = NULL;
    dt_error err = DT_ERROR_INIT;
    char path[256];
    dt_status st;

    path_of(path, sizeof(path), world, "");
    path[strlen(path) - 1] = '\0';
    st = dt_checkpoint_open(&checkpoint, path, &err);
    if (st == DT_OK)
        st = dt_checkpoint_verify(checkpoint, &err);
    dt_checkpoint_close(checkpoint);
    assert_int_equal(st, DT_ERR_CORRUPT);
    if (strstr(err.message, file) == NULL)
        fail_msg("no '%s' in: %s", file, err.message);
}

static void test_any_flipped_byte_is_noticed(void **state)
{
    fake_world world;
    dt_strbuf whole;

    two_of_them(&world, *state);
    dt_strbuf_init(&whole);
    for (size_t f = 0; f < FILES; f++) {
        get(&whole, &world, files[f]);
        for (size_t at = 0; at < whole.length; at += whole.length < 64 ? 1 : 13) {
            whole.data[at] ^= 0x10;
            put(&world, files[f], whole.data, whole.length);
            assert_int_equal(newest_step(&world), 50);
            whole.data[at] ^= 0x10;
        }
        whole.data[whole.length / 2] ^= 1;
        put(&world, files[f], whole.data, whole.length);
        expect_refused(&world, files[f]);
        whole.data[whole.length / 2] ^= 1;
        put(&world, files[f], whole.data, whole.length);
        assert_int_equal(newest_step(&world), 100);
    }
    dt_strbuf_release(&whole);
    fake_world_release(&world);
}

static void test_any_cut_or_lengthened_file_is_noticed(void **state)
{
    fake_world world;
    dt_strbuf whole;

    two_of_them(&world, *state);
    dt_strbuf_init(&whole);
    for (size_t f = 0; f < FILES; f++) {
        char path[256];

        get(&whole, &world, files[f]);
        for (size_t length = 0; length < whole.length; length += whole.length < 64 ? 1 : 29) {
            put(&world, files[f], whole.data, length);
            assert_int_equal(newest_step(&world), 50);
        }
        expect_refused(&world, files[f]);
        put(&world, files[f], whole.data, whole.length + 1); /* including the terminating zero */
        assert_int_equal(newest_step(&world), 50);
        path_of(path, sizeof(path), &world, files[f]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(newest_step(&world), 50);
        expect_refused(&world, files[f]);
        put(&world, files[f], whole.data, whole.length);
        assert_int_equal(newest_step(&world), 100);
    }
    dt_strbuf_release(&whole);
    fake_world_release(&world);
}

/* Replaces `from` by `to` in the index, with a matching marker: as a faulty program would write
 * it, not a faulty disk. */
static void rewrite_index(fake_world *world, const dt_strbuf *index, const char *from,
                          const char *to)
{
    const char *at = strstr(index->data, from);
    char digest[DT_DIGEST_SIZE];
    dt_strbuf changed;

    if (at == NULL)
        fail_msg("no '%s' in the index", from);
    dt_strbuf_init(&changed);
    dt_strbuf_add(&changed, index->data, (size_t)(at - index->data));
    dt_strbuf_add_str(&changed, to);
    dt_strbuf_add_str(&changed, at + strlen(from));
    put(world, "index.json", changed.data, changed.length);
    dt_digest_of(digest, changed.data, changed.length);
    digest[DT_DIGEST_SIZE - 1] = '\n';
    put(world, "complete", digest, DT_DIGEST_SIZE);
    dt_strbuf_release(&changed);
}

static void test_an_index_that_disagrees_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *word;
    } changes[] = {
        {"dtrun-checkpoint", "other-checkpoint", "other-checkpoint"},
        {"\"version\":1", "\"version\":3", "version 3"},
        {"\"step\":100", "\"step\":-1", "'step' is negative"},
        {"\"step\":100", "\"step\":\"x\"", "'step'"},
        {"\"step\":100,", "", "'step' is missing"},
        {"\"step\":100", "\"step\":99999999999999999999", "index.json"},
        {"\"sample\":17", "\"sample\":1.5", "'sample'"},
        {"\"recipe\":{", "\"recipe\":[],\"x\":{", "'recipe'"},
        {"model-0.safetensors", "../model-0.safetensors", "malformed"},
        {"model-0.safetensors", "complete", "malformed"},
        {"model-0.safetensors", "model-7.safetensors", "not listed"},
        {"\"name\":\"model-1.", "\"name\":\"model-0.", "listed twice"},
        {"\"bytes\":", "\"bytes\":1", "and the index says"},
        {"\"xxh3_128\":\"", "\"xxh3_128\":\"0", "malformed"},
        {"\"shape\":[5,3]", "\"shape\":[6,3]", "wte.weight"},
        {"\"shape\":[5,3]", "\"shape\":[15,1]", "wte.weight"},
        {"\"shape\":[5,3]", "\"shape\":[4,3]", "wte.weight"},
        {"\"shape\":[5,3]", "\"shape\":[]", "wte.weight"},
        {"\"shape\":[5,3]", "\"shape\":[5,3,1,1,1]", "wte.weight"},
        {"\"shape\":[5,3]", "\"shape\":[4611686018427387904,4]", "impossible"},
        {"\"shape\":[5,3]", "\"shape\":[-5,-3]", "impossible"},
        {"\"dtype\":\"F32\"", "\"dtype\":\"F64\"", "F32"},
        {"\"start\":0", "\"start\":1", "wte.weight"},
        {"\"start\":0", "\"start\":-1", "'start' is negative"},
        {"\"start\":0", "\"start\":9223372036854775807", "reaches beyond"},
        {"\"elems\":15", "\"elems\":14", "wte.weight"},
        {"\"elems\":15", "\"elems\":0", "wte.weight"},
        {"\"elems\":15", "\"elems\":9223372036854775807", "reaches beyond"},
        {"\"key\":\"wte.weight\"", "\"key\":\"wpe.weight\"", "wpe.weight"},
        {"\"key\":\"wte.weight\"", "\"key\":\"__metadata__\"", "__metadata__"},
        {"\"value\":[", "\"value\":[],\"w\":[", "wte.weight"},
        {"\"tensors\":", "\"tensors\":{},\"files\":", "index.json"},
    };
    fake_world world;
    dt_strbuf index;

    two_of_them(&world, *state);
    dt_strbuf_init(&index);
    get(&index, &world, "index.json");
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        rewrite_index(&world, &index, changes[i].from, changes[i].to);
        if (strstr(changes[i].to, "[15,1]") == NULL) {
            expect_refused(&world, changes[i].word);
            assert_int_equal(newest_step(&world), 50);
        } else { /* the same elements: only the model shows the difference */
            assert_int_equal(fake_world_run(&world, fake_load), DT_ERR_RECIPE);
            assert_non_null(strstr(world.err[0].message, changes[i].word));
        }
    }
    rewrite_index(&world, &index, "x", "x");
    assert_int_equal(newest_step(&world), 100);
    dt_strbuf_release(&index);
    fake_world_release(&world);
}

static void test_a_deep_index_is_refused(void **state)
{
    fake_world world;
    dt_strbuf index, deep;

    two_of_them(&world, *state);
    dt_strbuf_init(&index);
    dt_strbuf_init(&deep);
    get(&index, &world, "index.json");
    dt_strbuf_add_str(&deep, "\"recipe\":");
    for (int i = 0; i < 100000; i++)
        dt_strbuf_add_char(&deep, '[');
    rewrite_index(&world, &index, "\"recipe\":", deep.data);
    expect_refused(&world, "index.json");
    dt_strbuf_release(&index);
    dt_strbuf_release(&deep);
    fake_world_release(&world);
}

static void test_invalid_checkpoints_are_reported(void **state)
{
    dt_checkpoint *checkpoint;
    dt_error err = DT_ERROR_INIT;
    char path[256];

    snprintf(path, sizeof(path), "%s/nowhere", (char *)*state);
    assert_int_equal(dt_checkpoint_open(&checkpoint, path, &err), DT_ERR_NOT_FOUND);
    assert_null(checkpoint);
    dt_error_clear(&err);
    assert_int_equal(dt_checkpoint_open(&checkpoint, *state, &err), DT_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "before the marker 'complete' was written"));
}

static bool exists(const fake_world *world, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", world->parent, name);
    return dt_file_exists(path);
}

static void make_dir(const fake_world *world, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s/inner", world->parent, name);
    assert_int_equal(dt_file_make_dirs(path, 0755, NULL), DT_OK);
}

static void test_prune_keeps_the_newest_and_what_is_not_its_own(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    for (world.info.step = 10; world.info.step <= 60; world.info.step += 10)
        fake_must_save(&world);
    make_dir(&world, "step-00000005");         /* without a marker */
    make_dir(&world, "step-00000070.partial"); /* of a killed save */
    make_dir(&world, "step-00000060-2.partial");
    make_dir(&world, "step-70"); /* another program's */
    make_dir(&world, "step-00000070.partial.mine");
    make_dir(&world, "notes");
    assert_int_equal(fake_prune(world.parent, 0), DT_OK);
    assert_true(exists(&world, "step-00000010") && exists(&world, "step-00000060"));
    assert_false(exists(&world, "step-00000005") || exists(&world, "step-00000070.partial") ||
                 exists(&world, "step-00000060-2.partial"));
    assert_int_equal(fake_prune(world.parent, 2), DT_OK);
    assert_false(exists(&world, "step-00000010") || exists(&world, "step-00000040"));
    assert_true(exists(&world, "step-00000050") && exists(&world, "step-00000060"));
    assert_true(exists(&world, "step-70") && exists(&world, "notes") &&
                exists(&world, "step-00000070.partial.mine"));
    fake_must_load(&world);
    fake_world_release(&world);
}

static void test_prune_does_not_count_a_damaged_one(void **state)
{
    fake_world world;

    two_of_them(&world, *state); /* 50 and 100 */
    put(&world, "index.json", "{}", 2);
    assert_int_equal(fake_prune(world.parent, 2), DT_OK);
    assert_true(exists(&world, "step-00000050") && exists(&world, "step-00000100"));
    assert_int_equal(fake_prune(world.parent, 1), DT_OK);
    assert_true(exists(&world, "step-00000050"));
    assert_false(exists(&world, "step-00000100"));
    fake_world_release(&world);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fake_folder_make, fake_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_any_flipped_byte_is_noticed),
        IN_FOLDER(test_any_cut_or_lengthened_file_is_noticed),
        IN_FOLDER(test_an_index_that_disagrees_is_refused),
        IN_FOLDER(test_a_deep_index_is_refused),
        IN_FOLDER(test_invalid_checkpoints_are_reported),
        IN_FOLDER(test_prune_keeps_the_newest_and_what_is_not_its_own),
        IN_FOLDER(test_prune_does_not_count_a_damaged_one),
    };

    setenv("DTRUN_LOG", "error", 1); /* skipped checkpoints are expected here */
    dt_log_init("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
