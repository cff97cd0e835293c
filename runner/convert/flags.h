/* flags: reads a command line with a table of another program's flags, and collects the values of the
 * recipe that it becomes (the draft).
 *
 * The table of a program drives the reading, the conversion of each flag, and the output of
 * `dtrun import NAME --flags`.
 * Read as    --flag value, --flag=value; '_' and '-' are equal inside a name; the last of a repeated flag counts
 * Errors     DT_ERR_USAGE naming the flag: a missing value, a value of the wrong type, a value that only a shell knows (unless
 *            the flag is not carried anyway), and with a strict table an unknown flag
 */
#ifndef DT_RUNNER_CONVERT_FLAGS_H
#define DT_RUNNER_CONVERT_FLAGS_H

#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/convert/script.h"

/* draft: collects the values of a recipe that is converted from another program's command line, and the parts that
 * cannot be converted.
 *
 * Each value records the flag that it came from, which is written as a comment after it. A later value of a field replaces
 * an earlier one. `left` lists the parts that a recipe cannot express, with the reason; `notes` are remarks about
 * converted parts.
 * Account    every part of the command line is registered. At the end each must be in the comment of a value or in one
 *            of the lists: dt_draft_account adds the others to `left`
 * Ownership  all text is copied into the arena
 * Errors     none while it is filled: dt_draft_write reports that memory ran out
 */

typedef struct dt_draft_value {
    const char *path; /* of the field, such as "optimizer.lr" */
    const char *yaml; /* the value as it is written */
    const char *from; /* the flag, such as "--lr 0.0005" */
} dt_draft_value;

typedef struct dt_draft_remark {
    const char *about; /* such as "--log-format json" or "train.py:12: if x:" */
    const char *text;  /* one sentence, no full stop */
} dt_draft_remark;

typedef struct dt_draft_remarks {
    dt_draft_remark *items;
    size_t count;
    int64_t capacity;
} dt_draft_remarks;

/* A part of the command line, as it is shown: "--lr 0.0005". */
typedef struct dt_draft_given {
    const char *shown;
    const char *into; /* what the flag becomes, or why it is not carried */
} dt_draft_given;

typedef struct dt_draft {
    dt_arena *arena;
    const char *title; /* name of the program, such as "fairseq" */
    const char *said;  /* the converted command, as lines; NULL: not shown */
    dt_draft_value *values;
    size_t count;
    int64_t capacity;
    dt_draft_remarks left, notes;
    dt_draft_remarks same; /* parts that need no value, because dtrun does the same anyway */
    dt_draft_given *given;
    size_t given_count;
    int64_t given_capacity;
    bool is_layer; /* it has settings of where to train, but no model and data */
} dt_draft;

void dt_draft_init(dt_draft *out, const char *title, dt_arena *arena);

/* `from` is a format. Text is quoted if YAML needs it; words (true, fsdp) and lists are written unquoted. */
void dt_draft_word(dt_draft *draft, const char *path, const char *word, const char *from, ...)
    DT_PRINTF(4, 5);
void dt_draft_text(dt_draft *draft, const char *path, const char *text, const char *from, ...)
    DT_PRINTF(4, 5);
void dt_draft_number(dt_draft *draft, const char *path, double value, const char *from, ...)
    DT_PRINTF(4, 5);
/* Writes one text as a scalar, several as a list. */
void dt_draft_texts(dt_draft *draft, const char *path, const char *const *texts, size_t count,
                    const char *from);
/* Writes assignments NAME=value as a map. */
void dt_draft_map(dt_draft *draft, const char *path, const char *const *assignments, size_t count,
                  const char *from);
/* Returns the value of a path; NULL if it is not set. */
const dt_draft_value *dt_draft_find(const dt_draft *draft, const char *path);

void dt_draft_left(dt_draft *draft, const char *about, const char *reason, ...) DT_PRINTF(3, 4);
void dt_draft_note(dt_draft *draft, const char *about, const char *text, ...) DT_PRINTF(3, 4);

/* Lists `about` as needing no value in the recipe; `text` is the reason. */
void dt_draft_same(dt_draft *draft, const char *about, const char *text);

/* Registers a part of the command line. `into` as in dt_draft_given. */
void dt_draft_give(dt_draft *draft, const char *shown, const char *into);
void dt_draft_account(dt_draft *draft);

/* Appends the shortest number that agrees in 15 digits, "1.5e-4", so that 6e-4 / 10 is 6e-5. */
void dt_draft_number_text(dt_strbuf *out, double value);

/* Writes the recipe, with groups and fields in the order of the table (recipes/fields/fields.c). */
void dt_draft_write(dt_strbuf *out, const dt_draft *draft);

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
    size_t each_count;
    int64_t each_capacity;
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
