/* task: a run that makes something of the lines of a file with a checkpoint of another run: its ranks
 * share them out (engine/task/task.h), and what becomes of it is supervised like any run.
 *
 * Errors  DT_ERR_USAGE for what cannot be shared out, before there is a run; those of preflight.h
 */
#ifndef DT_RUNNER_LAUNCH_TASK_H
#define DT_RUNNER_LAUNCH_TASK_H

#include "runner/cli/command.h"
#include "runner/cli/label_options.h"
#include "store/store.h"

/* Of a command whose name is the task's; beside --checkpoint, --input, --threads, --output and --force. */
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
         .help = "the same on so many GPUs of each node, a rank on each; left out, on all that "  \
                 "are found"},                                                                    \
        {.name = "name",                                                                          \
         .kind = DT_OPTION_TEXT,                                                                  \
         .value = "NAME",                                                                         \
         .help = "with --ranks or --nodes: name of the run (default: from RUN and the command)"}, \
        DT_LABEL_OPTIONS,                                                                         \
        {.name = "wait",                                                                          \
         .kind = DT_OPTION_FLAG,                                                                  \
         .help = "with --ranks or --nodes: plain lines instead of the live view"},                \
    {                                                                                             \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                                  \
        .help = "with --ranks or --nodes: print the id of the run and return"                     \
    }

/* Whether a run is asked for. DT_ERR_USAGE where something is, that is for one, and it is not; and the
 * other way round. */
dt_status dt_task_is_wanted(bool *out, const dt_call *call, dt_error *err);

/* Launches one with that checkpoint of `parent`. `here`: options that are not the engine's. */
dt_status dt_task_launch(const char **run, const dt_run *parent, const char *checkpoint,
                         const char *const *here, const dt_call *call, dt_error *err);
/* The parts that are missing of one that has ended. */
dt_status dt_task_resume(dt_store *store, dt_run *run, const dt_call *call, dt_error *err);

#endif
