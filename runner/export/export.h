/* export: writes runs in the formats of other programs.
 *
 * Adding a format:
 *   1  runner/export/NAME.c defines `const dt_export_format dt_export_NAME`; NAME goes into
 *      DT_EXPORT_FORMATS below and into runner/export/CMakeLists.txt
 *   2  tests/cli/export.sh tests its output
 * The command, its help and its completion use the table.
 *
 * Active runs are exported up to one step: later points are left out.
 * Not finite   each format defines how NaN and infinities are written; none is dropped silently
 */
#ifndef DT_RUNNER_EXPORT_H
#define DT_RUNNER_EXPORT_H

#include "runner/cli/command.h"
#include "store/store.h"

/* In the order of the help. */
#define DT_EXPORT_FORMATS(X) X(csv) X(jsonl) X(tensorboard) X(html) X(parquet) X(hf) X(mlflow)

typedef struct dt_export_job {
    dt_store *store;
    const dt_run *runs;
    size_t count;       /* at least one */
    const char *target; /* the file, folder or address; NULL: stdout */
    const char *metric; /* only this metric; NULL: all */
    const char *which;  /* hf: which checkpoint; NULL: the newest */
    bool replace;       /* replace an existing file */
    const dt_call *call;
} dt_export_job;

typedef struct dt_export_format {
    const char *name;   /* --to NAME */
    const char *target; /* "FILE", "DIR", "URL" */
    bool to_stdout;     /* writes to stdout without a target */
    size_t runs_most;   /* 0: any number */
    const char *help;   /* what it writes, at most 64 columns */
    dt_status (*write)(const dt_export_job *job, dt_error *err);
} dt_export_format;

#define DT_EXPORT_DECLARE(name) extern const dt_export_format dt_export_##name;
DT_EXPORT_FORMATS(DT_EXPORT_DECLARE)

extern const dt_export_format *const dt_export_formats[]; /* ends with NULL */
extern const char *const dt_export_names[];               /* their names, for --to */

/* --- points.c */
/* Passes each point of a run to `take`, ordered by name, then step. Points are read in blocks
 * before they are passed, so that a slow `take` does not lock the store. Stops at the first status
 * that is not DT_OK and returns it. */
typedef dt_status (*dt_export_take)(void *context, const dt_metric *point, dt_error *err);
dt_status dt_export_points(const dt_export_job *job, const dt_run *run, dt_export_take take,
                           void *context, dt_error *err);

#endif
