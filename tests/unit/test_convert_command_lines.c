/* Reads command lines and Python files of other programs, and the numbers computed from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runner/convert/convert_int.h"
#include "runner/convert/tool.h"

static dt_arena arena;

static int set_up(void **state)
{
    (void)state;
    dt_arena_init(&arena, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dt_arena_release(&arena);
    return 0;
}

/* Writes the words of the command with '|' between them, "?" after open ones; or the message without its advice. */
static const char *words_of(const char *text)
{
    dt_error err = DT_ERROR_INIT;
    dt_script script;
    const char *copy;
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_script_init(&script, "s", &arena);
    if (dt_script_read(&script, text, strlen(text), &err) != DT_OK) {
        const char *advice = strstr(err.message, "; 'dtrun import --record");

        script.command.count = 0;
        dt_strbuf_add(&out, err.message,
                      advice != NULL ? (size_t)(advice - err.message) : strlen(err.message));
    }
    for (size_t w = 0; w < script.command.count && out.length < 65536; w++)
        dt_strbuf_add_fmt(&out, "%s%s%s", w > 0 ? "|" : "", script.command.words[w].text,
                          script.command.words[w].open != NULL ? "?" : "");
    copy = dt_arena_strdup(&arena, out.length > 0 ? out.data : "");
    dt_strbuf_release(&out);
    return copy;
}

static void test_words_are_those_of_a_shell(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"a b  c", "a|b|c"},
        {"a 'b c' \"d e\"f\\ g", "a|b c|d ef g"},
        {"a \\\n b \\\r\n c\r\n", "a|b|c"},
        {"a b#c # it's a comment", "a|b#c"},
        {"a 2>&1 | tee -a 'x y' z", "a"},
        {"a > out 2>&1 b 2> /dev/null &> x", "a|b"},
        {"a 2 >x", "a|2"},
        {"A=1 B='x y'\nc $A \"$B\" $B ${A} z${A}z", "c|1|x y|x|y|1|z1z"},
        {"export A=1\nb ${A:-2} ${C_NOT_SET:-3} $C", "b|1|3|$C?"},
        {"A=(x 'y z' # first\n w)\nb \"${A[@]}\" c", "b|${A[@]}?|c"},
        {"A=1 b", "A=1|b"},
        {"'A=1' b", "A=1|b"},
        {"A=$(x y)\nb $A:1", "b|$(x y):1?"},
        {"D=\"--x 1 --y $R\"\nb $D", "b|--x|1|--y|$R?"},
        {"f $(which g) $(date +%s) `x y` $1 \"$@\"", "f|g|$(date +%s)?|`x y`?|$1?|$@?"},
        {"a \"$(b \")\" c)\" d", "a|$(b \")\" c)?|d"},
        {"a *.x '*.x' b? [ab] {c,d} {e} '{f,g}' ~/h --i=~/j k~",
         "a|*.x?|*.x|b??|[ab]?|{c,d}?|{e}|{f,g}|~/h?|--i=~/j?|k~"},
        {"C=*\nc $C \"$C\"", "c|*?|*"},
        {"b\nc",
         "s:2: 'c' is a second command (the first is 'b' in line 1): keep the one that trains"},
        {"a '' \"\"", "a||"},
        {"echo x; cd y; set -e; a b", "a|b"},
        {"cd x && a", "a"},
        {"a 'b", "s:1: a single quote is not closed"},
        {"a\n\"b\nc", "s:2: a double quote is not closed"},
        {"A=(b", "s:1: a '(' is not closed"},
        {"a $(b", "s:1: a command in '$(...)' or '`...`' is not closed"},
        {"a ${b", "s:1: a '${' is not closed"},
        {"a \\ \n b", "s:1: blanks follow the backslash at the end of the line, so the command "
                      "ends there: remove them"},
        {"a \x01", "s:1: unsupported control character U+0001"},
        {"a\nb \xff", "s:2: this is not UTF-8 text"},
        {"a \u2028", "s:1: unsupported control character U+2028"},
        {"a $'x'", "s:1: quotes of the form $'...' are not read"},
        {"set -a", "s:1: 'set': its options change how the shell reads the script"},
        {"export A", "s:1: 'A': export of a variable that has no value in the script: write it"},
        {"echo x > y", "s:1: 'echo': it writes a file: run it before the launch"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(words_of(cases[i].text), cases[i].words);
}

/* Thirty lines, each of which doubles the one before. */
static void test_variables_that_double_end(void **state)
{
    dt_strbuf text;

    (void)state;
    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "A=xxxxxxxx\n");
    for (int i = 0; i < 30; i++)
        dt_strbuf_add_str(&text, "A=$A$A\n");
    assert_non_null(strstr(words_of(text.data), "a word has more than"));
    dt_strbuf_reset(&text);
    dt_strbuf_add_str(&text, "A='a a a a a a a a a a a a a a a a'\n");
    for (int i = 0; i < 10; i++)
        dt_strbuf_add_str(&text, "A=\"$A $A\"\n");
    dt_strbuf_add_str(&text, "b $A $A $A $A $A $A $A\n");
    assert_non_null(strstr(words_of(text.data), "more than 65536 words"));
    dt_strbuf_release(&text);
}

/* Writes the final value of each name; "?" if it is unknown. */
static const char *values_of(const char *text)
{
    dt_error err = DT_ERROR_INIT;
    dt_python_file file;
    const char *copy;
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_python_init(&file, &arena);
    if (dt_python_read(&file, text, strlen(text), "s", &err) != DT_OK)
        dt_strbuf_add_str(&out, err.message);
    for (size_t i = 0; i < file.count; i++)
        dt_strbuf_add_fmt(&out, "%s%d:%s=%s", i > 0 ? " " : "", file.statements[i].line,
                          file.statements[i].name != NULL ? file.statements[i].name : "",
                          file.statements[i].value.kind == DT_PYTHON_UNKNOWN
                              ? "?"
                              : dt_python_text(&file.statements[i].value, &arena));
    copy = dt_arena_strdup(&arena, out.data);
    dt_strbuf_release(&out);
    return copy;
}

static void test_assignments_are_those_of_python(void **state)
{
    static const struct {
        const char *text, *values;
    } cases[] = {
        {"a = 5 * 12 * 1024", "1:a=61440"},
        {"a = 7 // 2 - -3 % 5 + 2 ** 3 ** 0", "1:a=3"},
        {"a = -2 ** 2; b = (a + 1) / 4", "1:a=-4 1:b=-0.75"},
        {"a = 1_000_000\nb = 6e-4 # less\n\nc = .5", "1:a=1000000 2:b=0.0006 4:c=0.5"},
        {"a = 'x#y' \"z\"\nb = \"it's\"", "1:a=x#yz 2:b=it's"},
        {"a = True\nb = None\nc = a", "1:a=True 2:b=None 3:c=True"},
        {"a = (1 +\n 2)\nb = 3 \\\n + 4", "1:a=3 3:b=7"},
        {"\"\"\"a = 1\nb\"\"\"\nc = 2\n'text'", "3:c=2"},
        {"a = 1\na += 1\nb = a", "1:a=1 2:a=? 3:b=?"},
        {"import os\nif x:\n    a = 1", "1:=? 2:=? 3:a=?"},
        {"a = f(1)\nb = 1 / 0\nc = 'x' + 1\nd = 2 ** 10 ** 10", "1:a=? 2:b=? 3:c=? 4:d=?"},
        {"a = 'x", "s:1: a string is not closed"},
        {"a = 1\nb = (1,\n", "s:2: a parenthesis is not closed1:a=1"},
        {"a == 1\na = 0x10", "1:=? 2:a=?"},
    };
    char deep[4096];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(values_of(cases[i].text), cases[i].values);
    memset(deep, '-', sizeof(deep));
    memcpy(deep, "a=", 2);
    memcpy(deep + sizeof(deep) - 2, "1", 2);
    assert_string_equal(values_of(deep), "1:a=?");
}

static void expect_field(const char *line, const dt_convert_tool *tool, const char *path,
                         const char *yaml)
{
    const dt_draft_value *value;
    const dt_convert_tool *found;
    dt_error err = DT_ERROR_INIT;
    dt_script script;
    dt_draft draft;

    dt_script_init(&script, "s", &arena);
    dt_draft_init(&draft, tool->name, &arena);
    if (dt_script_read(&script, line, strlen(line), &err) != DT_OK ||
        dt_tools_convert(&found, &draft, &script, NULL, tool, NULL, &err) != DT_OK)
        fail_msg("%s", err.message);
    value = dt_draft_find(&draft, path);
    if (yaml == NULL) {
        assert_null(value);
        return;
    }
    assert_non_null(value);
    assert_string_equal(value->yaml, yaml);
}

#define FAIRSEQ \
    "fairseq-train d --task language_modeling --arch transformer_lm --max-update 100 --lr 1e-3 "

static void test_numbers_are_fairseqs(void **state)
{
    static const struct {
        const char *more, *path, *yaml;
    } cases[] = {
        /* batches: a multiple of eight if larger */
        {"--max-tokens 2048 --tokens-per-sample 512", "batch.sequences", "4"},
        {"--max-tokens 30000 --tokens-per-sample 1000", "batch.sequences", "24"},
        {"--max-tokens 30000 --tokens-per-sample 1000 --batch-size 12", "batch.sequences", "12"},
        {"--max-tokens 100 --tokens-per-sample 1000", "batch.sequences", "1"},
        /* values that differ from dtrun's defaults */
        {"", "clip", "0"},
        {"", "seed", "1"},
        {"", "optimizer.beta2", "0.999"},
        {"", "optimizer.weight_decay", "0"},
        {"", "optimizer.decays", NULL},
        {"--wd 0.1", "optimizer.decays", "all"},
        {"--adam-betas '(0.9, 0.98)'", "optimizer.beta2", "0.98"},
        /* schedules */
        {"--lr-scheduler inverse_sqrt --max-update 5000", "schedule.warmup_steps", "4000"},
        /* a warm-up of 4000 steps that ends with step 100: the rate only rises */
        {"--lr-scheduler inverse_sqrt", "schedule.warmup_steps", "100"},
        {"--lr-scheduler inverse_sqrt", "optimizer.lr", "2.5e-5"},
        {"--lr-scheduler inverse_sqrt", "schedule.warmup_init_lr", "0"},
        {"--lr-scheduler cosine --warmup-updates 5 --min-lr 1e-5", "schedule.warmup_init_lr",
         "1e-5"},
        {"--lr-scheduler cosine --max-lr 1 --lr 1e-4", "schedule.min_lr", "0.0001"},
        {"--lr-scheduler cosine --max-lr 1 --lr 1e-4", "optimizer.lr", "1"},
        {"--lr-scheduler cosine --lr-period-updates 10", "schedule.shrink", "0.1"},
        {"--lr-scheduler cosine --lr-period-updates 100", "schedule.shrink", NULL},
        {"--lr-scheduler fixed --warmup-updates 10", "schedule.warmup_init_lr", "0.0001"},
        /* the loss scale: for a sum there, for a mean here */
        {"--fp16 --batch-size 2 --tokens-per-sample 64 --distributed-world-size 4",
         "precision.loss_scale", "65536"},
        {"--fp16 --update-freq 2 --distributed-world-size 4", "precision.scale_window", "2048"},
        {"--bf16", "precision.loss_scale", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_field(dt_arena_printf(&arena, FAIRSEQ "%s", cases[i].more), &dt_tool_fairseq,
                     cases[i].path, cases[i].yaml);
    expect_field("mpirun -np 4 ./train_gpt2cu -e d12 -b 8 -t 128 -d 16384 -l 1e-3 -q 0.1",
                 &dt_tool_llmc, "batch.accumulate", "4");
    expect_field("./train_gpt2cu -e d12 -l 1e-3 -q 0.1", &dt_tool_llmc, "schedule.min_lr",
                 "0.0001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words_are_those_of_a_shell, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_variables_that_double_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_assignments_are_those_of_python, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_are_fairseqs, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
