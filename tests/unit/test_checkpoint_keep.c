/* checkpoint: which checkpoints are kept, and checkpoints of nodes without shared files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint_support.h"
#include "engine/checkpoint/checkpoint.h"

#define STEPS DT_CHECKPOINT_STEPS
#define EPOCH DT_CHECKPOINT_EPOCH
#define BEST  DT_CHECKPOINT_BEST
#define END   DT_CHECKPOINT_END

static void save_one(fake_world *world, int64_t step, unsigned reasons, double valid_loss)
{
    world->info.step = step;
    world->info.kept_for = reasons;
    world->info.valid_loss = valid_loss;
    fake_must_save(world);
}

/* Checks the steps that are left after pruning, as "10 30 60", oldest first. */
static void expect_steps(const char *parent, dt_checkpoint_keep keep, const char *expected)
{
    dt_checkpoint_entry *entries;
    char steps[256] = "";
    int64_t count;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_checkpoint_prune(parent, &keep, NULL), DT_OK);
    assert_int_equal(dt_checkpoint_list(&entries, &count, parent, &arena, NULL), DT_OK);
    for (int64_t i = count - 1; i >= 0; i--) {
        size_t used = strlen(steps);

        assert_true(entries[i].opens);
        snprintf(steps + used, sizeof(steps) - used, "%s%lld", used > 0 ? " " : "",
                 (long long)entries[i].name.step);
    }
    assert_string_equal(steps, expected);
    dt_arena_release(&arena);
}

static void test_each_rule_keeps_its_own(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    save_one(&world, 10, STEPS | BEST, 4);
    save_one(&world, 15, EPOCH, NAN);
    save_one(&world, 20, STEPS | BEST, 3);
    save_one(&world, 25, BEST, 2);
    save_one(&world, 30, STEPS | EPOCH, 2.5);
    save_one(&world, 40, STEPS, 2.7);
    save_one(&world, 45, EPOCH, NAN);
    save_one(&world, 50, STEPS, NAN);
    expect_steps(world.parent, (dt_checkpoint_keep){0, 0, 3}, "10 15 20 25 30 40 45 50");
    expect_steps(world.parent, (dt_checkpoint_keep){3, 2, 2}, "20 25 30 40 45 50");
    expect_steps(world.parent, (dt_checkpoint_keep){2, 2, 1}, "25 30 40 45 50");
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 1}, "25 45 50");
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 0}, "45 50");
    fake_must_load(&world);
    fake_world_release(&world);
}

static void test_of_equal_losses_the_newer_is_the_better(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    save_one(&world, 10, BEST, 2);
    save_one(&world, 20, BEST, 2);
    save_one(&world, 30, STEPS, 3);
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 1}, "20 30");
    fake_world_release(&world);
}

static dt_checkpoint *open_one(const char *path)
{
    dt_error err = DT_ERROR_INIT;
    dt_checkpoint *checkpoint;

    if (dt_checkpoint_open(&checkpoint, path, &err) != DT_OK)
        fail_msg("%s", err.message);
    return checkpoint;
}

/* After a switch to BLEU, older checkpoints that were kept for their loss count no longer. */
static void test_the_best_may_be_by_bleu(void **state)
{
    fake_world world;
    dt_checkpoint *checkpoint;
    const dt_checkpoint_info *info;
    char path[256];

    fake_world_init(&world, *state);
    save_one(&world, 10, BEST, 0.5);
    world.info.best_by = DT_BEST_BY_VALID_BLEU;
    world.info.valid_bleu = 40;
    world.info.best_score = -40;
    save_one(&world, 20, BEST, 3);
    world.info.valid_bleu = 41;
    world.info.best_score = -41;
    save_one(&world, 30, BEST, 4);
    world.info.valid_bleu = NAN;
    save_one(&world, 40, STEPS, NAN);
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 2}, "20 30 40");
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 1}, "30 40");
    for (int step = 30; step <= 40; step += 10) {
        snprintf(path, sizeof(path), "%s/step-000000%d", world.parent, step);
        checkpoint = open_one(path);
        info = dt_checkpoint_get_info(checkpoint);
        assert_int_equal(info->best_by, DT_BEST_BY_VALID_BLEU);
        assert_true(info->best_score == -41);
        assert_true(step == 30 ? dt_checkpoint_score(info) == -41
                               : isnan(dt_checkpoint_score(info)));
        dt_checkpoint_close(checkpoint);
    }
    fake_world_release(&world);
}

static void test_the_newest_stays_whatever_it_was_saved_for(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    save_one(&world, 10, STEPS, NAN);
    save_one(&world, 20, END, NAN);
    save_one(&world, 30, BEST, 3);
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 0}, "20 30");
    fake_world_release(&world);
}

static void test_a_held_checkpoint_stays_until_released(void **state)
{
    fake_world world;
    char path[512];
    int fd;

    fake_world_init(&world, *state);
    save_one(&world, 10, STEPS, NAN);
    save_one(&world, 20, STEPS, NAN);
    save_one(&world, 30, STEPS, NAN);
    snprintf(path, sizeof(path), "%s/step-00000010", world.parent);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 0}, "10 30");
    assert_int_equal(close(fd), 0);
    expect_steps(world.parent, (dt_checkpoint_keep){1, 1, 0}, "30");
    fake_world_release(&world);
}

static void test_scaler_optimizer_and_reasons_come_back(void **state)
{
    fake_world world;
    dt_checkpoint *checkpoint;
    const dt_checkpoint_info *info;
    char path[256];

    fake_world_init(&world, *state);
    world.info.kept_for = EPOCH | BEST;
    world.info.best_score = 0.1;
    world.info.optimizer = "sgd";
    world.info.loss_scale = 0x1p-9;
    world.info.clean_steps = 7;
    world.info.skipped_steps = 3;
    fake_must_save(&world);
    snprintf(path, sizeof(path), "%s/step-00000100", world.parent);
    checkpoint = open_one(path);
    info = dt_checkpoint_get_info(checkpoint);
    assert_int_equal(info->kept_for, EPOCH | BEST);
    assert_true(info->best_score == 0.1 && info->loss_scale == 0x1p-9);
    assert_string_equal(info->optimizer, "sgd");
    assert_int_equal(info->clean_steps, 7);
    assert_int_equal(info->skipped_steps, 3);
    dt_checkpoint_close(checkpoint);
    fake_world_release(&world);
}

/* An index as the first version of this format wrote it. */
static void test_an_index_without_them_is_read(void **state)
{
    static const char *const later[] = {"best_loss", "kept_for", "optimizer", "scaler",
                                        "step_samples"};
    dt_checkpoint_info info = {0};
    fake_world world;
    json_t *json;

    fake_world_init(&world, *state);
    json = dt_checkpoint_info_make(&world.info);
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        assert_int_equal(json_object_del(json, later[i]), 0);
    assert_int_equal(dt_checkpoint_info_parse(&info, json, "index", NULL), DT_OK);
    assert_int_equal(info.kept_for, STEPS);
    assert_string_equal(info.optimizer, "adamw");
    assert_true(isnan(info.best_score) && info.loss_scale == 0);
    json_decref(json);
    fake_world_release(&world);
}

/* --- nodes without shared files */

static bool has(const char *parent, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/step-00000100/%s", parent, name);
    return dt_file_exists(path);
}

static void copy_file(const char *from, const char *to, const char *name, const char *new_name)
{
    char path[256];
    dt_strbuf text;

    dt_strbuf_init(&text);
    snprintf(path, sizeof(path), "%s/step-00000100/%s", from, name);
    assert_int_equal(dt_file_read(&text, path, 1 << 20, NULL), DT_OK);
    snprintf(path, sizeof(path), "%s/step-00000100", to);
    assert_int_equal(dt_file_make_dirs(path, 0755, NULL), DT_OK);
    snprintf(path, sizeof(path), "%s/step-00000100/%s", to, new_name);
    assert_int_equal(dt_file_write_atomic(path, text.data, text.length, 0644, NULL), DT_OK);
    dt_strbuf_release(&text);
}

static void test_the_parts_of_all_nodes_are_a_checkpoint_together(void **state)
{
    fake_world world;
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fake_world_init(&world, *state);
    world.ranks = 3;
    world.layout = FAKE_FLAT;
    world.apart = true;
    fake_must_save(&world);
    for (int node = 0; node < 3; node++) {
        char model[64], optimizer[64];

        snprintf(model, sizeof(model), "model-%d.safetensors", node);
        snprintf(optimizer, sizeof(optimizer), "optimizer-%d.safetensors", node);
        assert_true(has(world.node_parent[node], "part"));
        assert_false(has(world.node_parent[node], "complete"));
        assert_false(has(world.node_parent[node],
                         node == 0 ? "model-1.safetensors" : "model-0.safetensors"));
        assert_int_equal(dt_checkpoint_find_newest(&path, world.node_parent[node], &arena, NULL),
                         DT_OK);
        assert_null(path);
        copy_file(world.node_parent[node], world.parent, model, model);
        copy_file(world.node_parent[node], world.parent, optimizer, optimizer);
    }
    copy_file(world.node_parent[2], world.parent, "index.json", "index.json");
    copy_file(world.node_parent[1], world.parent, "part", "complete");
    for (int layout = 0; layout < FAKE_LAYOUTS; layout++) {
        world.layout = layout;
        world.ranks = layout + 1;
        fake_must_load(&world);
    }
    dt_arena_release(&arena);
    fake_world_release(&world);
}

static void test_parts_are_pruned_by_the_same_rules(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.ranks = 2;
    world.layout = FAKE_STRIPES;
    world.apart = true;
    save_one(&world, 10, STEPS, NAN);
    save_one(&world, 20, BEST, 1);
    save_one(&world, 30, STEPS, NAN);
    /* A second checkpoint of the step, with the same name on all nodes. */
    save_one(&world, 30, STEPS, NAN);
    assert_string_equal(world.saved[0].directory, "step-00000030-2");
    for (int node = 0; node < 2; node++)
        expect_steps(world.node_parent[node], (dt_checkpoint_keep){1, 0, 1}, "20 30");
    fake_world_release(&world);
}

static void test_a_failed_rank_leaves_no_parts(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    world.ranks = 3;
    world.layout = FAKE_FLAT;
    world.apart = true;
    world.failing_rank = 1;
    assert_int_not_equal(fake_world_run(&world, fake_save), DT_OK);
    for (int node = 0; node < 3; node++)
        assert_false(has(world.node_parent[node], ""));
    fake_world_release(&world);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, fake_folder_make, fake_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_each_rule_keeps_its_own),
        IN_FOLDER(test_of_equal_losses_the_newer_is_the_better),
        IN_FOLDER(test_the_best_may_be_by_bleu),
        IN_FOLDER(test_the_newest_stays_whatever_it_was_saved_for),
        IN_FOLDER(test_a_held_checkpoint_stays_until_released),
        IN_FOLDER(test_scaler_optimizer_and_reasons_come_back),
        IN_FOLDER(test_an_index_without_them_is_read),
        IN_FOLDER(test_the_parts_of_all_nodes_are_a_checkpoint_together),
        IN_FOLDER(test_parts_are_pruned_by_the_same_rules),
        IN_FOLDER(test_a_failed_rank_leaves_no_parts),
    };

    setenv("DTRUN_LOG", "error", 1);
    dt_log_init("test");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
