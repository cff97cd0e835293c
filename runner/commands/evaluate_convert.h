/* evaluate_convert: the part of `dtrun evaluate` that converts files of benchmarks (--convert). */
#ifndef DT_RUNNER_COMMANDS_EVALUATE_CONVERT_H
#define DT_RUNNER_COMMANDS_EVALUATE_CONVERT_H

#include "runner/cli/command.h"

dt_status dt_evaluate_convert(dt_call *call, dt_error *err);

#endif
