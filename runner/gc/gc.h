/* gc: finds, reports and removes what is no longer needed, and keeps cache and logs below their quotas.
 *
 *   checkpoints   of ended runs: all but the newest `keep` and the best (engine/checkpoint), and none if the newer
 *                 ones are damaged
 *   logs          of ended runs: the output of ranks and supervisors
 *   journals      of ended runs with nothing left on any node: the agents' events. A lost or damaged history is
 *                 rebuilt from them, so a journal is removed only if the history is sound and has all of its rows
 *   cache         agents, bundles, data and digests that are not in use and were not requested in the last day
 *   sweeps        folders of ended sweeps: their recipes and the result of each point, which status and resume of
 *                 the group need; the runs are kept
 *   leftovers     what an interrupted removal has left
 *
 * Removes what is older than `before_ms` (a run's age counts from its end, that of a cached file from its last
 * request), and of logs and cache the oldest beyond a quota (see quota below; supervisors enforce it).
 * Never       anything of a run that has not ended, that belongs to another user, or that is being copied; a fork
 *             has its own copies. Each item is checked again before it is removed, under the run's locks, so
 *             changes after the scan do no harm.
 * Threads     any; two gc at once each remove what the other has not
 */
#ifndef DT_RUNNER_GC_GC_H
#define DT_RUNNER_GC_GC_H

#include "base/json.h"
#include "base/memory.h"
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
    const char *run;  /* NULL: not of a run */
    const char *path; /* a file or a folder */
    int64_t bytes, time_ms;
    int64_t attempt, node; /* for a journal */
    bool wanted, removed;  /* wanted: to be removed */
} dt_gc_item;

typedef struct dt_gc {
    dt_store *store;
    dt_arena *arena;
    unsigned kinds;     /* 1 << kind */
    int64_t keep;       /* checkpoints to keep per run */
    const char *spared; /* run whose items are kept and count for no quota; NULL: none */
    int64_t before_ms, now_ms;
    int64_t quota[DT_GC_KINDS]; /* bytes, for logs and cache; -1: no quota */
    dt_gc_item *items;          /* filled by dt_gc_scan, oldest first */
    int64_t count, capacity;
    int64_t problems;     /* problems that dt_gc_remove reported, without busy runs */
    json_t *contents;     /* digests of contents that runs can need; NULL: not looked up. Free it */
    bool sound;           /* the history was checked */
    const char *read_run; /* run whose checkpoints were verified last */
    const char *read_newest; /* path of its newest sound checkpoint; NULL: none */
} dt_gc;

dt_status dt_gc_scan(dt_gc *gc, dt_error *err);
/* Removes the wanted items one after another; an item that cannot be removed is reported by
 * `problem` and kept. */
dt_status dt_gc_remove(dt_gc *gc, void (*problem)(const char *message), dt_error *err);

/* --- runs.c */
void dt_gc_add(dt_gc *gc, dt_gc_kind kind, const char *run, const char *path, int64_t time_ms);
/* --- runs.c, cache.c */
dt_status dt_gc_scan_runs(dt_gc *gc, dt_error *err);
dt_status dt_gc_scan_cache(dt_gc *gc, dt_error *err);
dt_status dt_gc_scan_sweeps(dt_gc *gc, dt_error *err);
dt_status dt_gc_remove_run_item(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);
dt_status dt_gc_remove_cached(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);
dt_status dt_gc_remove_sweep(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err);

/* quota: limits the size of cache and logs when a run ends.
 *
 * From       DTRUN_CACHE_QUOTA and DTRUN_LOG_QUOTA, "20GB" in powers of 1000; unset or empty: no quota. A run's
 *            supervisors use those of its launch
 * Removes    the oldest beyond the quota, by the rules above; files in use are kept
 * Errors     DT_ERR_USAGE for an invalid quota, with the name of the variable
 */

/* Parses "20GB", "1.5 MB" or "0B" to bytes; `of` is named in the error. */
dt_status dt_quota_parse(int64_t *out, const char *of, const char *text, dt_error *err);

/* Reads the quotas from the environment; -1: none. */
dt_status dt_quotas_read(int64_t quota[DT_GC_KINDS], dt_error *err);

/* Checks the quotas at the launch, because a supervisor could only log an error. */
dt_status dt_quotas_check(dt_error *err);

/* Applies the quotas after `run` has ended and its locks are free: removes logs of other runs
 * and unused cache files; its own logs are kept until another run ends. Each removed item and
 * each failure is a line of the log (base/log.h). */
dt_status dt_quotas_keep(const char *run, dt_error *err);

#endif
