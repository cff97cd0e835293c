/* generate_arguments: what `dtrun-engine generate` is told, by a command line or by the arguments of a task
 * (recipes/plan.h).
 *
 * Once in a process: it is getopt's. DT_ERR_USAGE with the argument's name. */
#ifndef DT_ENGINE_GENERATE_ARGUMENTS_H
#define DT_ENGINE_GENERATE_ARGUMENTS_H

#include "engine/generate/generate.h"

enum { DT_GENERATE_STOPS = 64 };

/* Points into itself and into argv: it is not copied. */
typedef struct dt_generate_arguments {
    dt_generate_options options;
    const char *prompt_file;
    const char *input; /* NULL, or the lines that are translated or continued */
    int64_t batch;
    const char *stops[DT_GENERATE_STOPS];
    int64_t seed;
    bool json;
} dt_generate_arguments;

/* argv[0] is the command's name. */
dt_status dt_generate_arguments_parse(dt_generate_arguments *out, int argc, char **argv,
                                      dt_error *err);

#endif
