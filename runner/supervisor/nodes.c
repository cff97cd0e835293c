/* nodes: what the links of the nodes tell of (connection/node_link.h), and what it means for the
 * run.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/boot.h"
#include "base/log.h"
#include "runner/supervisor/copies.h"
#include "runner/supervisor/policy/ending.h"
#include "runner/supervisor/policy/node_loss.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define PEER_HEARD_SECONDS 5.0

static dt_supervised_node *node_of(void *context, int64_t index)
{
    dt_session *session = context;

    return &session->nodes[index];
}

bool dt_node_has_started(const dt_supervised_node *node)
{
    for (int64_t i = 0; i < node->session->world_size; i++)
        if (node->session->ranks[i].row.node == node->row.node &&
            node->session->ranks[i].row.pid != 0)
            return true;
    return false;
}

static void end_unless_good(dt_session *session, dt_status st, const dt_error *err)
{
    if (st != DT_OK)
        dt_session_trouble(session, st, err);
}

static void show_state(dt_supervised_node *node, const char *state)
{
    dt_error err = DT_ERROR_INIT;

    node->row.state = state;
    node->changed = true;
    end_unless_good(node->session, dt_follow_commit(node->session, &err), &err);
}

/* --- what they ask */

static bool is_over(void *context)
{
    const dt_session *session = context;

    return session->trouble != DT_OK;
}

static int64_t next_event(void *context, int64_t index)
{
    return node_of(context, index)->row.acknowledged;
}

static void look_at_peers(dt_liveness_facts *facts, const dt_supervised_node *node)
{
    const dt_session *session = node->session;
    bool ended = session->node_count > 1;

    facts->peer_step = -1;
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_supervised_node *peer = &session->nodes[i];

        if (peer == node)
            continue;
        if (peer->step_seconds > facts->peer_step)
            facts->peer_step = peer->step_seconds;
        if (dt_node_link_is_attached(peer->link) &&
            facts->now - dt_node_link_heard_seconds(peer->link) < PEER_HEARD_SECONDS)
            facts->peers = DT_PEERS_HEARD;
        ended = ended && dt_node_link_has_ended(peer->link);
    }
    if (ended)
        facts->peers = DT_PEERS_ENDED;
}

static void judge(void *context, int64_t index, dt_liveness_facts *facts)
{
    const dt_supervised_node *node = node_of(context, index);
    const dt_session *session = node->session;

    facts->started = dt_node_has_started(node);
    facts->stopping = session->state == DT_RUN_STOPPING;
    facts->waits = session->restarts > 0;
    facts->lease = dt_ending_lease(session->launcher_lost_seconds, session->grace_seconds);
    look_at_peers(facts, node);
}

static bool may_wait(void *context, int64_t index, dt_status failed)
{
    const dt_session *session = context;

    return dt_node_loss_waits(&(dt_preparation_facts){
        .failed = failed,
        .preparing = session->state == DT_RUN_PREPARING,
        .restarts = session->restarts,
        .nodes = session->node_count,
        .nodes_min = session->nodes_min,
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
                         node->row.node, node->here, &session->arena, &problem);
    if (st == DT_OK) {
        dt_node_link_set_place(node->link, &place);
        node->row.name = place.node; /* a Slurm node has its name once its job runs */
    } else if (st == DT_ERR_CORRUPT || st == DT_ERR_UNSUPPORTED) {
        dt_node_link_lose_place(node->link);
        dt_log_warn("%s: where things lie there is found out anew: %s", node->row.name,
                    problem.message);
    } else if (st != DT_ERR_NOT_FOUND) {
        return DT_FAIL(err, st, "%s", problem.message);
    }
    return restored ? dt_follow_own_event(session,
                                          json_pack("{s:s, s:s, s:I}", "event", "restored", "file",
                                                    DT_NODE_LAYOUT_FILE, "node",
                                                    (json_int_t)node->row.node),
                                          err)
                    : DT_OK;
}

/* --- what they tell */

static void on_preparing(void *context, int64_t index, const char *text)
{
    dt_supervised_node *node = node_of(context, index);
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    node->row.state = dt_arena_strdup(&session->arena, text); /* until it is ready */
    if (node->row.state == NULL)
        node->row.state = "connecting";
    node->changed = true;
    DT_TRY(dt_follow_own_event(session,
                               json_pack("{s:s, s:I, s:s, s:o}", "event", "preparing", "node",
                                         (json_int_t)node->row.node, "host", node->row.name,
                                         "message", dt_json_text(text)),
                               &err));
    DT_TRY(dt_follow_commit(session, &err));
out:
    end_unless_good(session, st, &err);
}

/* Where its machine was booted again nothing of the ranks can be left, and nothing needs to be
 * proved: its journal says how each ended, or is gone with an idle agent (actions.c says it). */
static void note_boot(dt_supervised_node *node, const char *boot_id)
{
    node->rebooted = dt_node_has_started(node) && dt_boot_differs(node->row.boot_id, boot_id);
    if (node->rebooted)
        dt_log_warn("%s: it was rebooted", node->row.name);
    else if (boot_id[0] != '\0') /* that of the ranks stays */
        node->row.boot_id = dt_arena_strdup(&node->session->arena, boot_id);
}

static void on_attached(void *context, int64_t index, const char *boot_id)
{
    dt_supervised_node *node = node_of(context, index);

    node->beat_ms = 0;
    note_boot(node, boot_id);
    show_state(node, dt_node_link_is_idle(node->link) ? "ready" : "running");
    dt_state_take(node->session, DT_EVENT_ATTACHED, node);
}

static void on_event(void *context, int64_t index, dt_message *message)
{
    dt_supervised_node *node = node_of(context, index);
    dt_error err = DT_ERROR_INIT;
    dt_status st = dt_gap_follow(node, message, &err);

    if (st == DT_OK)
        st = dt_follow_event(node, message, &err);
    end_unless_good(node->session, st, &err);
}

static bool on_damaged(void *context, int64_t index, const char *text, size_t length,
                       const char *why)
{
    return dt_gap_skip(node_of(context, index), text, length, why);
}

static void on_alive(void *context, int64_t index, const dt_message *message)
{
    dt_hang_hear(node_of(context, index), message);
}

static void on_rendezvous(void *context, const dt_message *message)
{
    dt_rendezvous_offer(context, message);
}

static void on_refused(void *context, int64_t index, const char *why)
{
    dt_supervised_node *node = node_of(context, index);
    char reason[500];

    if (node->session->state != DT_RUN_STARTING || node->released || dt_node_has_started(node))
        return;
    snprintf(reason, sizeof(reason), "the agent on %.100s does not start its ranks: %.300s",
             node->row.name, why);
    dt_node_link_give_up(node->link, reason);
}

/* What was heard goes into the store. */
static void on_batch(void *context)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (session->trouble != DT_OK)
        return;
    st = dt_follow_commit(session, &err);
    end_unless_good(session, st, &err);
    if (st == DT_OK)
        dt_state_consider(session);
}

static void on_unreachable(void *context, int64_t index, const char *text)
{
    show_state(node_of(context, index), text);
}

/* Nothing of it is left there; what it had not told is lost. The attempt failed, and may be followed
 * by another, unless a stop was asked for. */
static void on_ended(void *context, int64_t index, const char *why)
{
    dt_supervised_node *node = node_of(context, index);
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (!session->verdict.stop_asked && !dt_verdict_has_failed(&session->verdict))
        dt_state_take(session, DT_EVENT_LOST, node); /* the others end too */
    DT_TRY(dt_follow_own_event(session,
                               json_pack("{s:s, s:I, s:s, s:o}", "event", "ended", "node",
                                         (json_int_t)node->row.node, "host", node->row.name,
                                         "message", dt_json_text(why)),
                               &err));
    node->row.state = "released";
    node->released = node->changed = true; /* the commit lets it go */
    DT_TRY(dt_follow_commit(session, &err));
    dt_state_consider(session);
out:
    end_unless_good(session, st, &err);
}

static void on_lost(void *context, int64_t index)
{
    dt_supervised_node *node = node_of(context, index);

    show_state(node, "lost");
    dt_state_take(node->session, DT_EVENT_LOST, node);
    dt_state_consider(node->session);
}

static void on_settled(void *context)
{
    dt_state_consider(context);
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
                               .name = node->row.name,
                               .attempt = session->attempt,
                               .index = i,
                               .node_count = session->node_count,
                               .world_size = session->world_size,
                               .here = node->here,
                               .checkpoints = session->checkpoints,
                               .plan = session->plan};

        node->link = dt_node_link_open(&setup, &calls, session);
        DT_TRY(recall_place(session, i, err));
    }
out:
    return st;
}

int64_t dt_nodes_count_lost(const dt_session *session)
{
    int64_t lost = 0;

    for (int64_t i = 0; i < session->node_count; i++)
        lost += dt_node_is_lost(&session->nodes[i]) ? 1 : 0;
    return lost;
}

void dt_nodes_tell_lost(dt_session *session)
{
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_supervised_node *node = &session->nodes[i];
        dt_node_loss_facts facts = {.started = dt_node_has_started(node),
                                    .preempted = dt_node_link_is_preempted(node->link),
                                    .rebooted = node->rebooted};
        char text[320];

        if (!dt_node_is_lost(node) || !dt_node_loss_leaves_ranks(&facts))
            continue;
        snprintf(text, sizeof(text), "node %.250s cannot be asked about its ranks", node->row.name);
        dt_verdict_unreached(&session->verdict, text);
    }
}
