/* gc: what can be done without: found, told, and removed.
 *
 *   checkpoints   of runs that have ended: all but the newest `keep` and the best (engine/checkpoint), and none
 *                 where the newer ones are damaged
 *   logs          of runs that have ended: what their ranks and supervisors said
 *   journals      of runs that have ended and have left nothing on any node: what their agents wrote down. A lost or
 *                 damaged history is made again from them: one goes only where the history is sound and has every
 *                 row of it
 *   cache         agents, bundles, data and digests that nobody uses or has asked for in the last day
 *   sweeps        folders of sweeps that have ended: their recipes and what became of each point, which status
 *                 and resume of the group go by; the runs stay
 *   leftovers     what a removal that was cut short has left
 *
 * What is older than `before_ms` goes (a run's age is since its end, that of a cached file since somebody asked for it),
 * and of logs and cache the oldest beyond a quota (quota.h: which a supervisor keeps to by itself).
 * Never       anything of a run that has not ended, of another user, or that somebody copies; a fork has its own
 *             copies. Each thing is looked at again when it goes, under the run's locks, so that what was seen
 *             before a question was answered does no harm.
 * Threads     any; of two gc at once each removes what the other has not
 */
#ifndef DT_RUNNER_GC_H
#define DT_RUNNER_GC_H

#include "base/arena.h"
#include "store/store.h"

typedef enum dt_gc_kind {
    DT_GC_CHECKPOINTS,
    DT_GC_LOGS,
    DT_GC_JOURNALS,
    DT_GC_CACHE,
    DT_GC_SWEEPS,
    DT_GC_LEFTOVERS,
    DT_GC_KINDS
} dt_gc_kind;
extern const char *const dt_gc_kind_names[]; /* "checkpoints", ...; ends with NULL */

typedef struct dt_gc_item {
    dt_gc_kind kind;
    const char *run;  /* NULL: of none */
    const char *path; /* a file or a folder */
    int64_t bytes, time_ms;
    int64_t attempt, node; /* of a journal */
    bool wanted, removed;  /* wanted: it goes */
} dt_gc_item;

typedef struct dt_gc {
    dt_store *store;
    dt_arena *arena;
    unsigned kinds;     /* 1 << kind */
    int64_t keep;       /* checkpoints of a run */
    const char *spared; /* a run of which all stays, and counts for no quota; NULL: none */
    int64_t before_ms, now_ms;
    int64_t quota[DT_GC_KINDS]; /* bytes; of logs and of the cache; -1: none */
    dt_gc_item *items;          /* filled by dt_gc_scan; the oldest first */
    int64_t count, capacity;
    int64_t problems; /* that dt_gc_remove reported; a run that is busy is none */
    bool sound;       /* the history was checked */
    const char *read_run,
        *read_newest; /* the run whose newest sound checkpoint this is; NULL: none */
} dt_gc;

dt_status dt_gc_scan(dt_gc *gc, dt_error *err);
/* Those that are wanted, one after another; one that cannot be removed is told by `problem` and stays. */
dt_status dt_gc_remove(dt_gc *gc, void (*problem)(const char *message), dt_error *err);

/* --- items.c */
dt_status dt_gc_add(dt_gc *gc, dt_gc_kind kind, const char *run, const char *path, int64_t time_ms,
                    dt_error *err);
/* --- runs.c, cache.c, sweeps.c */
dt_status dt_gc_scan_runs(dt_gc *gc, dt_error *err);
dt_status dt_gc_scan_cache(dt_gc *gc, dt_error *err);
dt_status dt_gc_scan_sweeps(dt_gc *gc, dt_error *err);
dt_status dt_gc_remove_run_item(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);
dt_status dt_gc_remove_cached(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);
dt_status dt_gc_remove_sweep(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);

#endif
