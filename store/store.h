/* store: keeps the run history in one SQLite file.
 *
 * Invariants
 *   1 A run ends exactly once per attempt: a terminal state is only left by a new attempt.
 *   2 Metrics are append-only, keyed (run, attempt, name, step).
 *   3 Events from a node's journal and the journal's new acknowledged number are written in one
 *     transaction, so that a writer that dies at any moment neither loses nor repeats an event. The
 *     number is sent to the node only after dt_store_sync: the node may then delete these events, and
 *     a power loss must not lose them here.
 *   4 Each multi-row change is one transaction.
 *   5 One writer per run (its supervisor, which holds the run's lock); readers need no lock.
 *   6 The pyramid of a curve agrees with its points at every commit (pyramid.c).
 *
 * File       mode 0600, WAL, synchronous=NORMAL, busy timeout 30 s, user_version = 1
 *            (store/schema.sql). Another user_version, a network file system, a damaged or foreign
 *            file: an error.
 * Ownership  strings of structs that readers fill live in the arena
 * Threads    one handle, one thread
 */
#ifndef DT_STORE_H
#define DT_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_store dt_store;

/* --- store.c */
/* Opens $XDG_STATE_HOME/dtrun/store.db where path is NULL, and creates it if missing. */
dt_status dt_store_open(dt_store **out, const char *path, dt_error *err);
/* Opens the store for reading, also on a read-only file system (store.c); writing then fails. */
dt_status dt_store_open_to_read(dt_store **out, const char *path, dt_error *err);
bool dt_store_can_write(const dt_store *store);
void dt_store_close(dt_store *store);
/* Sets how long a change waits for another process that holds the store; default 30 s. */
void dt_store_set_patience(dt_store *store, int ms);
dt_status dt_store_begin(dt_store *store, dt_error *err); /* IMMEDIATE; not nested */
/* Begins a read transaction: reads see one snapshot until dt_store_rollback. Not nested. */
dt_status dt_store_begin_reading(dt_store *store, dt_error *err);
dt_status dt_store_commit(dt_store *store, dt_error *err);
void dt_store_rollback(dt_store *store);
/* Returns false once the file at the store's path was removed or replaced. */
bool dt_store_is_current(const dt_store *store);
/* For readers, after dt_store_is_current returned false: if the new file has the run, reopens the handle on that
 * file and returns true. Event ids differ in the new file. Otherwise leaves the handle alone and returns false. */
bool dt_store_renew(dt_store *store, const char *run);
/* For the writer, after dt_store_is_current returned false: copies the rows of the run to the file that is now at
 * the path, which is created if missing; rows of the run that it already has are kept. Must not be called in a
 * transaction. (backup.c) */
dt_status dt_store_move_run(dt_store *old, const char *run, dt_error *err);
/* Syncs all commits to the disk, so that a power loss cannot undo them. */
dt_status dt_store_sync(dt_store *store, dt_error *err);

/* --- run.c */
typedef enum dt_run_state {
    DT_RUN_QUEUED,
    DT_RUN_PREPARING,
    DT_RUN_STARTING,
    DT_RUN_RUNNING,
    DT_RUN_STOPPING,
    DT_RUN_FINISHED,
    DT_RUN_FAILED,
    DT_RUN_STOPPED,
    DT_RUN_STATE_COUNT
} dt_run_state;
const char *dt_run_state_name(dt_run_state state); /* "queued", ... */
bool dt_run_state_parse(dt_run_state *out, const char *name);
bool dt_run_state_is_terminal(dt_run_state state);

typedef struct dt_run {
    const char *id, *name;
    dt_run_state state;
    int64_t attempt;    /* newest, from 1; or the one that finished (dt_store_run_restore) */
    int64_t created_ms; /* of the run */
    int64_t started_ms, ended_ms; /* of the newest attempt; 0: not yet */
    int64_t first_step_ms;        /* first metrics of the newest attempt; 0: none yet */
    int64_t step, steps_total;    /* done, and of the whole run; total 0: not known yet (epochs) */
    double loss, valid_loss, tokens_per_second; /* newest; NaN: none; infinite: diverged */
    const char *recipe_path, *recipe_text;      /* as written */
    const char *recipe_json;                    /* resolved, of the newest attempt */
    const char *recipe_hash;
    int exit_code;           /* of the newest attempt; -1: not ended */
    const char *reason;      /* why the newest attempt failed or was stopped, else "" */
    const char *boot_id;     /* of the launch machine when the newest attempt started; "" unknown */
    int64_t started_boot_ms; /* start of the newest attempt on the boot clock */
    int64_t ended_attempts_ms; /* total time of the attempts that have ended */
    /* User labels, "" if none. Tags are sorted and separated by one space. dt_store_run_add accepts
     * NULL for "". */
    const char *tags, *note, *group;
    const char *parent; /* id of the run it was forked from at parent_step; "": none */
    int64_t parent_step;
} dt_run;
/* Returns the total time of all attempts, without the time between them; NaN if none has started. Uses the boot clock
 * of this machine, which nobody can set, and the wall clock (`now_ms`) where the boot clock is unknown. */
double dt_run_elapsed_seconds(const dt_run *run, int64_t now_ms);

/* Adds a run in state queued, with attempt 1 starting at parent_step. DT_ERR_BUSY if the id is in use. */
dt_status dt_store_run_add(dt_store *store, const dt_run *run, dt_error *err);
/* Copies the points of the run `from`, up to `step`, into attempt 1 of `run`, so that they survive the removal of
 * `from`. (metric.c) */
dt_status dt_store_run_copy_past(dt_store *store, const char *run, const char *from, int64_t step,
                                 dt_error *err);
/* Finds a run by id, "last", name (its newest run) or unique prefix of an id, in this order: a prefix can be
 * lengthened, a name cannot. DT_ERR_NOT_FOUND, or DT_ERR_USAGE if the prefix is ambiguous (the message
 * lists the candidates). */
dt_status dt_store_run_find(dt_store *store, dt_run *out, const char *ref, dt_arena *arena,
                            dt_error *err);
/* Lists runs, newest first. state -1: any. limit 0: all. */
dt_status dt_store_run_list(dt_store *store, dt_run **out, int64_t *count, int state, int64_t limit,
                            dt_arena *arena, dt_error *err);
/* Lists runs that have not ended, or that ended at ended_ms or later; newest first. */
dt_status dt_store_run_list_since(dt_store *store, dt_run **out, int64_t *count, int64_t ended_ms,
                                  dt_arena *arena, dt_error *err);
/* The newest attempt of a run, and whether that attempt has ended; dt_store_run_marks sorts by id. */
typedef struct dt_run_mark {
    const char *id;
    int64_t attempt;
    bool ended;
} dt_run_mark;
dt_status dt_store_run_marks(dt_store *store, dt_run_mark **out, int64_t *count, dt_arena *arena,
                             dt_error *err);
/* Removes all rows of a run in one transaction. */
dt_status dt_store_run_remove(dt_store *store, const char *run, dt_error *err);
/* --- backup.c */
/* Copies the store to a new file, mode 0600, while others may write. The copy is verified before it is renamed to
 * `path`. DT_ERR_USAGE: `path` exists; DT_ERR_CORRUPT: the store is damaged, and no file is left. */
dt_status dt_store_backup(dt_store *store, const char *path, dt_error *err);
/* --- schema.c */
/* Reads the whole store and lists what is damaged, as messages: the file, or pyramids that differ from their points. */
dt_status dt_store_verify(dt_store *store, const char ***problems, int64_t *count, dt_arena *arena,
                          dt_error *err);
/* --- sql_views.c */
typedef struct dt_query_value {
    enum { DT_QUERY_NULL, DT_QUERY_INT, DT_QUERY_REAL, DT_QUERY_TEXT } kind;
    int64_t integer;
    double real;
    const char *text; /* valid until `take` returns */
} dt_query_value;
/* Called once with values NULL before the first row, then once per row. */
typedef void (*dt_query_take)(void *context, const char *const *names, const dt_query_value *values,
                              int count);
/* Runs one SELECT on a read-only connection. DT_ERR_USAGE: not a SELECT, or an SQL error; DT_ERR_TIMEOUT: no result
 * within `seconds`. */
dt_status dt_store_query(dt_store *store, const char *sql, double seconds, dt_query_take take,
                         void *context, dt_error *err);
/* --- run_read.c */
#define DT_RUN_SEARCH_ACTIVE (-2) /* runs that have not ended */
typedef struct dt_run_search {
    int state;         /* -1: any; or DT_RUN_SEARCH_ACTIVE */
    const char *words; /* substring of name, id, tags, group or note, in any case; NULL: any run */
    const char *sort; /* created, name, state, step, loss, valid_loss, tokens_per_second, elapsed */
    bool rising;      /* ascending, else descending; unknown values come last in both */
    int64_t offset, limit; /* limit 0: all */
} dt_run_search;
/* Returns the ids of the requested page, and the total number of matches. DT_ERR_USAGE: unknown `sort`. */
dt_status dt_store_run_search(dt_store *store, const char ***ids, int64_t *count, int64_t *total,
                              const dt_run_search *search, dt_arena *arena, dt_error *err);
/* Counts the runs of the store that have not ended. */
dt_status dt_store_run_count_active(dt_store *store, int64_t *count, dt_error *err);
/* --- run.c again */
/* Sets the state of the newest attempt. A terminal state also sets ended_ms, exit_code and reason; the first
 * state after queued sets started_ms. DT_ERR_BUSY if the attempt has already ended. */
dt_status dt_store_run_set_state(dt_store *store, const char *run, dt_run_state state,
                                 int exit_code, const char *reason, int64_t now_ms, dt_error *err);
/* Corrects the exit code and reason of an attempt that has ended. */
dt_status dt_store_attempt_amend(dt_store *store, const char *run, int64_t attempt, int exit_code,
                                 const char *reason, dt_error *err);
/* Sets the newest values that lists show. NaN leaves a value unchanged. */
dt_status dt_store_run_set_progress(dt_store *store, const char *run, int64_t step, double loss,
                                    double valid_loss, double tokens_per_second, int64_t now_ms,
                                    dt_error *err);
/* User labels of a run; dt_store_run_label leaves those that are NULL unchanged. */
typedef struct dt_labels {
    const char *name, *tags, *note, *group;
} dt_labels;
dt_status dt_store_run_label(dt_store *store, const char *run, const dt_labels *labels,
                             dt_error *err);
/* Sets the total steps of the newest attempt, once the number is known or corrected. */
dt_status dt_store_run_set_steps_total(dt_store *store, const char *run, int64_t steps_total,
                                       dt_error *err);
/* Adds the next attempt, in state queued, starting at start_step, with its resolved recipe and hash. DT_ERR_BUSY if
 * the newest attempt has not ended. */
dt_status dt_store_attempt_add(dt_store *store, const char *run, int64_t start_step,
                               int64_t steps_total, const char *recipe_json,
                               const char *recipe_hash, int64_t now_ms, int64_t *attempt,
                               dt_error *err);

/* Stores what --set changed for the newest attempt: a JSON array of {"key", "old", "new"}. */
dt_status dt_store_attempt_set_changes(dt_store *store, const char *run, const char *changes_json,
                                       dt_error *err);

/* Stores the provenance of the newest attempt, a JSON object (runner/launch/provenance.h). */
dt_status dt_store_attempt_set_provenance(dt_store *store, const char *run,
                                          const char *provenance_json, dt_error *err);

/* The attempt whose recipe a resume uses: the newest that did a step or did not fail, else the first. An attempt that
 * failed before its first step does not count, since its changes had no effect. */
typedef struct dt_standing {
    int64_t attempt;
    dt_run_state state;
    const char *recipe_json, *recipe_hash;
} dt_standing;
dt_status dt_store_run_standing(dt_store *store, dt_standing *out, const char *run, dt_arena *arena,
                                dt_error *err);
/* If the newest attempt failed before its first step and the run had finished before, makes the run finished again, as
 * the earlier attempt left it, and sets *restored. The failed attempt stays in the history. */
dt_status dt_store_run_restore(dt_store *store, bool *restored, const char *run, dt_error *err);

typedef struct dt_attempt {
    int64_t attempt, start_step, created_ms, started_ms, ended_ms;
    int64_t elapsed_ms; /* duration; -1: not started, or not ended */
    dt_run_state state;
    int exit_code;
    const char *reason;
    const char *changes_json;    /* "[]": no changes */
    const char *provenance_json; /* "{}": unknown */
} dt_attempt;
dt_status dt_store_attempt_list(dt_store *store, dt_attempt **out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err);

/* --- event.c: nodes and ranks of an attempt */
typedef struct dt_node {
    int64_t node;
    const char *name, *state; /* "connecting", "ready", "running", "lost", "released" */
    int64_t acknowledged;     /* journal number of the next expected event, from 0 */
    const char *boot_id;      /* as reported by the agent (base/process.h); "" or NULL: not yet */
} dt_node;
typedef struct dt_rank {
    int64_t rank, node, local_rank, pid; /* pid 0: not started */
    const char *device, *state;          /* "waiting", "started", "ready", "exited", "failed" */
    int exit_code, exit_signal;          /* -1: none */
    int64_t log_bytes;                   /* of runs/ID/logs/rank-N.log, valid up to here */
} dt_rank;
dt_status dt_store_node_set(dt_store *store, const char *run, int64_t attempt, const dt_node *node,
                            dt_error *err); /* inserts or replaces */
dt_status dt_store_rank_set(dt_store *store, const char *run, int64_t attempt, const dt_rank *rank,
                            dt_error *err);
dt_status dt_store_node_list(dt_store *store, dt_node **out, int64_t *count, const char *run,
                             int64_t attempt, dt_arena *arena, dt_error *err);
dt_status dt_store_rank_list(dt_store *store, dt_rank **out, int64_t *count, const char *run,
                             int64_t attempt, dt_arena *arena, dt_error *err);

/* --- attempt.c: a second copy of those files of the run's folder that must not be lost */
/* attempt-N/plan.json as text. */
dt_status dt_store_plan_set(dt_store *store, const char *run, int64_t attempt, const char *text,
                            dt_error *err);
dt_status dt_store_plan_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                            dt_arena *arena, dt_error *err); /* "" if there is none */
/* attempt-N/node-K/place.json; the node must have its row. */
dt_status dt_store_place_set(dt_store *store, const char *run, int64_t attempt, int64_t node,
                             const char *text, dt_error *err);
dt_status dt_store_place_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                             int64_t node, dt_arena *arena, dt_error *err);

/* --- metric.c */
/* Adds a point. An existing point is kept unchanged. */
dt_status dt_store_metric_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                              const char *name, double value, int64_t time_ms, dt_error *err);
typedef struct dt_metric {
    int64_t attempt, step, time_ms;
    const char *name;
    double value;
} dt_metric;
/* Lists the run's points as one curve per metric, ordered by name and step: a point (attempt a, step s) is left out
 * if a later attempt started before s or has a point at s. name NULL: all metrics. Only points after (exclusive)
 * after_step; with `newest` only the newest of each metric. For charts use buckets, below. */
dt_status dt_store_metric_list(dt_store *store, dt_metric **out, int64_t *count, const char *run,
                               const char *name, int64_t after_step, bool newest, dt_arena *arena,
                               dt_error *err);
dt_status dt_store_metric_names(dt_store *store, const char ***out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err);

/* --- curve.c */
/* The same curves, read point by point instead of held in memory. dt_store_curves_find fixes which curves and
 * attempts count; points added later show up only if they lie before the end that it recorded. */
typedef struct dt_store_curve {
    int64_t series;
    const char *name;
} dt_store_curve;
typedef struct dt_store_curves {
    dt_store_curve *curves; /* by name */
    int64_t count, attempts;
    int64_t *last_steps; /* of each attempt, from 1: its last step that counts */
} dt_store_curves;
typedef bool (*dt_store_take)(void *context, const dt_metric *point); /* returns false to stop */

dt_status dt_store_curves_find(dt_store *store, dt_store_curves *out, const char *run,
                               const char *name, dt_arena *arena, dt_error *err);
/* Counts the points of a curve after (exclusive) after_step, and returns the step of the last. */
dt_status dt_store_curve_count(dt_store *store, const dt_store_curves *curves, int64_t which,
                               int64_t after_step, int64_t *count, int64_t *last_step,
                               dt_error *err);
/* Returns the step after (exclusive) which the curve has its `back` newest points; INT64_MIN if it has no more than
 * these. A step of several attempts counts once for each attempt. */
dt_status dt_store_curve_back(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t back, int64_t *step, dt_error *err);
/* Passes the last point of a curve after (exclusive) after_step, if any, to `take`, which must not use the store. */
dt_status dt_store_curve_newest(dt_store *store, const dt_store_curves *curves, int64_t which,
                                int64_t after_step, dt_store_take take, void *context,
                                dt_error *err);
/* Passes the points of a curve after (exclusive) after_step up to last_step, in order, to `take`, which must not use
 * the store. */
dt_status dt_store_curve_scan(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t after_step, int64_t last_step, dt_store_take take,
                              void *context, dt_error *err);
/* --- band.c: a metric of several runs for a chart */
typedef struct dt_band {
    int64_t first_step, last_step;    /* of the points of all runs */
    int64_t runs, points, not_finite; /* runs: number of runs with a finite point here */
    double min, max;                  /* of all finite points; NaN: none */
    double mean;                      /* unweighted mean of the means of these runs */
    double seconds;                   /* mean, over these runs, of the time since the run started */
} dt_band;
/* Divides the points of several runs (by id) from step `from` to `to`, both inclusive, into at most `most` parts in
 * order, none empty, with exact extremes. The width of a part in steps is a power of two that the pyramid has, so
 * that there may be far fewer parts. Runs without this metric are ignored. */
dt_status dt_store_band(dt_store *store, dt_band **out, int64_t *count, const char *const *runs,
                        int64_t runs_count, const char *name, int64_t from, int64_t to,
                        int64_t most, dt_arena *arena, dt_error *err);
/* Lists the ids of the runs of a group, oldest first. */
dt_status dt_store_group_runs(dt_store *store, const char ***ids, int64_t *count, const char *group,
                              dt_arena *arena, dt_error *err);

/* --- curve.c: what a run has gained since a client last read it */
typedef struct dt_since_mark {
    int64_t series, step; /* last point seen of a curve */
} dt_since_mark;
typedef struct dt_since {
    int64_t attempt;      /* the attempt of the marks; all points of earlier attempts were seen */
    int64_t event;        /* last event seen */
    dt_since_mark *marks; /* by series; a curve without a mark: no point was seen */
    int64_t count;
} dt_since;
/* Sets `out` to the present: everything was seen. */
dt_status dt_store_since_now(dt_store *store, dt_since *out, const char *run, dt_arena *arena,
                             dt_error *err);
/* Passes up to `most` unseen points to `take`, curve by curve, as stored: also those that a later attempt undoes
 * (curve.c). Advances `since` past them; its marks are then in the arena. After the last point of an attempt
 * continues with the next attempt. *more: call again at once. `take` must not use the store. */
dt_status dt_store_since_points(dt_store *store, dt_since *since, bool *more, const char *run,
                                int64_t most, dt_store_take take, void *context, dt_arena *arena,
                                dt_error *err);
/* Returns a number that changes when another connection has changed the store. */
dt_status dt_store_version_seen(dt_store *store, int64_t *out, dt_error *err);
/* --- buckets.c: a curve for a chart, read from its pyramid (pyramid.c) */
typedef struct dt_bucket {
    int64_t first_step, last_step, first_ms, last_ms; /* of its points */
    int64_t points, not_finite;                       /* not_finite: NaN or infinite */
    double min, max, mean;                            /* of the finite points; NaN: none */
    double last;                                      /* the value at last_step */
} dt_bucket;
/* Divides the points of a curve from step `from` to `to`, both inclusive, into at most `most` buckets in order, none
 * empty, with exact extremes; up to `most` points each get their own bucket. The cost grows with `most`, not with
 * the number of points. */
dt_status dt_store_curve_buckets(dt_store *store, dt_bucket **out, int64_t *count,
                                 const dt_store_curves *curves, int64_t which, int64_t from,
                                 int64_t to, int64_t most, dt_arena *arena, dt_error *err);

/* --- buckets.c: the last, lowest and highest value of a curve, and the mean speed */
typedef enum dt_metric_which {
    DT_METRIC_LAST,
    DT_METRIC_LOWEST,
    DT_METRIC_HIGHEST
} dt_metric_which;
typedef struct dt_metric_end {
    bool there; /* the run has such a point */
    int64_t step;
    double value;
} dt_metric_end;
/* DT_METRIC_LAST is found without reading all points. */
dt_status dt_store_metric_end(dt_store *store, dt_metric_end *out, const char *run,
                              const char *name, dt_metric_which which, dt_error *err);
/* Sets *known if any run has the metric. */
dt_status dt_store_metric_known(dt_store *store, bool *known, const char *name, dt_error *err);
/* Returns the mean tokens per second of the whole run, for a fork without its parent's part; the newest value if the
 * run has no points. */
dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err);

/* --- event.c */
typedef struct dt_store_event {
    int64_t id, attempt, node, sequence, rank, time_ms; /* node, rank -1: none */
    const char *kind;                                   /* the "event" key */
    const char *json;                                   /* the whole line */
} dt_store_event;
/* Adds an event, unless one with the same (attempt, node >= 0, sequence) exists. */
dt_status dt_store_event_add(dt_store *store, const char *run, const dt_store_event *event,
                             dt_error *err);
/* Lists the events after after_id, in order of ids; limit 0: all. */
dt_status dt_store_event_list(dt_store *store, dt_store_event **out, int64_t *count,
                              const char *run, int64_t after_id, int64_t limit, dt_arena *arena,
                              dt_error *err);

/* --- event.c */
typedef struct dt_store_checkpoint {
    int64_t attempt, step, bytes, time_ms;
    const char *path, *digest;
    double valid_loss, score; /* NaN: none; the lowest score is the best */
    double seconds;           /* duration of the save */
} dt_store_checkpoint;
/* Adds a checkpoint; replaces one with the same path. */
dt_status dt_store_checkpoint_add(dt_store *store, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err);
/* Lists checkpoints, newest step first. Paths follow the store's folder if it was moved. Removed directories are
 * listed too. */
dt_status dt_store_checkpoint_list(dt_store *store, dt_store_checkpoint **out, int64_t *count,
                                   const char *run, dt_arena *arena, dt_error *err);
/* Returns whether the files exist; true for those of a program (digest ""), on a node. */
bool dt_store_checkpoint_exists(const dt_store_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif
