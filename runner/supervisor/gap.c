/* gap: events of a journal that are not to be had any more.
 *
 * Lines may be damaged on the node, or the history may be an older copy than what the agent still
 * keeps (it gives back what was acknowledged). Then the numbers jump: what is missing is said, as
 * an event, and the journal is followed from where it goes on. A jump that the agent made itself
 * when it was restarted loses nothing: its first line says `after` which number it comes.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

/* from..to of the node are lost; `why` says how. */
static dt_status note(dt_supervised_node *node, int64_t from, int64_t to, const char *why,
                      dt_error *err)
{
    char text[400];

    if (from == to)
        snprintf(text, sizeof(text), "event %lld of %s is lost: %.250s", (long long)from,
                 node->row.name, why);
    else
        snprintf(text, sizeof(text), "events %lld to %lld of %s are lost: %.250s", (long long)from,
                 (long long)to, node->row.name, why);
    dt_log_warn("%s", text);
    node->session->gaps = true;
    return dt_follow_own_event(node->session,
                               json_pack("{s:s, s:I, s:s, s:I, s:I, s:o}", "event", "gap", "node",
                                         (json_int_t)node->row.node, "host", node->row.name, "from",
                                         (json_int_t)from, "to", (json_int_t)to, "message",
                                         dt_json_text(text)),
                               err);
}

dt_status dt_gap_follow(dt_supervised_node *node, const dt_message *message, dt_error *err)
{
    int64_t last = message->after >= 0 ? message->after : message->sequence - 1;
    dt_status st = DT_OK;

    if (message->sequence <= node->row.acknowledged)
        return DT_OK;
    if (last >= node->row.acknowledged)
        DT_TRY(note(node, node->row.acknowledged, last,
                    "its journal was damaged, or the history is older than what is kept there",
                    err));
    node->row.acknowledged = message->sequence;
    node->changed = true;
out:
    return st;
}

bool dt_gap_skip(dt_supervised_node *node, const char *text, size_t length, const char *why)
{
    dt_session *session = node->session;
    int64_t sequence = -1, after = -1;
    dt_error err = DT_ERROR_INIT;
    json_t *json = NULL;
    dt_status st = DT_OK;
    bool known = dt_json_parse(&json, text, length, "line", NULL) == DT_OK &&
                 dt_json_get_int(&sequence, json, "sequence", "line", NULL) == DT_OK &&
                 dt_json_get_int_or(&after, json, "after", -1, "line", NULL) == DT_OK;

    json_decref(json);
    if (!known || sequence < node->row.acknowledged)
        return known; /* one that was seen before */
    DT_TRY(dt_gap_follow(node, &(dt_message){.sequence = sequence, .after = after}, &err));
    DT_TRY(note(node, sequence, sequence, why, &err));
    node->row.acknowledged = sequence + 1;
    node->changed = true;
out:
    if (st != DT_OK)
        dt_session_trouble(session, st, &err);
    return true;
}

/* A rank that started, and whose end nobody told; -1: none. */
static int64_t find_unknown(const dt_session *session)
{
    for (int64_t i = 0; i < session->world_size; i++)
        if (session->ranks[i].row.pid != 0 && !session->ranks[i].exited)
            return i;
    return -1;
}

dt_status dt_gap_settle(dt_session *session, dt_error *err)
{
    const dt_verdict *verdict = &session->verdict;
    int64_t rank = find_unknown(session);
    dt_status st = DT_OK;
    char text[400];

    if (dt_verdict_has_failed(verdict) || verdict->finished || verdict->stop_asked ||
        verdict->launcher_lost || verdict->time_limit || (rank < 0 && !session->gaps))
        return DT_OK;
    if (rank >= 0)
        snprintf(text, sizeof(text),
                 "what became of rank %lld on %s is not known: its journal lost"
                 " it",
                 (long long)rank, session->nodes[session->ranks[rank].row.node].row.name);
    else
        snprintf(text, sizeof(text),
                 "whether the ranks had done all is not known: events of a"
                 " journal were lost");
    DT_TRY(dt_follow_own_event(
        session, json_pack("{s:s, s:o}", "event", "lost", "message", dt_json_text(text)), err));
    dt_verdict_system_failed(&session->verdict, text, dt_clock_wall_ms()); /* once */
    DT_TRY(dt_follow_commit(session, err));
out:
    return st;
}
