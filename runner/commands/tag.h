/* tag: changes the tags of a run, for the commands tag and archive. */
#ifndef DT_RUNNER_COMMANDS_TAG_H
#define DT_RUNNER_COMMANDS_TAG_H

#include "store/run.h"

/* Adds the tags "+a" and "a" and removes "-b", in one transaction: two people may tag one run. *run gets the new tags. */
dt_status dt_run_tag(dt_store *store, dt_run *run, const char *const *words, size_t count,
                     dt_arena *arena, dt_error *err);

#endif
