/* cut: cuts the connection to a node for a while, for `dtrun smoke --cut`. Nothing is sent or received
 * during the cut; what was held back is delivered afterwards.
 *
 * DTRUN_CUT  "1@4:10": node 1 of the plan (from 0), after step 4, for 10 seconds; first attempt only.
 *            Documented only with smoke, so that nobody sets it by accident.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "runner/supervisor/session/session_int.h"

void dt_cut_open(dt_session *session)
{
    const char *text = getenv("DTRUN_CUT");
    long long node, step;
    double seconds;
    char end;

    if (text == NULL || session->attempt > 1 ||
        sscanf(text, "%lld@%lld:%lf%c", &node, &step, &seconds, &end) != 3 || node < 0 ||
        node >= session->node_count || step < 1 || seconds <= 0 || seconds > 3600)
        return;
    session->cut = (dt_cut){.node = node, .step = step, .seconds = seconds};
}

static void heal(uv_timer_t *timer)
{
    dt_session *session = timer->data;

    dt_log_warn("%s: the connection is back", session->nodes[session->cut.node].name);
    dt_node_link_freeze(session->nodes[session->cut.node].link, false);
}

dt_status dt_cut_check(dt_session *session, dt_error *err)
{
    dt_cut *cut = &session->cut;
    dt_status st = DT_OK;
    char text[200];

    if (cut->step == 0 || dt_collector_progress(session->collector)->step < cut->step)
        return DT_OK;
    snprintf(text, sizeof(text),
             "planted by DTRUN_CUT: the connection to %.80s is cut after step %lld, for %g s",
             session->nodes[cut->node].name, (long long)cut->step, cut->seconds);
    dt_log_warn("%s", text);
    cut->step = 0;
    dt_node_link_freeze(session->nodes[cut->node].link, true);
    uv_timer_start(&session->cut_timer, heal, (uint64_t)(1000 * cut->seconds), 0);
    DT_TRY(dt_session_note(session, "cut", text, err));
    DT_TRY(dt_collector_commit(session->collector, err));
out:
    return st;
}

void dt_cut_close(dt_session *session)
{
    uv_close((uv_handle_t *)&session->cut_timer, NULL);
}
