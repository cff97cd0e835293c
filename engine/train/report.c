/* report: measures the machine, and sends the events of a training rank. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric_kinds.h"
#include "engine/channel/activity.h"
#include "engine/device/nvml.h"
#include "engine/ops/ops.h"
#include "engine/stopwatch.h"
#include "engine/train/train_int.h"

/* --- the speed of the machine */

#define MEASURE_SECONDS  0.02 /* a start waits for it */
#define MEASURE_LEAST    3    /* products, however long they take */
#define MEASURE_MAX_ROWS 1024
#define CARD_MAX_ROWS    4096 /* fewer rows do not keep a GPU busy */
#define CARD_TRAIN       8 /* products per wait on a GPU, where a wait takes as long as a small product */

/* The parameter (width out, width in) of the largest kind of matrix product: the first of the
 * largest matrices of the blocks. */
static const dt_param *largest_matrix(const dt_model *model)
{
    const dt_param *largest = &model->params[0];

    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];

        if (param->unit > 0 && param->ndim == 2 &&
            (largest->unit == 0 || param->held.elems > largest->held.elems))
            largest = param;
    }
    return largest;
}

dt_status dt_measure_matmul(double *flops_per_second, const dt_model *model, dt_error *err)
{
    const dt_model_config *config = &model->config;
    const dt_param *matrix = largest_matrix(model);
    dt_device *device = model->device;
    int64_t all_rows = config->batch * config->tokens;
    int64_t most = device->host_reads ? MEASURE_MAX_ROWS : CARD_MAX_ROWS;
    int64_t rows = all_rows < most ? all_rows : most;
    int train = device->host_reads ? 1 : CARD_TRAIN;
    int64_t in = matrix->held.dim[1], out_width = matrix->held.dim[0];
    size_t elem_bytes = dt_dtype_bytes(config->dtype);
    dt_device_arena memory = {0};
    dt_tensor x, w, y, no_bias;
    double begun, start, seconds, best = 0;
    int products = 0;
    dt_status st = DT_OK;

    *flops_per_second = 0;
    DT_TRY(dt_device_arena_open(
        &memory, device,
        (size_t)(rows * in + out_width * in + rows * out_width) * elem_bytes + 3 * 64, err));
    x = dt_tensor_2d(dt_device_arena_take(&memory, (size_t)(rows * in) * elem_bytes), config->dtype,
                     rows, in);
    w = dt_tensor_2d(dt_device_arena_take(&memory, (size_t)(out_width * in) * elem_bytes),
                     config->dtype, out_width, in);
    y = dt_tensor_2d(dt_device_arena_take(&memory, (size_t)(rows * out_width) * elem_bytes),
                     config->dtype, rows, out_width);
    no_bias = dt_tensor_1d(NULL, config->dtype, out_width);

    DT_TRY(device->ops->matmul_forward(device, &y, &x, &w, &no_bias, err)); /* warm-up */
    DT_TRY(device->synchronize(device, err));
    begun = dt_clock_monotonic_seconds();
    do {
        start = dt_clock_monotonic_seconds();
        for (int i = 0; i < train; i++)
            DT_TRY(device->ops->matmul_forward(device, &y, &x, &w, &no_bias, err));
        DT_TRY(device->synchronize(device, err));
        seconds = dt_clock_monotonic_seconds() - start;
        /* minimum: other processes may take the processor */
        best = best == 0 || seconds < best ? seconds : best;
    } while (++products < MEASURE_LEAST || start + seconds - begun < MEASURE_SECONDS);
    *flops_per_second = best > 0 ? 2.0 * (double)(train * rows * in * out_width) / best : 0;
out:
    dt_device_arena_close(&memory);
    return st;
}

#define MEMORY_ELEMS ((int64_t)2 << 20) /* of each operand, in fp32 */
#define MEMORY_LEAST ((int64_t)1 << 12)

/* The operands are not larger than the activations, which are not in memory yet: the peak of a rank stays that of
 * its steps, and a small model is compared with the caches that it fits into. */
static int64_t memory_elems(const dt_model *model)
{
    int64_t half = (int64_t)(model->activation_bytes / (2 * sizeof(float)));

    return half > MEMORY_ELEMS ? MEMORY_ELEMS : half < MEMORY_LEAST ? MEMORY_LEAST : half;
}

dt_status dt_measure_memory(double *bytes_per_second, const dt_model *model, dt_error *err)
{
    dt_device *device = model->device;
    int64_t elems = memory_elems(model);
    size_t bytes = (size_t)elems * sizeof(float);
    dt_device_arena memory = {0};
    dt_tensor a, b;
    double best = 0;
    dt_status st = DT_OK;

    *bytes_per_second = 0;
    DT_TRY(dt_device_arena_open(&memory, device, 2 * bytes + 2 * 64, err));
    a = dt_tensor_1d(dt_device_arena_take(&memory, bytes), DT_F32, elems);
    b = dt_tensor_1d(dt_device_arena_take(&memory, bytes), DT_F32, elems);
    for (int i = 0; i < MEASURE_LEAST + 1; i++) { /* the first one maps the pages */
        double start = dt_clock_monotonic_seconds(), seconds;

        DT_TRY(device->ops->residual_forward(device, &a, &a, &b, err));
        DT_TRY(device->synchronize(device, err));
        seconds = dt_clock_monotonic_seconds() - start;
        best = i == 1 || (i > 1 && seconds < best) ? seconds : best;
    }
    *bytes_per_second = best > 0 ? 3.0 * (double)bytes / best : 0;
out:
    dt_device_arena_close(&memory);
    return st;
}

int64_t dt_measure_free_memory(dt_device *device)
{
    int64_t free_bytes, total_bytes;

    return device->memory_info(device, &free_bytes, &total_bytes, NULL) == DT_OK ? free_bytes : 0;
}

/* Peak resident memory of this process on the host, including shared memory and file pages; 0 if
 * unknown. */
static int64_t measure_peak_memory(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    long long kilobytes = 0;
    char line[128];

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        (void)sscanf(line, "VmHWM: %lld kB", &kilobytes);
    fclose(file);
    return kilobytes * 1024;
}

/* --- events */

#define PACE_SECONDS  5.0
#define SAMPLES_BYTES 65536 /* of an event, unless one sample is longer */

static json_int_t as_json(int64_t value)
{
    return (json_int_t)value;
}

/* Report what this rank's memory is used for, as an event and as a line in its log. */
static dt_status report_memory(dt_train_session *session, dt_error *err)
{
    const dt_strategy_state *state = &session->state;
    const struct {
        const char *key;
        int64_t bytes;
    } parts[] = {
        {"parameters_bytes", state->parameters_bytes},
        {"gradients_bytes", state->gradients_bytes},
        {"optimizer_bytes", state->optimizer_bytes},
        {"activations_bytes", (int64_t)session->model->activation_bytes},
        {"buffers_bytes", state->buffers_bytes +
                              dt_checkpoint_writer_bytes(session->saving.writer) +
                              dt_valid_bleu_bytes(session->evaluation.translations) +
                              dt_side_model_bytes(&session->evaluation.side)},
        {"free_bytes", dt_measure_free_memory(&session->device)},
    };
    json_t *event = json_pack("{s:s}", "event", "memory");

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        json_object_set_new(event, parts[i].key, json_integer(as_json(parts[i].bytes)));
    dt_log_info("memory in MB: parameters %.1f, gradients %.1f, optimizer %.1f, activations %.1f, "
                "buffers %.1f; free %.0f",
                (double)parts[0].bytes / 1e6, (double)parts[1].bytes / 1e6,
                (double)parts[2].bytes / 1e6, (double)parts[3].bytes / 1e6,
                (double)parts[4].bytes / 1e6, (double)parts[5].bytes / 1e6);
    return dt_events_send(session->events, event, err);
}

/* FLOP rate of all devices together, assuming that each is as fast as this rank's measured one. */
static double matmul_flops_of_all(const dt_train_session *session)
{
    return session->machine.matmul_flops * (double)(session->mesh.world.size * session->replicas);
}

/* Lower bound of the step time: the necessary matrix products at the measured rate. */
static double ideal_step_seconds(const dt_train_session *session)
{
    return dt_train_session_mean_items(session) *
           dt_model_flops_per_token(&session->model->config) / matmul_flops_of_all(session);
}

dt_status dt_report_start(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(report_memory(session, err));
    if (session->mesh.world.rank == 0)
        dt_log_info("a step takes at least %.4g s: its matrix products at the measured %.4g FLOP/s "
                    "of each device",
                    ideal_step_seconds(session), session->machine.matmul_flops);
    DT_TRY(
        dt_events_send(session->events,
                       json_pack("{s:s, s:I, s:s, s:i, s:I, s:I, s:o, s:o}", "event", "ready",
                                 "pid", as_json(getpid()), "device", session->device.name,
                                 "threads", session->device.threads, "step", as_json(session->step),
                                 "steps", as_json(session->recipe->schedule.steps), "matmul_flops",
                                 dt_json_number(session->machine.matmul_flops),
                                 "least_step_seconds", dt_json_number(ideal_step_seconds(session))),
                       err));
out:
    return st;
}

dt_status dt_report_phase(dt_train_session *session, const char *phase, dt_error *err)
{
    dt_activity_phase(phase);
    return dt_events_send(session->events,
                          json_pack("{s:s, s:s}", "event", "phase", "phase", phase), err);
}

static dt_status send_metrics(dt_train_session *session, json_t *values, dt_error *err)
{
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:o}", "event", "metrics", "step",
                                    as_json(session->step), "values", values),
                          err);
}

/* A step reads weights, gradients and optimizer state at least once, and its activations are written once and
 * read once. */
void dt_report_time(const dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;
    const dt_train_machine *machine = &session->machine;
    dt_stopwatch_machine about = {
        .flops_per_second = machine->matmul_flops,
        .memory_bytes_per_second = machine->memory_bytes_per_second,
        .step_bytes =
            (double)session->state.held_bytes +
            2.0 * (double)session->model->activation_bytes * (double)recipe->batch.accumulate,
    };

    dt_stopwatch_begin(&about);
}

void dt_interval_add(dt_interval *interval, const dt_step *step, double seconds)
{
    interval->steps++;
    interval->items += step->items;
    interval->seconds += seconds;
    interval->host_overhead_seconds += step->host_overhead_seconds;
}

/* Every rank reports its own GPU: metric names end in the rank. */
static dt_status report_card(dt_train_session *session, dt_error *err)
{
    json_t *object = json_object();
    dt_nvml_reading now;

    dt_nvml_read(&now, session->machine.nvml);
    const struct {
        dt_metric_id id;
        double value;
    } values[] = {
        {DT_METRIC_GPU_BUSY_PERCENT, now.busy_percent},
        {DT_METRIC_GPU_USED_BYTES, now.used_bytes},
        {DT_METRIC_GPU_TEMPERATURE_C, now.temperature_c},
        {DT_METRIC_GPU_POWER_WATTS, now.power_watts},
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s_rank_%lld", dt_metric_name(values[i].id),
                 (long long)session->mesh.world.rank);
        if (!isnan(values[i].value))
            json_object_set_new(object, name, dt_json_number(values[i].value));
    }
    return send_metrics(session, object, err);
}

dt_status dt_report_step(dt_train_session *session, const dt_step *step, dt_interval *interval,
                         dt_error *err)
{
    double start = dt_clock_monotonic_seconds(), steps = (double)interval->steps;
    double tokens = (double)interval->items;
    double tokens_per_second = tokens / interval->seconds;
    int64_t sent_before = interval->sent_bytes, sent = dt_train_session_sent_bytes(session);
    const struct {
        dt_metric_id id;
        double value;
    } values[] = {
        {DT_METRIC_LOSS, session->loss},
        {DT_METRIC_LEARNING_RATE, step->learning_rate},
        {DT_METRIC_GRADIENT_NORM, step->gradient_norm},
        {DT_METRIC_TOKENS_PER_SECOND, tokens_per_second},
        {DT_METRIC_STEP_SECONDS, interval->seconds / steps},
        {DT_METRIC_OUTSIDE_SECONDS, interval->host_overhead_seconds / steps},
        {DT_METRIC_FLOPS_PER_SECOND,
         tokens_per_second * dt_model_flops_per_token(&session->model->config)},
        {DT_METRIC_MATMUL_FLOPS_PER_SECOND, matmul_flops_of_all(session)},
        {DT_METRIC_LEAST_STEP_SECONDS, ideal_step_seconds(session)},
        {DT_METRIC_HELD_BYTES, (double)session->state.held_bytes},
        {DT_METRIC_SENT_BYTES, (double)(sent - sent_before) / steps},
        {DT_METRIC_LOSS_SCALE, session->scaler.scale}, /* the following only with fp16 */
        {DT_METRIC_SKIPPED_STEPS, (double)session->scaler.skipped_steps},
    };
    size_t count = sizeof(values) / sizeof(values[0]) - (session->scaler.on ? 0 : 2);
    json_t *object;
    dt_status st = DT_OK;

    *interval = (dt_interval){.sent_bytes = sent};
    if (session->machine.nvml != NULL)
        st = report_card(session, err);
    if (session->mesh.world.rank != 0 || st != DT_OK)
        return st;
    object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, dt_metric_name(values[i].id), dt_json_number(values[i].value));
    if (session->model->config.decoder.beta > 0) {
        json_object_set_new(object, dt_metric_name(DT_METRIC_REWARD_MARGIN),
                            dt_json_number(step->margin / step->valid_targets));
        json_object_set_new(object, dt_metric_name(DT_METRIC_REWARD_ACCURACY),
                            dt_json_number(step->right / step->valid_targets));
    }
    st = send_metrics(session, object, err);
    interval->host_overhead_seconds = dt_clock_monotonic_seconds() - start;
    interval->seconds = interval->host_overhead_seconds;
    return st;
}

dt_status dt_report_pace(dt_train_session *session, dt_pace *pace, dt_error *err)
{
    double now = dt_clock_monotonic_seconds(), waited = dt_stopwatch_blocked();
    int64_t steps = session->step - pace->step;
    bool begins = pace->since_seconds == 0;
    dt_status st = DT_OK;

    if (session->mesh.world.size < 2 || (!begins && now - pace->since_seconds < PACE_SECONDS))
        return DT_OK;
    if (!begins && steps > 0)
        st = dt_events_send(session->events,
                            json_pack("{s:s, s:I, s:f, s:f}", "event", "pace", "step",
                                      as_json(session->step), "step_seconds",
                                      (now - pace->since_seconds) / (double)steps, "waited_seconds",
                                      (waited - pace->waited_seconds) / (double)steps),
                            err);
    *pace = (dt_pace){now, waited, session->step};
    return st;
}

dt_status dt_report_evaluation(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *values;

    if (session->mesh.world.rank != 0)
        return DT_OK;
    values = json_pack("{s:o}", dt_metric_name(DT_METRIC_VALID_LOSS),
                       dt_json_number(session->evaluation.loss));
    if (session->evaluation.translations != NULL)
        json_object_set_new(values, dt_metric_name(DT_METRIC_VALID_BLEU),
                            dt_json_number(session->evaluation.bleu));
    DT_TRY(send_metrics(session, values, err));
    if (session->evaluation.confusion != NULL)
        DT_TRY(dt_events_send(session->events,
                              json_pack("{s:s, s:I, s:o}", "event", "confusion", "step",
                                        as_json(session->step), "counts",
                                        dt_confusion_to_json(session->evaluation.confusion)),
                              err));
out:
    return st;
}

dt_status dt_report_tasks(dt_train_session *session, const dt_evaluation_results *results,
                          dt_error *err)
{
    json_t *values;
    char name[DT_EVALUATION_NAME + 64];
    dt_status st = DT_OK;

    if (session->mesh.world.rank != 0)
        return DT_OK;
    values = json_object();
    for (size_t i = 0; i < results->count; i++)
        for (size_t m = 0; m < results->items[i].count; m++) {
            snprintf(name, sizeof(name), "%s/%s", results->items[i].task,
                     results->items[i].metrics[m].name);
            json_object_set_new(values, name, dt_json_number(results->items[i].metrics[m].value));
        }
    st = send_metrics(session, values, err);
    if (st == DT_OK)
        st = dt_events_send(session->events,
                            json_pack("{s:s, s:I, s:o}", "event", "evaluation", "step",
                                      as_json(session->step), "tasks",
                                      dt_evaluation_to_json(results)),
                            err);
    return st;
}

static dt_status send_samples(dt_train_session *session, json_t *texts, dt_error *err)
{
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:o}", "event", "samples", "step",
                                    as_json(session->step), "samples", texts),
                          err);
}

dt_status dt_report_samples(dt_train_session *session, json_t *texts, dt_error *err)
{
    json_t *part = json_array(), *text;
    size_t i, bytes = 0, all;
    dt_status st = DT_OK;

    json_array_foreach(texts, i, text) {
        all = json_dumpb(text, NULL, 0, JSON_COMPACT);
        if (bytes > 0 && bytes + all > SAMPLES_BYTES) {
            st = send_samples(session, part, err);
            part = json_array();
            bytes = 0;
            DT_TRY(st);
        }
        bytes += all;
        json_array_append(part, text);
    }
    if (json_array_size(part) > 0)
        st = send_samples(session, json_incref(part), err);
out:
    json_decref(part);
    json_decref(texts);
    return st;
}

dt_status dt_report_checkpoint(dt_train_session *session, const dt_checkpoint_outcome *outcome,
                               dt_error *err)
{
    if (session->mesh.world.rank != 0)
        return DT_OK;
    return dt_events_send(
        session->events,
        json_pack("{s:s, s:I, s:s, s:I, s:s, s:o, s:o, s:o}", "event", "checkpoint", "step",
                  as_json(outcome->step), "directory", outcome->saved.directory, "bytes",
                  as_json(outcome->saved.bytes), "digest", outcome->saved.digest, "valid_loss",
                  dt_json_number(outcome->valid_loss), "score", dt_json_number(outcome->score),
                  "seconds", dt_json_number(outcome->seconds)),
        err);
}

dt_status dt_report_checkpoint_failed(dt_train_session *session, int64_t step, const char *message,
                                      dt_error *err)
{
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:o}", "event", "checkpoint_failed", "step",
                                    as_json(step), "message", dt_json_text(message)),
                          err);
}

dt_status dt_report_finished(dt_train_session *session, const char *reason, dt_error *err)
{
    return dt_events_send(
        session->events,
        json_pack("{s:s, s:I, s:I, s:s, s:o, s:o, s:I, s:b}", "event", "finished", "step",
                  as_json(session->step), "steps", as_json(session->recipe->schedule.steps),
                  "reason", reason, "loss", dt_json_number(session->loss), "valid_loss",
                  dt_json_number(session->evaluation.loss), "peak_bytes",
                  as_json(measure_peak_memory()), "signalled", (int)dt_stop_asked()),
        err);
}

dt_status dt_report_failed(dt_events *events, const dt_error *failure, dt_error *err)
{
    return dt_events_send(events,
                          json_pack("{s:s, s:s, s:o}", "event", "failed", "status",
                                    dt_status_name(failure->code), "message",
                                    dt_json_text(failure->message)),
                          err);
}
