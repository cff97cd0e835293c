/* nodes: applies the callbacks of the node links (connection/node_link.h) to the run, and collects the
 * values that its ranks exchange. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/supervisor/policy/restart.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"
#include "store/activity.h"

/* rendezvous: collects the values that ranks offer, and sends all of them once every rank has offered one.
 *
 * Kept in memory only: an agent repeats its offers at every attach, so a restarted supervisor gets all of
 * them again.
 */

static json_t *values_of(dt_session *session, const char *name)
{
    json_t *values = json_object_get(session->offers, name);

    if (values == NULL) {
        values = json_array();
        for (int64_t i = 0; i < session->world_size; i++)
            json_array_append_new(values, json_null());
        json_object_set_new(session->offers, name, values);
    }
    return values;
}

static void rendezvous_offer(dt_session *session, const dt_message *message)
{
    const char *name = dt_message_string(message, "name");
    json_t *values = values_of(session, name), *value;
    size_t rank;

    json_array_set_new(values, (size_t)message->rank,
                       json_string(dt_message_string(message, "value")));
    json_array_foreach(values, rank, value)
        if (json_is_null(value))
            return;
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_send(
            session->nodes[i].link,
            json_pack("{s:s, s:s, s:O}", "command", "rendezvous", "name", name, "values", values));
}

/* --- callbacks of the links */

static dt_supervised_node *node_of(void *context, int64_t index)
{
    dt_session *session = context;

    return &session->nodes[index];
}

static void end_unless_good(dt_session *session, dt_status st, const dt_error *err)
{
    if (st != DT_OK)
        dt_session_fail(session, st, err);
}

static void show_state(dt_supervised_node *node, const char *state)
{
    dt_error err = DT_ERROR_INIT;

    dt_collector_show_node(node->session->collector, node->index, state);
    end_unless_good(node->session, dt_collector_commit(node->session->collector, &err), &err);
}

/* --- queries of a link */

static bool is_over(void *context)
{
    const dt_session *session = context;

    return session->failure != DT_OK;
}

static int64_t next_event(void *context, int64_t index)
{
    return dt_session_row(node_of(context, index))->row.acknowledged;
}

static void look_at_peers(dt_liveness_facts *facts, const dt_supervised_node *node)
{
    const dt_session *session = node->session;
    bool ended = session->node_count > 1;

    facts->peer_step = -1;
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_supervised_node *peer = &session->nodes[i];
        bool released = dt_session_row(peer)->released; /* stored or not */

        if (peer == node)
            continue;
        if (dt_session_row(peer)->step_seconds > facts->peer_step)
            facts->peer_step = dt_session_row(peer)->step_seconds;
        if (!released && dt_node_link_is_attached(peer->link) &&
            facts->now - dt_node_link_heard_seconds(peer->link) < dt_times()->peer_heard_seconds)
            facts->peers = DT_PEERS_HEARD;
        ended = ended && (released || dt_node_link_has_ended(peer->link));
    }
    if (session->task_plan != NULL) { /* the ranks of a task do not wait for each other */
        facts->peer_step = -1;
        if (ended)
            facts->peers = DT_PEERS_HEARD;
        return;
    }
    if (session->watch.silence.recalled && facts->peer_step < session->begun_seconds)
        /* the previous supervisor may have received a step until then */
        facts->peer_step = session->begun_seconds;
    if (ended)
        facts->peers = DT_PEERS_ENDED;
}

static void judge(void *context, int64_t index, dt_liveness_facts *facts)
{
    const dt_supervised_node *node = node_of(context, index);
    const dt_session *session = node->session;

    facts->started = dt_node_may_have_started(node);
    facts->stopping = session->state == DT_RUN_STOPPING;
    facts->waits = session->restart.count > 0;
    facts->lease =
        dt_ending_lease(session->settings.launcher_lost_seconds, session->settings.grace_seconds);
    facts->step_gap = dt_silence_usual(&session->watch.silence);
    look_at_peers(facts, node);
}

static bool may_wait(void *context, int64_t index, dt_status failed)
{
    const dt_session *session = context;

    return dt_node_loss_waits(&(dt_preparation_facts){
        .failed = failed,
        .preparing = session->state == DT_RUN_PREPARING,
        .restarts = session->restart.count,
        .in_job = dt_node_is_lent(&session->nodes[index]),
        .nodes = session->node_count,
        .nodes_min = session->settings.nodes_min,
        .waited_seconds = dt_session_now(session) - session->begun_seconds,
    });
}

static dt_status recall_place(void *context, int64_t index, dt_error *err)
{
    dt_supervised_node *node = node_of(context, index);
    dt_session *session = node->session;
    dt_error problem = DT_ERROR_INIT;
    bool restored = false;
    dt_node_layout place;
    dt_status st;

    st = dt_copies_place(&place, &restored, session->store, session->run, session->attempt,
                         node->index, node->here, &session->arena, &problem);
    if (st == DT_OK) {
        dt_node_link_set_place(node->link, &place);
        node->name = place.node; /* the name of a Slurm node is known once its job runs */
        dt_collector_name_node(session->collector, index, place.node);
    } else if (st == DT_ERR_CORRUPT || st == DT_ERR_UNSUPPORTED) {
        dt_node_link_lose_place(node->link);
        dt_log_warn("%s: looking up the paths on this node again: %s", node->name, problem.message);
    } else if (st != DT_ERR_NOT_FOUND) {
        return DT_FAIL(err, st, "%s", problem.message);
    }
    return restored
               ? dt_collector_note(session->collector,
                                   json_pack("{s:s, s:s, s:I}", "event", "restored", "file",
                                             DT_NODE_LAYOUT_FILE, "node", (json_int_t)node->index),
                                   err)
               : DT_OK;
}

/* --- events of a link */

static void on_preparing(void *context, int64_t index, const char *text)
{
    dt_supervised_node *node = node_of(context, index);
    dt_session *session = node->session;
    const char *state = dt_arena_strdup(&session->arena, text); /* shown until the node is ready */
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (strcmp(text, "connecting") == 0 && dt_node_is_away(&dt_session_row(node)->row))
        return; /* a retry: the node is shown as away until it answers */
    dt_collector_show_node(session->collector, index, state);
    DT_TRY(dt_collector_note(session->collector,
                             json_pack("{s:s, s:I, s:s, s:o}", "event", "preparing", "node",
                                       (json_int_t)node->index, "host", node->name, "message",
                                       dt_json_text(text)),
                             &err));
    DT_TRY(dt_collector_commit(session->collector, &err));
out:
    end_unless_good(session, st, &err);
}

/* Detects a reboot since the ranks were started. After a reboot no rank can be left: the journal
 * says how each ended, or it is gone and the agent is idle (state.c reports that). */
static void note_boot(dt_supervised_node *node, const char *boot_id)
{
    node->rebooted =
        dt_node_has_started(node) && dt_boot_differs(dt_session_row(node)->row.boot_id, boot_id);
    if (node->rebooted)
        dt_log_warn("%s: the node was rebooted", node->name);
    else if (boot_id[0] != '\0') /* keep the boot id of the ranks */
        dt_collector_boot_node(node->session->collector, node->index,
                               dt_arena_strdup(&node->session->arena, boot_id));
}

static void on_attached(void *context, int64_t index, const char *boot_id)
{
    dt_supervised_node *node = node_of(context, index);

    node->beat_ms = 0;
    node->start_sent = false;
    note_boot(node, boot_id);
    show_state(node, dt_node_link_is_idle(node->link) ? "ready" : "running");
    dt_state_dispatch(node->session, DT_EVENT_ATTACHED, node);
}

static void on_event(void *context, int64_t index, dt_message *message)
{
    dt_supervised_node *node = node_of(context, index);
    dt_error err = DT_ERROR_INIT;

    end_unless_good(node->session,
                    dt_collector_take(node->session->collector, index, message, &err), &err);
}

static bool on_damaged(void *context, int64_t index, const char *text, size_t length,
                       const char *why)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    bool known;

    end_unless_good(session,
                    dt_collector_skip(&known, session->collector, index, text, length, why, &err),
                    &err);
    return known;
}

static void on_alive(void *context, int64_t index, const dt_message *message)
{
    dt_watch_alive(node_of(context, index), message);
}

static void on_rendezvous(void *context, const dt_message *message)
{
    rendezvous_offer(context, message);
}

static void on_refused(void *context, int64_t index, const char *why)
{
    dt_supervised_node *node = node_of(context, index);
    char reason[500];

    if (node->session->state != DT_RUN_STARTING || dt_session_row(node)->released ||
        dt_node_has_started(node))
        return;
    snprintf(reason, sizeof(reason), "the agent on %.100s cannot start its ranks: %.300s",
             node->name, why);
    dt_node_link_give_up(node->link, reason);
}

/* The ranks keep training: this version neither ends the run nor records anything of it. */
static void on_other_build(void *context, int64_t index, const char *why)
{
    dt_error err = DT_ERROR_INIT;

    DT_FAIL(&err, DT_ERR_UNSUPPORTED, "%s", why);
    dt_session_fail(context, DT_ERR_UNSUPPORTED, &err);
}

/* Commits the events that were read to the store. */
static void on_batch(void *context)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (session->failure != DT_OK)
        return;
    st = dt_collector_commit(session->collector, &err);
    if (st == DT_OK)
        st = dt_session_fault_check(session, &err);
    end_unless_good(session, st, &err);
    if (st == DT_OK)
        dt_state_update(session);
}

static void on_unreachable(void *context, int64_t index, const char *text)
{
    show_state(node_of(context, index), text);
}

/* The node's ranks were ended by force, and events that were not read are lost. The attempt
 * fails and may restart, unless a stop was requested. */
static void on_ended(void *context, int64_t index, const char *why)
{
    dt_supervised_node *node = node_of(context, index);
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (!session->verdict.stop_asked && !dt_verdict_has_failed(&session->verdict))
        dt_state_dispatch(session, DT_EVENT_LOST, node); /* ends the ranks on the other nodes */
    DT_TRY(dt_collector_note(session->collector,
                             json_pack("{s:s, s:I, s:s, s:o}", "event", "ended", "node",
                                       (json_int_t)node->index, "host", node->name, "message",
                                       dt_json_text(why)),
                             &err));
    dt_collector_show_node(session->collector, index, "released");
    dt_collector_release_node(session->collector, index); /* the commit releases the node */
    DT_TRY(dt_collector_commit(session->collector, &err));
    dt_state_update(session);
out:
    end_unless_good(session, st, &err);
}

static void on_lost(void *context, int64_t index)
{
    dt_supervised_node *node = node_of(context, index);

    show_state(node, "lost");
    dt_state_dispatch(node->session, DT_EVENT_LOST, node);
    dt_state_update(node->session);
}

static void on_settled(void *context)
{
    dt_state_update(context);
}

/* --- all of them */

dt_status dt_nodes_open(dt_session *session, dt_error *err)
{
    static const dt_node_calls calls = {
        .is_over = is_over,
        .next_event = next_event,
        .judge = judge,
        .may_wait = may_wait,
        .prepared = recall_place,
        .preparing = on_preparing,
        .attached = on_attached,
        .event = on_event,
        .damaged = on_damaged,
        .alive = on_alive,
        .rendezvous = on_rendezvous,
        .refused = on_refused,
        .other_build = on_other_build,
        .batch = on_batch,
        .unreachable = on_unreachable,
        .ended = on_ended,
        .lost = on_lost,
        .settled = on_settled,
    };
    dt_status st = DT_OK;

    for (int64_t i = 0; i < session->node_count; i++) {
        dt_supervised_node *node = &session->nodes[i];
        dt_node_setup setup = {.loop = &session->loop,
                               .clock = &session->clock,
                               .run = session->run,
                               .name = node->name,
                               .attempt = session->attempt,
                               .index = i,
                               .node_count = session->node_count,
                               .world_size = session->world_size,
                               .here = node->here,
                               .checkpoints = session->settings.checkpoints,
                               .plan = session->plan};

        node->link = dt_node_link_open(&setup, &calls, session);
        DT_TRY(recall_place(session, i, err));
    }
out:
    return st;
}
