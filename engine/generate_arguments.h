/* generate_arguments: parses the arguments of `dtrun-engine generate`, from a command line or from a task
 * (recipes/plan/plan.h).
 *
 * Call it once per process, because it uses getopt. DT_ERR_USAGE naming the argument. */
#ifndef DT_ENGINE_GENERATE_ARGUMENTS_H
#define DT_ENGINE_GENERATE_ARGUMENTS_H

#include "engine/generate/generate.h"

enum { DT_GENERATE_STOPS = 64 };

/* Points into itself and into argv: do not copy it. */
typedef struct dt_generate_arguments {
    dt_generate_options options;
    const char *prompt_file;
    const char *input; /* NULL, or the file whose lines are translated or continued */
    int64_t batch;
    const char *stops[DT_GENERATE_STOPS];
    int64_t seed;
    bool json;
} dt_generate_arguments;

/* Parse the arguments; argv[0] is the command's name. */
dt_status dt_generate_arguments_parse(dt_generate_arguments *out, int argc, char **argv,
                                      dt_error *err);

#endif
