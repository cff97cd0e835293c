/* jsonl: an object a point and line. JSON has no NaN: "value" is null then, and "not_finite" says "nan", "inf"
 * or "-inf".
 */
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "runner/export/export.h"
#include "runner/export/output.h"
#include "runner/term/format.h"

#include "base/banned.h"

typedef struct jsonl {
    dt_output output;
    const dt_run *run;
} jsonl;

static dt_status add_point(void *context, const dt_metric *point, dt_error *err)
{
    char text[DT_FORMAT_SIZE], time[DT_CLOCK_ISO_SIZE];
    jsonl *j = context;
    json_t *object =
        json_pack("{ss so sI sI so so ss}", "run", j->run->id, "run_name",
                  dt_json_text(j->run->name), "attempt", (json_int_t)point->attempt, "step",
                  (json_int_t)point->step, "name", dt_json_text(point->name), "value",
                  dt_json_number(point->value), "time", dt_clock_iso(time, point->time_ms));

    if (object == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    if (!isfinite(point->value))
        json_object_set_new(object, "not_finite",
                            json_string(dt_format_exact(text, sizeof(text), point->value)));
    dt_json_write(&j->output.text, object);
    dt_strbuf_add_char(&j->output.text, '\n');
    json_decref(object);
    return dt_output_pass(&j->output, err);
}

static dt_status write_jsonl(const dt_export_job *job, dt_error *err)
{
    dt_status st;
    jsonl j;

    DT_TRY(dt_output_open(&j.output, job->target, job->replace, job->call->arena, err));
    for (size_t i = 0; st == DT_OK && i < job->count; i++) {
        j.run = &job->runs[i];
        st = dt_export_points(job, j.run, add_point, &j, err);
    }
    st = dt_output_close(&j.output, st, err);
out:
    return st;
}

const dt_export_format dt_export_jsonl = {
    .name = "jsonl",
    .target = "FILE",
    .to_stdout = true,
    .help = "a JSON object a point and line",
    .write = write_jsonl,
};
