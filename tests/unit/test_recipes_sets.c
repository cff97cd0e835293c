/* `--set` on a recipe, and on the recipe of a resumed run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recipes/fields/fields.h"
#include "recipes_support.h"

static void test_a_set_wins_over_the_file(void **state)
{
    reading r;

    expect_good(&r, LEAST "clip: 2\n", "clip=3");
    assert_true(r.recipe.clip == 3);
    reading_close(&r);
}

static void test_a_set_takes_lists_maps_and_plain_text(void **state)
{
    reading r;

    expect_good(&r, LEAST, "data.train=[/a, '/b c']");
    assert_int_equal(r.recipe.data.train.count, 2);
    assert_string_equal(r.recipe.data.train.items[1], "/b c");
    reading_close(&r);
    expect_good(&r, LEAST, "data.train=/x/*: #.txt");
    assert_string_equal(r.recipe.data.train.items[0], "/x/*: #.txt");
    reading_close(&r);
    expect_good(&r, LEAST, "schedule={steps: 5, min_lr: 1e-5}");
    assert_int_equal(r.recipe.schedule.steps, 5);
    assert_true(r.recipe.schedule.min_lr == 1e-5);
    reading_close(&r);
    expect_good(&r, LEAST, "precision=bf16");
    assert_int_equal(r.recipe.precision.kind, DT_PRECISION_BF16);
    reading_close(&r);
}

static void test_other_names_of_a_field_are_read_as_the_field(void **state)
{
    reading r;

    expect_good(&r,
                "model: {n_layer: 3, num_heads: 2, d_model: 8}\ndata: a.txt\nmax_steps: 9\n"
                "batch: {micro_batch_size: 5, block_size: 7}\nmax_grad_norm: 2\n",
                "seq_len=6");
    assert_int_equal(r.recipe.model.layers, 3);
    assert_int_equal(r.recipe.model.heads, 2);
    assert_int_equal(r.recipe.model.embed, 8);
    assert_int_equal(r.recipe.schedule.steps, 9);
    assert_int_equal(r.recipe.batch.sequences, 5);
    assert_int_equal(r.recipe.batch.tokens, 6); /* --set overrides, by any of the names */
    assert_true(r.recipe.clip == 2);
    reading_close(&r);
    expect_good(&r, LEAST "d_model: 24\n", "optimizer.learning_rate=0.5");
    assert_int_equal(r.recipe.model.embed, 24); /* not the preset's */
    assert_true(r.recipe.optimizer.lr == 0.5);
    reading_close(&r);
    expect_refused(LEAST, "d_model=0",
                   "--set d_model=0: 'model.embed' is 0: expected a whole number, 1 "
                   "to 65536");
}

static void test_paths_of_a_set_start_at_the_current_folder(void **state)
{
    char *current = getcwd(NULL, 0);
    size_t length;
    reading r;

    assert_non_null(current);
    length = strlen(current);
    expect_good(&r, LEAST, "data=x.txt");
    assert_memory_equal(r.recipe.data.train.items[0], current, length);
    assert_string_equal(r.recipe.data.train.items[0] + length, "/x.txt");
    reading_close(&r);
    free(current);
}

static void test_a_wrong_set_is_named_in_the_message(void **state)
{
    expect_refused(LEAST, "clip=-1",
                   "--set clip=-1: 'clip' is -1: expected a number, 0 to 1000000");
    expect_refused(LEAST, "optimizer.rl=1",
                   "--set optimizer.rl=1: unknown key 'optimizer.rl' (did you mean "
                   "'optimizer.lr'?)");
    expect_refused(LEAST, "batchsize=1",
                   "--set batchsize=1: unknown key 'batchsize' (did you mean 'batch.sequences'?)");
    expect_refused(LEAST, "clip", "--set clip: expected KEY=VALUE, such as 'optimizer.lr=1e-3'");
    expect_refused(LEAST, "=1", "--set =1: unknown key ''");
    expect_refused(LEAST, "name=",
                   "--set name=: 'name' has no value: fill it in, or remove the "
                   "key");
    expect_refused(LEAST, "batch={size: 1}",
                   "--set batch={size: 1}: unknown key 'size' (known here: sequences, tokens, "
                   "max_tokens, accumulate, total)");
    expect_refused(LEAST, "clip=[1", "--set clip=[1: this '[' is not closed: a ']' is missing");
    expect_refused(LEAST, "model.heads=7",
                   "--set model.heads=7: 'model.heads' 7 does not divide 'model.embed' 768: the "
                   "nearest that do are 6 and 8");
    expect_refused(LEAST, "name=\xff",
                   "--set name=?: broken UTF-8 (byte 0xff): save the file as UTF-8 text");
}

static void test_the_last_set_of_a_field_wins(void **state)
{
    static const char *const sets[] = {"clip=3", "clip=4"};
    const dt_recipe_source source = {
        .path = "gpt.yaml", .text = LEAST, .sets = sets, .sets_count = 2};
    reading r;

    reading_open(&r);
    assert_int_equal(dt_recipe_read(&r.recipe, &source, &r.arena, &r.err), DT_OK);
    assert_true(r.recipe.clip == 4);
    reading_close(&r);
}

/* --- dt_recipe_change --- */

static void change(reading *to, const reading *from, const char *set)
{
    const char *const sets[] = {set};

    reading_open(to);
    to->st = dt_recipe_change(&to->recipe, &from->recipe, sets, set != NULL ? 1 : 0, &to->arena,
                              &to->err);
}

static void test_a_change_of_nothing_is_the_same_recipe(void **state)
{
    char before[33], after[33];
    reading from, to;

    expect_good(&from, "model: gpt2-small\ndata: {train: a, validation: b}\nschedule: {steps: 9}\n",
                NULL);
    change(&to, &from, NULL);
    assert_string_equal(to.err.message, "");
    dt_recipe_hash(before, &from.recipe);
    reading_close(&from); /* nothing is borrowed from it */
    dt_recipe_hash(after, &to.recipe);
    assert_string_equal(before, after);
    reading_close(&to);
}

static void test_changes_are_listed_by_field_without_secrets(void **state)
{
    reading before, after;
    json_t *changes;
    dt_strbuf text;

    expect_good(&before, LEAST, NULL);
    expect_good(&after, LEAST "notify: https://a.example/secret\nbatch: 3\n", "ranks=2");
    changes = dt_recipe_changes(&before.recipe, &after.recipe);
    dt_strbuf_init(&text);
    dt_json_write(&text, changes);
    assert_string_equal(text.data,
                        "[{\"key\":\"ranks\",\"old\":1,\"new\":2},"
                        "{\"key\":\"batch.sequences\",\"old\":8,\"new\":3},"
                        "{\"key\":\"notify.webhook\",\"old\":\"\",\"new\":\"(not shown)\"}]");
    dt_strbuf_release(&text);
    json_decref(changes);
    changes = dt_recipe_changes(&after.recipe, &after.recipe);
    assert_int_equal(json_array_size(changes), 0);
    json_decref(changes);
    reading_close(&before);
    reading_close(&after);
}

static void test_a_change_is_checked_like_a_recipe(void **state)
{
    reading from, to;

    expect_good(&from, LEAST "name: run-of-mine\n", NULL);
    change(&to, &from, "schedule.steps=500");
    assert_int_equal(to.recipe.schedule.steps, 500);
    assert_string_equal(to.recipe.name, "run-of-mine");
    reading_close(&to);
    change(&to, &from, "schedule.min_lr=1");
    assert_int_equal(to.st, DT_ERR_RECIPE);
    assert_string_equal(to.err.message, "--set schedule.min_lr=1: 'schedule.min_lr' 1 is above "
                                        "'optimizer.lr' 0.0003");
    reading_close(&to);
    change(&to, &from, "optimizer.lr=0");
    assert_int_equal(to.st, DT_ERR_RECIPE);
    reading_close(&to);
    reading_close(&from);
}

static void test_a_changed_preset_brings_its_dimensions(void **state)
{
    reading from, to;

    expect_good(&from, LEAST, NULL);
    change(&to, &from, "model=gpt2-xl");
    assert_string_equal(to.err.message, "");
    assert_int_equal(to.recipe.model.layers, 48);
    assert_int_equal(to.recipe.model.embed, 1600);
    reading_close(&to);
    change(&to, &from, "model={preset: gpt2-xl, layers: 2}");
    assert_int_equal(to.recipe.model.layers, 2);
    assert_int_equal(to.recipe.model.embed, 1600);
    reading_close(&to);
    reading_close(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_wins_over_the_file),
        cmocka_unit_test(test_a_set_takes_lists_maps_and_plain_text),
        cmocka_unit_test(test_other_names_of_a_field_are_read_as_the_field),
        cmocka_unit_test(test_paths_of_a_set_start_at_the_current_folder),
        cmocka_unit_test(test_a_wrong_set_is_named_in_the_message),
        cmocka_unit_test(test_the_last_set_of_a_field_wins),
        cmocka_unit_test(test_a_change_of_nothing_is_the_same_recipe),
        cmocka_unit_test(test_changes_are_listed_by_field_without_secrets),
        cmocka_unit_test(test_a_change_is_checked_like_a_recipe),
        cmocka_unit_test(test_a_changed_preset_brings_its_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
