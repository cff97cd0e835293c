/* event: reads and writes what an attempt of a run consists of: nodes and ranks, copies of its files, events and
 * checkpoints.
 *
 * Ownership  strings of structs that readers fill live in the arena
 */
#ifndef DT_STORE_EVENT_H
#define DT_STORE_EVENT_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* --- event.c: events */
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

/* Lists those of a kind. */
dt_status dt_store_event_list_of_kind(dt_store *store, dt_store_event **out, int64_t *count,
                                      const char *run, const char *kind, dt_arena *arena,
                                      dt_error *err);

/* --- evaluation.c: results of evaluation tasks */
#define DT_STORE_EVALUATION "evaluation" /* their kind of event */
typedef struct dt_store_evaluation {
    int64_t attempt, step, time_ms;
    const char *task;   /* its name */
    const char *result; /* JSON: {"kind", "rows", "cut", "metrics"} */
} dt_store_evaluation;
/* Lists the newest result of each task at each step: oldest step first, tasks in the order of their files. Steps that a
 * resume undid are left out. */
dt_status dt_store_evaluation_list(dt_store *store, dt_store_evaluation **out, int64_t *count,
                                   const char *run, dt_arena *arena, dt_error *err);
/* Adds results. tasks: {NAME: result, ...} as JSON. */
dt_status dt_store_evaluation_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                                  const char *tasks, dt_error *err);

/* --- sample.c: texts that a run has generated for its prompts (recipe: evaluate.samples) */
#define DT_STORE_SAMPLES "samples" /* their kind of event */
typedef struct dt_store_sample {
    int64_t attempt, step, time_ms;
    int64_t place; /* of the prompt in the recipe, from 0 */
    const char *prompt, *text;
    int64_t tokens;    /* that were generated */
    const char *ended; /* "tokens", "end_of_text", "not_finite" */
} dt_store_sample;
/* Lists the newest text of each prompt: of one step, or with DT_STORE_ALL_STEPS of all, oldest step first. Steps that a
 * resume undid are left out. */
#define DT_STORE_ALL_STEPS (-1)
dt_status dt_store_sample_list(dt_store *store, dt_store_sample **out, int64_t *count,
                               const char *run, int64_t step, dt_arena *arena, dt_error *err);
/* Lists the steps that have samples, oldest first. */
dt_status dt_store_sample_steps(dt_store *store, int64_t **out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err);

/* --- confusion.c: rows of each class by the class that a classifier predicted */
#define DT_STORE_CONFUSION "confusion" /* their kind of event */
typedef struct dt_store_confusion {
    int64_t attempt, step, time_ms;
    const char *counts; /* JSON: [[..], ..], a row for each class */
} dt_store_confusion;
/* Lists the newest counts of a step, or with DT_STORE_ALL_STEPS of each step, oldest step first. Steps that a resume undid
 * are left out. */
dt_status dt_store_confusion_list(dt_store *store, dt_store_confusion **out, int64_t *count,
                                  const char *run, int64_t step, dt_arena *arena, dt_error *err);
/* Lists the steps that have counts, oldest first. */
dt_status dt_store_confusion_steps(dt_store *store, int64_t **out, int64_t *count, const char *run,
                                   dt_arena *arena, dt_error *err);

/* --- event.c: checkpoints */
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
