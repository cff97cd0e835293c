/* dry_run: prints what a launch would start, without starting it. */
#ifndef DT_RUNNER_LAUNCH_DRY_RUN_H
#define DT_RUNNER_LAUNCH_DRY_RUN_H

#include "runner/cli/command.h"
#include "runner/launch/fit.h"

/* Prints text, or {"version", "parameters", "tokens_per_step", "memory", "plan", "data", "time",
 * ...}. */
dt_status dt_dry_run_print(const dt_fit *fit, const dt_call *call, dt_error *err);
/* The same for a command: {"version", "task", "command", "workdir", "plan"}. */
dt_status dt_dry_run_print_command(const dt_preflight *flight, const dt_call *call, dt_error *err);
/* The same for a recipe whose task is to generate or to score: {"version", "task", "run", "lines", "parameters",
 * "ranks", "recipe"}. */
dt_status dt_dry_run_print_task(const dt_preflight *flight, const dt_call *call, dt_error *err);

#endif
