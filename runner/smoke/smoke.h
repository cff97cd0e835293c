/* smoke: tests a recipe with scaled-down runs, with or without injected faults, and writes the results.
 *
 * A check has a name, a promise, a function that tests it, and a measured figure. Each recipe has its own state
 * folder (smoke_int.h), so that checks of different recipes are independent.
 * Errors  a failed check is a result, not an error; errors are problems that prevent testing
 *
 * Adding a check: write its function in one of the check_*.c files and declare it in smoke_int.h; add a row to
 * `training` or `of_command` (smoke.c) and a line to docs/smoke.md
 */
#ifndef DT_RUNNER_SMOKE_SMOKE_H
#define DT_RUNNER_SMOKE_SMOKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"
#include "recipes/read/reader.h"
#include "runner/term/term.h"

/* fault: defines the faults that a smoke test can inject, and what must happen.
 *
 *   --kill rank=1@3      killed after step 3: the run restarts and reaches the same bits
 *   --hang rank=0@5      suspended after step 5: it is noticed, the run restarts and reaches the same bits
 *   --slow rank=1@2x4    four times slower from step 2 on: no restart, the same bits
 *   --disk-full rank=0@6 saves fail and are reported; existing checkpoints stay intact
 *   --bitflip rank=1@7   noticed before it is saved; the run restarts and reaches the same bits
 *   --cut node=2@4:10s   no data from the second node for 10 s: no restart, the same bits
 */

typedef struct dt_smoke_fault_kind {
    const char *option; /* "disk-full" */
    const char *word; /* for the engine (engine/train/session.h): "full"; "": for the supervisor */
    const char *promise;
    bool restarts, same_bits;
    bool has_times;         /* takes "x4" at the end */
    bool of_node;           /* "node=2@4:10s" */
    const char *event_kind; /* kind of the event that reports it; "": none */
    const char *reason;     /* part of the reason with which the first attempt ended; "": any */
} dt_smoke_fault_kind;

enum { DT_SMOKE_FAULT_KINDS = 6 };
extern const dt_smoke_fault_kind dt_smoke_fault_kinds[DT_SMOKE_FAULT_KINDS];

typedef struct dt_smoke_fault {
    const dt_smoke_fault_kind *kind;
    int64_t rank, step;
    int64_t node;          /* from 0; options count from 1 */
    double times, seconds; /* factor of a slow rank, length of a cut */
    const char *name;      /* "kill rank=1@3" */
    const char *planted;   /* "DTRUN_FAULT=kill 1@3": in the environment of the launch */
} dt_smoke_fault;

/* Parses "rank=1@3", "1@3", "@3" (rank 0), "rank=1@2x4" or "node=2@4:10s". DT_ERR_USAGE with the option. */
dt_status dt_smoke_fault_read(dt_smoke_fault *out, const dt_smoke_fault_kind *kind,
                              const char *text, dt_arena *arena, dt_error *err);

/* shrink: scales a recipe down for this machine: the same strategy, shape of schedule, data, precision and code
 * path, but fewer ranks on CPUs, a smaller model and a few steps.
 *
 * Kept      the strategy with its settings, precision, optimizer, clip, seed, data, tokenizer; kind, activation,
 *           positions and dropout of the model; recomputation, shape of the schedule
 * Shrunk    nodes to this machine, devices to CPUs, ranks, `tensor` to two; depth and width (unless `full`), batch; warm-up, periods
 *           and decay in proportion to the steps
 * Left out  notify, the time limit, sbatch options, the network interface
 * Here      with `here`, nodes and their settings are kept: only the model and the length shrink
 */

typedef struct dt_shrink {
    int64_t ranks; /* 0: two, or one if the recipe has one; with 'tensor' four or two */
    int64_t steps;
    bool full; /* keep the model and its batch */
    bool here; /* keep the nodes, GPUs and ranks */
} dt_shrink;

/* Number of ranks that the recipe asks for. A node whose GPUs are detected counts as having several. */
int64_t dt_shrink_ranks_asked(const dt_recipe *recipe);

/* Makes the recipe run on one rank of the first node. */
void dt_shrink_to_one(dt_recipe *out, const dt_recipe *recipe);
/* Makes each rank of this machine, or each group that divides layers, a node of its own. */
void dt_shrink_spread(dt_recipe *io);

/* Scales the recipe down. Texts and lists are borrowed from `recipe`. */
void dt_shrink_recipe(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how);
/* The same for a recipe with a command: two processes on this machine, fewer restarts and shorter waits. Nothing of the
 * command changes: only its arguments (--set args.*) can make the program small. */
void dt_shrink_command(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how,
                       dt_arena *arena);

typedef enum dt_smoke_verdict { DT_SMOKE_GOOD, DT_SMOKE_FAILED, DT_SMOKE_SKIPPED } dt_smoke_verdict;

typedef struct dt_smoke_result {
    const char *check, *promise; /* "resumes", "a killed rank costs no bit" */
    dt_smoke_verdict verdict;
    const char *figure; /* what was measured, or why it failed or was skipped */
    double seconds;
} dt_smoke_result;

typedef struct dt_smoke_wish {
    dt_shrink how;
    const dt_smoke_fault *faults; /* also to be tested */
    size_t faults_count;
    double limit_seconds; /* for each run */
    bool keep;            /* keep the folder in any case */
    /* called for each result as soon as it is known; may be NULL */
    void (*on_result)(void *context, const dt_smoke_result *result);
    void *context;
} dt_smoke_wish;

typedef struct dt_smoke_report {
    const char *path; /* of the recipe */
    dt_smoke_result *results;
    size_t count, failed;
    const char *folder; /* the kept folder; NULL: removed */
    double seconds;
    bool interrupted;
} dt_smoke_report;

/* Runs all checks of one recipe; the texts live in the arena. */
dt_status dt_smoke_recipe(dt_smoke_report *out, const dt_recipe *recipe,
                          const dt_recipe_source *source, const dt_smoke_wish *wish,
                          dt_arena *arena, dt_error *err);
/* Makes the report of a recipe that could not be read: one failed check. */
void dt_smoke_unread(dt_smoke_report *out, const char *path, const dt_error *why, dt_arena *arena);

/* formats: writes the results of smoke tests.
 *
 *   TAP        version 14: one line a check as soon as it is known, the plan at the end
 *   JUnit XML  one suite a recipe, one case a check; code hosts show it with a change
 *   JSON       {"recipe", "good", "seconds", "folder", "checks": [{"check", "promise", "verdict",
 *              "figure", "seconds"}]}
 */

void dt_smoke_add_line(dt_strbuf *out, const dt_term *term, const dt_smoke_result *result);
void dt_smoke_add_tap(dt_strbuf *out, int64_t number, const char *recipe,
                      const dt_smoke_result *result);
void dt_smoke_add_junit(dt_strbuf *out, const dt_smoke_report *reports, size_t count);
/* New reference. */
json_t *dt_smoke_to_json(const dt_smoke_report *report);

#endif
