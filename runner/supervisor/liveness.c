/* liveness: the silence of a node, as policy/liveness.h judges it, and what is then done.
 *
 * A node that was preempted (a Slurm job that ended) is given up at once (node.c), and so is one
 * whose agent refuses to start its ranks: nothing would ever be heard of them.
 *
 * A cut of ten seconds costs nothing: probes and connections after a silence do not share the one
 * that was cut, which may be stuck for as long again (TCP doubles its pauses); and the agent goes
 * on from the number that is stored here.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "runner/supervisor/policy/ending.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/supervisor/policy/node_loss.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define PEER_HEARD_SECONDS 5.0

/* --- facts */

static bool anything_started(const dt_supervised_node *node)
{
    for (int64_t i = 0; i < node->session->world_size; i++)
        if (node->session->ranks[i].row.node == node->row.node &&
            node->session->ranks[i].row.pid != 0)
            return true;
    return false;
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
        if (peer->attached && facts->now - peer->heard_seconds < PEER_HEARD_SECONDS)
            facts->peers = DT_PEERS_HEARD;
        ended = ended && (peer->released || peer->given_up);
    }
    if (ended)
        facts->peers = DT_PEERS_ENDED;
}

static dt_liveness_facts facts_of(const dt_supervised_node *node)
{
    const dt_session *session = node->session;
    dt_liveness_facts facts = {
        .now = dt_session_now(session),
        .heard = node->heard_seconds,
        .connected = node->connected_seconds,
        .tries = node->tries,
        .connection = node->connection != NULL,
        .here = node->place.here,
        .started = anything_started(node),
        .idle = node->idle,
        .stopping = session->state == DT_RUN_STOPPING,
        .waits = session->restarts > 0,
        .replaced = node->replace,
        .probed = node->probed_seconds,
        .command = node->command_seconds,
        .answered = node->answered_seconds,
        .unknown = node->unknown_seconds,
        .lease = dt_ending_lease(session->launcher_lost_seconds, session->grace_seconds),
    };

    look_at_peers(&facts, node);
    return facts;
}

/* --- what is done */

void dt_node_give_up(dt_supervised_node *node, const char *why)
{
    char reason[sizeof(node->problem)];

    if (node->given_up)
        return;
    memmove(reason, why, strnlen(why, sizeof(reason) - 1) + 1);
    reason[sizeof(reason) - 1] = '\0';
    memcpy(node->problem, reason, sizeof(reason));
    node->given_up = node->lost = true;
    dt_probe_forget(node);
    dt_prepare_cancel(node);
    dt_node_disconnect(node);
    if (node->retry_open)
        uv_timer_stop(&node->retry);
    dt_node_show_state(node, "lost");
    dt_state_take(node->session, DT_EVENT_LOST, node);
    dt_state_consider(node->session);
}

static void give_up(dt_supervised_node *node, bool gone, double silent)
{
    dt_strbuf why;

    dt_strbuf_init(&why);
    if (gone)
        dt_strbuf_add_fmt(&why, "node %s is gone: nothing was heard from it for %.0f s",
                          node->row.name, silent);
    else
        dt_strbuf_add_fmt(&why, "the agent on %s cannot be had", node->row.name);
    if (node->problem[0] != '\0')
        dt_strbuf_add_fmt(&why, "%s%.300s", gone ? " (" : ": ", node->problem);
    if (node->problem[0] != '\0' && gone)
        dt_strbuf_add_char(&why, ')');
    if (anything_started(node))
        dt_strbuf_add_str(&why, "; its ranks may still be there");
    dt_node_give_up(node, why.data);
    dt_strbuf_release(&why);
}

void dt_liveness_refused(dt_supervised_node *node, const char *why)
{
    dt_strbuf reason;

    if (node->session->state != DT_RUN_STARTING || node->released || anything_started(node))
        return;
    dt_strbuf_init(&reason);
    dt_strbuf_add_fmt(&reason, "the agent on %s does not start its ranks: %.300s", node->row.name,
                      why);
    dt_node_give_up(node, reason.data);
    dt_strbuf_release(&reason);
}

/* Until it is heard again (node.c). What its name begins with is known. */
static void show_unreachable(dt_supervised_node *node)
{
    const char *why = node->problem, *rest = strstr(why, "': ");
    char text[sizeof(node->shown)];

    if (node->unreachable && why[0] == '\0')
        return; /* a try is on its way */
    if (strncmp(why, "node '", 6) == 0 && rest != NULL)
        why = rest + 3;
    if (why[0] == '\0')
        snprintf(text, sizeof(text), "not reachable");
    else
        snprintf(text, sizeof(text), "not reachable (%.*s)", (int)sizeof(text) - 20, why);
    if (node->unreachable && strcmp(text, node->shown) == 0)
        return;
    node->unreachable = true;
    memcpy(node->shown, text, sizeof(text));
    dt_log_warn("%s: %s", node->row.name, text);
    dt_node_show_state(node, node->shown);
}

static void replace(dt_supervised_node *node)
{
    dt_log_warn("%s: its agent is replaced", node->row.name);
    node->replace = true;
    node->heard_seconds = dt_session_now(node->session);
    dt_node_disconnect(node);
}

void dt_liveness_tell(dt_session *session)
{
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_supervised_node *node = &session->nodes[i];
        dt_node_loss_facts facts = {.started = anything_started(node),
                                    .preempted = node->preempted,
                                    .rebooted = node->rebooted};
        char text[320];

        if (!node->lost || !dt_node_loss_leaves_ranks(&facts))
            continue;
        snprintf(text, sizeof(text), "node %.250s cannot be asked about its ranks", node->row.name);
        dt_verdict_unreached(&session->verdict, text);
    }
}

void dt_liveness_look(dt_supervised_node *node)
{
    dt_liveness_facts facts;
    dt_liveness_verdict verdict;

    if (node->given_up || node->released)
        return;
    facts = facts_of(node);
    verdict = dt_liveness_judge(&facts);
    if (verdict.probe)
        dt_probe_begin(node);
    if (verdict.unreachable && facts.started)
        show_unreachable(node);
    switch (verdict.act) {
    case DT_LIVENESS_WAIT:
        break;
    case DT_LIVENESS_RECONNECT:
        node->renew = true;
        dt_node_reconnect(node, "nothing was heard from it");
        break;
    case DT_LIVENESS_REPLACE:
        replace(node);
        break;
    case DT_LIVENESS_NO_AGENT:
    case DT_LIVENESS_LOST:
        give_up(node, verdict.act == DT_LIVENESS_LOST, facts.now - facts.heard);
        break;
    }
}
