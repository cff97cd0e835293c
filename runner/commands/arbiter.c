/* dtrun arbiter: runs the process that starts the runs of the queue. Started by launch --queue, and by any command that
 * finds runs waiting without one. Not for people.
 */
#include "runner/cli/command.h"
#include "runner/queue/queue.h"

static dt_status arbiter(dt_call *call, dt_error *err)
{
    return dt_arbiter_main(err);
}

static const dt_option options[] = {{0}};

const dt_command dt_command_arbiter = {
    .name = "arbiter",
    .summary = "start the runs of the queue (started by other commands)",
    .operands = "",
    .operands_min = 0,
    .operands_max = 0,
    .options = options,
    .hidden = true,
    .run = arbiter,
};
