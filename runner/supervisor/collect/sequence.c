/* sequence: checks the numbers of a journal's events, so that each is taken once, and records lost events.
 */
#include <stdio.h>

#include "base/log.h"
#include "runner/supervisor/collect/collector_int.h"

/* Records that events from..to of the node are lost, and why. */
static dt_status note(dt_collector *collector, int64_t index, int64_t from, int64_t to,
                      const char *why, dt_error *err)
{
    const char *host = collector->nodes[index].row.name;
    char text[400];

    if (from == to)
        snprintf(text, sizeof(text), "event %lld of %s is lost: %.250s", (long long)from, host,
                 why);
    else
        snprintf(text, sizeof(text), "events %lld to %lld of %s are lost: %.250s", (long long)from,
                 (long long)to, host, why);
    dt_log_warn("%s", text);
    collector->gaps = true;
    return dt_collector_note(collector,
                             json_pack("{s:s, s:I, s:s, s:I, s:I, s:o}", "event", "gap", "node",
                                       (json_int_t)index, "host", host, "from", (json_int_t)from,
                                       "to", (json_int_t)to, "message", dt_json_text(text)),
                             err);
}

/* Records the events that are missing before `sequence`, and continues there. */
static dt_status jump_to(dt_collector *collector, int64_t index, int64_t sequence, int64_t after,
                         dt_error *err)
{
    dt_collected_node *node = &collector->nodes[index];
    int64_t last = after >= 0 ? after : sequence - 1;
    dt_status st = DT_OK;

    if (sequence <= node->row.acknowledged)
        return DT_OK;
    if (last >= node->row.acknowledged)
        DT_TRY(note(collector, index, node->row.acknowledged, last,
                    "its journal was damaged, or no longer holds what the history lacks", err));
    node->row.acknowledged = sequence;
    node->changed = true;
out:
    return st;
}

dt_status dt_collector_take(dt_collector *collector, int64_t index, const dt_message *message,
                            dt_error *err)
{
    dt_status st = DT_OK;

    if (message->sequence < collector->nodes[index].row.acknowledged)
        return DT_OK; /* already taken */
    DT_TRY(jump_to(collector, index, message->sequence, message->after, err));
    DT_TRY(dt_collector_ingest(collector, index, message, err));
out:
    return st;
}

dt_status dt_collector_skip(bool *known, dt_collector *collector, int64_t index, const char *text,
                            size_t length, const char *why, dt_error *err)
{
    dt_collected_node *node = &collector->nodes[index];
    int64_t sequence = -1, after = -1;
    json_t *json = NULL;
    dt_status st = DT_OK;

    *known = dt_json_parse(&json, text, length, "line", NULL) == DT_OK &&
             dt_json_get_int(&sequence, json, "sequence", "line", NULL) == DT_OK &&
             dt_json_get_int_or(&after, json, "after", -1, "line", NULL) == DT_OK;
    json_decref(json);
    if (!*known || sequence < node->row.acknowledged)
        return DT_OK; /* already taken */
    DT_TRY(jump_to(collector, index, sequence, after, err));
    DT_TRY(note(collector, index, sequence, sequence, why, err));
    node->row.acknowledged = sequence + 1;
    node->changed = true;
out:
    return st;
}
