/* export: runs as files of other programs.
 *
 * Adding a format:
 *   1  runner/export/NAME.c defines `const dt_export_format dt_export_NAME`; NAME goes into
 *      DT_EXPORT_FORMATS below and into runner/export/CMakeLists.txt
 *   2  tests/cli/export.sh shows what it writes
 * The command, its help and its completion follow from that.
 *
 * Runs that still train are exported as they are at one step: points of later ones are left out.
 * Not finite   each format says what it makes of NaN and infinities; none is left out in silence
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
    const char *metric; /* this one alone; NULL: all */
    const char *which;  /* hf: the checkpoint; NULL: the newest */
    bool replace;       /* a file that is there already */
    const dt_call *call;
} dt_export_job;

typedef struct dt_export_format {
    const char *name;   /* --to NAME */
    const char *target; /* "FILE", "DIR", "URL" */
    bool to_stdout;     /* where no target is named */
    size_t runs_most;   /* 0: any number */
    const char *help;   /* of the notes: what it writes; a line of at most 64 columns */
    dt_status (*write)(const dt_export_job *job, dt_error *err);
} dt_export_format;

#define DT_EXPORT_DECLARE(name) extern const dt_export_format dt_export_##name;
DT_EXPORT_FORMATS(DT_EXPORT_DECLARE)

extern const dt_export_format *const dt_export_formats[]; /* ends with NULL */
extern const char *const dt_export_names[];               /* the same; for --to */

/* --- points.c */
/* Each point of a run by name, then step; a block is read before it is given, so that `take` may be slow
 * and holds nothing of the store. The first status that is not DT_OK ends it. */
typedef dt_status (*dt_export_take)(void *context, const dt_metric *point, dt_error *err);
dt_status dt_export_points(const dt_export_job *job, const dt_run *run, dt_export_take take,
                           void *context, dt_error *err);

#endif
