/* options: describes the options of a command, parses their values, and finds the name that a mistyped word
 * is closest to.
 *
 * Ownership  given texts point into argv; lists live in the arena of the call
 * Errors     DT_ERR_USAGE with the option, the given value and the expected one
 */
#ifndef DT_RUNNER_CLI_OPTIONS_H
#define DT_RUNNER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"

typedef struct dt_command dt_command;

typedef enum dt_option_kind {
    DT_OPTION_FLAG,
    DT_OPTION_TEXT,
    DT_OPTION_INT,    /* within low..high */
    DT_OPTION_NUMBER, /* within low..high */
    DT_OPTION_CHOICE, /* one of `choices` */
    DT_OPTION_LIST    /* repeatable */
} dt_option_kind;

/* Placeholder of options whose values must have a '='. */
#define DT_ASSIGNMENT "KEY=VALUE"

typedef struct dt_option {
    const char *name; /* "limit" for --limit */
    char letter;      /* 'n' for -n; 0: none */
    dt_option_kind kind;
    const char *value;    /* placeholder of the value in the help: "N" */
    const char *help;     /* one sentence, no full stop */
    const char *fallback; /* default value; NULL: none */
    double low, high;
    const char *const *choices; /* ends with NULL */
} dt_option;

typedef struct dt_value {
    bool given;
    const char *text; /* as given, or the fallback, or NULL */
    int64_t integer;
    double number;
    int choice; /* index */
    const char **items;
    size_t items_count;
} dt_value;

typedef struct dt_arguments {
    const dt_command *command;
    const dt_option
        *options; /* options of the command, then --server if .runs is REMOTE, --json and --help */
    dt_value *values; /* one for each option */
    size_t options_count;
    char **operands;
    int operands_count;
} dt_arguments;

/* All options of a command, including those that every command has. */
void dt_options_of(const dt_option **out, size_t *count, const dt_command *command,
                   dt_arena *arena);

/* argv[0] is the name of the command. The arguments are reordered, not changed. With --help the
 * operands are not checked. */
dt_status dt_arguments_parse(dt_arguments *out, const dt_command *command, int argc, char **argv,
                             dt_arena *arena, dt_error *err);

/* Returns the value of an option. Asking for an option that the command does not have is a bug. */
const dt_value *dt_arguments_get(const dt_arguments *args, const char *name);
bool dt_arguments_flag(const dt_arguments *args, const char *name);

/* suggest: finds the name that a mistyped word is closest to ("did you mean ...?"). */

/* Returns the closest name of a NULL-terminated list: one that starts with `word`, or whose edit distance is
 * at most a third of the longer word. NULL if there is none. */
const char *dt_suggest(const char *word, const char *const *names);

#endif
