/* follow_options: defines and handles --wait, --detach and --log-steps of launch, resume and fork. */
#ifndef DT_RUNNER_VIEW_FOLLOW_OPTIONS_H
#define DT_RUNNER_VIEW_FOLLOW_OPTIONS_H

#include "runner/cli/command.h"
#include "store/store.h"

#define DT_FOLLOW_OPTIONS                                                                   \
    {.name = "wait",                                                                        \
     .kind = DT_OPTION_FLAG,                                                                \
     .help = "print plain lines until the run ends, instead of the live view; with --json " \
             "print only the final object"},                                                \
        {.name = "log-steps",                                                               \
         .kind = DT_OPTION_FLAG,                                                            \
         .help = "print every logged step, evaluation and checkpoint as a line on stdout; " \
                 "with --json as one object each, before the final one"},                   \
    {                                                                                       \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                            \
        .help = "print the id and return as soon as the run is supervised"                  \
    }

/* Checks the options before anything is done. DT_ERR_USAGE if they cannot be combined. */
dt_status dt_follow_options_check(const dt_call *call, dt_error *err);

/* Follows a run that was started, or with --detach prints its id and returns. */
dt_status dt_follow_as_asked(dt_store *store, const char *run, dt_call *call, dt_error *err);

/* Prints the id of the run, or its object with --json. */
dt_status dt_follow_started(dt_store *store, const char *id, const dt_call *call, dt_error *err);

#endif
