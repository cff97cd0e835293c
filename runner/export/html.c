/* html: writes one self-contained file: the page of a run, or the comparison of several (web/report.h). */
#include "base/clock.h"
#include "base/dirs.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "web/report.h"

static dt_status write_html(const dt_export_job *job, dt_error *err)
{
    dt_arena *arena = job->call->arena;
    dt_web_report report = {.store = job->store, .count = job->count, .now_ms = dt_clock_wall_ms()};
    const char **ids = dt_arena_alloc_array(arena, job->count, sizeof(ids[0]));
    dt_output output;
    dt_status st;

    for (size_t i = 0; i < job->count; i++)
        ids[i] = job->runs[i].id;
    report.runs = ids;
    DT_TRY(dt_dir_path(&report.folder, DT_DIR_STATE, arena, err));
    DT_TRY(dt_output_open(&output, job->target, job->replace, arena, err));
    st = dt_web_report_add(&output.text, &report, err);
    st = dt_output_close(&output, st, err);
out:
    return st;
}

const dt_export_format dt_export_html = {
    .name = "html",
    .target = "FILE",
    .runs_most = DT_WEB_REPORT_RUNS_MOST,
    .help = "one self-contained page with interactive charts",
    .write = write_html,
};
