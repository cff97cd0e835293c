/* state: the [state][event] table of an attempt (session_int.h), and its handlers except the end
 * (outcome.c). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/policy/restart.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"
#include "store/activity.h"

/* --- handlers */

static dt_status enter(dt_session *session, dt_run_state state, dt_error *err)
{
    const dt_row row = {.kind = DT_ROW_STATE, .state = {state, dt_clock_wall_ms()}};
    dt_status st;

    session->record.run.state = state;
    if (session->record.run.started_ms == 0 && state != DT_RUN_QUEUED)
        session->record.run.started_ms = dt_clock_wall_ms();
    DT_TRY(dt_collector_put(session->collector, &row, err));
    DT_TRY(dt_session_keep(session, err));
    DT_TRY(dt_collector_commit(session->collector, err));
    session->state = state;
    session->has_run = session->has_run || state == DT_RUN_RUNNING;
    dt_log_info("%s", dt_run_state_name(state));
out:
    return st;
}

dt_status dt_action_connect(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    for (int64_t i = 0; i < session->node_count; i++) {
        if (session->state == DT_RUN_STOPPING)
            dt_action_end_node(session, &session->nodes[i], err);
        dt_node_link_begin(session->nodes[i].link);
    }
    return DT_OK;
}

/* Records a system failure in the verdict, and in the store, so that a later supervisor gives
 * the same verdict. */
static dt_status note_lost(dt_session *session, const char *reason, dt_error *err)
{
    dt_status st = dt_session_note(session, "lost", reason, err);

    if (st != DT_OK)
        return st;
    dt_log_error("%s", reason);
    dt_verdict_system_failed(&session->verdict, reason, dt_clock_wall_ms());
    return DT_OK;
}

/* Returns true if a restart of a command has to wait: then a timer begins again. A stop ends the wait. */
static bool has_to_pause(dt_session *session)
{
    double pause = dt_restart_pause(session->restart.count, dt_times()->restart_first_seconds,
                                    dt_times()->restart_most_seconds);
    int64_t pause_ms = (int64_t)dt_times_ms(pause);
    int64_t left_ms = session->record.created_ms + pause_ms - dt_clock_wall_ms();

    if (!session->settings.is_command || session->verdict.stop_asked || left_ms <= 0 ||
        left_ms > pause_ms) /* the clock was set back */
        return false;
    dt_log_info("restarting in %.1f s", (double)left_ms / 1e3);
    uv_timer_start(&session->restart.pause_timer, session->restart.on_pause_over, (uint64_t)left_ms,
                   0);
    return true;
}

dt_status dt_action_prepare(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    uv_timer_stop(&session->restart.pause_timer);
    if (has_to_pause(session))
        return DT_OK;
    DT_TRY(enter(session, DT_RUN_PREPARING, err));
    if (dt_collector_open_logs(session->collector, &problem) != DT_OK) {
        DT_TRY(note_lost(session, problem.message, err));
        return dt_action_end_ranks(session, NULL, err);
    }
    DT_TRY(dt_action_connect(session, NULL, err));
out:
    return st;
}

static bool all_shared(const dt_session *session)
{
    bool shared = true;

    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_node_layout *place = dt_node_link_place(session->nodes[i].link);

        shared = shared && place != NULL && place->checkpoints_shared;
    }
    return shared;
}

/* *out: the interface address of each node, [node_count], allocated in the session's arena. */
static dt_status agree_on_addresses(const char ***out, dt_session *session, dt_error *err)
{
    size_t count = (size_t)session->node_count;
    dt_node_addresses *node_addresses =
        dt_arena_alloc_array(&session->arena, count, sizeof(node_addresses[0]));

    *out = dt_arena_alloc_array(&session->arena, count, sizeof((*out)[0]));
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_node_layout *place = dt_node_link_place(session->nodes[i].link);

        node_addresses[i] = (dt_node_addresses){.node = session->nodes[i].name};
        if (place != NULL) {
            node_addresses[i].preferred = place->address;
            node_addresses[i].other = place->other_address;
        }
    }
    return dt_node_addresses_agree(*out, node_addresses, session->node_count, err);
}

/* Adds the variables that `env` of a command references, as DTRUN_SECRET_NAME
 * (runner/agent/program/invocation.c). A variable that is not set is left out: the program's rank reports
 * it. */
static void add_variables(json_t *object, const char *names)
{
    dt_strbuf name;

    dt_strbuf_init(&name);
    for (size_t length; *names != '\0'; names += length + (names[length] == ',')) {
        const char *value;

        length = strcspn(names, ",");
        dt_strbuf_reset(&name);
        dt_strbuf_add_fmt(&name, "DTRUN_SECRET_%.*s", (int)length, names);
        value = getenv(name.data + strlen("DTRUN_SECRET_"));
        if (value != NULL)
            json_object_set_new(object, name.data, json_string(value));
    }
    dt_strbuf_release(&name);
}

static json_t *environment_of(const dt_session *session, const char *const *addresses,
                              int64_t index)
{
    json_t *object = json_pack("{s:s, s:s, s:s}", "DTRUN_INTERFACE_ADDRESS", addresses[index],
                               "DTRUN_RUN_SECRET", session->secret, "MASTER_ADDR",
                               addresses[0] != NULL ? addresses[0] : "");

    dt_session_fault_environment(object);
    add_variables(object, session->settings.variables);
    return object;
}

/* True if every event that the node's journal held when its agent answered has been read, so it
 * is known whether ranks were started there. */
static bool is_heard(const dt_supervised_node *node)
{
    const dt_node_link *link = node->link;

    if (dt_node_link_has_ended(link))
        return true;
    return dt_node_link_is_attached(link) &&
           (dt_node_link_is_idle(link) ||
            dt_session_row(node)->row.acknowledged >= dt_node_link_hello_sequence(link));
}

/* True if a rank has made a step or a node has released its ranks: then the ranks of all nodes
 * were started and have connected. */
static bool have_met(const dt_session *session)
{
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_collected_node *row = dt_session_row(&session->nodes[i]);

        if (row->step > 0 || row->released)
            return true;
    }
    return false;
}

static void start_node(dt_session *session, dt_supervised_node *node, const char *const *addresses)
{
    const dt_node_layout *place = dt_node_link_place(node->link);

    node->start_sent = true;
    dt_node_link_send(node->link,
                      json_pack("{s:s, s:s, s:s, s:o, s:I, s:o, s:f}", "command", "start", "engine",
                                place->engine, "owner", dt_run_claim_owner(&session->arena), "plan",
                                dt_node_plan(session->plan, place, all_shared(session)), "node",
                                (json_int_t)node->index, "environment",
                                environment_of(session, addresses, node->index),
                                "launcher_lost_seconds", session->settings.launcher_lost_seconds));
}

/* Starts the ranks on nodes whose agent is idle. An idle agent may have started ranks and lost
 * its journal; the journals of the other nodes then show that the ranks had connected. So
 * nothing is started until the journals of all nodes have been read. */
dt_status dt_action_start_idle(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char **addresses;
    dt_status st = DT_OK;
    bool met;

    for (int64_t i = 0; i < session->node_count; i++)
        if (!is_heard(&session->nodes[i]))
            return DT_OK;
    met = have_met(session);
    if (agree_on_addresses(&addresses, session, &problem) != DT_OK) {
        DT_TRY(note_lost(session, problem.message, err));
        session->verdict.untried = true; /* the next attempt would find the same addresses */
        return dt_action_end_ranks(session, NULL, err);
    }
    for (int64_t i = 0; i < session->node_count && session->state == DT_RUN_STARTING; i++) {
        dt_supervised_node *node = &session->nodes[i];

        if (!dt_node_link_is_attached(node->link) || !dt_node_link_is_idle(node->link) ||
            node->start_sent)
            continue;
        if (met || node->rebooted || dt_node_has_started(node))
            DT_TRY(dt_action_expect_ranks(session, node, err));
        else
            start_node(session, node, addresses);
    }
out:
    return st;
}

dt_status dt_action_start_if_all(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_status st = DT_OK;

    /* A node may have ended already: a power loss can remove the start of its ranks from the
     * history. */
    for (int64_t i = 0; i < session->node_count; i++)
        if (!dt_node_link_is_attached(session->nodes[i].link) &&
            !dt_node_link_has_ended(session->nodes[i].link))
            return DT_OK;
    DT_TRY(enter(session, DT_RUN_STARTING, err));
    DT_TRY(dt_action_start_idle(session, NULL, err));
out:
    return st;
}

/* Handles an idle agent on a node that should be running ranks: its journal is gone, so the
 * attempt has failed. */
dt_status dt_action_expect_ranks(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    dt_strbuf reason;
    dt_status st;

    if (!dt_node_link_is_idle(node->link))
        return DT_OK;
    dt_strbuf_init(&reason);
    if (node->rebooted)
        dt_strbuf_add_fmt(&reason, "node %s was rebooted", node->name);
    else
        dt_strbuf_add_fmt(&reason, "the agent on %s has lost its journal", node->name);
    st = note_lost(session, reason.data, err);
    dt_strbuf_release(&reason);
    return st == DT_OK ? dt_action_end_ranks(session, NULL, err) : st;
}

/* All ranks are ready, so every attached node must be running some of them; an idle agent is a
 * failure. */
dt_status dt_action_run(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(enter(session, DT_RUN_RUNNING, err));
    for (int64_t i = 0; i < session->node_count && session->state == DT_RUN_RUNNING; i++) {
        dt_supervised_node *node = &session->nodes[i];

        if (dt_node_link_is_attached(node->link) && !node->start_sent)
            DT_TRY(dt_action_expect_ranks(session, node, err));
    }
out:
    return st;
}

dt_status dt_action_end_node(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    dt_node_link_stop(
        node->link,
        dt_ending_grace(&(dt_ending_facts){.stop_asked = session->verdict.stop_asked,
                                           .stop_now = session->verdict.stop_now,
                                           .failed = dt_verdict_has_failed(&session->verdict),
                                           .hung = session->verdict.hung,
                                           .grace_seconds = session->settings.grace_seconds}),
        session->verdict.stop_asked);
    return DT_OK;
}

/* Records that a stop could not be confirmed on this node. The run has not failed, but the
 * reason names the node. */
static dt_status note_unreached(dt_session *session, const dt_supervised_node *node, dt_error *err)
{
    const char *problem = dt_node_link_problem(node->link);
    dt_status st = dt_session_note(session, "unreached", problem, err);

    if (st != DT_OK)
        return st;
    dt_log_error("%s", problem);
    dt_verdict_unreached(&session->verdict, problem);
    return DT_OK;
}

/* Records the failure that ends the ranks, and whether a restart is expected. */
static dt_status note_failure(dt_session *session, dt_error *err)
{
    if (session->verdict.stop_asked)
        return DT_OK;
    return dt_session_note(session,
                           dt_restart_is_due(session) ? DT_EVENT_RESTARTING : DT_EVENT_FAILING,
                           session->verdict.reason.data, err);
}

/* node: the node that was given up, or NULL. */
dt_status dt_action_end_ranks(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    bool begins = session->state != DT_RUN_STOPPING;
    dt_status st = DT_OK;

    if (node != NULL && session->verdict.stop_asked)
        DT_TRY(note_unreached(session, node, err));
    else if (node != NULL)
        DT_TRY(note_lost(session, dt_node_link_problem(node->link), err));
    if (node != NULL && dt_node_link_is_unrecoverable(node->link)) {
        session->verdict.untried = true;
        session->verdict.unrecoverable = dt_node_is_lent(node);
    }
    if (begins)
        DT_TRY(enter(session, DT_RUN_STOPPING, err));
    for (int64_t i = 0; i < session->node_count; i++)
        DT_TRY(dt_action_end_node(session, &session->nodes[i], err));
    if (begins) /* last, because it reads the history and must not delay ending the ranks */
        DT_TRY(note_failure(session, err));
out:
    return st;
}

/* --- the table */

/* Cells without an action (dt_reaction, node_link.h); never called. */
static dt_status ignored(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    return DT_OK;
}

static dt_status impossible(dt_session *session, dt_supervised_node *node, dt_error *err)
{
    return DT_OK;
}

static dt_state_fn *const table[DT_RUN_STATE_COUNT][DT_STATE_EVENT_COUNT] = {
    [DT_RUN_QUEUED] =
        {
            [DT_EVENT_BEGIN] = dt_action_prepare,
            [DT_EVENT_STOP] = dt_action_prepare, /* ends the pause before a restart */
            [DT_EVENT_HEARD] = ignored,          /* nothing was started yet */
            [DT_EVENT_ATTACHED] = impossible,
            [DT_EVENT_READY] = impossible,
            [DT_EVENT_FAILED] = impossible,
            [DT_EVENT_LOST] = impossible,
            [DT_EVENT_RELEASED] = impossible,
        },
    [DT_RUN_PREPARING] =
        {
            [DT_EVENT_BEGIN] = dt_action_connect,
            [DT_EVENT_ATTACHED] = dt_action_start_if_all,
            [DT_EVENT_LOST] = dt_action_end_ranks,
            [DT_EVENT_STOP] = dt_action_end_ranks,
            [DT_EVENT_HEARD] = ignored,  /* the start waits for all nodes */
            [DT_EVENT_READY] = ignored,  /* a supervisor that was killed had started them */
            [DT_EVENT_FAILED] = ignored, /* the start comes first, as of all nodes */
            [DT_EVENT_RELEASED] = impossible,
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
            [DT_EVENT_HEARD] = ignored,
            [DT_EVENT_READY] = ignored,
        },
    [DT_RUN_STOPPING] =
        {
            [DT_EVENT_BEGIN] = dt_action_connect,
            [DT_EVENT_ATTACHED] = dt_action_end_node,
            [DT_EVENT_LOST] = dt_action_end_ranks,
            [DT_EVENT_STOP] = dt_action_end_ranks,
            [DT_EVENT_RELEASED] = dt_action_conclude,
            [DT_EVENT_HEARD] = ignored,
            [DT_EVENT_READY] = ignored,
            [DT_EVENT_FAILED] = impossible,
        },
    [DT_RUN_FINISHED] =
        {
            [DT_EVENT_ATTACHED] = ignored,
            [DT_EVENT_HEARD] = ignored,
            [DT_EVENT_READY] = ignored,
            [DT_EVENT_FAILED] = ignored,
            [DT_EVENT_LOST] = ignored,
            [DT_EVENT_STOP] = ignored,
            [DT_EVENT_RELEASED] = ignored,
            [DT_EVENT_BEGIN] = impossible,
        },
    [DT_RUN_FAILED] =
        {
            [DT_EVENT_ATTACHED] = ignored,
            [DT_EVENT_HEARD] = ignored,
            [DT_EVENT_READY] = ignored,
            [DT_EVENT_FAILED] = ignored,
            [DT_EVENT_LOST] = ignored,
            [DT_EVENT_STOP] = ignored,
            [DT_EVENT_RELEASED] = ignored,
            [DT_EVENT_BEGIN] = impossible,
        },
    [DT_RUN_STOPPED] =
        {
            [DT_EVENT_ATTACHED] = ignored,
            [DT_EVENT_HEARD] = ignored,
            [DT_EVENT_READY] = ignored,
            [DT_EVENT_FAILED] = ignored,
            [DT_EVENT_LOST] = ignored,
            [DT_EVENT_STOP] = ignored,
            [DT_EVENT_RELEASED] = ignored,
            [DT_EVENT_BEGIN] = impossible,
        },
    [DT_RUN_WAITING] = /* dt_session_load refuses it */
    {
        [DT_EVENT_BEGIN] = impossible,
        [DT_EVENT_ATTACHED] = impossible,
        [DT_EVENT_HEARD] = impossible,
        [DT_EVENT_READY] = impossible,
        [DT_EVENT_FAILED] = impossible,
        [DT_EVENT_LOST] = impossible,
        [DT_EVENT_STOP] = impossible,
        [DT_EVENT_RELEASED] = impossible,
    },
};

static const char *const event_names[DT_STATE_EVENT_COUNT] = {
    [DT_EVENT_BEGIN] = "begin", [DT_EVENT_ATTACHED] = "attached", [DT_EVENT_HEARD] = "heard",
    [DT_EVENT_READY] = "ready", [DT_EVENT_FAILED] = "failed",     [DT_EVENT_LOST] = "lost",
    [DT_EVENT_STOP] = "stop",   [DT_EVENT_RELEASED] = "released",
};

dt_reaction dt_state_reaction(dt_run_state state, dt_state_event event)
{
    dt_state_fn *handler = table[state][event];

    return handler == NULL         ? DT_REACTION_MISSING
           : handler == ignored    ? DT_REACTION_IGNORED
           : handler == impossible ? DT_REACTION_IMPOSSIBLE
                                   : DT_REACTION_HANDLED;
}

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
    dt_reaction reaction = dt_state_reaction(session->state, event);
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (session->failure != DT_OK || reaction == DT_REACTION_IGNORED)
        return;
    if (reaction != DT_REACTION_HANDLED) {
        dt_log_warn("event '%s' " DT_IMPOSSIBLE " in state '%s' and is ignored", event_names[event],
                    dt_run_state_name(session->state));
        return;
    }
    st = table[session->state][event](session, node, &err);
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
