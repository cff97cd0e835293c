/* group: reads and writes the folder of a sweep.
 *
 *   $XDG_STATE_HOME/dtrun/sweeps/GROUP/
 *     sweep.json     written once: {"sweep": 1, "group", "at_once", "nodes", "metric", "after", "keep", "tags", "queues", "priority", "comes_after",
 *                    "points": [{"name", "values"}]}
 *     point-N.yaml   resolved recipe of each point, from 1
 *     recipe.yaml    the recipe as written
 *     progress.json  written by the driver only: {"progress": 1, "ended", "points": [{"run", "problem", "cut",
 *                    "again"}]}
 *     stop           a stop was requested; stop.now: at once
 *     driver.lock, driver.log, environment
 *
 * Invariant  a point is started once: its run is in the history under the point's name and group before it is in
 *            progress.json, and the next driver looks for it there
 * Ownership  everything lives in the arena
 */
#ifndef DT_SWEEP_GROUP_H
#define DT_SWEEP_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/fields/recipe.h"

typedef struct dt_sweep_point {
    const char *name;    /* name of its run */
    const char *values;  /* "optimizer.lr=1e-4 seed=2" */
    const char *run;     /* "": not started */
    const char *problem; /* why it could not be launched; "": launched, or not tried yet */
    bool again;          /* its run has ended and must be resumed */
    int64_t cut;         /* step at which it was stopped early; 0: not stopped */
    json_t *origins;     /* origins of its values; owned by dt_sweep_launch; may be NULL */
} dt_sweep_point;

typedef struct dt_sweep_group {
    const char *name, *folder;
    int64_t at_once;
    int64_t nodes;      /* nodes of the recipe that each run trains on; 0: all */
    const char *metric; /* "": no early stops */
    int64_t after;
    double keep;
    const char *tags; /* separated by blanks */
    bool queues;      /* its points wait in the queue */
    int64_t priority;
    const char *after_runs; /* runs that its points come after, separated by blanks */
    dt_sweep_point *points;
    int64_t count;
    bool ended;
} dt_sweep_group;

/* Returns the folder of a group, which need not exist. */
dt_status dt_group_folder(const char **out, const char *name, dt_arena *arena, dt_error *err);

/* Finds a free name ("lr", "lr.2", ...) by creating its folder, fills in io->name and folder,
 * names the points and their recipes[] after it ("lr.2-1"), and writes sweep.json, recipes[] and
 * `text`. */
dt_status dt_group_make(dt_sweep_group *io, const char *wanted, dt_recipe *recipes,
                        const char *text, dt_arena *arena, dt_error *err);
/* DT_ERR_NOT_FOUND. */
dt_status dt_group_read(dt_sweep_group *out, const char *name, dt_arena *arena, dt_error *err);
dt_status dt_group_write_progress(const dt_sweep_group *group, dt_error *err);

/* Lists the names of groups that have ended, or of the others. */
dt_status dt_group_list(const char ***out, int64_t *count, bool ended, dt_arena *arena,
                        dt_error *err);

/* Keeps drivers out until *lock is closed. DT_ERR_BUSY. */
dt_status dt_group_hold(int *lock, const dt_sweep_group *group, dt_arena *arena, dt_error *err);
/* Reads the recipe as it was written. */
dt_status dt_group_read_recipe(dt_strbuf *out, const dt_sweep_group *group, size_t max_bytes,
                               dt_error *err);

/* Requests a stop of all its runs, which the driver executes. */
dt_status dt_group_ask_stop(const dt_sweep_group *group, bool now, dt_error *err);
dt_status dt_group_forget_stop(const dt_sweep_group *group, dt_error *err);
bool dt_group_stop_asked(const dt_sweep_group *group, bool *now);

#endif
