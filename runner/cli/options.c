#include "runner/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/command.h"

static const dt_option common[] = {
    {.name = "json", .kind = DT_OPTION_FLAG, .help = "print one JSON object on stdout"},
    {.name = "help", .letter = 'h', .kind = DT_OPTION_FLAG, .help = "print this text"},
};
enum { COMMON_COUNT = sizeof(common) / sizeof(common[0]) };

static const dt_option server_option = {
    .name = "server",
    .kind = DT_OPTION_TEXT,
    .value = "URL",
    .help = "read another machine's runs from its 'dtrun serve' (or set DTRUN_SERVER)"};

/* getopt_long returns the index of an option plus LONG_BASE, which no letter reaches. */
enum { LONG_BASE = 256 };

void dt_options_of(const dt_option **out, size_t *count, const dt_command *command, dt_arena *arena)
{
    size_t own = 0;
    dt_option *options;

    while (command->options != NULL && command->options[own].name != NULL)
        own++;
    options = dt_arena_alloc_array(arena, own + COMMON_COUNT + 1, sizeof(options[0]));
    if (own > 0)
        memcpy(options, command->options, own * sizeof(options[0]));
    if (command->runs == DT_RUNS_REMOTE)
        options[own++] = server_option;
    memcpy(options + own, common, sizeof(common));
    *out = options;
    *count = own + COMMON_COUNT;
}

static dt_status value_int(dt_value *value, const dt_option *option, const char *text,
                           dt_error *err)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "--%s: expected a whole number, got '%s'", option->name,
                       text);
    if ((double)number < option->low || (double)number > option->high)
        return DT_FAIL(err, DT_ERR_USAGE, "--%s: %lld is out of range (%.0f to %.0f)", option->name,
                       number, option->low, option->high);
    value->integer = number;
    return DT_OK;
}

static dt_status value_number(dt_value *value, const dt_option *option, const char *text,
                              dt_error *err)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(number))
        return DT_FAIL(err, DT_ERR_USAGE, "--%s: expected a number, got '%s'", option->name, text);
    if (number < option->low || number > option->high)
        return DT_FAIL(err, DT_ERR_USAGE, "--%s: %g is out of range (%g to %g)", option->name,
                       number, option->low, option->high);
    value->number = number;
    return DT_OK;
}

static dt_status value_choice(dt_value *value, const dt_option *option, const char *text,
                              dt_error *err)
{
    dt_strbuf names;
    dt_status st;

    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            value->choice = i;
            return DT_OK;
        }
    }
    dt_strbuf_init(&names);
    for (int i = 0; option->choices[i] != NULL; i++)
        dt_strbuf_add_fmt(&names, "%s%s", i > 0 ? ", " : "", option->choices[i]);
    st = DT_FAIL(err, DT_ERR_USAGE, "--%s: unknown value '%s' (one of %s)", option->name, text,
                 names.data);
    dt_strbuf_release(&names);
    return st;
}

static void value_item(dt_value *value, const char *text, dt_arena *arena)
{
    const char **items = dt_arena_alloc_array(arena, value->items_count + 1, sizeof(items[0]));

    if (value->items_count > 0)
        memcpy(items, value->items, value->items_count * sizeof(items[0]));
    items[value->items_count++] = text;
    value->items = items;
}

static dt_status value_set(dt_value *value, const dt_option *option, const char *text,
                           dt_arena *arena, dt_error *err)
{
    value->text = text;
    switch (option->kind) {
    case DT_OPTION_INT:
        return value_int(value, option, text, err);
    case DT_OPTION_NUMBER:
        return value_number(value, option, text, err);
    case DT_OPTION_CHOICE:
        return value_choice(value, option, text, err);
    case DT_OPTION_LIST:
        value_item(value, text, arena);
        return DT_OK;
    case DT_OPTION_FLAG:
    case DT_OPTION_TEXT:
        break;
    }
    return DT_OK;
}

/* Refuses a value of --set without '='. `next` are the words that follow, up to NULL: "--set optimizer.lr 0.1" was
 * probably meant as one word. */
static dt_status check_assignment(const dt_option *option, const char *text, char *const *next,
                                  dt_error *err)
{
    if (option->value == NULL || strcmp(option->value, DT_ASSIGNMENT) != 0 ||
        strchr(text, '=') != NULL)
        return DT_OK;
    if (next[0] != NULL && strcmp(next[0], "=") == 0 && next[1] != NULL)
        next++;
    if (next[0] != NULL && (isdigit((unsigned char)next[0][0]) || next[0][0] == '.'))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--%s %s: expected " DT_ASSIGNMENT " in one word: --%s %s=%s", option->name,
                       text, option->name, text, next[0]);
    return DT_FAIL(err, DT_ERR_USAGE,
                   "--%s %s: expected " DT_ASSIGNMENT ", such as 'optimizer.lr=1e-3'", option->name,
                   text);
}

/* Makes the error for an argument `word` that getopt_long refused with `code`. */
static dt_status refuse(const dt_arguments *args, int code, const char *word, dt_error *err)
{
    const char **names;
    const char *meant = NULL;
    dt_arena scratch;
    dt_status st;

    if (code == ':')
        return DT_FAIL(err, DT_ERR_USAGE, "option '%s' needs a value", word);
    if (word[0] != '-' || word[1] != '-')
        return DT_FAIL(err, DT_ERR_USAGE, "unknown option '-%c'", optopt);
    if (optopt >= LONG_BASE)
        return DT_FAIL(err, DT_ERR_USAGE, "option '--%s' takes no value",
                       args->options[optopt - LONG_BASE].name);

    dt_arena_init(&scratch, 0);
    names = dt_arena_alloc_array(&scratch, args->options_count + 1, sizeof(names[0]));
    for (size_t i = 0; i < args->options_count; i++)
        names[i] = args->options[i].name;
    meant = dt_suggest(word + 2, names);
    if (meant != NULL)
        st = DT_FAIL(err, DT_ERR_USAGE, "unknown option '%s' (did you mean '--%s'?)", word, meant);
    else
        st = DT_FAIL(err, DT_ERR_USAGE, "unknown option '%s'", word);
    dt_arena_release(&scratch);
    return st;
}

static dt_status check_operands(const dt_arguments *args, dt_error *err)
{
    const dt_command *command = args->command;

    if (args->operands_count < command->operands_min)
        return DT_FAIL(err, DT_ERR_USAGE, "%s is missing",
                       command->operands[0] != '\0' ? command->operands : "an argument");
    if (command->operands_max >= 0 && args->operands_count > command->operands_max)
        return DT_FAIL(err, DT_ERR_USAGE, "unexpected argument '%s'",
                       args->operands[command->operands_max]);
    return DT_OK;
}

/* Returns the index of the option for getopt's return value, or the count if there is none. */
static size_t option_index(const dt_arguments *args, int code)
{
    size_t i = 0;

    if (code >= LONG_BASE)
        return (size_t)(code - LONG_BASE);
    while (i < args->options_count && args->options[i].letter != code)
        i++;
    return i;
}

static bool is_dash_operand(const dt_arguments *args, const char *word)
{
    if (word[0] != '-' || word[1] == '-' || word[1] == '\0')
        return false;
    for (size_t i = 0; i < args->options_count; i++)
        if (args->options[i].letter == word[1] && word[2] == '\0')
            return false;
    return true;
}

/* Moves operands that start with a dash after "--". *argc and *argv become those of a copy. */
static void set_dash_operands_aside(const dt_arguments *args, int *argc, char ***argv,
                                    dt_arena *arena)
{
    char **words = dt_arena_alloc_array(arena, (size_t)*argc + 2, sizeof(words[0]));
    int count = 0, i;

    for (i = 0; i < *argc && strcmp((*argv)[i], "--") != 0; i++)
        if (!is_dash_operand(args, (*argv)[i]))
            words[count++] = (*argv)[i];
    words[count++] = (char *)"--";
    for (int j = 0; j < i; j++)
        if (is_dash_operand(args, (*argv)[j]))
            words[count++] = (*argv)[j];
    for (i++; i < *argc; i++)
        words[count++] = (*argv)[i];
    words[count] = NULL;
    *argc = count;
    *argv = words;
}

static dt_status parse_words(dt_arguments *args, int argc, char **argv, dt_arena *arena,
                             dt_error *err)
{
    struct option *longs = dt_arena_alloc_array(arena, args->options_count + 1, sizeof(longs[0]));
    char *letters = dt_arena_alloc(arena, args->options_count * 2 + 2), *letter = letters;
    dt_status st;
    int code;

    if (args->command->dash_operands)
        set_dash_operands_aside(args, &argc, &argv, arena);
    *letter++ = ':'; /* distinguishes missing values from unknown options */
    for (size_t i = 0; i < args->options_count; i++) {
        const dt_option *option = &args->options[i];
        bool takes = option->kind != DT_OPTION_FLAG;
        longs[i] = (struct option){option->name, takes ? required_argument : no_argument, NULL,
                                   LONG_BASE + (int)i};
        if (option->letter != 0)
            *letter++ = option->letter;
        if (option->letter != 0 && takes)
            *letter++ = ':';
    }

    optind = 0; /* GNU: start over */
    opterr = 0;
    while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (code == '?' || code == ':')
            return refuse(args, code, argv[optind - 1], err);
        size_t i = option_index(args, code);
        args->values[i].given = true;
        st = value_set(&args->values[i], &args->options[i], optarg, arena, err);
        if (st == DT_OK && optarg != NULL)
            st = check_assignment(&args->options[i], optarg, argv + optind, err);
        if (st != DT_OK)
            return st;
    }
    args->operands = argv + optind;
    args->operands_count = argc - optind;
    return DT_OK;
}

dt_status dt_arguments_parse(dt_arguments *out, const dt_command *command, int argc, char **argv,
                             dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_arguments){.command = command};
    dt_options_of(&out->options, &out->options_count, command, arena);
    out->values = dt_arena_alloc_array(arena, out->options_count, sizeof(out->values[0]));
    for (size_t i = 0; i < out->options_count; i++) {
        const char *fallback = out->options[i].fallback;
        if (fallback != NULL)
            DT_TRY(value_set(&out->values[i], &out->options[i], fallback, arena, err));
    }
    DT_TRY(parse_words(out, argc, argv, arena, err));
    if (!dt_arguments_flag(out, "help"))
        DT_TRY(check_operands(out, err));
out:
    return st;
}

const dt_value *dt_arguments_get(const dt_arguments *args, const char *name)
{
    size_t i = 0;

    while (i < args->options_count && strcmp(args->options[i].name, name) != 0)
        i++;
    DT_ASSERT(i < args->options_count);
    return &args->values[i];
}

bool dt_arguments_flag(const dt_arguments *args, const char *name)
{
    return dt_arguments_get(args, name)->given;
}
