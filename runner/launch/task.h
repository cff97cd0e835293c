/* task: launches a run that processes the lines of a file with a checkpoint of another run. Its ranks share the
 * lines (engine/task/task.h), and it is supervised like any run.
 *
 * Errors  DT_ERR_USAGE before there is a run; those of preflight.h
 */
#ifndef DT_RUNNER_LAUNCH_TASK_H
#define DT_RUNNER_LAUNCH_TASK_H

#include "runner/cli/command.h"
#include "runner/cli/label_options.h"
#include "runner/launch/preflight.h"
#include "store/store.h"

/* Options of a command with the name of a task, in addition to DT_FROM_CHECKPOINT_OPTIONS,
 * --input, --output and --force. */
#define DT_TASK_OPTIONS                                                                           \
    {.name = "ranks",                                                                             \
     .kind = DT_OPTION_INT,                                                                       \
     .value = "N",                                                                                \
     .low = 1,                                                                                    \
     .high = 1024,                                                                                \
     .help = "with --input: share the lines among this many ranks per node"},                     \
        {.name = "nodes",                                                                         \
         .kind = DT_OPTION_TEXT,                                                                  \
         .value = "LIST",                                                                         \
         .help =                                                                                  \
             "with --input: share the lines among these nodes, as in gpu[01-04],big or slurm:4"}, \
        {.name = "gpus",                                                                          \
         .kind = DT_OPTION_INT,                                                                   \
         .value = "N",                                                                            \
         .low = 0,                                                                                \
         .high = 1024,                                                                            \
         .help = "with --input: share the lines among this many GPUs per node, one rank on each " \
                 "(default: all)"},                                                               \
        {.name = "name",                                                                          \
         .kind = DT_OPTION_TEXT,                                                                  \
         .value = "NAME",                                                                         \
         .help = "with --ranks, --nodes or --gpus: name of the run (default: from RUN and the "   \
                 "command)"},                                                                     \
        DT_LABEL_OPTIONS,                                                                         \
        {.name = "wait",                                                                          \
         .kind = DT_OPTION_FLAG,                                                                  \
         .help = "with --ranks, --nodes or --gpus: plain lines instead of the live view"},        \
    {                                                                                             \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                                  \
        .help = "with --ranks, --nodes or --gpus: print the id of the run and return"             \
    }

/* *out: a run is requested. DT_ERR_USAGE if an option needs a run and none is requested, or the
 * reverse. */
dt_status dt_task_is_wanted(bool *out, const dt_call *call, dt_error *err);

/* Launches a run with that checkpoint of `parent`, as the options of generate or score ask. */
dt_status dt_task_launch(const char **run, const dt_run *parent, const char *checkpoint,
                         const dt_call *call, dt_error *err);

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

#endif
