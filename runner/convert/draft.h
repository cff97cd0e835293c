/* draft: a recipe that is made of another program's command line, value by value, and what could not be
 * made of it.
 *
 * Each value has the flag that it came from, which stands behind it as a comment. What is set twice has
 * the later value. `left` is what has no place in a recipe, with the reason; `notes` are remarks about
 * what has one.
 * Account    every part of the command line is registered as given. At the end each of them stands in the comment
 *            of a value, or in one of the lists: dt_draft_account adds to `left` what does not
 * Ownership  all text is copied into the arena
 * Errors     none while it is filled: running out of memory is told by dt_draft_write
 */
#ifndef DT_RUNNER_CONVERT_DRAFT_H
#define DT_RUNNER_CONVERT_DRAFT_H

#include "base/arena.h"
#include "base/strbuf.h"

typedef struct dt_draft_value {
    const char *path; /* of a field: "optimizer.lr" */
    const char *yaml; /* as it is written */
    const char *from; /* "--lr 0.0005" */
} dt_draft_value;

typedef struct dt_draft_remark {
    const char *about; /* "--log-format json", "train.py:12: if x:" */
    const char *text;  /* one sentence, no full stop */
} dt_draft_remark;

typedef struct dt_draft_remarks {
    dt_draft_remark *items;
    size_t count, capacity;
} dt_draft_remarks;

/* A part of the command line, as it is shown: "--lr 0.0005". */
typedef struct dt_draft_given {
    const char *shown;
    const char *into; /* what the program's table says of it, or a reason why it is not carried */
} dt_draft_given;

typedef struct dt_draft {
    dt_arena *arena;
    const char *title; /* "fairseq" */
    const char *said;  /* what it was made of, as lines; NULL: not shown */
    dt_draft_value *values;
    size_t count, capacity;
    dt_draft_remarks left, notes;
    dt_draft_remarks same; /* what needs no value here: dtrun does the same anyway */
    dt_draft_given *given;
    size_t given_count, given_capacity;
    bool is_layer; /* it says where to train, and nothing of what */
    bool no_memory;
} dt_draft;

void dt_draft_init(dt_draft *out, const char *title, dt_arena *arena);

/* `from` is a format; text is quoted where YAML needs it, words (true, fsdp) and lists are written as they are. */
void dt_draft_word(dt_draft *draft, const char *path, const char *word, const char *from, ...)
    DT_PRINTF(4, 5);
void dt_draft_text(dt_draft *draft, const char *path, const char *text, const char *from, ...)
    DT_PRINTF(4, 5);
void dt_draft_number(dt_draft *draft, const char *path, double value, const char *from, ...)
    DT_PRINTF(4, 5);
/* One is written as it is, several as a list. */
void dt_draft_texts(dt_draft *draft, const char *path, const char *const *texts, size_t count,
                    const char *from);
/* NULL where the path is not set. */
const dt_draft_value *dt_draft_find(const dt_draft *draft, const char *path);
void dt_draft_remove(dt_draft *draft, const char *path);

void dt_draft_left(dt_draft *draft, const char *about, const char *reason, ...) DT_PRINTF(3, 4);
void dt_draft_note(dt_draft *draft, const char *about, const char *text, ...) DT_PRINTF(3, 4);

/* Lists `about` as needing no value in the recipe; `text` is the reason. */
void dt_draft_same(dt_draft *draft, const char *about, const char *text);

/* Registers a part of the command line. `into` as in dt_draft_given. */
void dt_draft_give(dt_draft *draft, const char *shown, const char *into);
void dt_draft_account(dt_draft *draft);

/* "1.5e-4": the shortest that agrees in 15 digits, so that 6e-4 / 10 is 6e-5. */
void dt_draft_number_text(dt_strbuf *out, double value);

/* The recipe, groups and fields in the order of the table (recipes/fields.c). DT_ERR_NOMEM. */
dt_status dt_draft_write(dt_strbuf *out, const dt_draft *draft, dt_error *err);

#endif
