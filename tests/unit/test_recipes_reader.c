/* How valid recipes are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes_support.h"

static void test_the_smallest_recipe_gets_every_default(void **state)
{
    reading r;

    expect_good(&r, LEAST, NULL);
    assert_string_equal(r.recipe.name, "gpt");
    assert_int_equal(r.recipe.nodes.count, 1);
    assert_string_equal(r.recipe.nodes.items[0], "localhost");
    assert_int_equal(r.recipe.gpus, -1);
    assert_int_equal(r.recipe.ranks, 1);
    assert_int_equal(r.recipe.threads, 0);
    assert_int_equal(r.recipe.strategy.kind, DT_STRATEGY_DDP);
    assert_true(r.recipe.strategy.bucket_mb == 25);
    assert_int_equal(r.recipe.model.kind, DT_MODEL_GPT2);
    assert_string_equal(r.recipe.model.preset, "gpt2-small");
    assert_int_equal(r.recipe.model.layers, 12);
    assert_int_equal(r.recipe.model.heads, 12);
    assert_int_equal(r.recipe.model.embed, 768);
    assert_int_equal(r.recipe.precision.kind, DT_PRECISION_FP32);
    assert_int_equal(r.recipe.data.train.count, 1);
    assert_string_equal(r.recipe.data.train.items[0], "/r/a.txt");
    assert_int_equal(r.recipe.data.validation.count, 0);
    assert_true(r.recipe.data.split == 0.1);
    assert_int_equal(r.recipe.data.tokens, DT_TOKENS_AUTO);
    assert_true(r.recipe.optimizer.lr == 3e-4);
    assert_int_equal(r.recipe.schedule.steps, 100);
    assert_true(r.recipe.clip == 1);
    assert_true(r.recipe.grace_seconds == 30);
    reading_close(&r);
}

static void test_a_hostfile_replaces_nodes(void **state)
{
    static const char hosts[] = "gpu-a slots=2\ngpu-[1-2]\n";
    char path[] = "/tmp/dt-hostfile-XXXXXX", text[512];
    int fd = mkstemp(path);
    reading r;

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(dt_file_write_atomic(path, hosts, strlen(hosts), 0600, NULL), DT_OK);
    snprintf(text, sizeof(text), LEAST "hostfile: %s\n", path);
    expect_good(&r, text, NULL);
    assert_int_equal(r.recipe.nodes.count, 3);
    assert_string_equal(r.recipe.nodes.items[2], "gpu-2");
    assert_string_equal(r.recipe.hostfile, "");
    assert_int_equal(unlink(path), 0);
    reading_close(&r);
}

static void test_a_scalar_means_the_shorthand_field_of_a_map(void **state)
{
    reading r;

    expect_good(&r,
                LEAST "strategy: ddp\nprecision: bf16\nbatch: 3\noptimizer: adamw\n"
                      "evaluate: 7\ncheckpoint: 8\nlog: 9\n",
                NULL);
    assert_int_equal(r.recipe.precision.kind, DT_PRECISION_BF16);
    assert_int_equal(r.recipe.batch.sequences, 3);
    assert_int_equal(r.recipe.evaluate.every, 7);
    assert_int_equal(r.recipe.checkpoint.every, 8);
    assert_int_equal(r.recipe.log.every, 9);
    reading_close(&r);
}

static void test_a_model_may_be_its_kind_or_a_preset(void **state)
{
    reading r;

    expect_good(&r, LEAST, "model=gpt2-xl");
    assert_string_equal(r.recipe.model.preset, "gpt2-xl");
    assert_int_equal(r.recipe.model.layers, 48);
    reading_close(&r);
    expect_good(&r, LEAST, "model=gpt2");
    assert_int_equal(r.recipe.model.layers, 12);
    reading_close(&r);
}

static void test_a_preset_fills_only_what_is_left_out(void **state)
{
    reading r;

    expect_good(&r, "model: {preset: gpt2-medium, layers: 3}\ndata: a.txt\nschedule: {steps: 1}\n",
                NULL);
    assert_int_equal(r.recipe.model.layers, 3);
    assert_int_equal(r.recipe.model.heads, 16);
    assert_int_equal(r.recipe.model.embed, 1024);
    reading_close(&r);
}

static void test_warm_up_starts_at_min_lr_by_default(void **state)
{
    reading r;

    expect_good(&r, "model: gpt2-small\ndata: a\nschedule: {steps: 9, min_lr: 1e-5}\n", NULL);
    assert_true(r.recipe.schedule.warmup_init_lr == 1e-5);
    reading_close(&r);
    expect_good(&r,
                "model: gpt2-small\ndata: a\n"
                "schedule: {steps: 9, min_lr: 1e-5, warmup_init_lr: 0}\n",
                NULL);
    assert_true(r.recipe.schedule.warmup_init_lr == 0);
    reading_close(&r);
}

static void test_numbers_are_read_as_people_write_them(void **state)
{
    static const struct {
        const char *set;
        int64_t steps;
    } cases[] = {{"schedule.steps=20000", 20000},
                 {"schedule.steps=20_000", 20000},
                 {"schedule.steps=2e4", 20000},
                 {"schedule.steps=+2.5e1", 25}};
    reading r;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_good(&r, LEAST, cases[i].set);
        assert_int_equal(r.recipe.schedule.steps, cases[i].steps);
        reading_close(&r);
    }
    expect_good(&r, LEAST, "seed=9007199254740991");
    assert_int_equal(r.recipe.seed, 9007199254740991);
    reading_close(&r);
}

static void test_a_number_for_validation_is_the_split(void **state)
{
    reading r;

    expect_good(&r, "model: gpt2-small\ndata: {train: a, validation: 0.25}\nschedule: {steps: 9}\n",
                NULL);
    assert_true(r.recipe.data.split == 0.25);
    assert_int_equal(r.recipe.data.validation.count, 0);
    reading_close(&r);
}

static void test_relative_paths_start_at_the_recipe_and_home(void **state)
{
    reading r;

    setenv("HOME", "/home/ada", 1);
    expect_good(&r,
                "model: gpt2-small\nschedule: {steps: 9}\n"
                "data: {train: [a.txt, ./b/*.txt, /c.txt, ~/d.txt, '*.bin'], validation: ../v}\n",
                NULL);
    assert_int_equal(r.recipe.data.train.count, 5);
    assert_string_equal(r.recipe.data.train.items[0], "/r/a.txt");
    assert_string_equal(r.recipe.data.train.items[1], "/r/b/*.txt");
    assert_string_equal(r.recipe.data.train.items[2], "/c.txt");
    assert_string_equal(r.recipe.data.train.items[3], "/home/ada/d.txt");
    assert_string_equal(r.recipe.data.train.items[4], "/r/*.bin");
    assert_string_equal(r.recipe.data.validation.items[0], "/r/../v");
    reading_close(&r);
}

static void test_a_byte_order_mark_and_windows_line_ends_are_accepted(void **state)
{
    reading r;

    expect_good(&r, "\xef\xbb\xbfmodel: gpt2-small\r\ndata: a\r\nschedule:\r\n  steps: 9\r\n",
                NULL);
    assert_int_equal(r.recipe.schedule.steps, 9);
    reading_close(&r);
}

static void test_this_machine_may_be_named_in_several_ways(void **state)
{
    static const char *const names[] = {"nodes=localhost", "nodes=[127.0.0.1]", "nodes=::1",
                                        "nodes=LOCALHOST"};
    reading r;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        expect_good(&r, LEAST, names[i]);
        reading_close(&r);
    }
}

/* Lines that messages advise to write must be accepted. */
static void test_what_messages_advise_is_taken(void **state)
{
    static const char *const advised[] = {
        LEAST "gpus: none\n",
        LEAST "gpus: 0\n",
        LEAST "nodes: [{host: a, gpus: none}, b gpus=none]\n",
        LEAST "precision: bf16\n",
        LEAST "strategy: ddp\n",
        LEAST "strategy: fsdp\n",
        LEAST "activation_checkpointing: full\n",
        LEAST "nodes: slurm:1\n",
        LEAST "nodes: slurm\n",
        LEAST "clip: 1\n",
        LEAST "failure: {launcher_lost: stop_after 10m}\n",
        LEAST "optimizer: {lr: 1e-3, momentum: 0.9}\n",
        "model: gpt2-small\nschedule: {steps: 9}\ndata: {train: a, tail: wrap}\n",
        "model: {preset: gpt2-small}\nschedule: {epochs: 2}\ndata: a\n",
    };

    for (size_t i = 0; i < sizeof(advised) / sizeof(advised[0]); i++) {
        reading r;

        expect_good(&r, advised[i], NULL);
        reading_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_recipe_gets_every_default),
        cmocka_unit_test(test_what_messages_advise_is_taken),
        cmocka_unit_test(test_a_hostfile_replaces_nodes),
        cmocka_unit_test(test_a_scalar_means_the_shorthand_field_of_a_map),
        cmocka_unit_test(test_a_model_may_be_its_kind_or_a_preset),
        cmocka_unit_test(test_a_preset_fills_only_what_is_left_out),
        cmocka_unit_test(test_warm_up_starts_at_min_lr_by_default),
        cmocka_unit_test(test_numbers_are_read_as_people_write_them),
        cmocka_unit_test(test_a_number_for_validation_is_the_split),
        cmocka_unit_test(test_relative_paths_start_at_the_recipe_and_home),
        cmocka_unit_test(test_a_byte_order_mark_and_windows_line_ends_are_accepted),
        cmocka_unit_test(test_this_machine_may_be_named_in_several_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
