/* csv: writes one line a point, or with --wide one line a step and one column a metric. Values that
 * are not finite are "nan", "inf" and "-inf", which pandas and spreadsheets can read.
 */
#include "base/clock.h"
#include "base/display.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "runner/term/term.h"
#include "runner/view/compare/compare.h"

typedef struct csv {
    dt_output output;
    const dt_run *run;
} csv;

static dt_status add_point(void *context, const dt_metric *point, dt_error *err)
{
    char value[DT_FORMAT_SIZE], time[DT_CLOCK_ISO_SIZE];
    csv *c = context;
    dt_strbuf *out = &c->output.text;

    dt_csv_add_text(out, c->run->id);
    dt_strbuf_add_char(out, ',');
    dt_csv_add_text(out, c->run->name);
    dt_strbuf_add_fmt(out, ",%lld,%lld,", (long long)point->attempt, (long long)point->step);
    dt_csv_add_text(out, point->name);
    dt_strbuf_add_fmt(out, ",%s,%s\n", dt_format_exact(value, sizeof(value), point->value),
                      dt_clock_iso(time, point->time_ms));
    return dt_output_pass(&c->output, err);
}

static dt_status write_long(csv *c, const dt_export_job *job, dt_error *err)
{
    dt_status st = DT_OK;

    dt_strbuf_add_str(&c->output.text, "run,run_name,attempt,step,name,value,time\n");
    for (size_t i = 0; i < job->count; i++) {
        c->run = &job->runs[i];
        DT_TRY(dt_export_points(job, c->run, add_point, c, err));
    }
out:
    return st;
}

static dt_status write_wide(csv *c, const dt_export_job *job, dt_error *err)
{
    dt_run_points *runs = dt_arena_alloc_array(job->call->arena, job->count, sizeof(runs[0]));
    dt_status st = DT_OK;

    for (size_t i = 0; i < job->count; i++) {
        runs[i].run = job->runs[i].id;
        DT_TRY(dt_store_metric_list(job->store, &runs[i].points, &runs[i].count, runs[i].run,
                                    job->metric, -1, false, job->call->arena, err));
    }
    DT_TRY(dt_wide_add(&c->output.text, runs, job->count, job->call->arena, err));
out:
    return st;
}

static dt_status write_csv(const dt_export_job *job, dt_error *err)
{
    dt_status st;
    csv c;

    DT_TRY(dt_output_open(&c.output, job->target, job->replace, job->call->arena, err));
    st = dt_arguments_flag(job->call->args, "wide") ? write_wide(&c, job, err)
                                                    : write_long(&c, job, err);
    st = dt_output_close(&c.output, st, err);
out:
    return st;
}

const dt_export_format dt_export_csv = {
    .name = "csv",
    .target = "FILE",
    .to_stdout = true,
    .help = "one line a point; --wide: one line a step, one column a metric",
    .write = write_csv,
};
