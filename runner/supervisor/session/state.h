/* state: dispatches the events of an attempt to the handlers of its state.
 *
 *                 ┌────────────────────── stop ──────────────────────┐
 *                 │            ┌───────── stop, failed, lost ────────┤
 *                 │            │            ┌─ stop, failed, lost ───┤
 *   queued ──► preparing ──► starting ──► running                    ▼
 *       begin        attached      │ ready    │ released         stopping
 *                    (all)         └──────────┤                      │ released
 *                                             ▼                      ▼
 *                                finished, failed, stopped (as the verdict says)
 *
 * begin      a supervisor follows the run, for the first time or after another supervisor died
 * attached   the agent of a node answered
 * heard      new journal events were read
 * ready      every rank is ready
 * failed     a rank died
 * lost       a node is unavailable, or has no record of the ranks it should run
 * stop       a person requested a stop
 * released   every node confirmed that nothing is left, or was given up
 *
 * An event without a handler in the current state is ignored.
 */
#ifndef DT_SESSION_STATE_H
#define DT_SESSION_STATE_H

#include "runner/supervisor/session/session_int.h"

typedef enum dt_state_event {
    DT_EVENT_BEGIN,
    DT_EVENT_ATTACHED,
    DT_EVENT_HEARD,
    DT_EVENT_READY,
    DT_EVENT_FAILED,
    DT_EVENT_LOST,
    DT_EVENT_STOP,
    DT_EVENT_RELEASED,
    DT_STATE_EVENT_COUNT
} dt_state_event;

/* Runs the handler for the event. node: the node that it is about (attached, lost), else NULL. */
void dt_state_dispatch(dt_session *session, dt_state_event event, dt_supervised_node *node);

/* Dispatches the events that follow from the current facts: heard, ready, stop, failed,
 * released. */
void dt_state_update(dt_session *session);

/* Begins the attempt when the pause before a restart is over. timer->data: the session. */
void dt_state_pause_over(uv_timer_t *timer);

/* Handles a stop request: records it, submits it to the store and starts ending the ranks. */
dt_status dt_state_ask_stop(dt_session *session, bool now, dt_error *err);

/* --- actions.c, conclude.c: the handlers; an error ends the session */
typedef dt_status dt_state_fn(dt_session *session, dt_supervised_node *node, dt_error *err);
dt_state_fn dt_action_prepare, dt_action_connect, dt_action_start_if_all, dt_action_start_idle,
    dt_action_expect_ranks, dt_action_run, dt_action_end_ranks, dt_action_end_node,
    dt_action_conclude;

#endif
