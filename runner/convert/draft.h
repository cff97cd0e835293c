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
#ifndef DT_RUNNER_CONVERT_DRAFT_H
#define DT_RUNNER_CONVERT_DRAFT_H

#include "base/arena.h"
#include "base/strbuf.h"

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
    size_t count, capacity;
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
    size_t count, capacity;
    dt_draft_remarks left, notes;
    dt_draft_remarks same; /* parts that need no value, because dtrun does the same anyway */
    dt_draft_given *given;
    size_t given_count, given_capacity;
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

#endif
