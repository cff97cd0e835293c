/* options: what a table of options accepts and refuses; suggestions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/options.h"

static const char *const colours[] = {"red", "green", NULL};

static const dt_option options[] = {
    {.name = "wait", .letter = 'w', .kind = DT_OPTION_FLAG, .help = "h"},
    {.name = "count",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "7",
     .low = 0,
     .high = 100,
     .help = "h"},
    {.name = "rate", .kind = DT_OPTION_NUMBER, .value = "X", .low = 0, .high = 1, .help = "h"},
    {.name = "colour",
     .kind = DT_OPTION_CHOICE,
     .value = "C",
     .choices = colours,
     .fallback = "red",
     .help = "h"},
    {.name = "set", .letter = 's', .kind = DT_OPTION_LIST, .value = "K=V", .help = "h"},
    {0},
};

static const dt_command command = {.name = "try",
                                   .summary = "s",
                                   .operands = "RUN",
                                   .operands_min = 1,
                                   .operands_max = 2,
                                   .options = options};

typedef struct parsed {
    dt_arena arena;
    dt_arguments args;
    dt_error err;
    dt_status st;
} parsed;

/* words: separated by single spaces; copied, since getopt reorders them. */
static void parse(parsed *p, const char *words)
{
    char *argv[32], *text;
    int argc = 0;

    memset(p, 0, sizeof(*p));
    dt_arena_init(&p->arena, 0);
    text = dt_arena_strdup(&p->arena, words);
    for (char *word = text; word != NULL; argc++) {
        argv[argc] = word;
        word = strchr(word, ' ');
        if (word != NULL)
            *word++ = '\0';
    }
    argv[argc] = NULL;
    char **kept = dt_arena_alloc_array(&p->arena, (size_t)argc + 1, sizeof(kept[0]));
    memcpy(kept, argv, ((size_t)argc + 1) * sizeof(argv[0]));
    p->st = dt_arguments_parse(&p->args, &command, argc, kept, &p->arena, &p->err);
}

static void expect_refusal(const char *words, const char *message)
{
    parsed p;

    parse(&p, words);
    assert_int_equal(p.st, DT_ERR_USAGE);
    assert_string_equal(p.err.message, message);
    dt_arena_release(&p.arena);
}

static void test_options_and_operands_come_in_any_order(void **state)
{
    parsed p;

    parse(&p, "try a -w --count 12 b --set x=1 --rate=0.5 -s y=2 --colour green --json");
    assert_int_equal(p.st, DT_OK);
    assert_true(dt_arguments_flag(&p.args, "wait"));
    assert_true(dt_arguments_flag(&p.args, "json"));
    assert_false(dt_arguments_flag(&p.args, "help"));
    assert_int_equal(dt_arguments_get(&p.args, "count")->integer, 12);
    assert_true(dt_arguments_get(&p.args, "rate")->number == 0.5);
    assert_int_equal(dt_arguments_get(&p.args, "colour")->choice, 1);
    assert_int_equal(dt_arguments_get(&p.args, "set")->items_count, 2);
    assert_string_equal(dt_arguments_get(&p.args, "set")->items[1], "y=2");
    assert_int_equal(p.args.operands_count, 2);
    assert_string_equal(p.args.operands[1], "b");
    dt_arena_release(&p.arena);
}

static void test_defaults_are_taken_and_not_called_given(void **state)
{
    parsed p;

    parse(&p, "try a");
    assert_int_equal(p.st, DT_OK);
    assert_int_equal(dt_arguments_get(&p.args, "count")->integer, 7);
    assert_false(dt_arguments_get(&p.args, "count")->given);
    assert_int_equal(dt_arguments_get(&p.args, "colour")->choice, 0);
    dt_arena_release(&p.arena);
}

static void test_after_two_dashes_everything_is_an_operand(void **state)
{
    parsed p;

    parse(&p, "try -- --wait");
    assert_int_equal(p.st, DT_OK);
    assert_string_equal(p.args.operands[0], "--wait");
    dt_arena_release(&p.arena);
}

static void test_help_needs_no_operands(void **state)
{
    parsed p;

    parse(&p, "try --help");
    assert_int_equal(p.st, DT_OK);
    assert_true(dt_arguments_flag(&p.args, "help"));
    dt_arena_release(&p.arena);
}

static void test_every_refusal_names_what_and_why(void **state)
{
    expect_refusal("try", "RUN is missing");
    expect_refusal("try a b c", "unexpected argument 'c'");
    expect_refusal("try a --wiat", "unknown option '--wiat' (did you mean '--wait'?)");
    expect_refusal("try a --zebra", "unknown option '--zebra'");
    expect_refusal("try a -x", "unknown option '-x'");
    expect_refusal("try a -wx", "unknown option '-x'");
    expect_refusal("try a --count", "option '--count' needs a value");
    expect_refusal("try a -n", "option '-n' needs a value");
    expect_refusal("try a --wait=5", "option '--wait' takes no value");
    expect_refusal("try a --count twelve", "--count: expected a whole number, got 'twelve'");
    expect_refusal("try a --count 1.5", "--count: expected a whole number, got '1.5'");
    expect_refusal("try a --count=", "--count: expected a whole number, got ''");
    expect_refusal("try a --count 101", "--count: 101 is out of range (0 to 100)");
    expect_refusal("try a --count 99999999999999999999",
                   "--count: expected a whole number, got '99999999999999999999'");
    expect_refusal("try a --rate nan", "--rate: expected a number, got 'nan'");
    expect_refusal("try a --rate 2", "--rate: 2 is out of range (0 to 1)");
    expect_refusal("try a --colour blue", "--colour: unknown value 'blue' (one of red, green)");
}

static void test_suggestions_are_near_or_absent(void **state)
{
    static const char *const names[] = {"launch", "stop", "status", "list", "logs", NULL};

    assert_string_equal(dt_suggest("lanch", names), "launch");
    assert_string_equal(dt_suggest("sttaus", names), "status");
    assert_string_equal(dt_suggest("stat", names), "status");
    assert_string_equal(dt_suggest("log", names), "logs");
    assert_null(dt_suggest("zebra", names));
    assert_null(dt_suggest("", names));
    assert_null(dt_suggest("launchlaunchlaunchlaunchlaunchlaunchlaunch", names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_and_operands_come_in_any_order),
        cmocka_unit_test(test_defaults_are_taken_and_not_called_given),
        cmocka_unit_test(test_after_two_dashes_everything_is_an_operand),
        cmocka_unit_test(test_help_needs_no_operands),
        cmocka_unit_test(test_every_refusal_names_what_and_why),
        cmocka_unit_test(test_suggestions_are_near_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
