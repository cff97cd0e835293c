/* batch: records the supervisor's own events, commits batches, and acknowledges events that are
 * on disk. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/supervisor/collect/collect_int.h"

/* Limits of changes that wait for a locked store: about half a minute of heavy output. */
#define WAITING_MOST_BYTES ((size_t)64 << 20)
#define WAITING_LOW_BYTES  ((size_t)16 << 20)

/* --- rows */

dt_status dt_collector_add_event(dt_collector *collector, int64_t node, const dt_message *message,
                                 dt_error *err)
{
    dt_row row = {.kind = DT_ROW_EVENT,
                  .event = {.attempt = collector->setup.rows.attempt,
                            .node = node,
                            .sequence = message->sequence,
                            .rank = message->rank,
                            .time_ms = message->time_ms,
                            .kind = message->name}};
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, message->json);
    row.event.json = text.data;
    st = dt_run_rows_put(collector->rows, &row, err);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_collector_metric(dt_collector *collector, const dt_message *message, int64_t step,
                              const char *name, double value, dt_error *err)
{
    const dt_row row = {.kind = DT_ROW_METRIC,
                        .metric = {.attempt = collector->setup.rows.attempt,
                                   .step = step,
                                   .time_ms = message->time_ms,
                                   .name = name,
                                   .value = value}};

    return dt_run_rows_put(collector->rows, &row, err);
}

dt_status dt_collector_note(dt_collector *collector, json_t *event, dt_error *err)
{
    dt_message message = {.name = json_string_value(json_object_get(event, "event")),
                          .json = event,
                          .sequence = -1,
                          .time_ms = dt_clock_wall_ms(),
                          .rank = -1};
    dt_status st;

    DT_TRY(dt_run_rows_begin(collector->rows, err));
    DT_TRY(dt_collector_add_event(collector, -1, &message, err));
out:
    json_decref(event);
    return st;
}

/* --- acknowledgements */

struct dt_ack {
    dt_ack *next;
    int64_t batch, sequence, node;
    bool released;
};

static void acknowledge_when_synced(dt_collector *collector, int64_t node, int64_t batch)
{
    const dt_collected_node *from = &collector->nodes[node];
    dt_ack *ack = dt_calloc(1, sizeof(*ack));

    *ack = (dt_ack){.batch = batch,
                    .sequence = from->row.acknowledged,
                    .node = node,
                    .released = from->released};
    *collector->acks_last = ack;
    collector->acks_last = &ack->next;
}

static dt_ack *drop_ack(dt_collector *collector)
{
    dt_ack *ack = collector->acks;

    collector->acks = ack->next;
    if (collector->acks == NULL)
        collector->acks_last = &collector->acks;
    return ack;
}

static bool is_overtaken(const dt_collector *collector, const dt_ack *ack, int64_t batch)
{
    for (const dt_ack *later = collector->acks; later != NULL && later->batch <= batch;
         later = later->next)
        if (later->node == ack->node)
            return true;
    return false;
}

static void send_ack(const dt_collector *collector, const dt_ack *ack)
{
    collector->calls.acknowledge(collector->context, ack->node, ack->sequence);
    if (ack->released)
        collector->calls.released(collector->context, ack->node);
}

static void read_or_pause(dt_collector *collector)
{
    size_t waiting = dt_store_writer_waiting_bytes(dt_run_rows_writer(collector->rows));
    bool pause = waiting > (collector->paused ? WAITING_LOW_BYTES : WAITING_MOST_BYTES);

    if (pause == collector->paused)
        return;
    collector->paused = pause;
    dt_log_info("%s", pause ? "too many events wait to be stored: pausing the journals"
                            : "reading the journals again");
    collector->calls.pause(collector->context, pause);
}

/* --- callbacks of the writer */

static void on_stored(void *context, int64_t batch)
{
    dt_collector *collector = context;

    if (collector->calls.is_over(collector->context))
        return;
    read_or_pause(collector);
    collector->calls.stored(collector->context);
}

/* An agent deletes acknowledged events, so only durable events are acknowledged. */
static void on_durable(void *context, int64_t batch)
{
    dt_collector *collector = context;

    if (collector->calls.is_over(collector->context))
        return;
    while (collector->acks != NULL && collector->acks->batch <= batch) {
        dt_ack *ack = drop_ack(collector);

        if (ack->released || !is_overtaken(collector, ack, batch))
            send_ack(collector, ack);
        free(ack);
    }
    collector->calls.stored(collector->context);
}

static void on_failed(void *context, dt_status st, const dt_error *err)
{
    dt_collector *collector = context;

    collector->calls.failed(collector->context, st, err);
}

/* On the writer's thread. */
static dt_status on_sync(void *context, dt_error *err)
{
    dt_collector *collector = context;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < collector->setup.world_size && st == DT_OK; i++)
        st = dt_rank_log_sync(&collector->ranks[i].log, err);
    return st;
}

/* On the writer's thread. */
static void on_settled(void *context, bool committed)
{
    dt_collector *collector = context;

    for (int64_t i = 0; i < collector->setup.world_size; i++)
        dt_rank_log_settle(&collector->ranks[i].log, committed);
}

/* On the writer's thread. Moves the run to the new file, where the next session finds it. */
static dt_status on_replaced(void *context, dt_store *old, dt_error *err)
{
    const dt_collector *collector = context;

    return dt_collector_move(&collector->setup.rows, old, err);
}

dt_status dt_collector_move(const dt_run_rows_setup *rows, dt_store *old, dt_error *err)
{
    dt_store_event event = {.attempt = rows->attempt,
                            .node = -1,
                            .sequence = -1,
                            .rank = -1,
                            .time_ms = dt_clock_wall_ms(),
                            .kind = "restored",
                            .json = "{\"event\": \"restored\", \"file\": \"store.db\"}"};
    dt_store *store = NULL;
    dt_status st;

    DT_TRY(dt_store_move_run(old, rows->run, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_store_event_add(store, rows->run, &event, err));
out:
    dt_store_close(store);
    return st;
}

dt_status dt_collector_begin(dt_collector *collector, uv_loop_t *loop, dt_error *err)
{
    static const dt_store_writer_calls calls = {.stored = on_stored,
                                                .durable = on_durable,
                                                .sync = on_sync,
                                                .failed = on_failed,
                                                .settled = on_settled,
                                                .replaced = on_replaced};

    return dt_run_rows_begin_writer(collector->rows, loop, &calls, collector, err);
}

void dt_collector_end(dt_collector *collector)
{
    dt_run_rows_end_writer(collector->rows);
    while (collector->acks != NULL)
        free(drop_ack(collector));
}

/* --- the end of a batch */

static dt_status put_changed(dt_collector *collector, dt_error *err)
{
    const dt_row progress = {.kind = DT_ROW_PROGRESS,
                             .progress = {collector->progress, dt_clock_wall_ms()}};
    dt_row row = {.attempt = collector->setup.rows.attempt};
    dt_status st = DT_OK;

    row.kind = DT_ROW_RANK;
    for (int64_t i = 0; i < collector->setup.world_size; i++)
        if (collector->ranks[i].changed) {
            row.rank.row = collector->ranks[i].row;
            row.rank.log = &collector->ranks[i].log;
            DT_TRY(dt_run_rows_put(collector->rows, &row, err));
        }
    row.kind = DT_ROW_NODE;
    for (int64_t i = 0; i < collector->setup.node_count; i++)
        if (collector->nodes[i].changed) {
            row.node = collector->nodes[i].row;
            DT_TRY(dt_run_rows_put(collector->rows, &row, err));
        }
    if (collector->progressed)
        DT_TRY(dt_run_rows_put(collector->rows, &progress, err));
out:
    return st;
}

static void note_submitted(dt_collector *collector, int64_t batch)
{
    dt_store_writer *writer = dt_run_rows_writer(collector->rows);

    for (int64_t i = 0; i < collector->setup.node_count; i++) {
        const dt_collected_node *node = &collector->nodes[i];

        if (node->changed)
            acknowledge_when_synced(collector, i, batch);
        if (node->changed && node->released)
            dt_store_writer_request_sync(writer);
    }
    read_or_pause(collector);
}

dt_status dt_collector_commit(dt_collector *collector, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t batch;

    if (!dt_run_rows_is_open(collector->rows))
        return DT_OK;
    DT_TRY(put_changed(collector, err));
    DT_TRY(dt_run_rows_commit(&batch, collector->rows, err));
    if (dt_run_rows_writer(collector->rows) != NULL)
        note_submitted(collector, batch);
    collector->progressed = false;
    for (int64_t i = 0; i < collector->setup.world_size; i++)
        collector->ranks[i].changed = false;
    for (int64_t i = 0; i < collector->setup.node_count; i++)
        collector->nodes[i].changed = false;
out:
    return st;
}

dt_status dt_collector_add_rows(dt_collector *collector, dt_error *err)
{
    dt_status st = dt_run_rows_begin(collector->rows, err);

    for (int64_t i = 0; i < collector->setup.node_count; i++)
        collector->nodes[i].changed = true;
    for (int64_t i = 0; i < collector->setup.world_size; i++)
        collector->ranks[i].changed = true;
    return st == DT_OK ? dt_collector_commit(collector, err) : st;
}

void dt_collector_close(dt_collector *collector)
{
    if (collector == NULL)
        return;
    dt_collector_end(collector);
    for (int64_t i = 0; collector->ranks != NULL && i < collector->setup.world_size; i++)
        dt_rank_log_close(&collector->ranks[i].log);
    dt_run_rows_close(collector->rows);
    dt_arena_release(&collector->arena);
    free(collector);
}
