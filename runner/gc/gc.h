/* gc: finds, lists and removes files that are no longer needed.
 *
 *   checkpoints   of ended runs: all but the newest `keep` and the best (engine/checkpoint); none if the newer ones are
 *                 damaged
 *   logs          of ended runs: logs of ranks and supervisors
 *   journals      of ended runs that have left nothing on any node. A lost or damaged history is rebuilt from
 *                 journals: a journal is removed only if the history is sound and has every row of it
 *   cache         agents, bundles, data and digests that are not in use and were not requested in the last day
 *   sweeps        folders of ended sweeps: their recipes and the state of each point, which status and resume of the
 *                 group need; the runs stay
 *   leftovers     of interrupted removals
 *
 * Removes what is older than `before_ms` (age of a run: since its end; of a cached file: since the last request), and
 * the oldest logs and cache entries beyond a quota (quota.h; a supervisor enforces quotas itself).
 * Never       removes anything of a run that has not ended, of another user, or that is being copied; a fork has its
 *             own copies. Each item is checked again under the run's locks before it is removed, so that an
 *             outdated list does no harm.
 * Threads     any; two gc at once are safe
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
    const char *run;  /* NULL: of no run */
    const char *path; /* a file or a folder */
    int64_t bytes, time_ms;
    int64_t attempt, node; /* of a journal */
    bool wanted, removed;  /* wanted: to be removed */
} dt_gc_item;

typedef struct dt_gc {
    dt_store *store;
    dt_arena *arena;
    unsigned kinds;     /* 1 << kind */
    int64_t keep;       /* checkpoints of a run */
    const char *spared; /* a run that is kept whole and does not count for quotas; NULL: none */
    int64_t before_ms, now_ms;
    int64_t quota[DT_GC_KINDS]; /* bytes; of logs and of the cache; -1: none */
    dt_gc_item *items;          /* filled by dt_gc_look; the oldest first */
    int64_t count, capacity;
    int64_t problems; /* reported by dt_gc_remove; a busy run does not count */
    bool sound;       /* the history was checked */
    const char *read_run,
        *read_newest; /* the run whose newest sound checkpoint this is; NULL: none */
} dt_gc;

dt_status dt_gc_look(dt_gc *gc, dt_error *err);
/* Removes the wanted items; reports one that cannot be removed to `problem`, and keeps it. */
dt_status dt_gc_remove(dt_gc *gc, void (*problem)(const char *message), dt_error *err);

/* --- items.c */
dt_status dt_gc_add(dt_gc *gc, dt_gc_kind kind, const char *run, const char *path, int64_t time_ms,
                    dt_error *err);
/* --- of_runs.c, cache.c, sweeps.c */
dt_status dt_gc_look_at_runs(dt_gc *gc, dt_error *err);
dt_status dt_gc_look_at_cache(dt_gc *gc, dt_error *err);
dt_status dt_gc_look_at_sweeps(dt_gc *gc, dt_error *err);
dt_status dt_gc_remove_of_run(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);
dt_status dt_gc_remove_cached(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);
dt_status dt_gc_remove_sweep(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);

#endif
