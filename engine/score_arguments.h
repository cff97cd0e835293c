/* score_arguments: parses the arguments of `dtrun-engine score`, from a command line or from a task
 * (recipes/plan/plan.h).
 *
 * Call it once per process, because it uses getopt. DT_ERR_USAGE naming the argument. */
#ifndef DT_ENGINE_SCORE_ARGUMENTS_H
#define DT_ENGINE_SCORE_ARGUMENTS_H

#include <stdbool.h>

#include "engine/generate/score.h"

typedef struct dt_score_arguments {
    dt_score_options options;
    const char *input, *target; /* names of the files; target can be NULL */
    bool json;
} dt_score_arguments;

/* Parse the arguments; argv[0] is the command's name. */
dt_status dt_score_arguments_parse(dt_score_arguments *out, int argc, char **argv, dt_error *err);

#endif
