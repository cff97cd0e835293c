/* score_arguments: what `dtrun-engine score` is told, by a command line or by the arguments of a task
 * (recipes/plan.h).
 *
 * Once in a process: it is getopt's. DT_ERR_USAGE with the argument's name. */
#ifndef DT_ENGINE_SCORE_ARGUMENTS_H
#define DT_ENGINE_SCORE_ARGUMENTS_H

#include <stdbool.h>

#include "engine/generate/score.h"

typedef struct dt_score_arguments {
    dt_score_options options;
    const char *input, *target; /* files; target may be NULL */
    bool json;
} dt_score_arguments;

/* argv[0] is the command's name. */
dt_status dt_score_arguments_parse(dt_score_arguments *out, int argc, char **argv, dt_error *err);

#endif
