/* flags: reads a command line with a table of another program's flags.
 *
 * The table of a program drives the reading, the conversion of each flag, and the output of
 * `dtrun import NAME --flags`.
 * Read as    --flag value, --flag=value; '_' and '-' are equal inside a name; the last of a repeated flag counts
 * Errors     DT_ERR_USAGE naming the flag: a missing value, a value of the wrong type, a value that only a shell knows (unless
 *            the flag is not carried anyway), and with a strict table an unknown flag
 */
#ifndef DT_RUNNER_CONVERT_FLAGS_H
#define DT_RUNNER_CONVERT_FLAGS_H

#include "runner/convert/draft.h"
#include "runner/convert/words.h"

typedef enum dt_flag_takes {
    DT_TAKES_NOTHING,
    DT_TAKES_INT,
    DT_TAKES_NUMBER,
    DT_TAKES_TEXT,
    DT_TAKES_BOOL, /* True or False, as in Python */
    DT_TAKES_PAIR, /* two words, "-mca KEY VALUE"; the text is "KEY=VALUE" */
    DT_TAKES_MAYBE /* a value only after '=', or right after a letter */
} dt_flag_takes;

typedef enum dt_flag_fate {
    DT_FLAG_FIELD,  /* `into` is a field with the same value; without a value: true */
    DT_FLAG_PART,   /* `into` describes what the flag becomes, together with other flags */
    DT_FLAG_EACH,   /* the same, and it can be repeated: dt_flags_each */
    DT_FLAG_LEFT,   /* `into` is the reason why it is not carried: one sentence, no full stop */
    DT_FLAG_REFUSED /* `into` is the reason why the command line is refused */
} dt_flag_fate;

typedef struct dt_flag {
    const char *name; /* "--lr", "-np", "learning_rate" */
    const char *also; /* other names, separated by blanks; NULL: none */
    dt_flag_takes takes;
    dt_flag_fate fate;
    const char *into;
    const char *loses_nothing; /* LEFT: a value that needs no report; NULL: always reported */
} dt_flag;

typedef struct dt_flag_table {
    const char *program; /* the program whose defaults the flags have: "nanoGPT" */
    const dt_flag *flags;
    size_t count;
    bool attached;         /* "-N2" means "-N 2" */
    bool stops_at_operand; /* words from the first operand on belong to another program */
    bool strict;           /* an unknown flag is an error */
    bool one_dash;         /* "-np" and "--np" are the same flag */
} dt_flag_table;

typedef struct dt_flag_use {
    const char *text;  /* NULL: not given, or only a shell can expand it */
    const char *shown; /* the flag as in the command line: "--lr 0.0005" */
    double number;
} dt_flag_use;

typedef struct dt_flag_each {
    size_t row;
    const char *text;
} dt_flag_each;

typedef struct dt_flags {
    const dt_flag_table *table;
    dt_flag_use *uses;  /* one per flag of the table */
    dt_flag_each *each; /* the values of flags that can be repeated, in their order */
    size_t each_count, each_capacity;
    dt_shell_command operands;
    size_t taken; /* words that were read: all, unless the table stops at an operand */
    dt_draft *draft;
} dt_flags;

/* Reads the words. Unknown flags go to the draft's `left`, unless the table is strict. */
dt_status dt_flags_read(dt_flags *out, const dt_flag_table *table, const dt_shell_word *words,
                        size_t count, dt_draft *draft, dt_error *err);

/* Sets a flag from another source ("key = value"). */
dt_status dt_flags_set(dt_flags *flags, size_t row, const dt_shell_word *value, const char *shown,
                       dt_error *err);
/* Returns the row of a flag; the table's count if there is none. */
size_t dt_flags_row(const dt_flag_table *table, const char *name, size_t length);
/* Returns " (did you mean '--lr'?)", or "". Borrowed from the draft's arena. */
const char *dt_flags_suggestion(const dt_flags *flags, const char *name);

/* Returns a flag by name, which must be in the table. */
const dt_flag_use *dt_flags_get(const dt_flags *flags, const char *name);
bool dt_flags_given(const dt_flags *flags, const char *name);
double dt_flags_number(const dt_flags *flags, const char *name, double fallback);
const char *dt_flags_text(const dt_flags *flags, const char *name, const char *fallback);
/* Returns the source of a value: "--lr 0.0005" if the flag was given, else "NAME's default". */
const char *dt_flags_from(const dt_flags *flags, const char *name);

/* Returns the flag for remarks: "--lr 0.0005" if it was given, else its name. */
const char *dt_flags_about(const dt_flags *flags, const char *name);

/* Sets a field to the flag's value, or to the fallback as the program's default. */
void dt_flags_set_number(dt_draft *draft, const dt_flags *flags, const char *path, const char *flag,
                         double fallback);

/* Adds the flags that are fields to the draft, and those that are not carried to its `left`. */
void dt_flags_carry(const dt_flags *flags);

/* Appends the table for people: one line per flag. */
void dt_flags_describe(dt_strbuf *out, const dt_flag_table *table);

#endif
