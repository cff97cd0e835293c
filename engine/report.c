#include "engine/report.h"

#include <unistd.h>

#include "engine/measure.h"

#include "base/banned.h"

static json_int_t as_json(int64_t value)
{
    return (json_int_t)value;
}

dt_status dt_report_start(dt_session *session, dt_error *err)
{
    const dt_strategy_state *state = &session->state;
    dt_status st = DT_OK;

    DT_TRY(dt_events_send(
        session->events,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "event", "memory", "parameters_bytes",
                  as_json(state->parameters_bytes), "gradients_bytes",
                  as_json(state->gradients_bytes), "optimizer_bytes",
                  as_json(state->optimizer_bytes), "activations_bytes",
                  as_json((int64_t)session->model->activation_bytes), "buffers_bytes",
                  as_json((int64_t)state->buffers_bytes), "free_bytes",
                  as_json(dt_measure_free_memory())),
        err));
    DT_TRY(dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:s, s:i, s:o}", "event", "ready", "pid",
                                    as_json(getpid()), "device", session->device.name, "threads",
                                    session->device.threads, "matmul_flops",
                                    dt_json_number(session->matmul_flops)),
                          err));
out:
    return st;
}

dt_status dt_report_phase(dt_session *session, const char *phase, dt_error *err)
{
    return dt_events_send(session->events,
                          json_pack("{s:s, s:s}", "event", "phase", "phase", phase), err);
}

static dt_status send_metrics(dt_session *session, json_t *values, dt_error *err)
{
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:o}", "event", "metrics", "step",
                                    as_json(session->step), "values", values),
                          err);
}

dt_status dt_report_step(dt_session *session, double learning_rate, double gradient_norm,
                         dt_interval *interval, dt_error *err)
{
    const dt_recipe *recipe = session->recipe;
    double tokens =
        (double)(interval->steps * dt_session_samples_per_step(session) * recipe->batch.tokens);
    double tokens_per_second = tokens / interval->seconds;
    double step_seconds = interval->seconds / (double)interval->steps;

    *interval = (dt_interval){0};
    if (session->rank != 0)
        return DT_OK;
    return send_metrics(
        session,
        json_pack(
            "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "loss", dt_json_number(session->loss),
            "learning_rate", dt_json_number(learning_rate), "gradient_norm",
            dt_json_number(gradient_norm), "tokens_per_second", dt_json_number(tokens_per_second),
            "step_seconds", dt_json_number(step_seconds), "flops_per_second",
            dt_json_number(tokens_per_second * dt_model_flops_per_token(&session->model->config)),
            "matmul_flops_per_second",
            dt_json_number(session->matmul_flops * (double)session->world_size)),
        err);
}

dt_status dt_report_valid_loss(dt_session *session, dt_error *err)
{
    if (session->rank != 0)
        return DT_OK;
    return send_metrics(session,
                        json_pack("{s:o}", "valid_loss", dt_json_number(session->valid_loss)), err);
}

dt_status dt_report_checkpoint(dt_session *session, const char *directory, int64_t bytes,
                               const char *digest, double seconds, dt_error *err)
{
    if (session->rank != 0)
        return DT_OK;
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:s, s:I, s:s, s:o, s:o}", "event", "checkpoint",
                                    "step", as_json(session->step), "directory", directory, "bytes",
                                    as_json(bytes), "digest", digest, "valid_loss",
                                    dt_json_number(session->valid_loss), "seconds",
                                    dt_json_number(seconds)),
                          err);
}

dt_status dt_report_checkpoint_failed(dt_session *session, const char *message, dt_error *err)
{
    if (session->rank != 0)
        return DT_OK;
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:s}", "event", "checkpoint_failed", "step",
                                    as_json(session->step), "message", message),
                          err);
}

dt_status dt_report_finished(dt_session *session, const char *reason, dt_error *err)
{
    return dt_events_send(session->events,
                          json_pack("{s:s, s:I, s:s, s:o, s:o}", "event", "finished", "step",
                                    as_json(session->step), "reason", reason, "loss",
                                    dt_json_number(session->loss), "valid_loss",
                                    dt_json_number(session->valid_loss)),
                          err);
}

dt_status dt_report_failed(dt_events *events, const dt_error *failure, dt_error *err)
{
    return dt_events_send(events,
                          json_pack("{s:s, s:s, s:s}", "event", "failed", "status",
                                    dt_status_name(failure->code), "message", failure->message),
                          err);
}
