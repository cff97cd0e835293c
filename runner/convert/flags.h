/* flags: the flags of another program, as a table, and what a command line says of them.
 *
 * One table a program: it drives reading, what becomes of each flag, and what `dtrun import NAME --flags`
 * prints.
 * Read as    --flag value, --flag=value; '_' and '-' are the same inside of a name; of a flag that is
 *            given twice the last counts
 * Errors     DT_ERR_USAGE naming the flag: a value that is missing, or none of its type
 */
#ifndef DT_RUNNER_CONVERT_FLAGS_H
#define DT_RUNNER_CONVERT_FLAGS_H

#include "runner/convert/command_line.h"
#include "runner/convert/draft.h"

typedef enum dt_flag_takes {
    DT_TAKES_NOTHING,
    DT_TAKES_INT,
    DT_TAKES_NUMBER,
    DT_TAKES_TEXT,
    DT_TAKES_BOOL /* True or False, as Python has it */
} dt_flag_takes;

typedef enum dt_flag_fate {
    DT_FLAG_FIELD, /* `into` is the field that it is, value and all; a flag without a value: true */
    DT_FLAG_PART,  /* `into` says what becomes of it, with others */
    DT_FLAG_LEFT   /* `into` says why it is not carried: one sentence, no full stop */
} dt_flag_fate;

typedef struct dt_flag {
    const char *name; /* "--lr", "-np", "learning_rate" */
    const char *also; /* another name; NULL: none */
    dt_flag_takes takes;
    dt_flag_fate fate;
    const char *into;
    const char
        *loses_nothing; /* LEFT: the value at which nothing is lost; NULL: it is always told */
} dt_flag;

typedef struct dt_flag_table {
    const char *program; /* whose defaults they have: "nanoGPT" */
    const dt_flag *flags;
    size_t count;
    bool attached;         /* "-N2" is "-N 2" */
    bool stops_at_operand; /* what follows the first word that is no flag is another program's */
    bool numbers_open;     /* a value that only a shell knows is passed over, and not told */
} dt_flag_table;

typedef struct dt_flag_use {
    const char *text;  /* NULL: not given, or known to a shell alone */
    const char *shown; /* "--lr 0.0005" */
    double number;
} dt_flag_use;

typedef struct dt_flags {
    const dt_flag_table *table;
    dt_flag_use *uses; /* one a flag of the table */
    dt_shell_command operands;
    size_t taken; /* words that were read: all, unless the table stops at an operand */
    dt_draft *draft;
} dt_flags;

/* What is not known and what cannot be read is among the draft's `left`. */
dt_status dt_flags_read(dt_flags *out, const dt_flag_table *table, const dt_shell_word *words,
                        size_t count, dt_draft *draft, dt_error *err);

/* Another word of a flag, as one that is read elsewhere ("key = value"). */
dt_status dt_flags_set(dt_flags *flags, size_t row, const dt_shell_word *value, const char *shown,
                       dt_error *err);
/* The count where there is none of that name. */
size_t dt_flags_row(const dt_flag_table *table, const char *name, size_t length);
/* " (did you mean '--lr'?)", or "". Borrowed from the draft's arena. */
const char *dt_flags_meant(const dt_flags *flags, const char *name);

/* By name; asking for one that the table does not have is a bug. */
const dt_flag_use *dt_flags_get(const dt_flags *flags, const char *name);
bool dt_flags_given(const dt_flags *flags, const char *name);
double dt_flags_number(const dt_flags *flags, const char *name, double fallback);
const char *dt_flags_text(const dt_flags *flags, const char *name, const char *fallback);
/* "--lr 0.0005", or "NAME's default" */
const char *dt_flags_from(const dt_flags *flags, const char *name);

/* "--lr 0.0005", or the name alone: for remarks. */
const char *dt_flags_about(const dt_flags *flags, const char *name);

/* The flag's value, or the fallback as the program's default, as a field. */
void dt_flags_set_number(dt_draft *draft, const dt_flags *flags, const char *path, const char *flag,
                         double fallback);

/* Flags that are fields into the draft, those that are not carried among its `left`. */
void dt_flags_carry(const dt_flags *flags);

/* The table for people: a line a flag. */
void dt_flags_describe(dt_strbuf *out, const dt_flag_table *table);

#endif
