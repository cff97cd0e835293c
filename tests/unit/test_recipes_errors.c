/* Every kind of error in a recipe, with its message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes_support.h"

typedef struct bad {
    const char *text, *message;
} bad;

static void expect_all(const bad *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_refused(cases[i].text, NULL, cases[i].message);
}

#define EXPECT_ALL(cases) expect_all(cases, sizeof(cases) / sizeof(cases[0]))

static void test_an_unknown_key_names_the_line_and_the_likely_key(void **state)
{
    static const bad cases[] = {
        {LEAST "optimizer:\n        batchsize: 8\n",
         "/r/gpt.yaml:5:9: unknown key 'batchsize' (did you mean 'batch.sequences'?)"},
        {LEAST "batch_size: 8\n",
         "/r/gpt.yaml:4:1: unknown key 'batch_size' (did you mean 'batch.sequences'?)"},
        {LEAST "lr: 8\n", "/r/gpt.yaml:4:1: unknown key 'lr' (did you mean 'optimizer.lr'?)"},
        {LEAST "steps: 8\n",
         "/r/gpt.yaml:4:1: unknown key 'steps' (did you mean 'schedule.steps'?)"},
        {LEAST "optimiser: adamw\n",
         "/r/gpt.yaml:4:1: unknown key 'optimiser' (did you mean 'optimizer'?)"},
        {LEAST "optimizer: {learning-rate: 1}\n",
         "/r/gpt.yaml:4:13: unknown key 'learning-rate' (did you mean 'optimizer.lr'?)"},
        {LEAST "optimizer: {d_model: 1}\n",
         "/r/gpt.yaml:4:13: unknown key 'd_model' (did you mean 'model.embed'?)"},
        {LEAST "optimizer: {wieght_decay: 1}\n",
         "/r/gpt.yaml:4:13: unknown key 'wieght_decay' (did you mean 'optimizer.weight_decay'?)"},
        {LEAST "optimizer.lr: 1\n",
         "/r/gpt.yaml:4:1: unknown key 'optimizer.lr' (write it as 'optimizer: {lr: ...}')"},
        {LEAST "checkpoint: {frobnicate: 1}\n",
         "/r/gpt.yaml:4:14: unknown key 'frobnicate' (known here: every, keep, "
         "every_epoch, keep_epochs, keep_best, best_by)"},
        {LEAST "<<: 1\n",
         "/r/gpt.yaml:4:1: unknown key '<<': remove it, or see docs/recipe.md for the fields of a "
         "recipe"},
    };
    EXPECT_ALL(cases);
}

static void test_a_wrong_type_reports_the_expected_one(void **state)
{
    static const bad cases[] = {
        {LEAST "tensor: two\n",
         "/r/gpt.yaml:4:9: 'tensor.size' is 'two': expected a whole number, 1 to 1024 ranks"},
        {LEAST "ranks: two\n",
         "/r/gpt.yaml:4:8: 'ranks' is 'two': expected a whole number, 1 to 1024 per node"},
        {LEAST "ranks: 1.5\n",
         "/r/gpt.yaml:4:8: 'ranks' is '1.5': expected a whole number, 1 to 1024 per node"},
        {LEAST "ranks: \"2\"\n",
         "/r/gpt.yaml:4:8: 'ranks' is text: expected a whole number, 1 to 1024 per node (remove "
         "the quotes)"},
        {LEAST "ranks: [2]\n",
         "/r/gpt.yaml:4:8: 'ranks' is a list: expected a whole number, 1 to 1024 per node"},
        {LEAST "clip: 0x10\n",
         "/r/gpt.yaml:4:7: 'clip' is '0x10': expected a number, 0 to 1000000"},
        {LEAST "clip: .inf\n",
         "/r/gpt.yaml:4:7: 'clip' is '.inf': expected a number, 0 to 1000000"},
        {LEAST "clip: 1e999\n",
         "/r/gpt.yaml:4:7: 'clip' is '1e999': expected a number, 0 to 1000000"},
        {LEAST "clip:\n", "/r/gpt.yaml:4:6: 'clip' has no value: fill it in, or remove the key"},
        {LEAST "batch: ~\n",
         "/r/gpt.yaml:4:8: 'batch' has no value: fill it in, or remove the key"},
        {LEAST "name: {a: b}\n", "/r/gpt.yaml:4:7: 'name' is a map: expected text"},
        {LEAST "strategy: fsd\n",
         "/r/gpt.yaml:4:11: 'strategy' is 'fsd': expected a map, or one of 'dp', 'ddp', 'fsdp'"},
        {LEAST "strategy: [ddp]\n",
         "/r/gpt.yaml:4:11: 'strategy' is a list: expected a map, or one of 'dp', 'ddp', 'fsdp'"},
        {LEAST "precision: {kind: fp8}\n",
         "/r/gpt.yaml:4:19: 'precision.kind' is 'fp8': expected one of 'fp32', 'bf16', 'fp16'"},
        {LEAST "nodes: [{gpus: 4}]\n", "/r/gpt.yaml:4:9: 'nodes' is a map: expected a list of "
                                       "text, 1 to 1024 items, or maps with "
                                       "the key 'host'"},
        {LEAST "nodes: [{host: a, cpus: 4}]\n",
         "/r/gpt.yaml:4:19: 'nodes' is text: expected a list of text, 1 to 1024 items of names or "
         "of maps with the keys host, gpus, first_gpu, ranks"},
        {LEAST "time_limit: soon\n",
         "/r/gpt.yaml:4:13: 'time_limit' is 'soon': expected seconds, or a time like '90s', '10m', "
         "'2h' or '1d', 0 to 3153600000 seconds"},
        {LEAST "strategy: {kind: fsdp, reshard_after_forward: yes}\n",
         "/r/gpt.yaml:4:47: 'strategy.reshard_after_forward' is 'yes': expected 'true' or 'false'"},
        {LEAST "nodes: [{host: a, host: b}]\n",
         "/r/gpt.yaml:4:19: duplicate key 'host' (first at /r/gpt.yaml:4:10)"},
        {LEAST "nodes: []\n",
         "/r/gpt.yaml:4:8: 'nodes' is a list of 0: expected a list of text, 1 to 1024 items"},
        {LEAST "nodes: [~]\n",
         "/r/gpt.yaml:4:9: 'nodes' has no value: fill it in, or remove the key"},
        {LEAST "nodes: ['']\n",
         "/r/gpt.yaml:4:8: 'nodes' contains an empty text: remove it, or fill it in"},
        {"model: gpt3\n",
         "/r/gpt.yaml:1:8: 'model' is 'gpt3': expected a map, or one of 'gpt2', 'mlp', 'llama', "
         "'transformer', or one of 'gpt2-small', 'gpt2-medium', 'gpt2-large', 'gpt2-xl', "
         "'transformer_lm_gpt2_small', 'smollm2-135m', 'smollm2-360m', 'tinyllama-1.1b', "
         "'llama3.2-1b', 'llama3-8b', 'qwen2.5-0.5b', 'qwen3-0.6b', 'qwen3-8b', "
         "'transformer_iwslt_de_en', 'transformer_base', 'transformer_big'"},
        {LEAST "log: often\n",
         "/r/gpt.yaml:4:6: 'log.every' is 'often': expected a whole number, 1 to 1000000 steps"},
    };
    EXPECT_ALL(cases);
}

static void test_a_value_out_of_range_reports_range_and_unit(void **state)
{
    static const bad cases[] = {
        {LEAST "ranks: 0\n",
         "/r/gpt.yaml:4:8: 'ranks' is 0: expected a whole number, 1 to 1024 per node"},
        {LEAST "optimizer: {lr: 0}\n",
         "/r/gpt.yaml:4:17: 'optimizer.lr' is 0: expected a number, above 0, up to 100"},
        {LEAST "optimizer: {beta2: 1}\n",
         "/r/gpt.yaml:4:20: 'optimizer.beta2' is 1: expected a number, 0 to below 1"},
        {LEAST "grace_seconds: -1\n",
         "/r/gpt.yaml:4:16: 'grace_seconds' is -1: expected a number, 0 to 86400 seconds"},
        {LEAST "seed: 9007199254740993\n", "/r/gpt.yaml:4:7: 'seed' is 9007199254740992: expected "
                                           "a whole number, 0 to 9007199254740991"},
    };
    EXPECT_ALL(cases);
}

static void test_a_newer_version_is_refused_at_its_line(void **state)
{
    static const bad cases[] = {
        {LEAST "recipe: 2\n",
         "/r/gpt.yaml:4:9: the recipe has version 2, but this dtrun reads version 1: use a "
         "newer dtrun"},
        {"recipe: 7\nmodel: {colour: red}\n",
         "/r/gpt.yaml:1:9: the recipe has version 7, but this dtrun reads version 1: use a "
         "newer dtrun"},
        {"recipe: 0\n", "/r/gpt.yaml:1:9: 'recipe' is the recipe's version (expected 1)"},
        {"recipe: [1]\n", "/r/gpt.yaml:1:9: 'recipe' is the recipe's version (expected 1)"},
        {LEAST "recipe: 1\nrecipe: 1\n",
         "/r/gpt.yaml:5:1: duplicate key 'recipe' (first at /r/gpt.yaml:4:1)"},
    };
    EXPECT_ALL(cases);
}

static void test_a_key_that_is_there_twice_is_refused(void **state)
{
    static const bad cases[] = {
        {LEAST "clip: 1\nclip: 1\n",
         "/r/gpt.yaml:5:1: duplicate key 'clip' (first at /r/gpt.yaml:4:1)"},
        {LEAST "data: b\n", "/r/gpt.yaml:4:1: duplicate key 'data' (first at /r/gpt.yaml:2:1)"},
        {LEAST "clip: 1\ngrad_clip: 1\n",
         "/r/gpt.yaml:5:12: a second value for 'clip' (first at /r/gpt.yaml:4:7)"},
        {"model: {kind: gpt2, embed: 8}\nd_model: 8\n",
         "/r/gpt.yaml:2:10: a second value for 'model.embed' (first at /r/gpt.yaml:1:28)"},
        {"model:\n  n_embd: 8\n  d_model: 8\n",
         "/r/gpt.yaml:3:12: a second value for 'model.embed' (first at /r/gpt.yaml:2:11)"},
        {"model: gpt2-small\ndata: {validation: 0.1, split: 0.2}\n",
         "/r/gpt.yaml:2:32: a second value for 'data.split' (first at /r/gpt.yaml:2:20)"},
    };
    EXPECT_ALL(cases);
}

static void test_what_is_missing_is_asked_for_where_its_map_begins(void **state)
{
    static const bad cases[] = {
        {"data: a\nschedule: {steps: 1}\n",
         "/r/gpt.yaml: 'model' is missing: add a preset, as in 'model: gpt2-small', or dimensions, "
         "as in 'model: {layers: 4, heads: 4, embed: 128}'"},
        {"data: a\nschedule: {steps: 1}\nmodel:\n  layers: 2\n",
         "/r/gpt.yaml:3:1: 'model.heads' is missing (attention heads of a block; they "
         "divide embed, unless head_width is given): set it, or use 'preset: gpt2-small' "
         "for all dimensions"},
        {"model: gpt2-small\nschedule: {steps: 1}\n",
         "/r/gpt.yaml: 'data.train\' is missing (training files or globs; relative ones "
         "start at the recipe's folder; https://HOST/FILE#sha256=DIGEST is downloaded and "
         "checked before anything starts)"},
        {"model: gpt2-small\ndata: a\n\nschedule: cosine\n",
         "/r/gpt.yaml:4:1: 'schedule.steps' is missing (length of the whole run): set it, "
         "or 'schedule.epochs'"},
    };
    EXPECT_ALL(cases);
}

static void test_fields_that_contradict_each_other_are_refused(void **state)
{
    static const bad cases[] = {
        {"data: a\nschedule: {steps: 1}\nmodel: {layers: 1, heads: 5, embed: 128}\n",
         "/r/gpt.yaml:3:27: 'model.heads' 5 does not divide 'model.embed' 128: the nearest that "
         "do are 4 and 8"},
        {"data: a\nschedule: {steps: 1}\nmodel: {layers: 1, heads: 9, embed: 8}\n",
         "/r/gpt.yaml:3:27: 'model.heads' 9 does not divide 'model.embed' 8: the nearest that "
         "does is 8"},
        {"data: a\nmodel: gpt2-small\nschedule: {steps: 10, min_lr: 1}\n",
         "/r/gpt.yaml:3:31: 'schedule.min_lr' 1 is above 'optimizer.lr' 0.0003"},
        {"data: {train: a, validation: b, split: 0.2}\nmodel: gpt2-small\nschedule: {steps: 10}\n",
         "/r/gpt.yaml:1:40: 'data.split' and 'data.validation' cannot be combined: keep "
         "one"},
        {LEAST "nodes: [localhost, 127.0.0.1]\n",
         "/r/gpt.yaml:4:8: 'nodes' names this machine twice: set 'ranks' for more processes on "
         "it"},
        {LEAST "nodes: [a, b]\nnodes_min: 3\n",
         "/r/gpt.yaml:5:12: 'nodes_min' is 3, but there are only 2 nodes"},
        {LEAST "nodes: slurm:4\nnodes_min: 5\n",
         "/r/gpt.yaml:5:12: 'nodes_min' is 5, but there are only 4 nodes"},
        {LEAST "nodes: slurm:4 ranks=2\nnodes_min: 5\n",
         "/r/gpt.yaml:5:12: 'nodes_min' is 5, but there are only 4 nodes"},
        {LEAST "nodes: slurm:4\nslurm: -p main\n",
         "/r/gpt.yaml:5:8: 'slurm.options' takes options of sbatch in their long form, as in "
         "'--partition=gpu'"},
        {LEAST "nodes: slurm:4\nslurm: [--partition=a, --array=1-3]\n",
         "/r/gpt.yaml:5:24: 'slurm.options': dtrun sets '--array' itself, from nodes, ranks "
         "and threads of the recipe"},
        {LEAST "nodes: [a, b]\nhostfile: /h\n",
         "/r/gpt.yaml:5:11: 'hostfile' and 'nodes' cannot be combined: remove one"},
        {LEAST "nodes: [a, b]\nstrategy: dp\n",
         "/r/gpt.yaml:5:11: 'strategy' is 'dp', which trains in one process on one node: "
         "with several nodes use 'ddp'"},
        {LEAST "optimizer: {kind: sgd, nesterov: true}\n",
         "/r/gpt.yaml:4:34: 'optimizer.nesterov' requires 'optimizer.momentum' above 0"},
        {LEAST "failure: {launcher_lost: stop}\n",
         "/r/gpt.yaml:4:26: 'failure.launcher_lost' is neither 'continue' nor a time of at most "
         "3650 days, as in 'stop_after 10m'"},
        {LEAST "notify: ftp://a.example/secret\n",
         "/r/gpt.yaml:4:9: 'notify.webhook' is not a URL: expected one that begins with "
         "'https://', 'http://' or '${env:NAME}'"},
        {LEAST "name: -x\n", "/r/gpt.yaml:4:7: 'name' is '-x': expected 1 to 64 letters, digits, "
                             "'.', '_' or '-', the first neither '.' nor '-'"},
        {LEAST "name: ../x\n", "/r/gpt.yaml:4:7: 'name' is '../x': expected 1 to 64 letters, "
                               "digits, '.', '_' or '-', the first neither '.' nor '-'"},
    };
    EXPECT_ALL(cases);
}

static void test_text_that_is_not_plain_yaml_is_refused(void **state)
{
    static const bad cases[] = {
        {"", "/r/gpt.yaml:1:1: the recipe is empty (the least it needs: model, data, schedule)"},
        {"# a comment\n",
         "/r/gpt.yaml:1:1: the recipe is empty (the least it needs: model, data, schedule)"},
        {"---\n...\n",
         "/r/gpt.yaml:1:1: the recipe is empty (the least it needs: model, data, schedule)"},
        {"- a\n- b\n",
         "/r/gpt.yaml:1:1: the recipe is a list: expected a map of fields, such as 'data: ...'"},
        {"hello\n",
         "/r/gpt.yaml:1:1: the recipe is text: expected a map of fields, such as 'data: ...'"},
        {"data:\n\ttrain: a\n", "/r/gpt.yaml:2:1: a tab in the indentation: use spaces"},
        {"data:\n  \ttrain: a\n", "/r/gpt.yaml:2:3: a tab in the indentation: use spaces"},
        {"data: a\xff\n", "/r/gpt.yaml:1:8: broken UTF-8 (byte 0xff): save the file as UTF-8 text"},
        {"# \xc3\xa9\xc3\xa9 \xc0\xaf\n",
         "/r/gpt.yaml:1:6: broken UTF-8 (byte 0xc0): save the file as UTF-8 text"},
        {"a: \xed\xa0\x80\n",
         "/r/gpt.yaml:1:4: broken UTF-8 (byte 0xed): save the file as UTF-8 text"},
        {"a: \xe2\x82", "/r/gpt.yaml:1:4: broken UTF-8 (byte 0xe2): save the file as UTF-8 text"},
        {"a: \x1b[2J\n", "/r/gpt.yaml:1:4: control character U+001B: this is not a text file"},
        {"data: a\n---\ndata: b\n", "/r/gpt.yaml:2:1: a second document: a recipe has only one"},
        {"data: &a b\n",
         "/r/gpt.yaml:1:7: anchors are not supported in a recipe: write the value out"},
        {"data: *a\n",
         "/r/gpt.yaml:1:7: aliases are not supported in a recipe: write the value out (a "
         "text that begins with '*' needs quotes)"},
        {"data: *.txt\n", "/r/gpt.yaml:1:8: a plain text cannot begin with '*' or '&': put it in "
                          "quotes"},
        {"data: !!str a\n",
         "/r/gpt.yaml:1:7: tags are not supported in a recipe: remove the word that begins "
         "with '!'"},
        {"? [a]\n: b\n", "/r/gpt.yaml:1:3: a key must be plain text"},
        {"data: \"a\\0b\"\n", "/r/gpt.yaml:1:7: a text with a zero byte in it"},
        {"data: [[[[[[[[[a]]]]]]]]]\n", "/r/gpt.yaml:1:13: nested too deeply for a recipe"},
        {"a: b: c\n", "/r/gpt.yaml:1:4: not YAML: a value with a colon and a blank needs quotes: "
                      "'a: \"b: c\"'"},
        {"data: a\nname: b\xe2\x80\xa8ranks: 2\n",
         "/r/gpt.yaml:2:8: line separator U+2028: use a plain line break"},
    };
    EXPECT_ALL(cases);
}

static void test_what_is_not_closed_is_reported_where_it_opens(void **state)
{
    static const bad cases[] = {
        {"data: [a\n", "/r/gpt.yaml:1:7: this '[' is not closed: a ']' is missing"},
        {"data: a\nmodel: {layers: 2,\n  heads: 2\n# so far\n\n",
         "/r/gpt.yaml:2:8: this '{' is not closed: a '}' is missing"},
        {"model: {", "/r/gpt.yaml:1:8: this '{' is not closed: a '}' is missing"},
        {"data: {train: [a, b}\n", "/r/gpt.yaml:1:20: not YAML: a ']' is missing before this '}'"},
        {"model: {layers: 2, heads: 2\ndata: a\nschedule: {steps: 1}\n",
         "/r/gpt.yaml:2:5: not YAML: did not find expected ',' or '}' while parsing a flow mapping "
         "(is the '{' of line 1, column 8, closed?)"},
        {"data: \"a\nmodel: b\n", "/r/gpt.yaml:1:7: this quote is not closed"},
    };
    EXPECT_ALL(cases);
}

/* YAML 1.1 reads 010 as eight, YAML 1.2 as ten: it is refused. */
static void test_a_leading_zero_is_refused(void **state)
{
#define ZERO " a leading zero means octal to some YAML parsers: write "
    static const bad cases[] = {
        {LEAST "ranks: 010\n",
         "/r/gpt.yaml:4:8: 'ranks' is '010':" ZERO "10, or 8 for an octal number"},
        {LEAST "ranks: 08\n", "/r/gpt.yaml:4:8: 'ranks' is '08':" ZERO "8"},
        {LEAST "ranks: 007\n", "/r/gpt.yaml:4:8: 'ranks' is '007':" ZERO "7"},
        {LEAST "clip: 00.5\n", "/r/gpt.yaml:4:7: 'clip' is '00.5':" ZERO "0.5"},
        {LEAST "gpus: -01\n", "/r/gpt.yaml:4:7: 'gpus' is '-01':" ZERO "-1"},
        {LEAST "ranks: 0_1\n", "/r/gpt.yaml:4:8: 'ranks' is '0_1':" ZERO "1"},
        {LEAST "time_limit: 010m\n", "/r/gpt.yaml:4:13: 'time_limit' is '010m':" ZERO "10m"},
        {"model: gpt2-small\nschedule: {steps: 1}\ndata: {train: a, validation: 00.1}\n",
         "/r/gpt.yaml:3:30: 'data.split' is '00.1':" ZERO "0.1"},
        {LEAST "nodes: [{host: a, ranks: 04}]\n",
         "/r/gpt.yaml:4:9: node 'a ranks=04': remove the leading zero of the number"},
    };
    EXPECT_ALL(cases);
    expect_refused(LEAST, "ranks=010",
                   "--set ranks=010: 'ranks' is '010':" ZERO "10, or 8 for an octal number");
}

static void test_what_looks_like_a_space_or_a_letter_is_named(void **state)
{
#define END                                                                        \
    " at an end of this text, which YAML does not treat as a space: type a plain " \
    "space (or put the text in quotes)"
    static const bad cases[] = {
        {"data: a\nschedule:\n\u00a0\u00a0steps: 1\n",
         "/r/gpt.yaml:3:1: no-break space U+00A0" END},
        {LEAST "clip: 1\u00a0\n", "/r/gpt.yaml:4:7: no-break space U+00A0" END},
        {LEAST "clip\u00a0: 1\n", "/r/gpt.yaml:4:1: no-break space U+00A0" END},
        {LEAST "clip:\u00a01\n",
         "/r/gpt.yaml:4:6: not YAML: no-break space U+00A0, which YAML does not treat as a "
         "space (could not find expected ':'): type a plain space"},
        {LEAST "# a\u00a0b\nclip: : a\n", "/r/gpt.yaml:5:7: not YAML: a value with a colon and a "
                                          "blank needs quotes: 'clip: \": a\"'"},
        {LEAST "ranks: 1\u200b2\n", "/r/gpt.yaml:4:8: 'ranks' is '1<U+200B>2': expected a whole "
                                    "number, 1 to 1024 per node"},
        {LEAST "cl\u0456p: 1\n", "/r/gpt.yaml:4:1: unknown key 'cl\u0456p', with U+0456 as "
                                 "character 3 (did you mean 'clip'?)"},
        {LEAST "strategy: dd\u0440\n",
         "/r/gpt.yaml:4:11: 'strategy' is 'dd\u0440', with U+0440 as character 3: expected a map, "
         "or one of 'dp', 'ddp', 'fsdp'"},
    };
    EXPECT_ALL(cases);
#undef END
}

static void test_an_anchor_bomb_is_refused_at_its_first_anchor(void **state)
{
    expect_refused("a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n", NULL,
                   "/r/gpt.yaml:1:4: anchors are not supported in a recipe: write the value out");
}

/* A recipe must not control a terminal, and messages stay short. */
static void test_wrong_values_are_shown_short_and_harmless(void **state)
{
    char text[4096];
    reading r;

    expect_refused(LEAST "log: {\"\\e[31mred\\u009b\": 1}\n", NULL,
                   "/r/gpt.yaml:4:7: unknown key '?[31mred?' (known here: every, system)");
    snprintf(text, sizeof(text), "%sname: %0500d\n", LEAST, 7);
    reading_text(&r, text, NULL);
    assert_int_equal(r.st, DT_ERR_RECIPE);
    assert_non_null(strstr(r.err.message, "000...'"));
    assert_true(strlen(r.err.message) < 300);
    reading_close(&r);
}

/* 1 MiB of brackets, of keys and of entries: each is refused at its first error, at once. */
static void test_large_hostile_texts_are_refused_quickly(void **state)
{
    static const char *const pieces[] = {"[", "{a: ", "- ", "a: 1\n", "? ", "\"a\": "};
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE + 1);

    assert_non_null(text);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        size_t length = strlen(pieces[i]), used = 0;
        reading r;

        for (; used + length <= SIZE; used += length)
            memcpy(text + used, pieces[i], length);
        text[used] = '\0';
        reading_text(&r, text, NULL);
        assert_int_equal(r.st, DT_ERR_RECIPE);
        reading_close(&r);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unknown_key_names_the_line_and_the_likely_key),
        cmocka_unit_test(test_a_wrong_type_reports_the_expected_one),
        cmocka_unit_test(test_a_value_out_of_range_reports_range_and_unit),
        cmocka_unit_test(test_a_newer_version_is_refused_at_its_line),
        cmocka_unit_test(test_a_key_that_is_there_twice_is_refused),
        cmocka_unit_test(test_what_is_missing_is_asked_for_where_its_map_begins),
        cmocka_unit_test(test_fields_that_contradict_each_other_are_refused),
        cmocka_unit_test(test_text_that_is_not_plain_yaml_is_refused),
        cmocka_unit_test(test_what_is_not_closed_is_reported_where_it_opens),
        cmocka_unit_test(test_a_leading_zero_is_refused),
        cmocka_unit_test(test_what_looks_like_a_space_or_a_letter_is_named),
        cmocka_unit_test(test_an_anchor_bomb_is_refused_at_its_first_anchor),
        cmocka_unit_test(test_wrong_values_are_shown_short_and_harmless),
        cmocka_unit_test(test_large_hostile_texts_are_refused_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
