/* state: the life of an attempt.
 *
 *                 ┌────────────────────── stop ──────────────────────┐
 *                 │            ┌───────── stop, failed, lost ────────┤
 *                 │            │            ┌─ stop, failed, lost ───┤
 *   queued ──► preparing ──► starting ──► running                    ▼
 *       begin        attached      │ ready    │ released         stopping
 *                    (all)         └──────────┤                      │ released
 *                                             ▼                      ▼
 *                                finished, failed, stopped (whatever the verdict says)
 *
 * begin      somebody follows the run, for the first time or again after the one before died
 * attached   the agent of a node answered
 * heard      more of the journals was
 * ready      every rank said so
 * failed     a rank died
 * lost       a node is unavailable, or had no memory of the ranks it was to run
 * stop       a person asked
 * released   every node proved that nothing is left, or was given up
 *
 * An event that a state has no handler for changes nothing.
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

/* node: whose event it is (attached, lost), else NULL. What was followed is submitted before. */
void dt_state_dispatch(dt_session *session, dt_state_event event, dt_supervised_node *node);

/* Takes the events that the memory now implies: ready, failed, released. */
void dt_state_update(dt_session *session);

/* Does what `stop` asks; on its way into the store when it returns. */
dt_status dt_state_ask_stop(dt_session *session, bool now, dt_error *err);

/* --- actions.c, conclude.c: the handlers; what is not DT_OK ends the session */
typedef dt_status dt_state_fn(dt_session *session, dt_supervised_node *node, dt_error *err);
dt_state_fn dt_action_prepare, dt_action_connect, dt_action_start_if_all, dt_action_start_idle,
    dt_action_expect_ranks, dt_action_run, dt_action_end_ranks, dt_action_end_node,
    dt_action_conclude;

#endif
