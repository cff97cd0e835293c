/* evaluation: reads files of evaluation tasks, and computes the metrics of a task from the outcomes of its rows.
 *
 * A file       jsonl, one task; docs/evaluation.md has the form. Its rows are of one kind:
 *              choice  {"prompt", "choices", "answer"}   the choice of the highest likelihood
 *              answer  {"prompt", "answer"}              the generated text equals the answer
 *              text    {"text"}                          the perplexity of texts
 * A line       a row with the defaults of its file, the name of its task ("task") and its line in the file ("row"):
 *              complete by itself, so that ranks can share lines
 * A result     of a row, as JSON: what the model computed, and the values of the row
 * The same     metrics depend on the results of all rows in the order of the files, not on who computed them
 * Metrics      those of EleutherAI's lm-evaluation-harness, with its names
 * Errors       DT_ERR_USAGE naming the file and the line
 */
#ifndef DT_ENGINE_EVALUATION_EVALUATION_H
#define DT_ENGINE_EVALUATION_EVALUATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_evaluation_kind {
    DT_EVALUATION_CHOICE,
    DT_EVALUATION_ANSWER,
    DT_EVALUATION_TEXT,
    DT_EVALUATION_KINDS
} dt_evaluation_kind;

/* Returns "choice", "answer" or "text". */
const char *dt_evaluation_kind_name(dt_evaluation_kind kind);

/* --- rows.c: a row */

typedef struct dt_evaluation_texts {
    const char **items;
    size_t count;
} dt_evaluation_texts;

/* How a generated text is compared with the answers (answer.c). */
typedef struct dt_evaluation_compare {
    const char *extract;        /* POSIX extended expression; "": compare the whole text */
    bool extract_last;          /* take the last match instead of the first */
    dt_evaluation_texts remove; /* POSIX extended expressions, removed from text and answer */
    bool ignore_case, ignore_punctuation;
} dt_evaluation_compare;

/* Strings are borrowed from the JSON object, lists live in the arena. */
typedef struct dt_evaluation_row {
    dt_evaluation_kind kind;
    const char *task;      /* "": a row of a file, without a task */
    int64_t number;        /* its line in the file, from 1; 0: none */
    const char *text;      /* the prompt, or the text of kind text */
    const char *delimiter; /* between prompt and choice */
    dt_evaluation_texts choices;
    int64_t *right; /* indices of right choices */
    size_t right_count;
    dt_evaluation_texts answers; /* any of them is right */
    dt_evaluation_texts until;   /* texts before which a generated text ends */
    int64_t tokens;              /* maximum of a generated text */
    dt_evaluation_compare compare;
} dt_evaluation_row;

/* `where` starts messages: "'arc.jsonl', line 3". */
dt_status dt_evaluation_row_read(dt_evaluation_row *out, const json_t *object, const char *where,
                                 dt_arena *arena, dt_error *err);

/* --- answer.c: comparing a generated text with answers */

/* Appends what is extracted from `text`; "[invalid]" if the expression does not match. */
void dt_evaluation_extract(dt_strbuf *out, const dt_evaluation_compare *how, const char *text);
bool dt_evaluation_matches(const dt_evaluation_row *row, const char *extracted);
/* DT_ERR_USAGE if it is no POSIX extended expression. */
dt_status dt_evaluation_check_expression(const char *expression, dt_error *err);

/* Appends the text with U+FFFD for each part of a character that is broken off, as the tokenizers library decodes. */
void dt_evaluation_add_valid(dt_strbuf *out, const char *text, size_t length);

/* Appends text as Python's str.strip() returns it. */
void dt_evaluation_add_stripped(dt_strbuf *out, const char *text, size_t length);
/* Bytes at the end of text that are white space as Python's str.rstrip() removes it, and the number of words as
 * re.split(r"\s+", text) counts them. */
size_t dt_evaluation_blank_end(const char *text, size_t length);
int64_t dt_evaluation_words(const char *text, size_t length);
/* Code points of valid UTF-8. */
int64_t dt_evaluation_characters(const char *text);

/* --- file.c: files of tasks */

typedef struct dt_evaluation_task {
    const char *name, *path;
    dt_evaluation_kind kind;
    int64_t rows;
} dt_evaluation_task;

#define DT_EVALUATION_TASKS 256
#define DT_EVALUATION_NAME  64 /* bytes of the name of a task */

/* Appends the lines of the tasks of all files, in their order. The name of a task is that of its file without folder and
 * extension. DT_ERR_USAGE also for two tasks of the same name; DT_ERR_NOT_FOUND, DT_ERR_IO. */
dt_status dt_evaluation_read(dt_strbuf *out, dt_evaluation_task **tasks, const char *const *paths,
                             size_t count, dt_arena *arena, dt_error *err);

/* DT_ERR_USAGE: ranks that divide layers by `tensor` have no logits in training, which generated answers need. */
dt_status dt_evaluation_check_divided(const dt_evaluation_task *task, int64_t tensor,
                                      dt_error *err);

/* --- totals.c: metrics */

/* The values of a row from which metrics are computed, in the order of the table in totals.c. */
#define DT_EVALUATION_VALUES 5
typedef struct dt_evaluation_outcome {
    double values[DT_EVALUATION_VALUES];
} dt_evaluation_outcome;

enum { DT_CHOICE_ACC, DT_CHOICE_ACC_NORM, DT_CHOICE_ACC_BYTES };
enum { DT_ANSWER_MATCH };
enum { DT_TEXT_LIKELIHOOD, DT_TEXT_COUNT_TOKENS, DT_TEXT_COUNT_WORDS, DT_TEXT_COUNT_BYTES };
enum { DT_OUTCOME_CUT = DT_EVALUATION_VALUES - 1 }; /* 1: the row was longer than the context */

typedef struct dt_evaluation_metric {
    const char *name;    /* static: "acc" */
    double value, error; /* error: the standard error; NaN: unknown */
} dt_evaluation_metric;

#define DT_EVALUATION_METRICS 4
typedef struct dt_evaluation_result {
    const char *task;
    dt_evaluation_kind kind;
    int64_t rows, cut; /* cut: rows whose beginning was left out */
    dt_evaluation_metric metrics[DT_EVALUATION_METRICS];
    size_t count;
} dt_evaluation_result;

typedef struct dt_evaluation_results {
    dt_evaluation_result *items;
    size_t count;
} dt_evaluation_results;

/* Adds the values as members of a result, and reads them back. */
void dt_evaluation_outcome_to_json(json_t *io, dt_evaluation_kind kind,
                                   const dt_evaluation_outcome *outcome);
dt_status dt_evaluation_outcome_read(dt_evaluation_outcome *out, dt_evaluation_kind kind,
                                     const json_t *result, dt_error *err);

/* Sets kind, rows, cut and metrics. */
void dt_evaluation_total(dt_evaluation_result *out, dt_evaluation_kind kind,
                         const dt_evaluation_outcome *outcomes, int64_t count);
/* The totals of each task, from the result of each row, one a line. DT_ERR_CORRUPT naming the line. */
dt_status dt_evaluation_totals(dt_evaluation_results *out, const char *text, size_t length,
                               dt_arena *arena, dt_error *err);

/* {"tasks": {"arc": {"kind", "rows", "cut", "metrics": {"acc": {"value", "stderr"}, ...}}, ...}}: the value of "tasks".
 * New reference. */
json_t *dt_evaluation_to_json(const dt_evaluation_results *results);
dt_status dt_evaluation_from_json(dt_evaluation_results *out, const json_t *tasks, dt_arena *arena,
                                  dt_error *err);
/* Returns a metric of a task, or NULL. */
const dt_evaluation_metric *dt_evaluation_find(const dt_evaluation_results *results,
                                               const char *task, const char *metric);

#ifdef __cplusplus
}
#endif

#endif
