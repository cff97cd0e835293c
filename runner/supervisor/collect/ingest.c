/* ingest: turns an event of a node's journal into rows and memory. */
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric_kinds.h"
#include "runner/supervisor/collect/collector_int.h"

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
    note_progress(collector, step, progress_of(values, "loss"), progress_of(values, "valid_loss"),
                  value_of(values, "tokens_per_second"));
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
