/* queue: runs that wait for machines of one's own, and the arbiter that starts and preempts them (docs/queue.md).
 *
 * A waiting run has its folder, its plan and its row, in state waiting; it has no supervisor. queue.json in the state
 * folder has what the queue knows besides: priorities, places, dependencies, machines. What a waiting run needs is in its
 * plan, and so is what a running one uses; nothing is stored twice, so any process can decide (order.h), and one that
 * dies between two actions leaves nothing half done:
 *   start     the plan gets its place, then the row is queued (dt_store_run_claim), then a supervisor starts; a queued
 *             run without one gets it from the next command that looks
 *   preempt   runs/ID/preempted.json, then a stop; the supervisor ends the attempt and adds the next one, waiting, in one
 *             transaction. A stop by a person removes the file
 * The arbiter (`dtrun arbiter`) is a detached process, one a state folder, by queue.lock; it ends when nothing waits.
 *
 * Ownership  everything that is read lives in the arena
 * Threads    any number of processes: queue.json changes under queue.json.lock, by rename
 */
#ifndef DT_RUNNER_QUEUE_QUEUE_H
#define DT_RUNNER_QUEUE_QUEUE_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/plan/plan.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/node_setup/probe/probe.h"
#include "runner/queue/order.h"
#include "runner/supervisor/supervisor.h"
#include "store/run.h"

/* --- file: queue.json, {"queue": 1, "strict", "guarantee_ms", "runs": [...], "machines": [...]} */

typedef struct dt_queue_entry {
    const char *run;
    int64_t priority;
    int64_t place; /* lower is earlier; at first the time of the launch in ms */
    bool held;
    int64_t not_before_ms; /* 0: at once */
    const char *
        nodes; /* items of the recipe at the launch, one a line: a place changes those of the plan; "": no nodes */
    const char *after;             /* ids of runs, separated by blanks */
    int64_t units;                 /* GPUs or ranks of a run without nodes; 0: it has nodes */
    int64_t unit_gpus, unit_cores; /* of such a run */
    int64_t lasts_ms;              /* expected duration of the whole run; 0: unknown */
    int64_t preemptions;           /* how often it was preempted */
    const char *by;                /* run that it was preempted for last; "": none */
    const char *refused;           /* why its place was not free when it started last; "": it was */
    int64_t refused_ms, refusals;  /* the last one, and how many there were in a row */
} dt_queue_entry;

typedef struct dt_queue_machine {
    const char *name; /* as in recipes; "localhost" */
    int64_t gpus, cores;
    bool shared; /* runs without nodes may get it: `queue nodes add` */
    bool drained;
} dt_queue_machine;

typedef struct dt_queue_file {
    dt_queue_entry *entries;
    int64_t entry_count, entry_room;
    const dt_queue_entry **by_run; /* [entry_count] sorted by run; NULL: entries were added */
    dt_queue_machine *machines;
    int64_t machine_count, machine_room;
    bool strict;          /* no run overtakes another */
    int64_t guarantee_ms; /* a run is not preempted before; each preemption doubles it */
    dt_arena *arena;
    int lock; /* -1: read only */
} dt_queue_file;

/* Returns the path of a file of the state folder, which is created if it is missing. */
dt_status dt_queue_path(const char **out, const char *name, dt_arena *arena, dt_error *err);
/* Reads the file, which need not exist. DT_ERR_CORRUPT names it. */
dt_status dt_queue_read(dt_queue_file *out, dt_arena *arena, dt_error *err);
/* The same, locked until dt_queue_close, for a change. */
dt_status dt_queue_open(dt_queue_file *out, dt_arena *arena, dt_error *err);
dt_status dt_queue_write(dt_queue_file *file, dt_error *err);
void dt_queue_close(dt_queue_file *file);
/* Find an entry or a machine; NULL: there is none. `add` returns the new or the existing one. */
dt_queue_entry *dt_queue_entry_find(const dt_queue_file *file, const char *run);
/* Returns the item of the recipe for this node of the run's plan; `item`, that of the plan, if the entry has none. */
const char *dt_queue_item_of(const dt_queue_entry *entry, const char *node, const char *item,
                             dt_arena *arena);
dt_queue_entry *dt_queue_entry_add(dt_queue_file *file, const char *run);
dt_queue_machine *dt_queue_machine_find(const dt_queue_file *file, const char *node);
dt_queue_machine *dt_queue_machine_add(dt_queue_file *file, const char *node);
/* Adds the machine of a probe, with its GPUs and processors. */
void dt_queue_machine_probed(dt_queue_file *file, const dt_node_probe *probe);
/* Adds the machines of a plan that the queue does not know; asks them for their GPUs and processors. */
dt_status dt_queue_machines_learn(const dt_preflight *flight, dt_arena *arena, dt_error *err);
/* Returns what all machines have, or those that are shared: "gpu1 has 4 GPUs and 32 processors, ...". */
const char *dt_queue_machines_text(const dt_queue_file *file, bool all, dt_arena *arena);

/* What a launch with --queue asks for. */
typedef struct dt_queue_wish {
    bool queues; /* --queue was given */
    int64_t priority, not_before_ms, lasts_ms;
    const char *after;
    int64_t units, unit_gpus, unit_cores;
} dt_queue_wish;

/* --- gpus: what uses the GPUs of machines besides the runs of this state folder, as the arbiter sees it while a run waits
 * for GPUs; in queue.gpus.json, which is empty once nobody looks */

typedef struct dt_queue_gpu {
    const char *machine;
    int64_t gpu;
    const char *who, *run, *owner; /* node_setup/remote_helper/gpu_claims.h */
} dt_queue_gpu;

typedef struct dt_queue_watches dt_queue_watches;
dt_queue_watches *dt_queue_watches_open(void);
void dt_queue_watches_close(dt_queue_watches *watches); /* accepts NULL */
/* Watches the machines on which runs wait for GPUs, and no others. Returns whether all that `run` (order.h) would start on
 * have answered, or cannot be asked. */
void dt_queue_watches_follow(dt_queue_watches *watches, const dt_order *order);
bool dt_queue_watches_know(dt_queue_watches *watches, const dt_order *order,
                           const dt_order_run *run);
/* Reads what the arbiter wrote, if it is not old. */
void dt_queue_gpus_read(dt_queue_gpu **out, int64_t *count, dt_arena *arena);

/* For supervisors: a run of the queue whose place was not free waits again. */
extern const dt_supervisor_queue dt_queue_of_supervisors;

/* --- facts: what order.h decides about, from the store, queue.json and the plans */

typedef struct dt_queue_facts {
    dt_order order;
    dt_run *runs; /* [order.run_count], the rows behind order.runs */
    dt_queue_file file;
    dt_queue_gpu *gpus; /* [gpu_count] in use by others: the `foreign` of machines */
    int64_t gpu_count;
} dt_queue_facts;

/* Whether the plan would fit on the machines of the file if nothing else ran, and text that says what it needs. */
dt_status dt_queue_would_fit(bool *fits, const char **needs, const dt_queue_file *file,
                             const dt_queue_wish *wish, const dt_plan *plan, dt_arena *arena,
                             dt_error *err);
/* What plans say, kept between two looks: a plan does not change while its attempt waits, nor while it runs. */
typedef struct dt_queue_plans dt_queue_plans;
dt_queue_plans *dt_queue_plans_open(void);
void dt_queue_plans_close(dt_queue_plans *plans); /* accepts NULL */

/* A run that its caller is about to launch. */
typedef struct dt_queue_newcomer {
    const dt_plan *plan;
    int64_t wanted; /* so many of its nodes are enough; 0: all */
    const char
        *as; /* run of the queue whose priority and place it has; NULL: it comes after all others */
} dt_queue_newcomer;

/* Reads everything, and decides. plans: may be NULL. newcomer: comes after all others, and is the last of order.runs, without
 * a row; NULL: none. */
dt_status dt_queue_look(dt_queue_facts *out, dt_store *store, dt_queue_plans *plans,
                        const dt_queue_newcomer *newcomer, dt_arena *arena, dt_error *err);
/* Returns what a run needs, "2 GPUs on gpu1, 2 GPUs on gpu2", and why it waits, in one line: "1 GPU free on gpu1; r12 ends
 * in about 20 min". */
const char *dt_queue_needs(const dt_order *order, const dt_order_run *run, dt_arena *arena);
const char *dt_queue_reason(const dt_queue_facts *facts, int64_t index, dt_arena *arena);
/* Lists the indices of the waiting runs in the order in which they start. */
void dt_queue_sorted(int64_t **out, int64_t *count, const dt_queue_facts *facts, dt_arena *arena);

/* --- launch: options of `dtrun launch --queue`, and the entry of a new run */

#define DT_QUEUE_OPTIONS                                                                   \
    {.name = "queue",                                                                      \
     .kind = DT_OPTION_FLAG,                                                               \
     .help = "wait until what the run needs is free (docs/queue.md)"},                     \
        {.name = "priority",                                                               \
         .kind = DT_OPTION_INT,                                                            \
         .value = "N",                                                                     \
         .fallback = "0",                                                                  \
         .low = -1000,                                                                     \
         .high = 1000,                                                                     \
         .help = "with --queue: higher ones start first, and may preempt lower ones"},     \
        {.name = "after",                                                                  \
         .kind = DT_OPTION_LIST,                                                           \
         .value = "RUN",                                                                   \
         .help = "with --queue: start once this run has finished; never if it fails"},     \
        {.name = "not-before",                                                             \
         .kind = DT_OPTION_TEXT,                                                           \
         .value = "TIME",                                                                  \
         .help = "with --queue: start at 18:30, 2026-12-24T18:30 or +2h at the earliest"}, \
    {                                                                                      \
        .name = "lasts", .kind = DT_OPTION_TEXT, .value = "TIME",                          \
        .help = "with --queue: expected duration, as 90m, if it cannot be estimated"       \
    }
/* Reads the options; DT_ERR_USAGE if one is given without --queue, or names no run. */
dt_status dt_queue_wish_read(dt_queue_wish *out, dt_call *call, dt_error *err);
/* Refuses a recipe that cannot wait. For one without nodes: chooses machines on which it could run, and returns them as the value of --set ("nodes=[...]");
 * NULL: the recipe names its nodes. DT_ERR_RECIPE: it never fits, with what would. */
dt_status dt_queue_take_recipe(const char **nodes, dt_queue_wish *io, const dt_recipe *recipe,
                               const dt_recipe_source *source, dt_call *call, dt_error *err);
/* Returns "nodes=[\"gpu-a gpus=2\", ...]". */
const char *dt_queue_nodes_value(const dt_string_list *items, dt_arena *arena);
/* dt_attempt_launch, which for a run that waits is preceded by checks (DT_ERR_RECIPE: it never fits; DT_ERR_USAGE: it needs
 * a secret that is not kept) and followed by its entry and the start of an arbiter; until it has its entry nobody starts
 * it. seconds: its expected duration; NaN: unknown. */
dt_status dt_queue_launch(const char **run, dt_store *store, const dt_recipe_source *source,
                          const dt_labels *labels, const dt_queue_wish *wish, double seconds,
                          dt_preflight *flight, dt_call *call, dt_error *err);

/* The same for dt_attempt_resume: the next attempt of the run waits on the nodes that it is given. */
dt_status dt_queue_resume(dt_store *store, const dt_run *run, const char *checkpoint,
                          const dt_budget_place *at, const dt_queue_wish *wish,
                          dt_preflight *flight, dt_call *call, dt_error *err);

/* --- place: slots for a run that is launched at once, such as a point of a sweep */

typedef struct dt_queue_place {
    bool there; /* false: other runs use what it needs, or come before it; try again later */
    const dt_string_list *nodes; /* NULL: as in the recipe */
    int lock;                    /* nothing else is given away until it is closed; -1: not held */
} dt_queue_place;

/* Chooses a place on `wanted` of the recipe's nodes (0: all) by the rules of the queue. It is as in the recipe if the run
 * shares only the processors of all its nodes, or would never fit: then its launch says why. flight: with the plan of all
 * nodes; more than what it says is asked of nodes that the queue does not know. Release *out in any case. */
dt_status dt_queue_place_take(dt_queue_place *out, const dt_preflight *flight, int64_t wanted,
                              dt_store *store, dt_arena *arena, dt_error *err);
void dt_queue_place_release(dt_queue_place *place);
/* Takes the lock under which slots are given away. DT_ERR_BUSY. */
dt_status dt_queue_lock_places(int *lock, dt_arena *arena, dt_error *err);

/* --- act: what the arbiter does with a run */

/* Returns the nodes of a recipe for the place of a run; items: the nodes that the recipe names. */
void dt_queue_items(dt_string_list *out, const dt_order *order, const dt_order_run *run,
                    const dt_string_list *items, dt_arena *arena);

/* Starts a waiting run at its place. DT_ERR_BUSY: it does not wait any more. */
dt_status dt_queue_start(dt_store *store, const dt_queue_facts *facts, int64_t index,
                         dt_error *err);
/* Preempts a run. Returns when its supervisor has accepted; the run waits once it has stopped. */
dt_status dt_queue_preempt(const dt_queue_facts *facts, int64_t index, dt_error *err);
/* Ends a waiting run: it never starts. DT_ERR_BUSY: it does not wait any more. */
dt_status dt_queue_drop(dt_store *store, const char *run, const char *reason, dt_error *err);

/* --- arbiter */

/* Runs `dtrun arbiter`. DT_ERR_BUSY: another one runs. */
dt_status dt_arbiter_main(dt_error *err);
/* *needed: runs wait. */
dt_status dt_arbiter_is_needed(bool *needed, dt_store *store, dt_error *err);
/* Starts an arbiter if runs wait and there is none. Errors are for a note: the next command tries again. */
dt_status dt_arbiter_ensure(dt_error *err);

#endif
