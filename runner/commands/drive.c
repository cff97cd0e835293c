/* dtrun drive: runs the driver process of a sweep, which launches its points one after another. Started by
 * launch, and by any command that finds a sweep without a driver. Not for people.
 */
#include "runner/cli/command.h"
#include "runner/sweep/sweep.h"

static dt_status drive(dt_call *call, dt_error *err)
{
    return dt_drive_main(call->args->operands[0], err);
}

static const dt_option options[] = {{0}};

const dt_command dt_command_drive = {
    .name = "drive",
    .summary = "run the points of a sweep (started by other commands)",
    .operands = "GROUP",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .hidden = true,
    .run = drive,
};
