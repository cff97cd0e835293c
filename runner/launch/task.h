/* task: launches runs that process the lines of a file with a checkpoint of another run, and divides the
 * lines into parts.
 *
 * Errors  DT_ERR_USAGE before there is a run; those of preflight.h
 */
#ifndef DT_RUNNER_LAUNCH_TASK_H
#define DT_RUNNER_LAUNCH_TASK_H

#include "base/strbuf.h"
#include "recipes/plan/plan.h"
#include "runner/cli/command.h"
#include "runner/cli/tags.h"
#include "runner/launch/evaluate.h"
#include "runner/launch/preflight.h"
#include "store/run.h"

/* Options of a command with the name of a task, in addition to DT_FROM_CHECKPOINT_OPTIONS,
 * --input (or --task), --output and --force. with: the condition, WHAT: what ranks share. */
#define DT_TASK_OPTIONS DT_TASK_OPTIONS_OF("with --input: ", "lines")
#define DT_TASK_OPTIONS_OF(with, what)                                                          \
    {.name = "ranks",                                                                           \
     .kind = DT_OPTION_INT,                                                                     \
     .value = "N",                                                                              \
     .low = 1,                                                                                  \
     .high = 1024,                                                                              \
     .help = with "share the " what " among this many ranks per node"},                         \
        {.name = "nodes",                                                                       \
         .kind = DT_OPTION_TEXT,                                                                \
         .value = "LIST",                                                                       \
         .help = with "share the " what " among these nodes, as in gpu[01-04],big or slurm:4"}, \
        {.name = "gpus",                                                                        \
         .kind = DT_OPTION_INT,                                                                 \
         .value = "N",                                                                          \
         .low = 0,                                                                              \
         .high = 1024,                                                                          \
         .help = with "share the " what " among this many GPUs per node, one rank on each "     \
                      "(default: all)"},                                                        \
        {.name = "name",                                                                        \
         .kind = DT_OPTION_TEXT,                                                                \
         .value = "NAME",                                                                       \
         .help = "with --ranks, --nodes or --gpus: name of the run (default: from RUN and the " \
                 "command)"},                                                                   \
        DT_LABEL_OPTIONS,                                                                       \
        {.name = "wait",                                                                        \
         .kind = DT_OPTION_FLAG,                                                                \
         .help = "with --ranks, --nodes or --gpus: plain lines instead of the live view"},      \
    {                                                                                           \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                                \
        .help = "with --ranks, --nodes or --gpus: print the id of the run and return"           \
    }

/* *out: a run is requested. DT_ERR_USAGE if an option needs a run and none is requested, or the
 * reverse. */
dt_status dt_task_is_wanted(bool *out, const dt_call *call, dt_error *err);

/* Launches a run with that checkpoint of `parent`, as the options of generate or score ask. */
dt_status dt_task_launch(const char **run, const dt_run *parent, const char *checkpoint,
                         const dt_call *call, dt_error *err);

/* The same with the model of a folder that no run has (evaluate.h); folder: its absolute path. */
dt_status dt_task_launch_folder(const char **run, const char *folder,
                                const dt_evaluated_model *model, const dt_call *call,
                                dt_error *err);

/* Plans the run that a recipe asks for (its task is not training), and checks its input, without the nodes. A
 * message about `lines` has the line of the recipe. */
dt_status dt_task_preflight(dt_preflight *flight, const dt_recipe *recipe,
                            const dt_recipe_source *source, const dt_call *call, dt_error *err);
/* Launches the run that a recipe asks for, with its file and labels. */
dt_status dt_task_launch_recipe(const char **run, const dt_recipe *recipe,
                                const dt_recipe_source *source, const dt_labels *labels,
                                const dt_call *call, dt_error *err);

/* Resumes an ended run: processes its missing parts. */
dt_status dt_task_resume(dt_store *store, dt_run *run, const dt_call *call, dt_error *err);

/* task_parts: divides the lines of a task (recipes/plan/plan.h) into parts of about equal work.
 *
 * The parts depend on the lines and on `line_weight` alone, so every number of ranks has the same ones.
 * A part has more weight than the others only if its last line is long.
 */

/* At most DT_TASK_PARTS, since the supervisor syncs a file for each; of fewer lines than DT_TASK_PARTS_FEW parts of
 * DT_TASK_PART_LINES, as many as DT_TASK_PARTS_FEW. Multiples of most numbers of ranks, so that they end together. */
#define DT_TASK_PARTS      1024
#define DT_TASK_PARTS_FEW  256
#define DT_TASK_PART_LINES 16
int64_t dt_task_parts_most(int64_t lines);

/* Counts the lines of *out and cuts them into parts; an empty file has no parts. target: translations of the
 * lines, or NULL. The weight of a line is its bytes, in both files, plus line_weight (at least 1). */
void dt_task_parts_cut(dt_plan_task *out, const dt_strbuf *input, const dt_strbuf *target,
                       int64_t line_weight, dt_arena *arena);

#endif
