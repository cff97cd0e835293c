/* benchmarks: converts files of published benchmarks into files of evaluation tasks (docs/evaluation.md).
 *
 * Prompts   equal those of EleutherAI's lm-evaluation-harness without examples; tests/peers/evaluate.py compares them
 * Adding a benchmark: a name and a row of the table in forms.c; a line of docs/evaluation.md; rows in
 * tests/cli/evaluate_convert.sh and tests/peers/evaluate.py
 */
#ifndef DT_RUNNER_BENCHMARKS_BENCHMARKS_H
#define DT_RUNNER_BENCHMARKS_BENCHMARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/jinja/jinja.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* forms.c: names, NULL-terminated; the index of a name is its form. */
extern const char *const dt_benchmark_names[];

typedef struct dt_converted {
    int64_t rows;
    int64_t unnamed; /* rows of MMLU without a subject, whose prompts lack the first sentence */
} dt_converted;

/* convert.c: appends the lines of one task that has the rows of all files, in their order. DT_ERR_USAGE naming the file,
 * the line and the field; DT_ERR_NOT_FOUND, DT_ERR_IO. */
dt_status dt_benchmark_convert(dt_strbuf *out, dt_converted *counts, int form,
                               const char *const *paths, size_t count, dt_error *err);

/* --- forms.c: used by convert.c */

/* JSON of the fields that all rows have; NULL: none. */
const char *dt_benchmark_defaults(int form);
dt_status dt_benchmark_template(dt_jinja **out, int form, dt_error *err);
bool dt_benchmark_has_csv(int form);
/* *out: new reference, a row of a task. Changes `row`. `where` starts messages: "'piqa.jsonl', line 3". */
dt_status dt_benchmark_row(json_t **out, dt_converted *counts, int form, const dt_jinja *prompt,
                           json_t *row, const char *where, dt_arena *arena, dt_error *err);

#endif
