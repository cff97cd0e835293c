/* jsonl: writes one JSON object a point and line, then one a text of evaluate.samples, which has "sample", its index,
 * instead of "name". For NaN and infinities "value" is null and "not_finite" is "nan", "inf" or "-inf".
 */
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "runner/term/term.h"
#include "store/event.h"

typedef struct jsonl {
    dt_output output;
    const char *of_name;  /* the name that `name` was made from; compared by address */
    dt_strbuf head, name; /* common start of the objects of a run; a metric name as JSON */
} jsonl;

/* Adds `value` and releases it. */
static dt_status add_json(dt_strbuf *out, json_t *value, dt_error *err)
{
    if (value == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    dt_json_write(out, value);
    json_decref(value);
    return DT_OK;
}

static dt_status begin_run(jsonl *j, const dt_run *run, dt_error *err)
{
    dt_status st = DT_OK;

    j->of_name = NULL;
    dt_strbuf_reset(&j->head);
    dt_strbuf_add_str(&j->head, "{\"run\":");
    DT_TRY(add_json(&j->head, dt_json_text(run->id), err));
    dt_strbuf_add_str(&j->head, ",\"run_name\":");
    DT_TRY(add_json(&j->head, dt_json_text(run->name), err));
out:
    return st;
}

static dt_status set_name(jsonl *j, const char *name, dt_error *err)
{
    if (j->of_name == name)
        return DT_OK;
    j->of_name = name;
    dt_strbuf_reset(&j->name);
    return add_json(&j->name, dt_json_text(name), err);
}

/* Writes the object as text: a jansson object for each point would take most of the time. */
static dt_status add_point(void *context, const dt_metric *point, dt_error *err)
{
    char text[DT_FORMAT_SIZE], time[DT_CLOCK_ISO_SIZE];
    jsonl *j = context;
    dt_strbuf *out = &j->output.text;
    dt_status st = DT_OK;

    DT_TRY(set_name(j, point->name, err));
    dt_strbuf_add(out, j->head.data, j->head.length);
    dt_strbuf_add_fmt(out, ",\"attempt\":%lld,\"step\":%lld,\"name\":", (long long)point->attempt,
                      (long long)point->step);
    dt_strbuf_add(out, j->name.data, j->name.length);
    dt_strbuf_add_str(out, ",\"value\":");
    DT_TRY(add_json(out, dt_json_number(point->value), err));
    dt_strbuf_add_fmt(out, ",\"time\":\"%s\"", dt_clock_iso(time, point->time_ms));
    if (!isfinite(point->value))
        dt_strbuf_add_fmt(out, ",\"not_finite\":\"%s\"",
                          dt_format_exact(text, sizeof(text), point->value));
    dt_strbuf_add_str(out, "}\n");
    DT_TRY(dt_output_pass(&j->output, err));
out:
    return st;
}

static dt_status add_samples(jsonl *j, const dt_export_job *job, const dt_run *run, dt_error *err)
{
    char time[DT_CLOCK_ISO_SIZE];
    dt_strbuf *out = &j->output.text;
    dt_store_sample *samples;
    dt_status st = DT_OK;
    int64_t count;

    if (job->metric != NULL)
        return DT_OK;
    DT_TRY(dt_store_sample_list(job->store, &samples, &count, run->id, DT_STORE_ALL_STEPS,
                                job->call->arena, err));
    for (int64_t i = 0; i < count; i++) {
        const dt_store_sample *s = &samples[i];

        dt_strbuf_add(out, j->head.data, j->head.length);
        dt_strbuf_add_fmt(out, ",\"attempt\":%lld,\"step\":%lld,\"sample\":%lld,\"prompt\":",
                          (long long)s->attempt, (long long)s->step, (long long)s->place);
        DT_TRY(add_json(out, dt_json_text(s->prompt), err));
        dt_strbuf_add_str(out, ",\"text\":");
        DT_TRY(add_json(out, dt_json_text(s->text), err));
        dt_strbuf_add_fmt(out, ",\"tokens\":%lld,\"ended\":", (long long)s->tokens);
        DT_TRY(add_json(out, dt_json_text(s->ended), err));
        dt_strbuf_add_fmt(out, ",\"time\":\"%s\"}\n", dt_clock_iso(time, s->time_ms));
        DT_TRY(dt_output_pass(&j->output, err));
    }
out:
    return st;
}

static dt_status write_jsonl(const dt_export_job *job, dt_error *err)
{
    jsonl j = {0};
    dt_status st;

    dt_strbuf_init(&j.head);
    dt_strbuf_init(&j.name);
    DT_TRY(dt_output_open(&j.output, job->target, job->replace, job->call->arena, err));
    for (size_t i = 0; st == DT_OK && i < job->count; i++) {
        st = begin_run(&j, &job->runs[i], err);
        if (st == DT_OK)
            st = dt_export_points(job, &job->runs[i], add_point, &j, err);
        if (st == DT_OK)
            st = add_samples(&j, job, &job->runs[i], err);
    }
    st = dt_output_close(&j.output, st, err);
out:
    dt_strbuf_release(&j.head);
    dt_strbuf_release(&j.name);
    return st;
}

const dt_export_format dt_export_jsonl = {
    .name = "jsonl",
    .target = "FILE",
    .to_stdout = true,
    .help = "one JSON object a point and line",
    .write = write_jsonl,
};
