/* follow: what an agent's journal says becomes rows.
 *
 * Of one read of the channel all events go into one transaction, together with the number of the
 * next event that is wanted: after a crash the journal is followed from there, and nothing is lost
 * or doubled.
 */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

static dt_status begin(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (!session->in_transaction) {
        st = dt_store_begin(session->store, err);
        session->in_transaction = st == DT_OK;
    }
    return st;
}

void dt_follow_rollback(dt_session *session)
{
    if (session->in_transaction)
        dt_store_rollback(session->store);
    session->in_transaction = false;
}

/* --- memory */

static void rank_state(dt_supervised_rank *rank, const char *state)
{
    rank->row.state = state;
    rank->changed = true;
}

static void remember_started(dt_supervised_node *node, const dt_message *message)
{
    dt_supervised_rank *rank = &node->session->ranks[message->rank];

    rank->row.pid = dt_message_int(message, "pid", 0);
    rank_state(rank, "started");
    node->row.state = "running";
}

/* How many steps the run has, as the engine counts them: fp16 may come to fewer by the end. */
static void remember_steps(dt_session *session, const dt_message *message)
{
    int64_t steps = dt_message_int(message, "steps", 0);

    if (message->rank == 0 && steps > 0)
        session->steps_total = steps;
}

static void remember_exited(dt_supervised_node *node, const dt_message *message)
{
    dt_supervised_rank *rank = &node->session->ranks[message->rank];

    rank->exited = true;
    rank->row.exit_code = (int)dt_message_int(message, "code", -1);
    rank->row.exit_signal = (int)dt_message_int(message, "signal", -1);
    rank_state(rank, rank->row.exit_code == 0 ? "exited" : "failed");
}

void dt_follow_remember(dt_supervised_node *node, const dt_message *message)
{
    switch (message->kind) {
    case DT_MESSAGE_STARTED:
        remember_started(node, message);
        break;
    case DT_MESSAGE_READY:
        node->session->ranks[message->rank].ready = true;
        rank_state(&node->session->ranks[message->rank], "ready");
        remember_steps(node->session, message);
        break;
    case DT_MESSAGE_FINISHED:
        remember_steps(node->session, message);
        break;
    case DT_MESSAGE_EXITED:
        remember_exited(node, message);
        break;
    case DT_MESSAGE_DIAGNOSIS:
        if (json_array_size(node->session->diagnoses) > 0)
            json_array_set(node->session->diagnoses, (size_t)message->rank, message->json);
        break;
    case DT_MESSAGE_RELEASED:
        node->released = true;
        node->row.state = "released";
        break;
    default:
        break;
    }
    dt_verdict_see(&node->session->verdict, message, node->row.name);
}

/* --- rows */

/* NaN says nothing about a value that is there. */
static void newer(double *value, double seen)
{
    if (!isnan(seen))
        *value = seen;
}

static void progress(dt_session *session, int64_t step, double loss, double valid_loss,
                     double tokens_per_second)
{
    session->progressed = true;
    session->step = step > session->step ? step : session->step;
    newer(&session->loss, loss);
    newer(&session->valid_loss, valid_loss);
    newer(&session->tokens_per_second, tokens_per_second);
}

static double value_of(const json_t *values, const char *name)
{
    const json_t *value = json_object_get(values, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static dt_status store_metrics(dt_session *session, const dt_message *message, dt_error *err)
{
    json_t *values = json_object_get(message->json, "values"), *value;
    int64_t step = dt_message_int(message, "step", 0);
    const char *name;
    dt_status st = DT_OK;

    json_object_foreach(values, name, value)
    {
        if (name[0] == '\0')
            continue;
        DT_TRY(dt_store_metric_add(session->store, session->run, session->attempt, step, name,
                                   value_of(values, name), message->time_ms, err));
    }
    if (json_object_get(values, "loss") != NULL)
        dt_watch_step(&session->watch, step, message->time_ms, dt_session_now(session));
    progress(session, step, value_of(values, "loss"), value_of(values, "valid_loss"),
             value_of(values, "tokens_per_second"));
out:
    return st;
}

dt_status dt_follow_checkpoint(dt_session *session, const dt_message *message, dt_error *err)
{
    dt_store_checkpoint checkpoint = {
        .attempt = session->attempt,
        .step = dt_message_int(message, "step", 0),
        .bytes = dt_message_int(message, "bytes", 0),
        .time_ms = message->time_ms,
        .digest = dt_message_string(message, "digest"),
        .valid_loss = dt_message_number(message, "valid_loss"),
        .seconds = dt_message_number(message, "seconds"),
    };
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", session->checkpoints,
                      dt_message_string(message, "directory"));
    checkpoint.path = path.data;
    st = dt_store_checkpoint_add(session->store, session->run, &checkpoint, err);
    dt_strbuf_release(&path);
    return st;
}

static dt_status add_event(dt_session *session, int64_t node, const dt_message *message,
                           dt_error *err)
{
    dt_store_event event = {
        .attempt = session->attempt,
        .node = node,
        .sequence = message->sequence,
        .rank = message->rank,
        .time_ms = message->time_ms,
        .kind = message->name,
    };
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, message->json);
    event.json = text.data;
    st = dt_store_event_add(session->store, session->run, &event, err);
    dt_strbuf_release(&text);
    return st;
}

static dt_status store_log(dt_session *session, const dt_message *message, dt_error *err)
{
    const char *text = dt_message_string(message, "text");

    if (message->rank >= 0)
        return dt_rank_log_add(session, &session->ranks[message->rank], message->time_ms, text,
                               err);
    dt_log_warn("agent: %s", text);
    return DT_OK;
}

/* dt_follow_remember keeps them for the policies; this is for who looks at the run. */
static dt_status store_steps(dt_session *session, const dt_message *message, dt_error *err)
{
    int64_t steps = dt_message_int(message, "steps", 0);

    if (message->rank != 0 || steps <= 0 || steps == session->steps_total)
        return DT_OK;
    return dt_store_run_set_steps_total(session->store, session->run, steps, err);
}

static dt_status store_rows(dt_supervised_node *node, const dt_message *message, dt_error *err)
{
    dt_session *session = node->session;
    dt_status st = DT_OK;

    switch (message->kind) {
    case DT_MESSAGE_METRICS:
        return store_metrics(session, message, err);
    case DT_MESSAGE_LOG:
        return store_log(session, message, err);
    case DT_MESSAGE_PACE:
        return dt_pace_hear(session, message, err);
    case DT_MESSAGE_PHASE: /* of no interest afterwards */
        if (message->rank == 0)
            dt_watch_enter(&session->watch, dt_message_string(message, "phase"), message->time_ms,
                           dt_session_now(session));
        return DT_OK;
    case DT_MESSAGE_CHECKPOINT:
        if (dt_gather_is_needed(session))
            dt_gather_add(session, message);
        else
            DT_TRY(dt_follow_checkpoint(session, message, err));
        break;
    case DT_MESSAGE_READY:
        DT_TRY(store_steps(session, message, err));
        break;
    case DT_MESSAGE_FINISHED:
        DT_TRY(store_steps(session, message, err));
        dt_watch_finished(&session->watch, dt_session_now(session));
        if (message->rank == 0)
            progress(session, dt_message_int(message, "step", 0),
                     dt_message_number(message, "loss"), dt_message_number(message, "valid_loss"),
                     NAN);
        break;
    default:
        break;
    }
    DT_TRY(add_event(session, node->row.node, message, err));
out:
    return st;
}

/* A step is made by all: that one node tells of a new one speaks for the others. */
static void note_step(dt_supervised_node *node, const dt_message *message)
{
    int64_t step = dt_message_int(message, "step", 0);

    if ((message->kind != DT_MESSAGE_METRICS && message->kind != DT_MESSAGE_PACE) ||
        step <= node->step)
        return;
    node->step = step;
    node->step_seconds = dt_session_now(node->session);
}

dt_status dt_follow_event(dt_supervised_node *node, dt_message *message, dt_error *err)
{
    dt_status st = DT_OK;

    if (message->sequence < node->row.acknowledged)
        return DT_OK;                                       /* seen before */
    DT_ASSERT(message->sequence == node->row.acknowledged); /* node.c refuses a gap */
    message->time_ms -= node->clock_ms; /* the rows have one clock; the line keeps its own */
    DT_TRY(begin(node->session, err));
    DT_TRY(store_rows(node, message, err));
    dt_follow_remember(node, message);
    note_step(node, message);
    node->row.acknowledged++;
    node->changed = true;
out:
    return st;
}

dt_status dt_follow_own_event(dt_session *session, json_t *event, dt_error *err)
{
    dt_message message = {.name = json_string_value(json_object_get(event, "event")),
                          .json = event,
                          .sequence = -1,
                          .time_ms = dt_clock_wall_ms(),
                          .rank = -1};
    dt_status st;

    DT_TRY(begin(session, err));
    DT_TRY(add_event(session, -1, &message, err));
out:
    json_decref(event);
    return st;
}

dt_status dt_follow_commit(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (!session->in_transaction)
        return DT_OK;
    for (int64_t i = 0; i < session->world_size; i++)
        if (session->ranks[i].changed)
            DT_TRY(dt_store_rank_set(session->store, session->run, session->attempt,
                                     &session->ranks[i].row, err));
    for (int64_t i = 0; i < session->node_count; i++)
        if (session->nodes[i].changed)
            DT_TRY(dt_store_node_set(session->store, session->run, session->attempt,
                                     &session->nodes[i].row, err));
    if (session->progressed)
        DT_TRY(dt_store_run_set_progress(session->store, session->run, session->step, session->loss,
                                         session->valid_loss, session->tokens_per_second,
                                         dt_clock_wall_ms(), err));
    DT_TRY(dt_store_commit(session->store, err));
    session->in_transaction = session->progressed = false;
    for (int64_t i = 0; i < session->world_size; i++)
        session->ranks[i].changed = false;
    for (int64_t i = 0; i < session->node_count; i++) {
        if (session->nodes[i].changed)
            dt_node_send(&session->nodes[i],
                         json_pack("{s:s, s:I}", "command", "ack", "sequence",
                                   (json_int_t)session->nodes[i].row.acknowledged));
        if (session->nodes[i].changed && session->nodes[i].released)
            dt_node_let_go(&session->nodes[i]);
        session->nodes[i].changed = false;
    }
out:
    return st;
}
