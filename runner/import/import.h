/* import: runs of other programs, from files into the history.
 *
 * A format reads all of a file into points, and says what it leaves out; then each run is written with all of its points as one change, so
 * that what is damaged, or breaks off, leaves nothing. An imported run is finished, has no recipe and no
 * checkpoints, and says where it came from; lists, charts, compare and export take it like any other.
 */
#ifndef DT_RUNNER_IMPORT_H
#define DT_RUNNER_IMPORT_H

#include "runner/cli/command.h"
#include "store/store.h"

#define DT_IMPORT_POINTS_MOST 20000000

typedef struct dt_import_point {
    int32_t run, metric; /* in the lists below */
    int64_t step, time_ms;
    int64_t number; /* in the order of the file: of several of a step the last counts */
    double value;
} dt_import_point;

typedef struct dt_import_names {
    const char **items;
    int32_t count, capacity;
} dt_import_names;

typedef struct dt_imported {
    dt_arena *arena;
    dt_import_names runs, metrics; /* as the file has them */
    dt_import_point *points;       /* heap; dt_imported_release */
    int64_t count, capacity;
    int64_t stored;  /* points that are in the history: of several of a step the last (write.c) */
    int64_t skipped; /* values that are not numbers */
    dt_import_names left_out; /* columns or tags of which nothing was taken */
    bool decimal_comma;       /* one of them has numbers such as 2,5 */
    dt_import_names recipes;  /* of each run as JSON, as far as they are known; "{}" else */
} dt_imported;

typedef struct dt_import_source {
    const char *path;
    const char *metric; /* of a column "value" alone; NULL: as the file is called */
    const dt_call *call;
} dt_import_source;

typedef struct dt_import_format {
    const char *name;                /* dtrun import NAME */
    bool has_metric, has_experiment; /* takes the option of that name */
    dt_status (*read)(dt_imported *out, const dt_import_source *source, dt_error *err);
} dt_import_format;

extern const dt_import_format dt_import_csv, dt_import_mlflow, dt_import_tensorboard;

/* --- points.c */
void dt_imported_init(dt_imported *out, dt_arena *arena);
void dt_imported_release(dt_imported *imported);
/* The number of a name, which is added where it is new. What must not be shown becomes '?', as in a terminal. */
dt_status dt_import_name(int32_t *out, dt_import_names *names, const char *name, dt_arena *arena,
                         dt_error *err);
/* What a run's recipe is to be: a JSON object. */
dt_status dt_import_recipe(dt_imported *imported, int32_t run, const char *json, dt_error *err);
dt_status dt_import_add(dt_imported *imported, const dt_import_point *point, dt_error *err);

/* --- write.c */
/* All runs as one change; *ids: theirs, in the order of the list; NULL of one without points. name: of the run; of
 * several the beginning of their names; NULL: as the file says. Sets imported->stored. */
dt_status dt_import_write(const char ***ids, dt_store *store, dt_imported *imported,
                          const dt_import_source *source, const char *name, const dt_labels *labels,
                          dt_error *err);

#endif
