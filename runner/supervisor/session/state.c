#include "runner/supervisor/session/state.h"

#include "base/log.h"
#include "runner/times.h"

static dt_state_fn *const table[DT_RUN_STATE_COUNT][DT_STATE_EVENT_COUNT] = {
    [DT_RUN_QUEUED] =
        {
            [DT_EVENT_BEGIN] = dt_action_prepare,
            [DT_EVENT_STOP] = dt_action_prepare, /* ends the pause before a restart */
        },
    [DT_RUN_PREPARING] =
        {
            [DT_EVENT_BEGIN] = dt_action_connect,
            [DT_EVENT_ATTACHED] = dt_action_start_if_all,
            [DT_EVENT_LOST] = dt_action_end_ranks,
            [DT_EVENT_STOP] = dt_action_end_ranks,
        },
    [DT_RUN_STARTING] =
        {
            [DT_EVENT_BEGIN] = dt_action_connect,
            [DT_EVENT_ATTACHED] = dt_action_start_idle,
            [DT_EVENT_HEARD] = dt_action_start_idle,
            [DT_EVENT_READY] = dt_action_run,
            [DT_EVENT_FAILED] = dt_action_end_ranks,
            [DT_EVENT_LOST] = dt_action_end_ranks,
            [DT_EVENT_STOP] = dt_action_end_ranks,
            [DT_EVENT_RELEASED] = dt_action_conclude,
        },
    [DT_RUN_RUNNING] =
        {
            [DT_EVENT_BEGIN] = dt_action_connect,
            [DT_EVENT_ATTACHED] = dt_action_expect_ranks,
            [DT_EVENT_FAILED] = dt_action_end_ranks,
            [DT_EVENT_LOST] = dt_action_end_ranks,
            [DT_EVENT_STOP] = dt_action_end_ranks,
            [DT_EVENT_RELEASED] = dt_action_conclude,
        },
    [DT_RUN_STOPPING] =
        {
            [DT_EVENT_BEGIN] = dt_action_connect,
            [DT_EVENT_ATTACHED] = dt_action_end_node,
            [DT_EVENT_LOST] = dt_action_end_ranks,
            [DT_EVENT_STOP] = dt_action_end_ranks,
            [DT_EVENT_RELEASED] = dt_action_conclude,
        },
};

/* True if all ranks are ready. Their `ready` events may have been lost with a journal; ranks
 * that make steps are ready. */
static bool is_ready(const dt_session *session)
{
    bool ready = true, steps = false;

    for (int64_t i = 0; i < session->world_size; i++)
        ready = ready && dt_session_rank(session, i)->ready;
    for (int64_t i = 0; i < session->node_count; i++)
        steps = steps || dt_session_row(&session->nodes[i])->step > 0;
    return ready || steps;
}

void dt_state_update(dt_session *session)
{
    bool released = true;

    for (int64_t i = 0; i < session->node_count; i++)
        released = released && dt_node_link_has_ended(session->nodes[i].link);
    dt_state_dispatch(session, DT_EVENT_HEARD, NULL);
    if (is_ready(session))
        dt_state_dispatch(session, DT_EVENT_READY, NULL);
    if (session->verdict.stop_asked && session->state != DT_RUN_STOPPING)
        dt_state_dispatch(session, DT_EVENT_STOP, NULL); /* requested on a node */
    if (dt_verdict_has_failed(&session->verdict) && session->state != DT_RUN_STOPPING)
        dt_state_dispatch(session, DT_EVENT_FAILED, NULL);
    if (released)
        dt_state_dispatch(session, DT_EVENT_RELEASED, NULL);
}

/* True if handling the event may cause further events. */
static bool has_consequences(dt_state_event event)
{
    return event != DT_EVENT_HEARD && event != DT_EVENT_READY && event != DT_EVENT_RELEASED;
}

static void on_leave_time(uv_timer_t *timer)
{
    dt_session *session = timer->data;

    session->leave = DT_LEAVE_OVER;
    dt_state_dispatch(session, DT_EVENT_RELEASED, NULL);
}

void dt_state_dispatch(dt_session *session, dt_state_event event, dt_supervised_node *node)
{
    dt_state_fn *handler = table[session->state][event];
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (handler == NULL || session->failure != DT_OK)
        return;
    st = handler(session, node, &err);
    if (st != DT_OK)
        dt_session_fail(session, st, &err);
    else if (has_consequences(event))
        dt_state_update(session);
    if (session->leave == DT_LEAVE_WAITS && !uv_is_active((uv_handle_t *)&session->leave_timer))
        uv_timer_start(&session->leave_timer, on_leave_time,
                       dt_times_ms(dt_times()->agents_leave_seconds), 0);
}

void dt_state_pause_over(uv_timer_t *timer)
{
    dt_state_dispatch(timer->data, DT_EVENT_BEGIN, NULL);
}

dt_status dt_state_ask_stop(dt_session *session, bool now, dt_error *err)
{
    dt_status st = DT_OK;

    if (dt_run_state_is_terminal(session->state))
        return DT_OK; /* too late: nothing is running */
    session->record.stop_asked = true;
    DT_TRY(dt_collector_note(session->collector,
                             json_pack("{s:s, s:b}", "event", "stop", "now", now), err));
    DT_TRY(dt_session_keep(session, err));
    DT_TRY(dt_collector_commit(session->collector, err));
    dt_log_info("stop requested%s", now ? ", at once" : "");
    session->verdict.stop_asked = true;
    session->verdict.stop_now = session->verdict.stop_now || now;
    dt_state_dispatch(session, DT_EVENT_STOP, NULL);
    dt_state_update(session); /* it may have ended on its own */
out:
    return st;
}
