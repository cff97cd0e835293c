/* commands: declares the commands of dtrun-engine. argv[0] is the command's name; engine.c has the
 * help. */
#ifndef DT_ENGINE_COMMANDS_H
#define DT_ENGINE_COMMANDS_H

#include "base/error.h"

dt_status dt_engine_train(int argc, char **argv, dt_error *err);
dt_status dt_engine_generate(int argc, char **argv, dt_error *err);
dt_status dt_engine_score(int argc, char **argv, dt_error *err);
dt_status dt_engine_export(int argc, char **argv, dt_error *err);

#endif
