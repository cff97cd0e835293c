/* plan: describes a run for the engine: the place of each rank, and the resolved recipe.
 *
 * Document (version 1), one JSON object:
 *   {"plan": 1, "run": "k3v9x2", "attempt": 1, "world_size": 2,
 *    "directory": "/abs/runs/k3v9x2/checkpoints",   where checkpoints are written; "/dev/null":
 *                                                none are written (for measurements)
 *    "shared": true,                                whether all nodes share this folder
 *    "resume_from": "" | "/abs/.../step-00000100",  a marked checkpoint directory
 *    "new_data": true,    optional: the data may differ from the checkpoint's
 *    "new_model": true,   optional: the model may compute something else with the parameters
 *    "until": 120,        optional: the run ends after this step, as if it were the last (dtrun verify)
 *    "weights": {"kind": "huggingface" | "checkpoint", "description": "/abs/.../config.json",
 *                "files": ["/abs/.../model.safetensors"]},   may be missing: where a fresh start has its
 *                                                            parameters from (recipes/foreign/weights.h)
 *    "tree": "XXH3",      optional: the folder of a command as it was at the launch, for nodes that do not share it
 *                         (runs/ID/workdir-XXH3.json; runner/node_setup/workdir/tree.h)
 *    "setup": "/abs/...", optional, only on a node: where the setup of a command was done, for the agent to mark as used
 *    "continues": {"checkpoint": "/abs/...", "step": 500},  only of a command that continues from a checkpoint of
 *                                                           its program
 *    "task": {...},       only if the recipe's task is not to train; resume_from is then the checkpoint
 *                         that the task uses:
 *      {"run": "a7c3k9", "input": "/abs/.../input.txt", "target": "" | "/abs/...",
 *       "output": "/abs/out.txt", "replace": false, "parts": [[16, 1204], [15, 1198]],
 *       "arguments": ["--beam", "4"], "done": [[0, 3], [5, 6]]}
 *    "prompts": [[1, 15, 7], ...],        only if the launch has made ids of 'evaluate.samples'
 *    "nodes": [{"name": "localhost"}],
 *    "ranks": [{"rank": 0, "node": 0, "local_rank": 0, "device": "cpu",
 *                "replicas": 1, "threads": 1}, ...],
 *    "recipe": { ... the resolved recipe, the names of recipes/fields/fields.c ... }}
 *
 * A bundled engine gets the plan of the runner that brought it, but a supervisor may resume a plan that
 * another build wrote: recipes/fields/fields.h says which plans are refused. The engine finds its own rank in
 * its environment (RANK).
 */
#ifndef DT_RECIPES_PLAN_PLAN_H
#define DT_RECIPES_PLAN_PLAN_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/cost/memory.h"
#include "recipes/fields/recipe.h"
#include "recipes/foreign/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_PLAN_VERSION 1
#define DT_PLAN_NOWHERE "/dev/null"

typedef struct dt_plan_rank {
    int64_t node, local_rank;
    const char *device; /* "cpu" or "cuda:0": the first of several */
    int64_t
        replicas; /* devices of this process: dp has one rank with all devices of the node, other strategies 1 */
    int64_t threads; /* of each */
} dt_plan_rank;

/* Consecutive lines of a task's input. One rank makes their results, and these are complete or missing
 * (runner/supervisor/folder/task_folder.h). */
typedef struct dt_plan_part {
    int64_t first, lines; /* its first line, from 0, and how many; at least 1 */
    int64_t weight;       /* estimated work, in any unit; at least 1 */
} dt_plan_part;

/* The work of generate and score: one result for each line of a file. engine/task/task.h assigns its parts to
 * ranks. */
typedef struct dt_plan_task {
    const char *run;          /* run whose checkpoint is used */
    const char *input;        /* the run's copy of the input file */
    const char *target;       /* the run's copy of the target sentences for scoring; "": none */
    const char *output;       /* file on the launch machine, written when all parts exist */
    bool replace;             /* replace an existing output */
    int64_t lines;            /* of all parts */
    dt_plan_part *parts;      /* [part_count] in the order of the lines; in JSON [lines, weight] */
    int64_t part_count;       /* 1 to 2^20 */
    dt_string_list arguments; /* arguments of the engine's command `generate` or `score` */
    int64_t *
        done; /* [2 * done_count] ranges of finished parts, ascending: first, end, first, end, ... */
    int64_t done_count;
} dt_plan_task;

/* A prompt as the ids that the launch made of it. */
typedef struct dt_plan_prompt {
    const int32_t *ids;
    int64_t count;
} dt_plan_prompt;

typedef struct dt_plan {
    const char *run;
    int64_t attempt, world_size, node_count;
    const char *directory;
    bool shared;             /* false: each node has a separate `directory` (engine/checkpoint) */
    const char *resume_from; /* "" for a fresh start */
    bool new_data;    /* the data may differ from the checkpoint's; they start at their beginning */
    bool new_model;   /* the model may compute something else with the parameters */
    int64_t until;    /* the run ends after this step; 0: after the last of the recipe */
    const char *tree; /* digest of the folder that nodes get; "": none */
    const char *git_commit;         /* of a command's folder; "" or NULL: unknown */
    const char *program_checkpoint; /* of a command: path on the node of rank 0; "" or NULL: none */
    int64_t program_step;           /* step of that checkpoint */
    dt_weights_files weights; /* kind, description and files; of kind none: random parameters */
    /* [prompt_count]: 'evaluate.samples' of a recipe with 'data.format: chat'; otherwise none */
    const dt_plan_prompt *prompts;
    int64_t prompt_count;
    const char **node_names; /* [node_count] */
    dt_plan_rank *ranks;     /* [world_size], by rank */
    dt_plan_task task;       /* set unless recipe.task is train */
    dt_recipe recipe;
} dt_plan;

/* Places the ranks of a checked recipe on its nodes: `ranks` for each node in node order (dp: one rank with
 * this many replicas), device "cpu", and threads from `cores` of a node if the recipe leaves them out. The
 * caller sets the rest (run, attempt, directory, shared, resume_from). Everything lives in the arena. */
dt_status dt_plan_make(dt_plan *out, const dt_recipe *recipe, int64_t cores, dt_arena *arena,
                       dt_error *err);
/* The same with cores[node] for each node, in the order of recipe->nodes. */
dt_status dt_plan_make_on(dt_plan *out, const dt_recipe *recipe, const int64_t *cores,
                          dt_arena *arena, dt_error *err);

/* Assigns a device to each rank of nodes with GPUs: found[node] GPUs (-1: unknown), from its first_gpu on. A
 * node gets a rank for each GPU to use (dp: one rank with this many replicas); if the recipe sets a number of
 * GPUs and more ranks, ranks share them. Nodes without GPUs keep their CPU ranks. DT_ERR_RECIPE if the
 * recipe needs more GPUs than exist. Can be called again when more nodes are known. */
dt_status dt_plan_use_devices(dt_plan *plan, const int64_t *found, dt_arena *arena, dt_error *err);
/* Returns whether the node's use of GPUs depends on the GPUs found there: no number is set, or a hostfile's
 * slots count GPUs if there are any. */
dt_status dt_plan_devices_open(bool *out, const dt_plan *plan, int64_t node, dt_arena *arena,
                               dt_error *err);

/* Returns what `replicas` ranks process in one micro-step, in the unit of batch.total. */
int64_t dt_recipe_pass(const dt_recipe *recipe, int64_t replicas);
/* Returns the number of training devices of all ranks that read different samples: 'tensor' ranks read the same. */
int64_t dt_plan_replicas(const dt_plan *plan);
/* Returns the number of ranks on every node; 0: nodes have different numbers, or their ranks are not adjacent. */
int64_t dt_plan_node_ranks(const dt_plan *plan);
/* DT_ERR_RECIPE if the nodes' ranks do not form the groups that 'tensor' and 'strategy.within' ask for. */
dt_status dt_plan_check_groups(const dt_plan *plan, dt_error *err);
/* Sets the micro-steps of plan->recipe so that a step has batch.total on the ranks of the plan; call it
 * after every change of the ranks. No effect without batch.total. DT_ERR_RECIPE if it is not a multiple of what the
 * ranks process at once: the micro-steps are then those of the nearest multiple. */
dt_status dt_plan_divide_batch(dt_plan *plan, dt_error *err);

/* Returns the properties of this rank that its memory depends on. */
dt_memory_ranks dt_plan_memory_ranks(const dt_plan *plan, int64_t rank);

/* New reference. */
json_t *dt_plan_to_json(const dt_plan *plan);

/* Checks everything: counts, ranges, every rank present once. DT_ERR_CORRUPT; DT_ERR_UNSUPPORTED: another version. */
dt_status dt_plan_from_json(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err);
dt_status dt_plan_read(dt_plan *out, const char *path, dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
