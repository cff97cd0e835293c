/* recall: restores the session's memory of an attempt from the store.
 *
 * The rows say how far each journal is stored. Replaying the stored events in order gives back what the
 * previous supervisor knew.
 */
#include <string.h>

#include "runner/supervisor/session/session_int.h"

#define WATCH_STEPS 1000 /* number of last steps whose times give the usual step time */

/* Reads the rank rows of an attempt. A new attempt has none: then only the log positions of the
 * last attempt are used (logs_only). */
static dt_status read_ranks(dt_session *session, int64_t attempt, bool logs_only, dt_error *err)
{
    dt_rank *rows;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_rank_list(session->store, &rows, &count, session->run, attempt, &session->arena,
                              err));
    for (int64_t i = 0; i < count; i++) {
        int64_t rank = rows[i].rank;

        if (rank >= session->world_size)
            continue;
        if (!logs_only)
            dt_collector_set_rank(session->collector, &rows[i]);
        if (!logs_only || dt_session_rank(session, rank)->log.bytes == 0)
            dt_collector_set_log(session->collector, rank, rows[i].log_bytes);
    }
out:
    return st;
}

dt_status dt_recall_rows(dt_session *session, dt_error *err)
{
    dt_node *rows;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_node_list(session->store, &rows, &count, session->run, session->attempt,
                              &session->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node < session->node_count) {
            dt_collector_set_node(session->collector, rows[i].node, &rows[i]);
            session->nodes[rows[i].node].name = rows[i].name;
        }
    session->rows_lost =
        count == 0 && (session->state == DT_RUN_STARTING || session->state == DT_RUN_RUNNING);
    if (count > 0)
        return read_ranks(session, session->attempt, false, err);
    for (int64_t attempt = session->attempt; attempt >= 1; attempt--)
        DT_TRY(read_ranks(session, attempt, true, err));
    DT_TRY(dt_collector_add_rows(session->collector, err));
out:
    return st;
}

static void remember_own(dt_session *session, const dt_store_event *event)
{
    json_t *json = NULL;
    const char *text;
    int64_t node;

    if (dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) != DT_OK)
        return;
    if (strcmp(event->kind, "stop") == 0) {
        session->verdict.stop_asked = true;
        session->verdict.stop_now =
            session->verdict.stop_now || json_is_true(json_object_get(json, "now"));
    }
    if (strcmp(event->kind, "lost") == 0 &&
        dt_json_get_string(&text, json, "message", "event", NULL) == DT_OK)
        dt_verdict_system_failed(&session->verdict, text, event->time_ms);
    if (strcmp(event->kind, "unreached") == 0 &&
        dt_json_get_string(&text, json, "message", "event", NULL) == DT_OK)
        dt_verdict_unreached(&session->verdict, text);
    if (strcmp(event->kind, "hung") == 0 &&
        dt_json_get_string(&text, json, "message", "event", NULL) == DT_OK)
        dt_verdict_hung(&session->verdict, text, event->time_ms);
    if (strcmp(event->kind, "gap") == 0)
        dt_collector_remember_gap(session->collector);
    if (strcmp(event->kind, "ended") == 0 &&
        dt_json_get_int(&node, json, "node", "event", NULL) == DT_OK && node >= 0 &&
        node < session->node_count) {
        dt_collector_release_node(session->collector, node);
        dt_node_link_remember_release(session->nodes[node].link);
    }
    if (strcmp(event->kind, "restart") == 0) {
        (void)dt_json_get_int_or(&session->restarts, json, "count", 0, "event", NULL);
        session->before_stepped = json_is_true(json_object_get(json, "stepped"));
    }
    json_decref(json);
}

/* Fetches a checkpoint that the previous supervisor had not fetched. */
static dt_status fetch_again(dt_session *session, const dt_message *message, dt_error *err)
{
    dt_store_checkpoint *rows;
    bool known = false;
    int64_t count;
    dt_status st = DT_OK;

    if (dt_message_is_program_checkpoint(message)) {
        if (dt_parts_bring_saved(session))
            dt_parts_fetch(session, message); /* nothing is brought twice */
        return DT_OK;
    }
    if (!dt_parts_fetch_checkpoints(session))
        return DT_OK;
    DT_TRY(dt_store_checkpoint_list(session->store, &rows, &count, session->run, &session->arena,
                                    err));
    for (int64_t i = 0; i < count; i++)
        known = known || (rows[i].attempt == session->attempt &&
                          rows[i].step >= dt_message_int(message, "step", 0));
    if (!known)
        dt_parts_fetch(session, message);
out:
    return st;
}

static dt_status read_events(dt_session *session, dt_error *err)
{
    dt_store_event *events;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_event_list(session->store, &events, &count, session->run, 0, 0, &session->arena,
                               err));
    for (int64_t i = 0; i < count; i++) {
        dt_message message;

        if (events[i].attempt != session->attempt)
            continue;
        if (events[i].node < 0) {
            remember_own(session, &events[i]);
        } else if (events[i].node < session->node_count &&
                   dt_message_parse(&message, events[i].json, strlen(events[i].json),
                                    session->world_size, NULL) == DT_OK) {
            message.time_ms = events[i].time_ms; /* by this machine's clock */
            dt_collector_remember(session->collector, events[i].node, &message);
            st =
                message.kind == DT_MESSAGE_CHECKPOINT ? fetch_again(session, &message, err) : DT_OK;
            dt_message_release(&message);
            DT_TRY(st);
        }
    }
out:
    return st;
}

/* Restores the step times of this attempt. */
static dt_status read_steps(dt_session *session, dt_error *err)
{
    int64_t count, step = dt_collector_progress(session->collector)->step;
    dt_metric *points;
    dt_status st;

    DT_TRY(dt_store_metric_list(session->store, &points, &count, session->run, "loss",
                                step - WATCH_STEPS > session->start_step ? step - WATCH_STEPS
                                                                         : session->start_step,
                                0, &session->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (points[i].attempt == session->attempt)
            (void)dt_silence_step(&session->silence, points[i].step, points[i].time_ms);
    dt_silence_recall(&session->silence);
out:
    return st;
}

dt_status dt_recall_events(dt_session *session, dt_error *err)
{
    dt_status st = read_steps(session, err);

    return st == DT_OK ? read_events(session, err) : st;
}
