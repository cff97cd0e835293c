/* runs: what is shown of runs: their rows as text and JSON, lists with filters and columns, the value of a
 * key, how far a run is, and how it ended.
 *
 * Ownership  strings live in the arena of the call
 */
#ifndef DT_RUNNER_VIEW_RUNS_RUNS_H
#define DT_RUNNER_VIEW_RUNS_RUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "runner/cli/command.h"
#include "runner/term/term.h"
#include "store/activity.h"
#include "store/event.h"
#include "store/run.h"
#include "store/run_value.h"

/* progress: reads how far a run is: elapsed and remaining time, speed, evaluations, and the state of its
 * nodes. */

/* timing: computes the elapsed time, the time left and the speed of a run from the store.
 *
 * Formula    left = steps left / (steps per second over the last tenth of the run, at least 100
 *            steps), minus the time since the newest point. Pauses for evaluations and
 *            checkpoints that fall into the window count, as they will come again. Once the next
 *            point is overdue, the time left stays constant.
 * Unknown    speed and time left are NaN while no step can come, for example while a node does not respond
 * Units      seconds; NaN if unknown
 */

typedef struct dt_timing {
    dt_activity activity;
    double elapsed_seconds; /* of all attempts, without the time between them */
    double eta_seconds;
    double tokens_per_second; /* mean of an ended run; of the newest steps of an active one */
    const char *curve;        /* the curve of progress (store/activity.h) */
    double lines_per_second;  /* of an active run that processes lines, else NaN */
} dt_timing;

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err);

/* evaluations: reads the evaluations of a run, with all metrics of one step together.
 *
 * Ownership  the array lives in the arena that is passed
 */

typedef struct dt_evaluation {
    int64_t attempt, step, time_ms;
    double loss, bleu; /* bleu: NaN if not measured */
} dt_evaluation;

/* Reads the evaluations after *after_step, oldest first, and advances *after_step to the last one. */
dt_status dt_evaluations_read(dt_evaluation **out, int64_t *count, int64_t *after_step,
                              dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Adds "validation loss 1.9034  BLEU 21.30". */
void dt_evaluation_add(dt_strbuf *out, const dt_evaluation *evaluation);

/* node_lines: prints the nodes of a run, one line each, and the rank that the others wait for.
 *
 *   gpu-a  running        8 ranks training
 *   gpu-b  running        8 ranks: 7 training, 1 failed
 *   gpu-c  running        8 ranks training   slowest: rank 17; the others wait 41 ms a step
 *   gpu-d  not reachable  8 ranks not responding
 *          no route to host
 *
 * Ownership  strings live in the arena that is passed
 */

typedef struct dt_node_lines {
    dt_node *nodes;
    dt_rank *ranks;
    int64_t nodes_count, ranks_count;
    dt_activity activity;
    int64_t slowest_rank;   /* -1: unknown, or the others wait less than 5 % of a step */
    double slowest_seconds; /* time of a step that the others wait for it */
} dt_node_lines;

/* Reads the nodes of the newest attempt. */
dt_status dt_node_lines_read(dt_node_lines *out, dt_store *store, const dt_run *run,
                             const dt_activity *activity, dt_arena *arena, dt_error *err);
/* What the rank does, as text (dt_activity_of_rank). */
const char *dt_node_lines_rank(const dt_node_lines *lines, const dt_rank *rank);
/* Adds "slowest: rank 17; ...", or nothing if it is unknown. */
void dt_node_lines_add_slowest(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines);
/* Adds at most `most` nodes (0: all). If there are more, healthy nodes are only counted. A long state is
 * wrapped below its node. */
void dt_node_lines_add(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines,
                       int64_t most);

/* Opens the store and finds the run. An active run without a supervisor gets a new one; a failure
 * of that is only printed, since reading needs none. The caller closes *store. */
dt_status dt_runs_open(dt_store **store, dt_run *run, const char *ref, const dt_call *call,
                       dt_error *err);

/* The same with an open store. */
dt_status dt_runs_find(dt_store *store, dt_run *run, const char *ref, const dt_call *call,
                       dt_error *err);

/* Starts the supervisor of an active run that has none. Prints a failure and returns it. */
dt_status dt_runs_ensure(const dt_run *run, const dt_call *call);

/* The keys that lists, status and launch share: run, name, state, attempt, step, ... New
 * reference. */
json_t *dt_runs_to_json(const dt_run *run);
/* Adds "activity" to that object; the speed of a run that makes no steps becomes null. */
void dt_runs_add_activity(json_t *object, const dt_run *run, const dt_activity *activity);
/* "attempt 3 continues from step 40; attempt 2 failed: why", for the attempt at index `at`, from 1 on;
 * lives in the arena. */
const char *dt_runs_attempt_sentence(const dt_attempt *attempts, int64_t at, dt_arena *arena);
/* [{attempt, state, start_step, elapsed_seconds, reason}], oldest first. New reference. */
json_t *dt_runs_attempts_json(const dt_attempt *attempts, int64_t count);
/* The same as dt_runs_to_json with attempts, timing and nodes[{host, state, ranks[{rank, pid,
 * state, ...}]}]. */
dt_status dt_runs_status_json(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                              dt_error *err);

/* Writes the number of steps of the run: "2,000", or "40 epochs" until the engine has counted them;
 * "?" of a command, which does not tell.
 * Returns buf. */
const char *dt_runs_total(char *buf, size_t size, const dt_run *run);
/* Returns whether the run is a command. */
bool dt_runs_is_command(const dt_run *run);
/* Returns "1,080 of 2,000" with " of " between; of a command whose total is unknown "1,080", or "-" without a step. */
const char *dt_runs_progress(char *buf, size_t size, const char *between, const dt_run *run);

/* Returns the architecture of its model, or NULL if unknown. */
const struct dt_architecture *dt_runs_architecture(const dt_run *run);
/* Returns the unit of its speed: "tokens/s" or "rows/s". Static. */
const char *dt_runs_speed(const dt_run *run);
/* Returns the label of dt_timing.tokens_per_second, with "(last)" or "(mean)". */
const char *dt_runs_timed_speed(const dt_run *run);

/* The state to show: what the run does, or for an active run "broken" if its supervisors end at
 * once, or "paused" if its supervisor is suspended by a signal. Lives as long as the activity. */
const char *dt_runs_shown_state(const dt_run *run, const dt_activity *activity);
/* Styles of a state and of an activity. */
dt_style dt_runs_run_style(const dt_run *run); /* bad for a run that has diverged */
dt_style dt_runs_style(dt_run_state state);
dt_style dt_runs_activity_style(const dt_run *run, const dt_activity *activity);

/* Whether any run can have the key. DT_ERR_USAGE with the closest key if not. */
dt_status dt_run_key_check(dt_store *store, const char *key, dt_error *err);

/* run_list: filters, selects and sorts runs, and prints them as a table. */

/* Parses "2h", "3d", "90m" or "2w" before now, or "2026-11-20" or "2026-11-20 14:30" in local time
 * (with "Z" at the end in UTC). DT_ERR_USAGE for other texts. */
dt_status dt_since_parse(int64_t *wall_ms, const char *text, int64_t now_ms, dt_error *err);

/* run_select: selects and sorts the runs of a list.
 *
 * Ownership  entries live in the arena; dt_run_entries_release releases their recipes
 */

typedef struct dt_run_selection {
    int state;               /* dt_run_state; -1: any */
    int64_t since_ms;        /* created at this time or later; 0: any time */
    const char *const *tags; /* all must match */
    size_t tags_count;
    const char *group, *name; /* NULL: any; name is a glob */
    bool archived;            /* also archived runs; those with the tag are also found by it */
    dt_run_filter *filters;   /* all must match */
    size_t filters_count;
    const char *sort; /* a key; NULL: newest first */
    bool descending;
    int64_t limit; /* 0: all */
} dt_run_selection;

typedef struct dt_run_entries {
    dt_run_entry *items;
    size_t count;
    bool more;       /* there are more beyond the limit */
    size_t archived; /* runs that were left out since they are archived */
} dt_run_entries;

/* Whether the selection has only a state and a limit. */
bool dt_run_selection_is_plain(const dt_run_selection *selection);
/* DT_ERR_USAGE if a filter or the order uses a key that no run has. */
dt_status dt_run_select(dt_run_entries *out, dt_store *store, const dt_run_selection *selection,
                        dt_arena *arena, dt_error *err);
void dt_run_entries_release(dt_run_entries *entries);

/* run_table: prints runs as a table, one line each. */

/* The keys of --columns: "a,b" replaces the usual columns, "+a,b" adds to them. DT_ERR_USAGE for a
 * key that no run has. */
typedef struct dt_run_columns {
    const char **keys;
    size_t count;
    bool usual; /* the usual columns come first */
} dt_run_columns;
dt_status dt_run_columns_parse(dt_run_columns *out, dt_store *store, const char *text,
                               dt_arena *arena, dt_error *err);
/* The columns without --columns: the usual ones and a few keys in which the recipes differ. */
void dt_run_columns_differing(dt_run_columns *out, dt_run_entries *entries, dt_arena *arena);

dt_status dt_run_table_write(dt_strbuf *out, const dt_term *term, dt_store *store,
                             dt_run_entries *entries, const dt_run_columns *columns,
                             dt_arena *arena, dt_error *err);

/* summary: prints how a run ended, and finds the events that explain why. */

/* incidents: selects the events that users must see, and finds the rank that made a run fail.
 *
 * Ownership  texts live in the arena
 */

/* Returns a sentence on the event, or NULL if users need not see it. */
const char *dt_incident_sentence(const dt_store_event *event, dt_arena *arena);

/* A save that failed, and after which none succeeded. */
typedef struct dt_unsaved {
    int64_t step, rank; /* step -1: there is none */
    const char *node, *message;
} dt_unsaved;
dt_status dt_unsaved_find(dt_unsaved *out, dt_store *store, const dt_run *run,
                          const dt_node_lines *lines, dt_arena *arena, dt_error *err);

typedef struct dt_incident {
    int64_t rank;       /* -1: no rank failed */
    const char **lines; /* its last lines of output, at most 50 */
    int64_t lines_count;
    const char **kernel_lines; /* kernel messages on its end, for example out of memory */
    int64_t kernel_lines_count;
} dt_incident;

/* Finds the rank of the newest attempt that failed first on its own, or else that failed first (times
 * are of one clock); with its last output. */
dt_status dt_incident_find(dt_incident *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err);

/* Prints to stdout; for a failed run with the reason and the last lines of the rank that failed. */
dt_status dt_summary_text(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* Makes the object (new reference) with run, name, state, ..., steps, seconds and checkpoint. dt_summary_json
 * prints it to stdout. */
dt_status dt_summary_object(json_t **out, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err);
dt_status dt_summary_json(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err);

/* Adds the last output of the rank that failed, and the kernel messages on it. */
void dt_summary_add_incident(dt_strbuf *out, const dt_term *term, const dt_incident *incident);

#endif
