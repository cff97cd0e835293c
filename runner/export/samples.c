/* samples: writes the texts of a run's 'evaluate.samples' as CSV, one row a prompt and step. */
#include "base/clock.h"
#include "base/display.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "store/event.h"

static dt_status add_run(dt_output *output, const dt_export_job *job, const dt_run *run,
                         dt_error *err)
{
    char time[DT_CLOCK_ISO_SIZE];
    dt_strbuf *out = &output->text;
    dt_store_sample *samples;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(dt_store_sample_list(job->store, &samples, &count, run->id, DT_STORE_ALL_STEPS,
                                job->call->arena, err));
    for (int64_t i = 0; i < count; i++) {
        const dt_store_sample *s = &samples[i];

        dt_csv_add_text(out, run->id);
        dt_strbuf_add_char(out, ',');
        dt_csv_add_text(out, run->name);
        dt_strbuf_add_fmt(out, ",%lld,%lld,%lld,", (long long)s->attempt, (long long)s->step,
                          (long long)s->place);
        dt_csv_add_text(out, s->prompt);
        dt_strbuf_add_char(out, ',');
        dt_csv_add_text(out, s->text);
        dt_strbuf_add_fmt(out, ",%lld,", (long long)s->tokens);
        dt_csv_add_text(out, s->ended);
        dt_strbuf_add_fmt(out, ",%s\n", dt_clock_iso(time, s->time_ms));
        DT_TRY(dt_output_pass(output, err));
    }
out:
    return st;
}

static dt_status write_samples(const dt_export_job *job, dt_error *err)
{
    dt_output output;
    dt_status st;

    DT_TRY(dt_output_open(&output, job->target, job->replace, job->call->arena, err));
    dt_strbuf_add_str(&output.text,
                      "run,run_name,attempt,step,index,prompt,text,tokens,ended,time\n");
    for (size_t i = 0; i < job->count && st == DT_OK; i++)
        st = add_run(&output, job, &job->runs[i], err);
    st = dt_output_close(&output, st, err);
out:
    return st;
}

const dt_export_format dt_export_samples = {
    .name = "samples",
    .target = "FILE",
    .to_stdout = true,
    .help = "CSV: one row a prompt of evaluate.samples and step",
    .write = write_samples,
};
