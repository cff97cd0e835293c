/* follow: what an agent's journal says becomes rows.
 *
 * Of one read of the channel all events are one batch (store_writer.h), together with the number of
 * the next event that is wanted: after a crash the journal is followed from there, and nothing is
 * lost or doubled. The agent is told once the batch is stored. The states move at once: who comes
 * after a crash reads the same events again.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/changes.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

/* Of changes that wait for a store that is held: half a minute of much output. */
#define WAITING_MOST_BYTES ((size_t)64 << 20)
#define WAITING_LOW_BYTES  ((size_t)16 << 20)
#define LOOP_PATIENCE_MS   1000

static dt_status begin(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (session->writer == NULL && !session->in_transaction) {
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
        dt_node_link_release(node->link);
        break;
    default:
        break;
    }
    dt_hang_follow(node->session, message);
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
        DT_TRY(
            dt_change_metric(session, step, name, value_of(values, name), message->time_ms, err));
    }
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
    st = dt_change_checkpoint(session, &checkpoint, err);
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
    st = dt_change_event(session, &event, err);
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

static dt_status store_straggler(dt_session *session, const dt_message *message, dt_error *err)
{
    int64_t step = dt_message_int(message, "step", 0);
    dt_straggler_finding found;
    dt_status st = DT_OK;

    if (!dt_straggler_hear(&session->straggler, message->rank,
                           dt_message_number(message, "waited_seconds"), &found))
        return DT_OK;
    DT_TRY(dt_change_metric(session, step, DT_METRIC_SLOWEST_RANK, (double)found.rank,
                            message->time_ms, err));
    DT_TRY(dt_change_metric(session, step, DT_METRIC_SLOWEST_SECONDS, found.seconds,
                            message->time_ms, err));
out:
    return st;
}

/* dt_follow_remember keeps them for the policies; this is for who looks at the run. */
static dt_status store_steps(dt_session *session, const dt_message *message, dt_error *err)
{
    int64_t steps = dt_message_int(message, "steps", 0);

    if (message->rank != 0 || steps <= 0 || steps == session->steps_total)
        return DT_OK;
    return dt_change_steps_total(session, steps, err);
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
        return store_straggler(session, message, err);
    case DT_MESSAGE_PHASE: /* of no interest afterwards */
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
    DT_ASSERT(message->sequence == node->row.acknowledged); /* gap.c */
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

/* --- what is on the disk is acknowledged */

struct dt_ack {
    dt_ack *next;
    int64_t batch, sequence;
    dt_supervised_node *node;
    bool released;
};

static void promise_ack(dt_supervised_node *node, int64_t batch)
{
    dt_session *session = node->session;
    dt_ack *ack = calloc(1, sizeof(*ack));

    DT_ASSERT(ack != NULL);
    *ack = (dt_ack){.batch = batch,
                    .sequence = node->row.acknowledged,
                    .node = node,
                    .released = node->released};
    *session->acks_last = ack;
    session->acks_last = &ack->next;
}

static void send_ack(const dt_ack *ack)
{
    dt_supervised_node *node = ack->node;

    if (dt_node_link_is_attached(node->link))
        dt_node_link_send(node->link, json_pack("{s:s, s:I}", "command", "ack", "sequence",
                                                (json_int_t)ack->sequence));
    if (ack->released)
        dt_node_link_stored(node->link);
}

static dt_ack *drop_ack(dt_session *session)
{
    dt_ack *ack = session->acks;

    session->acks = ack->next;
    if (session->acks == NULL)
        session->acks_last = &session->acks;
    return ack;
}

static bool is_overtaken(const dt_session *session, const dt_ack *ack, int64_t batch)
{
    for (const dt_ack *later = session->acks; later != NULL && later->batch <= batch;
         later = later->next)
        if (later->node == ack->node)
            return true;
    return false;
}

/* Too much waits: journals are left where they are until there is less. */
static void read_or_pause(dt_session *session)
{
    size_t waiting = dt_store_writer_waiting_bytes(session->writer);
    bool pause = waiting > (session->paused ? WAITING_LOW_BYTES : WAITING_MOST_BYTES);

    if (pause == session->paused)
        return;
    session->paused = pause;
    dt_log_info("%s", pause ? "too much waits to be stored: the journals wait too"
                            : "the journals are read again");
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_pause(session->nodes[i].link, pause);
}

static void on_stored(void *context, int64_t batch)
{
    dt_session *session = context;

    if (session->trouble != DT_OK)
        return;
    read_or_pause(session);
    dt_control_stored(session);
    dt_state_consider(session);
}

/* An agent gives back what it is told of: only what no power loss takes from us. */
static void on_durable(void *context, int64_t batch)
{
    dt_session *session = context;

    if (session->trouble != DT_OK)
        return;
    while (session->acks != NULL && session->acks->batch <= batch) {
        dt_ack *ack = drop_ack(session);

        if (ack->released || !is_overtaken(session, ack, batch))
            send_ack(ack);
        free(ack);
    }
    dt_state_consider(session);
}

/* On the writer's thread. */
static dt_status on_sync(void *context, dt_error *err)
{
    dt_session *session = context;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < session->world_size && st == DT_OK; i++)
        st = dt_rank_log_sync(&session->ranks[i].log, err);
    return st;
}

static void on_failed(void *context, dt_status st, const dt_error *err)
{
    dt_session_trouble(context, st, err);
}

/* On the writer's thread. */
static void on_settled(void *context, bool committed)
{
    dt_session *session = context;

    for (int64_t i = 0; i < session->world_size; i++)
        dt_rank_log_settle(&session->ranks[i].log, committed);
}

dt_status dt_follow_move(const dt_session *session, dt_store *old, dt_error *err)
{
    dt_store_event event = {.attempt = session->attempt,
                            .node = -1,
                            .sequence = -1,
                            .rank = -1,
                            .time_ms = dt_clock_wall_ms(),
                            .kind = "restored",
                            .json = "{\"event\": \"restored\", \"file\": \"store.db\"}"};
    dt_store *store = NULL;
    dt_status st;

    DT_TRY(dt_store_move_run(old, session->run, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_store_event_add(store, session->run, &event, err));
out:
    dt_store_close(store);
    return st;
}

/* On the writer's thread. The next session finds the run in the store that is there now. */
static dt_status on_replaced(void *context, dt_store *old, dt_error *err)
{
    return dt_follow_move(context, old, err);
}

dt_status dt_follow_begin(dt_session *session, dt_error *err)
{
    static const dt_store_writer_calls calls = {.stored = on_stored,
                                                .durable = on_durable,
                                                .sync = on_sync,
                                                .failed = on_failed,
                                                .settled = on_settled,
                                                .replaced = on_replaced};

    session->acks_last = &session->acks;
    dt_store_set_patience(session->store, LOOP_PATIENCE_MS); /* what is left of it on the loop */
    return dt_store_writer_open(&session->writer, NULL, &session->loop, &calls, session, err);
}

void dt_follow_end(dt_session *session)
{
    dt_store_writer_close(session->writer);
    session->writer = NULL;
    while (session->acks != NULL)
        free(drop_ack(session));
}

/* --- the end of a batch */

static dt_status add_rows(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < session->world_size; i++)
        if (session->ranks[i].changed)
            DT_TRY(dt_change_rank(session, &session->ranks[i], err));
    for (int64_t i = 0; i < session->node_count; i++)
        if (session->nodes[i].changed)
            DT_TRY(dt_change_node(session, session->attempt, &session->nodes[i].row, err));
    if (session->progressed)
        DT_TRY(dt_change_progress(session, err));
out:
    return st;
}

dt_status dt_follow_commit(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t batch = 0;

    if (session->writer == NULL && !session->in_transaction)
        return DT_OK;
    DT_TRY(add_rows(session, err));
    if (session->writer == NULL)
        DT_TRY(dt_store_commit(session->store, err));
    else
        batch = dt_store_writer_submit(session->writer);
    session->in_transaction = session->progressed = false;
    for (int64_t i = 0; i < session->world_size; i++)
        session->ranks[i].changed = false;
    for (int64_t i = 0; i < session->node_count; i++) {
        if (session->nodes[i].changed && session->writer != NULL)
            promise_ack(&session->nodes[i], batch);
        if (session->nodes[i].changed && session->writer != NULL && session->nodes[i].released)
            dt_store_writer_hurry(session->writer);
        session->nodes[i].changed = false;
    }
    if (session->writer != NULL)
        read_or_pause(session);
out:
    return st;
}
