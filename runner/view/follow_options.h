/* follow_options: --wait, --detach and --log-steps, as launch, resume and fork have them. */
#ifndef DT_RUNNER_VIEW_FOLLOW_OPTIONS_H
#define DT_RUNNER_VIEW_FOLLOW_OPTIONS_H

#include "runner/cli/command.h"
#include "store/store.h"

#define DT_FOLLOW_OPTIONS                                                                       \
    {.name = "wait",                                                                            \
     .kind = DT_OPTION_FLAG,                                                                    \
     .help = "plain lines instead of the live view, until the run ends; with --json only the "  \
             "object at the end"},                                                              \
        {.name = "log-steps",                                                                   \
         .kind = DT_OPTION_FLAG,                                                                \
         .help =                                                                                \
             "every logged step, evaluation and checkpoint as a line on stdout, until the run " \
             "ends; with --json each as an object, before the one at the end"},                 \
    {                                                                                           \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                                \
        .help = "return as soon as the run is supervised, printing its id"                      \
    }

/* Before anything is done: DT_ERR_USAGE where both are given. */
dt_status dt_follow_options_check(const dt_call *call, dt_error *err);

/* After a run was started: prints its id and returns, or follows it, as was asked. */
dt_status dt_follow_as_asked(dt_store *store, const char *run, dt_call *call, dt_error *err);

/* The first of these. */
dt_status dt_follow_started(dt_store *store, const char *id, const dt_call *call, dt_error *err);

#endif
