/* run_state: names the states of runs, and computes elapsed times. */
#include "store/store_int.h"

#include <math.h>
#include <string.h>

#include "base/boot.h"

static const char *const state_names[DT_RUN_STATE_COUNT] = {
    [DT_RUN_QUEUED] = "queued",   [DT_RUN_PREPARING] = "preparing", [DT_RUN_STARTING] = "starting",
    [DT_RUN_RUNNING] = "running", [DT_RUN_STOPPING] = "stopping",   [DT_RUN_FINISHED] = "finished",
    [DT_RUN_FAILED] = "failed",   [DT_RUN_STOPPED] = "stopped",
};

const char *dt_run_state_name(dt_run_state state)
{
    DT_ASSERT((int)state >= 0 && state < DT_RUN_STATE_COUNT);
    return state_names[state];
}

bool dt_run_state_parse(dt_run_state *out, const char *name)
{
    for (int i = 0; i < DT_RUN_STATE_COUNT; i++) {
        if (strcmp(state_names[i], name) == 0) {
            *out = (dt_run_state)i;
            return true;
        }
    }
    return false;
}

bool dt_run_state_is_terminal(dt_run_state state)
{
    return state == DT_RUN_FINISHED || state == DT_RUN_FAILED || state == DT_RUN_STOPPED;
}

double dt_run_elapsed_seconds(const dt_run *run, int64_t now_ms)
{
    int64_t elapsed_ms = run->ended_attempts_ms, open_ms = now_ms - run->started_ms;
    char boot[DT_BOOT_ID_SIZE];

    if (run->started_ms != 0 && !dt_run_state_is_terminal(run->state)) {
        if (run->boot_id[0] != '\0' && strcmp(dt_boot_id(boot), run->boot_id) == 0)
            open_ms = dt_boot_ms() - run->started_boot_ms;
        elapsed_ms += open_ms > 0 ? open_ms : 0;
    } else if (run->started_ms == 0 && elapsed_ms == 0) {
        return NAN;
    }
    return (double)elapsed_ms / 1000;
}
