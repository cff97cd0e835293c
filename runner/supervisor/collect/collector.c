/* collector: opens the collector and keeps its rows; checks the numbers of a journal's events, and turns
 * each into rows and memory. */
#include "runner/supervisor/collect/collector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metric_kinds.h"
#include "runner/supervisor/collect/collect_int.h"

/* --- open and close */

static void lay_out(dt_collector *collector)
{
    size_t ranks = (size_t)collector->setup.world_size, nodes = (size_t)collector->setup.node_count;
    dt_straggler_rank *waits =
        dt_arena_alloc_array(&collector->arena, ranks, sizeof(dt_straggler_rank));

    collector->ranks = dt_arena_alloc_array(&collector->arena, ranks, sizeof(collector->ranks[0]));
    collector->nodes = dt_arena_alloc_array(&collector->arena, nodes, sizeof(collector->nodes[0]));
    for (size_t i = 0; i < ranks; i++)
        collector->ranks[i].log.fd = -1;
    dt_straggler_init(&collector->straggler, waits, collector->setup.world_size);
}

dt_status dt_collector_open(dt_collector **out, const dt_collector_setup *setup,
                            const dt_collector_calls *calls, void *context, dt_error *err)
{
    dt_collector *collector = dt_calloc(1, sizeof(*collector));

    *out = collector;
    collector->setup = *setup;
    collector->calls = *calls;
    collector->context = context;
    collector->acks_last = &collector->acks;
    collector->progress = (dt_progress){0, NAN, NAN, NAN};
    collector->rows = dt_run_rows_open(&setup->rows);
    dt_arena_init(&collector->arena, 0);
    if (setup->task != NULL && dt_task_progress_open(&collector->task, collector, err) != DT_OK)
        return err != NULL ? err->code : DT_ERR_IO;
    lay_out(collector);
    return DT_OK;
}

/* --- rows */

const dt_collected_rank *dt_collector_rank(const dt_collector *collector, int64_t rank)
{
    return &collector->ranks[rank];
}

const dt_collected_node *dt_collector_node(const dt_collector *collector, int64_t node)
{
    return &collector->nodes[node];
}

void dt_collector_set_rank(dt_collector *collector, const dt_rank *row)
{
    collector->ranks[row->rank].row = *row;
}

void dt_collector_set_node(dt_collector *collector, int64_t node, const dt_node *row)
{
    collector->nodes[node].row = *row;
}

void dt_collector_set_log(dt_collector *collector, int64_t rank, int64_t bytes)
{
    dt_rank_log *log = &collector->ranks[rank].log;

    log->bytes = log->stored_bytes = bytes;
}

dt_status dt_collector_open_logs(dt_collector *collector, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < collector->setup.world_size && st == DT_OK; i++)
        st = dt_rank_log_open(&collector->ranks[i].log, collector->setup.rows.folder, i, err);
    return st;
}

void dt_collector_show_node(dt_collector *collector, int64_t node, const char *state)
{
    collector->nodes[node].row.state = state;
    collector->nodes[node].changed = true;
}

void dt_collector_name_node(dt_collector *collector, int64_t node, const char *name)
{
    collector->nodes[node].row.name = name;
}

void dt_collector_boot_node(dt_collector *collector, int64_t node, const char *boot_id)
{
    collector->nodes[node].row.boot_id = boot_id;
}

void dt_collector_release_node(dt_collector *collector, int64_t node)
{
    collector->nodes[node].released = true;
}

dt_status dt_collector_put(dt_collector *collector, const dt_row *row, dt_error *err)
{
    return dt_run_rows_put(collector->rows, row, err);
}

/* --- progress */

int64_t dt_collector_submit(dt_collector *collector)
{
    return dt_store_writer_submit(dt_run_rows_writer(collector->rows));
}

bool dt_collector_is_durable(const dt_collector *collector, int64_t batch)
{
    return dt_store_writer_is_durable(dt_run_rows_writer(collector->rows), batch);
}

void dt_collector_request_sync(dt_collector *collector)
{
    dt_store_writer *writer = dt_run_rows_writer(collector->rows);

    if (writer != NULL)
        dt_store_writer_request_sync(writer);
}

bool dt_collector_is_stalled(const dt_collector *collector, dt_strbuf *why)
{
    return dt_store_writer_is_stalled(dt_run_rows_writer(collector->rows), why);
}

bool dt_collector_is_idle(const dt_collector *collector)
{
    return dt_store_writer_is_idle(dt_run_rows_writer(collector->rows));
}

bool dt_collector_is_paused(const dt_collector *collector)
{
    return collector->paused;
}

bool dt_collector_has_gaps(const dt_collector *collector)
{
    return collector->gaps;
}

void dt_collector_remember_gap(dt_collector *collector)
{
    collector->gaps = true;
}

int64_t dt_collector_lines_done(const dt_collector *collector)
{
    return collector->task != NULL ? dt_task_progress_lines(collector->task) : 0;
}

void dt_collector_set_step(dt_collector *collector, int64_t step)
{
    collector->progress.step = step;
}

const dt_progress *dt_collector_progress(const dt_collector *collector)
{
    return &collector->progress;
}

int64_t dt_collector_steps_total(const dt_collector *collector)
{
    return collector->steps_total;
}

/* ingest: turns an event of a node's journal into rows and memory. */

/* --- memory */

static void set_state(dt_collected_rank *rank, const char *state)
{
    rank->row.state = state;
    rank->changed = true;
}

/* Remembers the number of steps of the run as the engine counts them: fp16 may skip some. */
static void remember_steps(dt_collector *collector, const dt_message *message)
{
    int64_t steps = dt_message_int(message, "steps", 0);

    if (message->rank == 0 && steps > 0)
        collector->steps_total = steps;
}

static void remember_exited(dt_collected_rank *rank, const dt_message *message)
{
    rank->exited = true;
    rank->row.exit_code = (int)dt_message_int(message, "code", -1);
    rank->row.exit_signal = (int)dt_message_int(message, "signal", -1);
    set_state(rank, rank->row.exit_code == 0 ? "exited" : "failed");
}

void dt_collector_remember(dt_collector *collector, int64_t index, const dt_message *message)
{
    dt_collected_rank *rank = message->rank >= 0 ? &collector->ranks[message->rank] : NULL;
    dt_collected_node *node = &collector->nodes[index];

    switch (message->kind) {
    case DT_MESSAGE_STARTED:
        rank->row.pid = dt_message_int(message, "pid", 0);
        set_state(rank, "started");
        node->row.state = "running";
        break;
    case DT_MESSAGE_READY:
        rank->ready = true;
        set_state(rank, "ready");
        remember_steps(collector, message);
        break;
    case DT_MESSAGE_FINISHED:
        remember_steps(collector, message);
        break;
    case DT_MESSAGE_EXITED:
        remember_exited(rank, message);
        break;
    case DT_MESSAGE_RELEASED:
        node->released = true;
        node->row.state = "released";
        break;
    default:
        break;
    }
    collector->calls.event(collector->context, index, message);
}

/* --- rows */

/* Sets the value unless the new one is NaN. */
static void newer(double *value, double seen)
{
    if (!isnan(seen))
        *value = seen;
}

static void note_progress(dt_collector *collector, int64_t step, double loss, double valid_loss,
                          double tokens_per_second)
{
    dt_progress *progress = &collector->progress;

    collector->progressed = true;
    progress->step = step > progress->step ? step : progress->step;
    newer(&progress->loss, loss);
    newer(&progress->valid_loss, valid_loss);
    newer(&progress->tokens_per_second, tokens_per_second);
}

static double value_of(const json_t *values, const char *name)
{
    const json_t *value = json_object_get(values, name);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Returns the value for lists: NAN if the event lacks it, INFINITY if it is not a number. */
static double progress_of(const json_t *values, const char *name)
{
    double value = value_of(values, name);

    return isfinite(value) || json_object_get(values, name) == NULL ? value : INFINITY;
}

static dt_status store_metrics(dt_collector *collector, const dt_message *message, dt_error *err)
{
    json_t *values = json_object_get(message->json, "values"), *value;
    int64_t step = dt_message_int(message, "step", 0);
    const char *name;
    dt_status st = DT_OK;

    json_object_foreach(values, name, value) {
        if (name[0] == '\0')
            continue;
        DT_TRY(dt_collector_metric(collector, message, step, name, value_of(values, name), err));
    }
    note_progress(collector, step, progress_of(values, dt_metric_name(DT_METRIC_LOSS)),
                  progress_of(values, dt_metric_name(DT_METRIC_VALID_LOSS)),
                  value_of(values, dt_metric_name(DT_METRIC_TOKENS_PER_SECOND)));
out:
    return st;
}

/* Adds what a node or one of its GPUs (-1: the node) is used for. Its step is the time, since nodes report it at any
 * moment of the training and without one. */
static dt_status store_usage(dt_collector *collector, int64_t node, int64_t gpu,
                             const dt_message *message, const json_t *values, dt_error *err)
{
    dt_status st = DT_OK;
    char name[96];

    for (int id = 0; id < DT_METRIC_COUNT; id++) {
        const dt_metric_kind *kind = &dt_metric_kinds[id];
        double value;

        if (kind->source != (gpu < 0 ? DT_FROM_NODES : DT_FROM_NODE_GPUS))
            continue;
        value = value_of(values, kind->name + strlen(DT_METRIC_SYSTEM));
        if (isnan(value))
            continue;
        if (gpu < 0)
            snprintf(name, sizeof(name), "%s_node_%lld", kind->name, (long long)node);
        else
            snprintf(name, sizeof(name), "%s_node_%lld_gpu_%lld", kind->name, (long long)node,
                     (long long)gpu);
        DT_TRY(dt_collector_metric(collector, message, message->time_ms / 1000, name, value, err));
    }
out:
    return st;
}

static dt_status store_system(dt_collector *collector, int64_t node, const dt_message *message,
                              dt_error *err)
{
    json_t *gpu;
    dt_status st;
    size_t i;

    DT_TRY(
        store_usage(collector, node, -1, message, json_object_get(message->json, "values"), err));
    json_array_foreach(json_object_get(message->json, "gpus"), i, gpu) {
        const json_t *index = json_object_get(gpu, "index");

        if (json_is_integer(index) && json_integer_value(index) >= 0)
            DT_TRY(store_usage(collector, node, json_integer_value(index), message, gpu, err));
    }
out:
    return st;
}

dt_status dt_collector_checkpoint(dt_collector *collector, const dt_message *message, dt_error *err)
{
    dt_row row = {.kind = DT_ROW_CHECKPOINT,
                  .checkpoint = {.attempt = collector->setup.rows.attempt,
                                 .step = dt_message_int(message, "step", 0),
                                 .bytes = dt_message_int(message, "bytes", 0),
                                 .time_ms = message->time_ms,
                                 .digest = dt_message_string(message, "digest"),
                                 .valid_loss = dt_message_number(message, "valid_loss"),
                                 .score = dt_message_number(message, "score"),
                                 .seconds = dt_message_number(message, "seconds")}};
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    if (!dt_message_is_program_checkpoint(message))
        dt_strbuf_add_fmt(&path, "%s/", collector->setup.checkpoints);
    dt_strbuf_add_str(&path, dt_message_string(message, "directory"));
    row.checkpoint.path = path.data;
    st = dt_run_rows_put(collector->rows, &row, err);
    dt_strbuf_release(&path);
    return st;
}

/* Adds a line to the rank's log; newlines inside it do not split it. */
static dt_status store_line(dt_collector *collector, const dt_message *message, dt_error *err)
{
    dt_collected_rank *rank = &collector->ranks[message->rank];
    char when[DT_CLOCK_ISO_SIZE];
    dt_row row = {.kind = DT_ROW_LINE, .line = {&rank->log, message->rank, NULL}};
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(&line, "%s %s\n", dt_clock_iso(when, message->time_ms),
                      dt_message_string(message, "text"));
    for (size_t i = 0; i + 1 < line.length; i++)
        if (line.data[i] == '\n')
            line.data[i] = ' ';
    rank->changed = true;
    row.line.text = line.data;
    st = dt_run_rows_put(collector->rows, &row, err);
    dt_strbuf_release(&line);
    return st;
}

static dt_status store_log(dt_collector *collector, const dt_message *message, dt_error *err)
{
    if (collector->setup.rows.mode != DT_RUN_ROWS_FOLLOW)
        return DT_OK; /* it is in the log file */
    if (message->rank >= 0)
        return store_line(collector, message, err);
    dt_log_warn("agent: %s", dt_message_string(message, "text"));
    return DT_OK;
}

static dt_status store_straggler(dt_collector *collector, const dt_message *message, dt_error *err)
{
    int64_t step = dt_message_int(message, "step", 0);
    dt_straggler_finding found;
    dt_status st = DT_OK;

    if (!dt_straggler_add(&collector->straggler, message->rank,
                          dt_message_number(message, "waited_seconds"), &found))
        return DT_OK;
    DT_TRY(dt_collector_metric(collector, message, step, dt_metric_name(DT_METRIC_SLOWEST_RANK),
                               (double)found.rank, err));
    DT_TRY(dt_collector_metric(collector, message, step, dt_metric_name(DT_METRIC_SLOWEST_SECONDS),
                               found.seconds, err));
out:
    return st;
}

/* Stores the number of steps for people; policies use the memory. */
static dt_status store_steps(dt_collector *collector, const dt_message *message, dt_error *err)
{
    const dt_row row = {.kind = DT_ROW_STEPS_TOTAL,
                        .steps_total = dt_message_int(message, "steps", 0)};

    if (message->rank != 0 || row.steps_total <= 0 || row.steps_total == collector->steps_total)
        return DT_OK;
    return dt_run_rows_put(collector->rows, &row, err);
}

static dt_status store_digests(dt_collector *collector, const dt_message *message, dt_error *err)
{
    const dt_row row = {.kind = DT_ROW_DIGESTS,
                        .attempt = collector->setup.rows.attempt,
                        .digests = {.rank = message->rank,
                                    .offset = dt_message_int(message, "offset", 0),
                                    .text = dt_message_string(message, "text")}};

    return dt_run_rows_put(collector->rows, &row, err);
}

static dt_status store_rows(dt_collector *collector, int64_t node, const dt_message *message,
                            dt_error *err)
{
    dt_status st = DT_OK;

    switch (message->kind) {
    case DT_MESSAGE_METRICS:
        return store_metrics(collector, message, err);
    case DT_MESSAGE_LOG:
        return store_log(collector, message, err);
    case DT_MESSAGE_PACE:
        return store_straggler(collector, message, err);
    case DT_MESSAGE_PART: /* it is in the folder */
        return dt_collector_part(collector, message, err);
    case DT_MESSAGE_RECORD: /* it is in the folder */
        return store_digests(collector, message, err);
    case DT_MESSAGE_SYSTEM:
        return store_system(collector, node, message, err);
    case DT_MESSAGE_PHASE: /* not stored */
        return DT_OK;
    case DT_MESSAGE_CHECKPOINT:
        if (!collector->calls.checkpoint(collector->context, message))
            DT_TRY(dt_collector_checkpoint(collector, message, err));
        break;
    case DT_MESSAGE_READY:
        DT_TRY(store_steps(collector, message, err));
        break;
    case DT_MESSAGE_FINISHED:
        DT_TRY(store_steps(collector, message, err));
        if (message->rank == 0)
            note_progress(collector, dt_message_int(message, "step", 0),
                          dt_message_number(message, "loss"),
                          dt_message_number(message, "valid_loss"), NAN);
        break;
    default:
        break;
    }
    DT_TRY(dt_collector_add_event(collector, node, message, err));
out:
    return st;
}

/* Notes a sign of life: all ranks take part in a step, a save and an evaluation, so the event of
 * one node also stands for the others. */
static void note_step(dt_collector *collector, dt_collected_node *node, const dt_message *message)
{
    int64_t step = dt_message_int(message, "step", 0);
    bool steps = message->kind == DT_MESSAGE_METRICS || message->kind == DT_MESSAGE_PACE;

    if (message->kind != DT_MESSAGE_PHASE && (!steps || step <= node->step))
        return;
    node->step = step > node->step ? step : node->step;
    node->step_seconds = collector->setup.clock->seconds;
}

dt_status dt_collector_ingest(dt_collector *collector, int64_t index, const dt_message *message,
                              dt_error *err)
{
    dt_collected_node *node = &collector->nodes[index];
    dt_status st = DT_OK;

    DT_TRY(dt_run_rows_begin(collector->rows, err));
    DT_TRY(store_rows(collector, index, message, err));
    dt_collector_remember(collector, index, message);
    note_step(collector, node, message);
    node->row.acknowledged++;
    node->changed = true;
out:
    return st;
}

/* sequence: checks the numbers of a journal's events, so that each is taken once, and records lost events.
 */

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
