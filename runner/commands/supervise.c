/* dtrun supervise: the process that follows one run; started by launch, resume and whoever finds
 * an active run alone. Not for people. */
#include "runner/cli/command.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

static dt_status supervise(dt_call *call, dt_error *err)
{
    return dt_supervisor_main(call->args->operands[0], err);
}

const dt_command dt_command_supervise = {
    .name = "supervise",
    .summary = "follow one run and write its history (started by other commands)",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .hidden = true,
    .run = supervise,
};
