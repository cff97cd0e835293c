#include "runner/view/follow/upkeep.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"

dt_status dt_upkeep_look(const char **news, dt_upkeep *upkeep, const dt_run *run, dt_error *err)
{
    double now = dt_clock_monotonic_seconds();
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf text;
    dt_status st;

    *news = NULL;
    if (upkeep->looked_seconds == 0) /* the caller has just checked the run */
        upkeep->looked_seconds = now;
    if (dt_run_state_is_terminal(run->state) ||
        now < upkeep->looked_seconds + dt_times()->stop_check_seconds)
        return DT_OK;
    upkeep->looked_seconds = now;
    st = dt_supervisor_ensure(run, &problem);
    if (st != DT_OK && dt_supervisor_is_broken(run->id))
        return DT_FAIL(err, st, "%s", problem.message);
    dt_strbuf_init(&text);
    if (st != DT_OK)
        dt_strbuf_add_fmt(&text, "the run has no supervisor right now: %s", problem.message);
    else
        (void)dt_supervisor_trouble(&text, run->id);
    upkeep->troubles = text.length > 0 ? upkeep->troubles + 1 : 0;
    if (text.length == 0)
        upkeep->message[0] = '\0';
    else if (upkeep->troubles > 1 && /* a busy machine delays one answer */
             strncmp(text.data, upkeep->message, sizeof(upkeep->message) - 1) != 0) {
        snprintf(upkeep->message, sizeof(upkeep->message), "%s", text.data);
        *news = upkeep->message;
    }
    dt_strbuf_release(&text);
    return DT_OK;
}
