/* commands: the commands of dtrun-engine, and the arguments that they have in common. argv[0] is the
 * command's name; engine.c has the help. Arguments come from a command line or from a task
 * (recipes/plan/plan.h). Errors: DT_ERR_USAGE naming the argument. */
#ifndef DT_ENGINE_COMMANDS_H
#define DT_ENGINE_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "engine/chat/chat.h"
#include "engine/generate/generate.h"

/* arguments: parses the arguments that several dtrun-engine commands have. Errors are DT_ERR_USAGE
 * naming the argument. */

/* `what` is "--tokens", for messages. */
dt_status dt_argument_whole(int64_t *out, const char *text, const char *what, int64_t low,
                            int64_t high, dt_error *err);
/* Parses fp32 or bf16, the value of --precision. */
dt_status dt_argument_precision(dt_dtype *out, const char *text, dt_error *err);
dt_status dt_argument_number(double *out, const char *text, const char *what, double low,
                             double high, dt_error *err);
/* Report an option that getopt does not know (`option` is its result), or a surplus argument (-1). */
dt_status dt_argument_refuse(char **argv, int option, dt_error *err);

/* Print the text and a line break to stdout. */
dt_status dt_print_line(const dt_strbuf *text, dt_error *err);

/* generate_arguments: parses the arguments of `dtrun-engine generate` and `chat`, from a command line or from a task
 * (recipes/plan/plan.h).
 *
 * Call it once per process, because it uses getopt. DT_ERR_USAGE naming the argument. */

enum { DT_GENERATE_STOPS = 64 };

/* Points into itself and into argv: do not copy it. */
typedef struct dt_generate_arguments {
    dt_generate_options options;
    const char *prompt_file;
    const char *input;       /* NULL, or the file whose lines are translated or continued */
    const char *chat;        /* NULL, or the file with conversations to answer */
    dt_chat_source template; /* of --chat */
    const char *system;      /* of the chat command; NULL: none */
    int64_t batch;
    const char *stops[DT_GENERATE_STOPS];
    int64_t seed;
    bool json;
} dt_generate_arguments;

/* Parse the arguments; argv[0] is the command's name. */
dt_status dt_generate_arguments_parse(dt_generate_arguments *out, int argc, char **argv,
                                      dt_error *err);

/* score_arguments: parses the arguments of `dtrun-engine score`, from a command line or from a task
 * (recipes/plan/plan.h).
 *
 * Call it once per process, because it uses getopt. DT_ERR_USAGE naming the argument. */

typedef struct dt_score_arguments {
    dt_score_options options;
    const char *input, *target; /* names of the files; target can be NULL */
    bool json;
} dt_score_arguments;

/* Parse the arguments; argv[0] is the command's name. */
dt_status dt_score_arguments_parse(dt_score_arguments *out, int argc, char **argv, dt_error *err);

dt_status dt_engine_train(int argc, char **argv, dt_error *err);
dt_status dt_engine_chat(int argc, char **argv, dt_error *err);
dt_status dt_engine_generate(int argc, char **argv, dt_error *err);
dt_status dt_engine_score(int argc, char **argv, dt_error *err);
dt_status dt_engine_evaluate(int argc, char **argv, dt_error *err);
dt_status dt_engine_export(int argc, char **argv, dt_error *err);

#endif
