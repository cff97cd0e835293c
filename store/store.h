/* store: the run history, in one SQLite file.
 *
 * Invariants
 *   1 A run ends exactly once per attempt: a terminal state is only left by a new attempt.
 *   2 Metrics are append-only, keyed (run, attempt, name, step).
 *   3 What came from a node's journal is written in one transaction with the new acknowledged
 *     number of that journal: nothing is lost or doubled, whenever the writer dies. The node is
 *     sent that number once it is on the disk (dt_store_sync): a power loss takes nothing that
 *     the node has given back.
 *   4 Each multi-row change is one transaction.
 *   5 One writer per run (its supervisor, which holds the run's lock); readers need no lock.
 *   6 The pyramid of a curve says what its points say, at every commit (pyramid.c).
 *
 * File       mode 0600, WAL, synchronous=NORMAL, busy timeout 30 s, user_version = 1
 *            (store/schema.sql). Another user_version, a network file system, a damaged or
 *            foreign file: a clear error.
 * Ownership  readers fill structs whose strings live in the arena that is passed
 * Threads    one handle, one thread
 */
#ifndef DT_STORE_H
#define DT_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_store dt_store;

/* --- store.c */
/* Opens $XDG_STATE_HOME/dtrun/store.db where path is NULL, and creates it if missing. */
dt_status dt_store_open(dt_store **out, const char *path, dt_error *err);
/* The same for who only reads, also where nothing can be written (read_only.c): writing fails then. */
dt_status dt_store_open_to_read(dt_store **out, const char *path, dt_error *err);
bool dt_store_can_write(const dt_store *store);
void dt_store_close(dt_store *store);
/* How long a change waits for another process that holds the store; 30 s at first. */
void dt_store_set_patience(dt_store *store, int ms);
dt_status dt_store_begin(dt_store *store, dt_error *err); /* IMMEDIATE; not nested */
/* All that is read until dt_store_rollback is of one moment; not nested. */
dt_status dt_store_begin_reading(dt_store *store, dt_error *err);
dt_status dt_store_commit(dt_store *store, dt_error *err);
void dt_store_rollback(dt_store *store);
/* Whether the file at its path is the one that is open: false once it was removed or replaced. */
bool dt_store_is_current(const dt_store *store);
/* Then, for who looks: where that one has the run the handle is of it from here on, and true is returned;
 * numbers of events are others there. Else it stays what it is. */
bool dt_store_renew(dt_store *store, const char *run);
/* Or: the rows of the run go to the store that is at that path, which is made where there is none; what
 * it says of such a run already stays. Not in a transaction. (move.c) */
dt_status dt_store_move_run(dt_store *old, const char *run, dt_error *err);
/* No power loss takes any more what was committed. */
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
    int64_t attempt; /* newest, from 1; or the one that finished (dt_store_run_restore) */
    int64_t created_ms, started_ms, ended_ms; /* of the newest attempt but created; 0: not yet */
    int64_t first_step_ms;     /* when the first metrics of the newest attempt came; 0: not yet */
    int64_t step, steps_total; /* done, and of the whole run; total 0: not known yet (epochs) */
    double loss, valid_loss, tokens_per_second; /* newest; NaN: none yet */
    const char *recipe_path, *recipe_text;      /* as written */
    const char *recipe_json;                    /* resolved, of the newest attempt */
    const char *recipe_hash;
    int exit_code;           /* of the newest attempt, as in the design; -1: not ended */
    const char *reason;      /* why it failed or stopped, "" else */
    const char *boot_id;     /* of the launch machine when the newest attempt started; "" unknown */
    int64_t started_boot_ms; /* by that boot's clock */
    int64_t ended_attempts_ms; /* that all attempts which have ended took */
    /* What people say of it, "" else: tags in order with a blank between two. NULL as "" where a
     * run is added. */
    const char *tags, *note, *group;
    const char *parent; /* id of the run that it was forked from at parent_step, "" none */
    int64_t parent_step;
} dt_run;
/* How long all attempts took, without what lay between them: by the machine's own clock where that
 * is known, which nobody sets, by the wall clock (`now_ms`) otherwise. NaN: none has started. */
double dt_run_elapsed_seconds(const dt_run *run, int64_t now_ms);

/* A new run in state queued with attempt 1, from parent_step on; id must be unused (DT_ERR_BUSY). */
dt_status dt_store_run_add(dt_store *store, const dt_run *run, dt_error *err);
/* Up to `step` the run has the points of the other, as its own of attempt 1: its past, which stays where
 * that one is removed. (fork.c) */
dt_status dt_store_run_copy_past(dt_store *store, const char *run, const char *from, int64_t step,
                                 dt_error *err);
/* By id, "last", name (its newest run), or unique prefix of an id, in this order: a prefix can be
 * made longer, a name cannot. DT_ERR_NOT_FOUND, or DT_ERR_USAGE where a prefix is ambiguous (the
 * message lists the candidates). */
dt_status dt_store_run_find(dt_store *store, dt_run *out, const char *ref, dt_arena *arena,
                            dt_error *err);
/* Those in a list after (older than) the run `after`, for who reads it in parts. */
dt_status dt_store_run_list_after(dt_store *store, dt_run **out, int64_t *count, int state,
                                  const char *after, int64_t limit, dt_arena *arena, dt_error *err);
/* Newest first. state: -1 for all. limit 0: all. */
dt_status dt_store_run_list(dt_store *store, dt_run **out, int64_t *count, int state, int64_t limit,
                            dt_arena *arena, dt_error *err);
/* Those that have not ended, or not before ended_ms; newest first. */
dt_status dt_store_run_list_since(dt_store *store, dt_run **out, int64_t *count, int64_t ended_ms,
                                  dt_arena *arena, dt_error *err);
/* Of every run, in order of ids: its newest attempt, and whether that has ended. */
typedef struct dt_run_mark {
    const char *id;
    int64_t attempt;
    bool ended;
} dt_run_mark;
dt_status dt_store_run_marks(dt_store *store, dt_run_mark **out, int64_t *count, dt_arena *arena,
                             dt_error *err);
/* --- remove.c */
/* All rows of a run, as one change. */
dt_status dt_store_run_remove(dt_store *store, const char *run, dt_error *err);
/* --- backup.c */
/* Copies the store as it is now to a new file, mode 0600, while others write. The copy is checked before the file
 * gets its name. DT_ERR_USAGE: something is there; DT_ERR_CORRUPT: the store is damaged, and no file is left. */
dt_status dt_store_backup(dt_store *store, const char *path, dt_error *err);
/* --- verify.c */
/* What is damaged, in words: the file, or curves whose pyramid is not what their points say; reads all of it. */
dt_status dt_store_verify(dt_store *store, const char ***problems, int64_t *count, dt_arena *arena,
                          dt_error *err);
/* --- query.c */
typedef struct dt_query_value {
    enum { DT_QUERY_NULL, DT_QUERY_INT, DT_QUERY_REAL, DT_QUERY_TEXT } kind;
    int64_t integer;
    double real;
    const char *text; /* until `take` returns */
} dt_query_value;
/* Once with values NULL before the first row, then for each. */
typedef void (*dt_query_take)(void *context, const char *const *names, const dt_query_value *values,
                              int count);
/* One SELECT on a connection that can only read. DT_ERR_USAGE: it is none, or wrong; DT_ERR_TIMEOUT. */
dt_status dt_store_query(dt_store *store, const char *sql, double seconds, dt_query_take take,
                         void *context, dt_error *err);
/* --- search.c */
#define DT_RUN_SEARCH_ACTIVE (-2) /* runs that have not ended */
typedef struct dt_run_search {
    int state;         /* -1: any; or DT_RUN_SEARCH_ACTIVE */
    const char *words; /* in name, id, tags, group or note, as they stand but for case; NULL: any */
    const char *sort; /* created, name, state, step, loss, valid_loss, tokens_per_second, elapsed */
    bool rising;      /* else the largest or newest first; what is not known comes last */
    int64_t offset, limit; /* limit 0: all */
} dt_run_search;
/* The ids of those on the page that is asked for, and how many match in all. DT_ERR_USAGE for a `sort`
 * that is none. */
dt_status dt_store_run_search(dt_store *store, const char ***ids, int64_t *count, int64_t *total,
                              const dt_run_search *search, dt_arena *arena, dt_error *err);
/* Counts the runs of the store that have not ended. */
dt_status dt_store_run_count_active(dt_store *store, int64_t *count, dt_error *err);
/* --- run.c again */
/* Moves the newest attempt; a terminal state also sets ended_ms, exit_code and reason, the first
 * one past queued started_ms. DT_ERR_BUSY where the attempt has ended already. */
dt_status dt_store_run_set_state(dt_store *store, const char *run, dt_run_state state,
                                 int exit_code, const char *reason, int64_t now_ms, dt_error *err);
/* An attempt that has ended gets another exit code and reason: what was not known at its end is known now. */
dt_status dt_store_attempt_amend(dt_store *store, const char *run, int64_t attempt, int exit_code,
                                 const char *reason, dt_error *err);
/* What lists show: newest step, loss, ... NaN leaves a value as it is. */
dt_status dt_store_run_set_progress(dt_store *store, const char *run, int64_t step, double loss,
                                    double valid_loss, double tokens_per_second, int64_t now_ms,
                                    dt_error *err);
/* What people say of a run (label.c); NULL leaves it as it is. */
typedef struct dt_labels {
    const char *name, *tags, *note, *group;
} dt_labels;
dt_status dt_store_run_label(dt_store *store, const char *run, const dt_labels *labels,
                             dt_error *err);
/* Of the newest attempt: how many steps the run has, once it is known or known better. */
dt_status dt_store_run_set_steps_total(dt_store *store, const char *run, int64_t steps_total,
                                       dt_error *err);
/* The next attempt, from start_step, in state queued. DT_ERR_BUSY where the newest has not ended.
 * recipe_json and hash as resolved for it. */
dt_status dt_store_attempt_add(dt_store *store, const char *run, int64_t start_step,
                               int64_t steps_total, const char *recipe_json,
                               const char *recipe_hash, int64_t now_ms, int64_t *attempt,
                               dt_error *err);

/* What --set changed for the newest attempt, a JSON array of {"key", "old", "new"}. */
dt_status dt_store_attempt_set_changes(dt_store *store, const char *run, const char *changes_json,
                                       dt_error *err);

/* Where the newest attempt comes from, a JSON object (runner/launch/provenance.h). */
dt_status dt_store_attempt_set_provenance(dt_store *store, const char *run,
                                          const char *provenance_json, dt_error *err);

/* The attempt whose recipe the run continues by: the newest that did a step, or did not fail; the
 * first where there is none. What failed before its first step was asked for and never was. */
typedef struct dt_standing {
    int64_t attempt;
    dt_run_state state;
    const char *recipe_json, *recipe_hash;
} dt_standing;
dt_status dt_store_run_standing(dt_store *store, dt_standing *out, const char *run, dt_arena *arena,
                                dt_error *err);
/* Where the newest attempt failed before its first step, and the run had finished: it is finished
 * again, as the attempt before left it; the failed one stays in the history. *restored says so. */
dt_status dt_store_run_restore(dt_store *store, bool *restored, const char *run, dt_error *err);

typedef struct dt_attempt {
    int64_t attempt, start_step, created_ms, started_ms, ended_ms;
    int64_t elapsed_ms; /* that it took; -1: it has not started, or not ended */
    dt_run_state state;
    int exit_code;
    const char *reason;
    const char *changes_json;    /* "[]": nothing */
    const char *provenance_json; /* "{}": not known */
} dt_attempt;
dt_status dt_store_attempt_list(dt_store *store, dt_attempt **out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err);

/* --- node.c: nodes and ranks of an attempt */
typedef struct dt_node {
    int64_t node;
    const char *name, *state; /* "connecting", "ready", "running", "lost", "released" */
    int64_t acknowledged;     /* journal number of the next event wanted, from 0 */
    const char
        *boot_id; /* of the machine, as its agent told (base/boot.h); "" not yet, NULL as "" */
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

/* --- copy.c: the files of the run's folder that nobody may lose, a second time */
/* attempt-N/plan.json as text. */
dt_status dt_store_plan_set(dt_store *store, const char *run, int64_t attempt, const char *text,
                            dt_error *err);
dt_status dt_store_plan_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                            dt_arena *arena, dt_error *err); /* "" where there is none */
/* attempt-N/node-K/place.json; the node must have its row. */
dt_status dt_store_place_set(dt_store *store, const char *run, int64_t attempt, int64_t node,
                             const char *text, dt_error *err);
dt_status dt_store_place_get(dt_store *store, const char **text, const char *run, int64_t attempt,
                             int64_t node, dt_arena *arena, dt_error *err);

/* --- metric.c */
/* A point that is there already stays as it is. */
dt_status dt_store_metric_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                              const char *name, double value, int64_t time_ms, dt_error *err);
typedef struct dt_metric {
    int64_t attempt, step, time_ms;
    const char *name;
    double value;
} dt_metric;
/* The run's history as one line: of several attempts a point (attempt a, step s) is left out
 * where a later attempt started before s, or has s itself. Ordered by name, step. name NULL: all.
 * Points after (exclusive) after_step; all of them, or of each name the newest alone. For a chart
 * there are buckets, below. */
dt_status dt_store_metric_list(dt_store *store, dt_metric **out, int64_t *count, const char *run,
                               const char *name, int64_t after_step, bool newest, dt_arena *arena,
                               dt_error *err);
dt_status dt_store_metric_names(dt_store *store, const char ***out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err);
/* Whether the highest value of a metric is its best, as with throughput. */
bool dt_metric_more_is_better(const char *name);

/* --- curve.c */
/* The same lines point by point, for those who do not hold them: what is found stays as it was at
 * that moment, but for points that are added before its end. */
typedef struct dt_store_curve {
    int64_t series;
    const char *name;
} dt_store_curve;
typedef struct dt_store_curves {
    dt_store_curve *curves; /* by name */
    int64_t count, attempts;
    int64_t *last_steps; /* of each attempt, from 1: its last step that counts */
} dt_store_curves;
typedef bool (*dt_store_take)(void *context, const dt_metric *point); /* false: no more */

dt_status dt_store_curves_find(dt_store *store, dt_store_curves *out, const char *run,
                               const char *name, dt_arena *arena, dt_error *err);
/* How many points one has after (exclusive) after_step, and the step of the last; 0: none. */
dt_status dt_store_curve_count(dt_store *store, const dt_store_curves *curves, int64_t which,
                               int64_t after_step, int64_t *count, int64_t *last_step,
                               dt_error *err);
/* The step before its `back` newest points, so that those are what comes after it; INT64_MIN where it has no
 * more. A step of several attempts counts once for each. */
dt_status dt_store_curve_back(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t back, int64_t *step, dt_error *err);
/* The last point of one after (exclusive) after_step, if there is one; `take` must not use the store. */
dt_status dt_store_curve_newest(dt_store *store, const dt_store_curves *curves, int64_t which,
                                int64_t after_step, dt_store_take take, void *context,
                                dt_error *err);
/* The points of one after (exclusive) after_step, up to last_step, in order. `take` must not use
 * the store. */
dt_status dt_store_curve_scan(dt_store *store, const dt_store_curves *curves, int64_t which,
                              int64_t after_step, int64_t last_step, dt_store_take take,
                              void *context, dt_error *err);
/* --- band.c: a metric of several runs for a chart */
typedef struct dt_band {
    int64_t first_step, last_step;    /* of the points of all runs */
    int64_t runs, points, not_finite; /* runs: that have a finite point here */
    double min, max;                  /* of all that are finite; NaN: none is */
    double mean;    /* of the means of these runs, each of which counts the same */
    double seconds; /* the mean of how long each run had been going when it came past here */
} dt_band;
/* Of runs, by id, the points from step `from` to `to`, both inclusive, in at most `most` parts in order, none empty,
 * with true extremes. A part is as many steps wide as a power of two says; such a width is taken that the
 * pyramid has it, so that there may be far fewer. A run without such a metric counts for nothing. */
dt_status dt_store_band(dt_store *store, dt_band **out, int64_t *count, const char *const *runs,
                        int64_t runs_count, const char *name, int64_t from, int64_t to,
                        int64_t most, dt_arena *arena, dt_error *err);
/* The runs of a group by id, oldest first. */
dt_status dt_store_group_runs(dt_store *store, const char ***ids, int64_t *count, const char *group,
                              dt_arena *arena, dt_error *err);

/* --- since.c: what a run has got since somebody looked */
typedef struct dt_since_mark {
    int64_t series, step; /* of a curve the last point that was seen */
} dt_since_mark;
typedef struct dt_since {
    int64_t attempt;      /* of whose points this speaks: all of those before were seen */
    int64_t event;        /* the last that was seen */
    dt_since_mark *marks; /* by series; of a curve that is not here no point was seen */
    int64_t count;
} dt_since;
/* Everything is seen. */
dt_status dt_store_since_now(dt_store *store, dt_since *out, const char *run, dt_arena *arena,
                             dt_error *err);
/* Up to `most` points that were not seen, curve after curve, as they were stored (curve.c says what a later attempt
 * undoes); `since` goes past them, its marks are then in the arena. Where the attempt has no more and there
 * is a later one it continues to that. *more: ask again at once. `take` must not use the store. */
dt_status dt_store_since_points(dt_store *store, dt_since *since, bool *more, const char *run,
                                int64_t most, dt_store_take take, void *context, dt_arena *arena,
                                dt_error *err);
/* A number that is another one after somebody else has changed the store. */
dt_status dt_store_version_seen(dt_store *store, int64_t *out, dt_error *err);
/* --- buckets.c: a curve for a chart, out of the pyramid that is kept as points come (pyramid.c) */
typedef struct dt_bucket {
    int64_t first_step, last_step, first_ms, last_ms; /* of its points */
    int64_t points, not_finite;                       /* of them NaN or infinite */
    double min, max, mean;                            /* of those that are finite; NaN: none is */
    double last;                                      /* the value at last_step */
} dt_bucket;
/* The points of one from step `from` to `to`, both inclusive, as at most `most` buckets in order, none
 * empty, with true extremes; where there are no more than `most` points each is a bucket of its own.
 * What is read grows with `most`, not with the points. */
dt_status dt_store_curve_buckets(dt_store *store, dt_bucket **out, int64_t *count,
                                 const dt_store_curves *curves, int64_t which, int64_t from,
                                 int64_t to, int64_t most, dt_arena *arena, dt_error *err);

/* --- speed.c */
/* Tokens per second of the whole run, of a fork without its parent's part; the newest where no point is
 * there. */
dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err);

/* --- metric_summary.c: where a curve stands, and what it reached */
typedef enum dt_metric_which {
    DT_METRIC_LAST,
    DT_METRIC_LOWEST,
    DT_METRIC_HIGHEST
} dt_metric_which;
typedef struct dt_metric_end {
    bool there; /* the run has a point of it */
    int64_t step;
    double value;
} dt_metric_end;
/* The last is found without reading the points. */
dt_status dt_store_metric_end(dt_store *store, dt_metric_end *out, const char *run,
                              const char *name, dt_metric_which which, dt_error *err);
/* Whether any run has such a metric. */
dt_status dt_store_metric_known(dt_store *store, bool *known, const char *name, dt_error *err);

/* --- event.c */
typedef struct dt_store_event {
    int64_t id, attempt, node, sequence, rank, time_ms; /* node, rank -1: none */
    const char *kind;                                   /* the "event" key */
    const char *json;                                   /* the whole line */
} dt_store_event;
/* A journal number (attempt, node >= 0, sequence) that is there already stays as it is. */
dt_status dt_store_event_add(dt_store *store, const char *run, const dt_store_event *event,
                             dt_error *err);
/* By id, those after after_id; limit 0: all. */
dt_status dt_store_event_list(dt_store *store, dt_store_event **out, int64_t *count,
                              const char *run, int64_t after_id, int64_t limit, dt_arena *arena,
                              dt_error *err);

/* --- checkpoint.c */
typedef struct dt_store_checkpoint {
    int64_t attempt, step, bytes, time_ms;
    const char *path, *digest;
    double valid_loss, score; /* NaN: none; of scores the lowest is the best of a run */
    double seconds;           /* that the save took */
} dt_store_checkpoint;
/* Replaces one with the same path. */
dt_status dt_store_checkpoint_add(dt_store *store, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err);
/* Newest step first; paths below the store's present folder, where that was moved. Those whose
 * directory is gone (keep rules) are the caller's to filter. */
dt_status dt_store_checkpoint_list(dt_store *store, dt_store_checkpoint **out, int64_t *count,
                                   const char *run, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
