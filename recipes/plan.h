/* plan: what runner tells engine: who is where, and the recipe with every default filled in.
 *
 * Document (version 1), one JSON object:
 *   {"plan": 1, "run": "k3v9x2", "attempt": 1, "world_size": 2,
 *    "directory": "/abs/runs/k3v9x2/checkpoints",   where checkpoints are written; "/dev/null":
 *                                                   none is, as a measurement wants it
 *    "shared": true,                                whether all nodes see that folder as one
 *    "resume_from": "" | "/abs/.../step-00000100",  a marked checkpoint directory
 *    "new_data": true,    may be missing: the data need not be those of that checkpoint
 *    "new_model": true,   may be missing: nor need the model compute the same with its parameters
 *    "weights": {"kind": "huggingface" | "checkpoint", "description": "/abs/.../config.json",
 *                "files": ["/abs/.../model.safetensors"]},   may be missing: where a fresh start has its
 *                                                            parameters from (recipes/weights.h)
 *    "task": {...},       only if the recipe's task is not to train; resume_from is then the checkpoint
 *                         that the task uses:
 *      {"run": "a7c3k9", "input": "/abs/.../input.txt", "target": "" | "/abs/...",
 *       "output": "/abs/out.txt", "replace": false, "lines": 1000, "part_lines": 16,
 *       "arguments": ["--beam", "4"], "done": [[0, 3], [5, 6]]}
 *    "nodes": [{"name": "localhost"}],
 *    "ranks": [{"rank": 0, "node": 0, "local_rank": 0, "device": "cpu",
 *                "replicas": 1, "threads": 1}, ...],
 *    "recipe": { ... the resolved recipe, the names of recipes/fields.c ... }}
 *
 * A bundled engine gets the plan of the runner that brought it, but a supervisor may resume a plan that
 * another build wrote: recipes/version.h says which plans are refused. The engine finds its own rank in
 * its environment (RANK).
 */
#ifndef DT_RECIPES_PLAN_H
#define DT_RECIPES_PLAN_H

#include "base/arena.h"
#include "base/json.h"
#include "recipes/memory.h"
#include "recipes/recipe.h"
#include "recipes/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_PLAN_VERSION 1
#define DT_PLAN_NOWHERE "/dev/null"

typedef struct dt_plan_rank {
    int64_t node, local_rank;
    const char *device; /* "cpu" or "cuda:0": the first, where there are several */
    int64_t replicas;   /* devices of this process: dp has one rank a node, the others one a rank */
    int64_t threads;    /* of each */
} dt_plan_rank;

/* Lines of a file, of each of which something is made. Part k is lines k * part_lines and on, up to
 * part_lines of them: it is made by one rank, and whole or missing (runner/supervisor/folder/task_parts.h).
 * Which rank makes what is engine/task/share.h's. */
typedef struct dt_plan_task {
    const char *run;           /* whose checkpoint it is done with */
    const char *input;         /* the run's own copies of what was given */
    const char *target;        /* of sentence pairs that are scored; "" none */
    const char *output;        /* where all of it goes once it is whole, on the launch machine */
    bool replace;              /* what is there */
    int64_t lines, part_lines; /* at least 1 */
    dt_string_list arguments;  /* of the engine's command of that name */
    int64_t *done; /* [2 * done_count] parts that are there: first, end, first, end ...; rising */
    int64_t done_count;
} dt_plan_task;

static inline int64_t dt_plan_task_parts(const dt_plan_task *task)
{
    return (task->lines + task->part_lines - 1) / task->part_lines;
}

/* Of one part. */
static inline int64_t dt_plan_task_lines_of(const dt_plan_task *task, int64_t part)
{
    int64_t left = task->lines - part * task->part_lines;

    return left < task->part_lines ? left : task->part_lines;
}

typedef struct dt_plan {
    const char *run;
    int64_t attempt, world_size, node_count;
    const char *directory;
    bool shared;             /* false: each node has a `directory` of its own (engine/checkpoint) */
    const char *resume_from; /* "" for a fresh start */
    bool new_data;           /* that checkpoint may be of other data: these begin at their start */
    bool new_model;          /* and of a model that computes something else with its parameters */
    dt_weights_files weights; /* kind, description and files; of kind none: parameters are drawn */
    const char **node_names;  /* [node_count] */
    dt_plan_rank *ranks;      /* [world_size], by rank */
    dt_plan_task task;        /* where recipe.task is not to train */
    dt_recipe recipe;
} dt_plan;

/* Ranks on nodes from a checked recipe: `ranks` per node in node order (dp: one with so many
 * replicas), device "cpu", threads filled in from a node's `cores` where the recipe leaves them
 * out. The rest (run, attempt, directory, shared, resume_from) is the caller's. Everything lives in
 * the arena. */
dt_status dt_plan_make(dt_plan *out, const dt_recipe *recipe, int64_t cores, dt_arena *arena,
                       dt_error *err);
/* The same where nodes differ: cores[node], in the order of recipe->nodes. */
dt_status dt_plan_make_on(dt_plan *out, const dt_recipe *recipe, const int64_t *cores,
                          dt_arena *arena, dt_error *err);

/* Gives the ranks of nodes that have GPUs a device each: found[node] of them, -1 where that is not
 * known, from its first_gpu on. A node has as many ranks as GPUs that it is to use (dp: one, with so many replicas); where
 * the recipe asks for GPUs by number and for more ranks than that, ranks share them. Nodes without
 * keep their CPU ranks. DT_ERR_RECIPE where more are asked for than there are. May be called again
 * when more nodes are known. */
dt_status dt_plan_use_devices(dt_plan *plan, const int64_t *found, dt_arena *arena, dt_error *err);
/* Whether only what is found on the node tells if it uses GPUs: nobody asks it for a number, or a
 * hostfile's slots are GPUs where there are some. */
dt_status dt_plan_devices_open(bool *out, const dt_plan *plan, int64_t node, dt_arena *arena,
                               dt_error *err);

/* What `replicas` ranks take in one micro-step, in the unit of batch.total. */
int64_t dt_recipe_pass(const dt_recipe *recipe, int64_t replicas);
/* Devices that train, over all ranks. */
int64_t dt_plan_replicas(const dt_plan *plan);
/* Sets the micro-steps of plan->recipe so that a step has batch.total on the ranks of the plan; call it
 * after every change of the ranks. No effect without batch.total. DT_ERR_RECIPE where it is not a
 * multiple of what the ranks take at once: the micro-steps are then those of the nearest multiple. */
dt_status dt_plan_divide_batch(dt_plan *plan, dt_error *err);

/* What the memory of this rank depends on. */
dt_memory_ranks dt_plan_memory_ranks(const dt_plan *plan, int64_t rank);

/* New reference. */
json_t *dt_plan_to_json(const dt_plan *plan);

/* Checks everything: counts, ranges, every rank present once. DT_ERR_CORRUPT; DT_ERR_UNSUPPORTED: a newer
 * build's. */
dt_status dt_plan_from_json(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err);
dt_status dt_plan_read(dt_plan *out, const char *path, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
