/* import: imports runs of other programs into the history.
 *
 * A format reads a whole file into points and lists what it leaves out. Then all runs and points are written in one
 * transaction, so that a damaged file or an interruption leaves nothing. An imported run is finished, has no recipe
 * and no checkpoints, and its note has its origin. Lists, charts, compare and export treat it like any other run.
 */
#ifndef DT_RUNNER_IMPORT_H
#define DT_RUNNER_IMPORT_H

#include "runner/cli/command.h"
#include "store/run.h"

#define DT_IMPORT_POINTS_MOST 20000000

typedef struct dt_import_point {
    int32_t run, metric; /* indices in the lists below */
    int64_t step, time_ms;
    int64_t number; /* position in the file: of several points of a step the last is kept */
    double value;
} dt_import_point;

typedef struct dt_import_names {
    const char **items;
    int32_t count;
    int64_t capacity;
} dt_import_names;

typedef struct dt_imported {
    dt_arena *arena;
    dt_import_names runs, metrics; /* names in the file */
    dt_import_point *points;       /* heap; dt_imported_release */
    int64_t count, capacity;
    int64_t stored;           /* points written to the history (import.c) */
    int64_t skipped;          /* values that are not numbers */
    dt_import_names left_out; /* columns or tags that were not imported */
    bool decimal_comma;       /* one of them has numbers such as 2,5 */
    dt_import_names recipes;  /* of each run as JSON; "{}" if unknown */
} dt_imported;

typedef struct dt_import_source {
    const char *path;
    const char *metric; /* metric of a single column "value"; NULL: the name of the file */
    const dt_call *call;
} dt_import_source;

typedef struct dt_import_format {
    const char *name;                /* dtrun import NAME */
    bool has_metric, has_experiment; /* supports --metric, --experiment */
    dt_status (*read)(dt_imported *out, const dt_import_source *source, dt_error *err);
} dt_import_format;

extern const dt_import_format dt_import_csv, dt_import_mlflow, dt_import_tensorboard;

/* --- import.c */
void dt_imported_init(dt_imported *out, dt_arena *arena);
void dt_imported_release(dt_imported *imported);
/* Finds or adds a name; *out is its index. Control characters become '?', as on a terminal. */
void dt_import_name(int32_t *out, dt_import_names *names, const char *name, dt_arena *arena);
/* Sets the recipe of a run, a JSON object. */
void dt_import_recipe(dt_imported *imported, int32_t run, const char *json);
dt_status dt_import_add(dt_imported *imported, const dt_import_point *point, dt_error *err);

/* --- import.c */
/* Writes all runs in one transaction. *ids: their ids in the order of imported->runs, NULL for a
 * run without points. name: of the run, or with several runs a prefix of their names; NULL: names
 * from the file. Sets imported->stored. */
dt_status dt_import_write(const char ***ids, dt_store *store, dt_imported *imported,
                          const dt_import_source *source, const char *name, const dt_labels *labels,
                          dt_error *err);

#endif
