/* run: reads and writes the runs of a store and their attempts.
 *
 * Ownership  strings of structs that readers fill live in the arena
 */
#ifndef DT_STORE_RUN_H
#define DT_STORE_RUN_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- a run: states, adding, finding and listing */
typedef enum dt_run_state {
    DT_RUN_QUEUED, /* its supervisor is about to prepare it */
    DT_RUN_WAITING, /* in the queue (runner/queue/queue.h): nothing of it runs, and it has no supervisor */
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

/* Adds a run in state queued, or waiting if run->state says so, with attempt 1 starting at parent_step. DT_ERR_BUSY if
 * the id is in use. */
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

/* --- searching, counting and groups */
#define DT_RUN_SEARCH_ACTIVE (-2)       /* runs that have not ended */
#define DT_ARCHIVED          "archived" /* the tag of runs that lists leave out */
typedef struct dt_run_search {
    int state;         /* -1: any; or DT_RUN_SEARCH_ACTIVE */
    const char *words; /* substring of name, id, tags, group or note, in any case; NULL: any run */
    const char *group, *tag; /* NULL: any */
    bool archived; /* also archived runs; without it they are only found by tag DT_ARCHIVED */
    const struct dt_run_filter *filters; /* all must match (store/run_value.h) */
    size_t filters_count;
    const char *
        sort; /* created, name, state, step, loss, valid_loss, tokens_per_second, elapsed, or another key of a
                       * value (store/run_value.h) */
    bool rising;           /* ascending, else descending; unknown values come last in both */
    int64_t offset, limit; /* limit 0: all */
} dt_run_search;
/* Returns the ids of the requested page, and the total number of matches. Filters, and an order by another key, read
 * every run that matches the rest. DT_ERR_USAGE: no run has the key of a filter or of the order. */
dt_status dt_store_run_search(dt_store *store, const char ***ids, int64_t *count, int64_t *total,
                              const dt_run_search *search, dt_arena *arena, dt_error *err);
/* Returns a text that changes when a run starts, waits, changes its state or ends: to see cheaply whether anything did. */
dt_status dt_store_run_states(dt_store *store, const char **out, dt_arena *arena, dt_error *err);
/* Counts the runs of the store that have not ended. */
dt_status dt_store_run_count_active(dt_store *store, int64_t *count, dt_error *err);
/* Lists the ids of the runs of a group, oldest first. */
dt_status dt_store_group_runs(dt_store *store, const char ***ids, int64_t *count, const char *group,
                              dt_arena *arena, dt_error *err);
/* Returns the mean tokens per second of the whole run, for a fork without its parent's part; the newest value if the
 * run has no points. */
dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err);

/* --- changes of a run and of its attempts */
/* Sets the state of the newest attempt. A terminal state also sets ended_ms, exit_code and reason; the first
 * state after queued sets started_ms. DT_ERR_BUSY if the attempt has already ended. */
dt_status dt_store_run_set_state(dt_store *store, const char *run, dt_run_state state,
                                 int exit_code, const char *reason, int64_t now_ms, dt_error *err);
/* Makes a waiting run queued. DT_ERR_BUSY: it does not wait, or not with this attempt. Of several processes that call
 * it, one gets DT_OK. */
dt_status dt_store_run_claim(dt_store *store, const char *run, int64_t attempt, dt_error *err);
/* Corrects the exit code and reason of an attempt that has ended. */
dt_status dt_store_attempt_amend(dt_store *store, const char *run, int64_t attempt, int exit_code,
                                 const char *reason, dt_error *err);
/* Sets the newest values that lists show. NaN leaves a value unchanged. */
dt_status dt_store_run_set_progress(dt_store *store, const char *run, int64_t step, double loss,
                                    double valid_loss, double tokens_per_second, int64_t now_ms,
                                    dt_error *err);
/* User labels of a run; dt_store_run_label leaves those that are NULL unchanged. With now_ms, the time of the change,
 * it records an event for each label that differs (note.h). */
typedef struct dt_labels {
    const char *name, *tags, *note, *group;
    int64_t now_ms; /* 0: nothing is recorded */
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

#ifdef __cplusplus
}
#endif

#endif
