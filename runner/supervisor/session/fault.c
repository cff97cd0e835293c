/* fault: injects the faults of `dtrun smoke`: cuts the connection to a node for a while, and passes on the
 * faults of the engine.
 *
 * DTRUN_CUT    "1@4:10": node 1 of the plan (from 0), after step 4, for 10 seconds; first attempt only. Nothing
 *              is sent or received during the cut; what was held back is delivered afterwards.
 * DTRUN_FAULT  given to the ranks (engine/train/fault.c), which may run on other nodes
 * Both are documented only with smoke, so that nobody sets them by accident.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "runner/supervisor/session/session_int.h"

struct dt_session_fault {
    dt_session *session;
    int64_t node, step; /* step 0: the cut has begun */
    double seconds;
    uv_timer_t timer; /* ends the cut */
};

void dt_session_fault_open(dt_session *session)
{
    const char *text = getenv("DTRUN_CUT");
    long long node, step;
    double seconds;
    char end;

    if (text == NULL || session->attempt > 1 ||
        sscanf(text, "%lld@%lld:%lf%c", &node, &step, &seconds, &end) != 3 || node < 0 ||
        node >= session->node_count || step < 1 || seconds <= 0 || seconds > 3600)
        return;
    session->fault = dt_calloc(1, sizeof(*session->fault));
    *session->fault =
        (dt_session_fault){.session = session, .node = node, .step = step, .seconds = seconds};
    uv_timer_init(&session->loop, &session->fault->timer);
    session->fault->timer.data = session->fault;
}

static void heal(uv_timer_t *timer)
{
    const dt_session_fault *fault = timer->data;
    const dt_supervised_node *node = &fault->session->nodes[fault->node];

    dt_log_warn("%s: the connection is back", node->name);
    dt_node_link_freeze(node->link, false);
}

dt_status dt_session_fault_check(dt_session *session, dt_error *err)
{
    dt_session_fault *fault = session->fault;
    const dt_supervised_node *node;
    dt_status st = DT_OK;
    char text[200];

    if (fault == NULL || fault->step == 0 ||
        dt_collector_progress(session->collector)->step < fault->step)
        return DT_OK;
    node = &session->nodes[fault->node];
    snprintf(text, sizeof(text),
             "planted by DTRUN_CUT: the connection to %.80s is cut after step %lld, for %g s",
             node->name, (long long)fault->step, fault->seconds);
    dt_log_warn("%s", text);
    fault->step = 0;
    dt_node_link_freeze(node->link, true);
    uv_timer_start(&fault->timer, heal, (uint64_t)(1000 * fault->seconds), 0);
    DT_TRY(dt_session_note(session, "cut", text, err));
    DT_TRY(dt_collector_commit(session->collector, err));
out:
    return st;
}

void dt_session_fault_environment(json_t *environment)
{
    const char *text = getenv("DTRUN_FAULT");

    if (text != NULL)
        json_object_set_new(environment, "DTRUN_FAULT", json_string(text));
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void dt_session_fault_close(dt_session *session)
{
    if (session->fault != NULL)
        uv_close((uv_handle_t *)&session->fault->timer, on_closed);
    session->fault = NULL;
}
