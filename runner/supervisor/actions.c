/* actions: what the supervisor does on the way from state to state (the table is in state.c). */
#define _GNU_SOURCE
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

/* The grace of ranks that are ended because another rank failed: they have nothing to save. */
#define FAILED_GRACE_SECONDS 10.0

static dt_status enter(dt_session *session, dt_run_state state, dt_error *err)
{
    dt_status st = dt_store_run_set_state(session->store, session->run, state, -1, "",
                                          dt_clock_wall_ms(), err);

    if (st == DT_OK) {
        session->state = state;
        dt_log_info("%s", dt_run_state_name(state));
    }
    return st;
}

dt_status dt_action_connect(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_connect(&session->nodes[i]);
    dt_state_consider(session); /* all may be over already */
    return DT_OK;
}

/* The verdict is the system's: in the store too, for a supervisor that comes after this one. */
static dt_status note_lost(dt_session *session, const char *reason, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_follow_own_event(session, json_pack("{s:s, s:s}", "event", "lost", "message", reason),
                               err));
    DT_TRY(dt_follow_commit(session, err));
    dt_log_error("%s", reason);
    dt_verdict_system_failed(&session->verdict, reason, dt_clock_wall_ms());
out:
    return st;
}

/* Nothing was started: there is nothing to wait for. */
static dt_status fail_before_start(dt_session *session, const char *reason, dt_error *err)
{
    dt_status st;

    DT_TRY(note_lost(session, reason, err));
    for (int64_t i = 0; i < session->node_count; i++)
        session->nodes[i].given_up = true;
    DT_TRY(dt_action_conclude(session, NULL, err));
out:
    return st;
}

dt_status dt_action_prepare(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *engine;
    dt_status st;

    DT_TRY(enter(session, DT_RUN_PREPARING, err));
    for (int64_t i = 0; i < session->node_count; i++) {
        dt_supervised_node *node = &session->nodes[i];

        if (dt_transport_find(&node->transport, node->row.name, &problem) != DT_OK ||
            node->transport->engine(&engine, &node->target, &session->arena, &problem) != DT_OK)
            return fail_before_start(session, problem.message, err);
    }
    for (int64_t i = 0; i < session->world_size; i++)
        if (dt_rank_log_open(session, &session->ranks[i], &problem) != DT_OK)
            return fail_before_start(session, problem.message, err);
    DT_TRY(dt_action_connect(session, NULL, err));
out:
    return st;
}

dt_status dt_action_start_node(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *engine;

    if (!node->idle)
        return DT_OK;
    if (node->transport->engine(&engine, &node->target, &session->arena, &problem) != DT_OK) {
        dt_status st = note_lost(session, problem.message, err);

        return st == DT_OK ? dt_action_end_ranks(session, NULL, err) : st;
    }
    dt_node_send(node, json_pack("{s:s, s:s, s:O, s:I, s:{}}", "command", "start", "engine", engine,
                                 "plan", session->plan, "node", (json_int_t)node->row.node,
                                 "environment"));
    return DT_OK;
}

dt_status dt_action_start_if_all(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < session->node_count; i++)
        if (!session->nodes[i].attached)
            return DT_OK;
    DT_TRY(enter(session, DT_RUN_STARTING, err));
    for (int64_t i = 0; i < session->node_count && session->state == DT_RUN_STARTING; i++)
        DT_TRY(dt_action_start_node(session, &session->nodes[i], err));
out:
    return st;
}

dt_status dt_action_run(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    return enter(session, DT_RUN_RUNNING, err);
}

/* A node that ran ranks and has no memory of them: its journal is gone. */
dt_status dt_action_expect_ranks(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    dt_strbuf reason;
    dt_status st;

    if (!node->idle)
        return DT_OK;
    dt_strbuf_init(&reason);
    dt_strbuf_add_fmt(&reason, "the agent on %s has lost its journal", node->row.name);
    st = note_lost(session, reason.data, err);
    dt_strbuf_release(&reason);
    return st == DT_OK ? dt_action_end_ranks(session, NULL, err) : st;
}

dt_status dt_action_end_node(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    double grace = FAILED_GRACE_SECONDS;

    if (session->verdict.stop_asked && !dt_verdict_has_failed(&session->verdict))
        grace = session->grace_seconds;
    if (session->stop_now)
        grace = 0;
    if (!node->released && !node->given_up)
        dt_node_send(node, json_pack("{s:s, s:f}", "command", "stop", "grace_seconds", grace));
    return DT_OK;
}

/* node: one that is lost and given up, which dt_node_give_up has noted; or NULL. */
dt_status dt_action_end_ranks(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    dt_status st = DT_OK;

    if (node != NULL)
        DT_TRY(note_lost(session, node->problem, err));
    if (session->state != DT_RUN_STOPPING)
        DT_TRY(enter(session, DT_RUN_STOPPING, err));
    for (int64_t i = 0; i < session->node_count; i++)
        DT_TRY(dt_action_end_node(session, &session->nodes[i], err));
out:
    return st;
}

dt_status dt_action_conclude(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    const char *reason;
    dt_run_state state;
    dt_status st;
    int code;

    dt_verdict_give(&session->verdict, &state, &code, &reason);
    DT_TRY(dt_store_run_set_state(session->store, session->run, state, code, reason,
                                  dt_clock_wall_ms(), err));
    session->state = state;
    dt_log_info("%s%s%s", dt_run_state_name(state), reason[0] != '\0' ? ": " : "", reason);
    dt_session_leave(session);
out:
    return st;
}
