/* routes: maps paths to page functions, and serves the files that are embedded in the program. */
#include <string.h>

#include "web/web_int.h"

/* --- embedded files. To add one: its name in web/CMakeLists.txt, a line here, a route. */

#define EMBEDDED(name) extern const char dt_embedded_##name[], dt_embedded_##name##_end[]
EMBEDDED(runs_html);
EMBEDDED(run_html);
EMBEDDED(compare_html);
EMBEDDED(group_html);
EMBEDDED(missing_html);
EMBEDDED(locked_html);
EMBEDDED(app_css);
EMBEDDED(app_js);
EMBEDDED(list_js);
EMBEDDED(queue_js);
EMBEDDED(run_js);
EMBEDDED(why_js);
EMBEDDED(change_js);
EMBEDDED(actions_js);
EMBEDDED(bulk_js);
EMBEDDED(note_js);
EMBEDDED(markdown_js);
EMBEDDED(panels_js);
EMBEDDED(evaluations_js);
EMBEDDED(samples_js);
EMBEDDED(confusion_js);
EMBEDDED(step_slider_js);
EMBEDDED(curves_js);
EMBEDDED(live_js);
EMBEDDED(dom_js);
EMBEDDED(compare_js);
EMBEDDED(series_js);
EMBEDDED(view_js);
EMBEDDED(run_charts_js);
EMBEDDED(marks_js);
EMBEDDED(system_charts_js);
EMBEDDED(files_js);
EMBEDDED(metric_names_js);
EMBEDDED(metric_table_js);
EMBEDDED(choice_js);
EMBEDDED(group_js);
EMBEDDED(parallel_js);
EMBEDDED(text_js);
EMBEDDED(chart_js);
EMBEDDED(icon_svg);
EMBEDDED(report_html);
EMBEDDED(report_js);

#define HTML   "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

static const struct {
    const char *name, *type, *start, *end;
} files[] = {
    {"runs.html", HTML, dt_embedded_runs_html, dt_embedded_runs_html_end},
    {"run.html", HTML, dt_embedded_run_html, dt_embedded_run_html_end},
    {"compare.html", HTML, dt_embedded_compare_html, dt_embedded_compare_html_end},
    {"group.html", HTML, dt_embedded_group_html, dt_embedded_group_html_end},
    {"missing.html", HTML, dt_embedded_missing_html, dt_embedded_missing_html_end},
    {"locked.html", HTML, dt_embedded_locked_html, dt_embedded_locked_html_end},
    {"app.css", "text/css; charset=utf-8", dt_embedded_app_css, dt_embedded_app_css_end},
    {"app.js", SCRIPT, dt_embedded_app_js, dt_embedded_app_js_end},
    {"list.js", SCRIPT, dt_embedded_list_js, dt_embedded_list_js_end},
    {"queue.js", SCRIPT, dt_embedded_queue_js, dt_embedded_queue_js_end},
    {"run.js", SCRIPT, dt_embedded_run_js, dt_embedded_run_js_end},
    {"why.js", SCRIPT, dt_embedded_why_js, dt_embedded_why_js_end},
    {"change.js", SCRIPT, dt_embedded_change_js, dt_embedded_change_js_end},
    {"actions.js", SCRIPT, dt_embedded_actions_js, dt_embedded_actions_js_end},
    {"bulk.js", SCRIPT, dt_embedded_bulk_js, dt_embedded_bulk_js_end},
    {"note.js", SCRIPT, dt_embedded_note_js, dt_embedded_note_js_end},
    {"markdown.js", SCRIPT, dt_embedded_markdown_js, dt_embedded_markdown_js_end},
    {"panels.js", SCRIPT, dt_embedded_panels_js, dt_embedded_panels_js_end},
    {"evaluations.js", SCRIPT, dt_embedded_evaluations_js, dt_embedded_evaluations_js_end},
    {"samples.js", SCRIPT, dt_embedded_samples_js, dt_embedded_samples_js_end},
    {"confusion.js", SCRIPT, dt_embedded_confusion_js, dt_embedded_confusion_js_end},
    {"step_slider.js", SCRIPT, dt_embedded_step_slider_js, dt_embedded_step_slider_js_end},
    {"live.js", SCRIPT, dt_embedded_live_js, dt_embedded_live_js_end},
    {"dom.js", SCRIPT, dt_embedded_dom_js, dt_embedded_dom_js_end},
    {"curves.js", SCRIPT, dt_embedded_curves_js, dt_embedded_curves_js_end},
    {"compare.js", SCRIPT, dt_embedded_compare_js, dt_embedded_compare_js_end},
    {"series.js", SCRIPT, dt_embedded_series_js, dt_embedded_series_js_end},
    {"view.js", SCRIPT, dt_embedded_view_js, dt_embedded_view_js_end},
    {"run_charts.js", SCRIPT, dt_embedded_run_charts_js, dt_embedded_run_charts_js_end},
    {"system_charts.js", SCRIPT, dt_embedded_system_charts_js, dt_embedded_system_charts_js_end},
    {"files.js", SCRIPT, dt_embedded_files_js, dt_embedded_files_js_end},
    {"marks.js", SCRIPT, dt_embedded_marks_js, dt_embedded_marks_js_end},
    {"metric_names.js", SCRIPT, dt_embedded_metric_names_js, dt_embedded_metric_names_js_end},
    {"metric_table.js", SCRIPT, dt_embedded_metric_table_js, dt_embedded_metric_table_js_end},
    {"choice.js", SCRIPT, dt_embedded_choice_js, dt_embedded_choice_js_end},
    {"group.js", SCRIPT, dt_embedded_group_js, dt_embedded_group_js_end},
    {"parallel.js", SCRIPT, dt_embedded_parallel_js, dt_embedded_parallel_js_end},
    {"text.js", SCRIPT, dt_embedded_text_js, dt_embedded_text_js_end},
    {"chart.js", SCRIPT, dt_embedded_chart_js, dt_embedded_chart_js_end},
    {"report.html", HTML, dt_embedded_report_html, dt_embedded_report_html_end},
    {"report.js", SCRIPT, dt_embedded_report_js, dt_embedded_report_js_end},
    {"icon.svg", "image/svg+xml", dt_embedded_icon_svg, dt_embedded_icon_svg_end},
};

void dt_web_reply_file(dt_web_reply *reply, int status, const char *name)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (strcmp(files[i].name, name) == 0) {
            reply->status = status;
            reply->type = files[i].type;
            reply->bytes = files[i].start;
            reply->length = (size_t)(files[i].end - files[i].start);
            return;
        }
    }
    DT_ASSERT(!"a route names a file that is not embedded");
}

static dt_status web_file(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_web_reply_file(reply, strcmp(request->asset, "missing.html") == 0 ? 404 : 200,
                      request->asset);
    return DT_OK;
}

static dt_status web_run_page(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_run run;
    dt_status st = dt_web_run(&run, request, err);

    if (st == DT_ERR_NOT_FOUND) { /* answers with a page for people instead of JSON */
        dt_error_clear(err);
        dt_web_reply_file(reply, 404, "missing.html");
        return DT_OK;
    }
    if (st == DT_OK)
        dt_web_reply_file(reply, 200, "run.html");
    return st;
}

/* --- the table of all that is served */

static const dt_web_route routes[] = {
    /* pages, and the JSON routes of the same data */
    {"/", web_file, "runs.html", DT_WEB_NO_STORE, DT_WEB_PAGE},
    {"/compare", web_file, "compare.html", DT_WEB_NO_STORE, DT_WEB_PAGE},
    {"/group", web_file, "group.html", DT_WEB_NO_STORE, DT_WEB_PAGE},
    {"/api/v1/runs", dt_web_runs, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/runs/ID", web_run_page, NULL, DT_WEB_LITTLE, DT_WEB_PAGE},
    {"/api/v1/runs/ID", dt_web_run_view, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    /* parts of a run */
    {"/api/v1/runs/ID/metrics", dt_web_metrics, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/checkpoints", dt_web_checkpoints, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/evaluations", dt_web_evaluations, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/samples", dt_web_samples, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/files", dt_web_files, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/file", dt_web_file_of_run, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/confusion", dt_web_confusion, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/events", dt_web_events, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/logs", dt_web_logs, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/recipe", dt_web_recipe, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/notes", dt_web_notes, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/why", dt_web_why, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/live", dt_web_live_of_run, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/live", dt_web_live_of_several, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/band", dt_web_band, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/curves", dt_web_curves, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/table", dt_web_table, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/keys", dt_web_keys, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/csv", dt_web_csv, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    /* changes */
    {"/api/v1/rights", dt_web_rights, NULL, DT_WEB_NO_STORE, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/name", dt_web_change_name, NULL, DT_WEB_NO_STORE, DT_WEB_WRITE},
    {"/api/v1/runs/ID/note", dt_web_change_note, NULL, DT_WEB_NO_STORE, DT_WEB_WRITE},
    {"/api/v1/runs/ID/tags", dt_web_change_tags, NULL, DT_WEB_NO_STORE, DT_WEB_WRITE},
    {"/api/v1/runs/ID/archive", dt_web_change_archive, NULL, DT_WEB_NO_STORE, DT_WEB_WRITE},
    {"/api/v1/runs/ID/stop", dt_web_change_stop, NULL, DT_WEB_NO_STORE, DT_WEB_WRITE},
    {"/api/v1/runs/ID/remove", dt_web_change_remove, NULL, DT_WEB_NO_STORE, DT_WEB_WRITE},
    {"/api/v1/changes/ID", dt_web_change_result, NULL, DT_WEB_NO_STORE, DT_WEB_LOCKED},
    {"/api/v1/queue", dt_web_queue, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/api/v1/command", dt_web_command, NULL, DT_WEB_NO_STORE, DT_WEB_LOCKED},
    /* for monitoring programs */
    {"/metrics", dt_web_prometheus, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/healthz", dt_web_health, NULL, DT_WEB_LITTLE, DT_WEB_OPEN},
    /* files that the pages load */
    {"/app.css", web_file, "app.css", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/app.js", web_file, "app.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/list.js", web_file, "list.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/queue.js", web_file, "queue.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/run.js", web_file, "run.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/why.js", web_file, "why.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/change.js", web_file, "change.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/actions.js", web_file, "actions.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/bulk.js", web_file, "bulk.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/note.js", web_file, "note.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/markdown.js", web_file, "markdown.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/panels.js", web_file, "panels.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/evaluations.js", web_file, "evaluations.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/samples.js", web_file, "samples.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/confusion.js", web_file, "confusion.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/step_slider.js", web_file, "step_slider.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/live.js", web_file, "live.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/dom.js", web_file, "dom.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/curves.js", web_file, "curves.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/compare.js", web_file, "compare.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/series.js", web_file, "series.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/view.js", web_file, "view.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/run_charts.js", web_file, "run_charts.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/system_charts.js", web_file, "system_charts.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/files.js", web_file, "files.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/marks.js", web_file, "marks.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/metric_names.js", web_file, "metric_names.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/metric_table.js", web_file, "metric_table.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/choice.js", web_file, "choice.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/group.js", web_file, "group.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/parallel.js", web_file, "parallel.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/text.js", web_file, "text.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/chart.js", web_file, "chart.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/icon.svg", web_file, "icon.svg", DT_WEB_NO_STORE, DT_WEB_OPEN},
};

static dt_status nothing_there(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_NOT_FOUND, "no such address (docs/api.md lists all)");
}

/* Compares segment by segment; *run is the segment that matched "ID". */
static bool matches(const char *pattern, const char *path, const char **run, size_t *run_length)
{
    while (*pattern == '/' && *path == '/') {
        size_t wanted = strcspn(++pattern, "/"), length = strcspn(++path, "/");

        if (wanted == 2 && memcmp(pattern, "ID", 2) == 0) {
            if (length == 0)
                return false;
            *run = path;
            *run_length = length;
        } else if (wanted != length || memcmp(pattern, path, length) != 0) {
            return false;
        }
        pattern += wanted;
        path += length;
    }
    return *pattern == '\0' && *path == '\0';
}

static const dt_web_route missing_page = {"", web_file, "missing.html", DT_WEB_NO_STORE,
                                          DT_WEB_PAGE};
static const dt_web_route missing_json = {"", nothing_there, NULL, DT_WEB_NO_STORE, DT_WEB_LOCKED};

const dt_web_route *dt_web_route_find(dt_web_request *request, const char *path)
{
    const dt_web_route *missing = strncmp(path, "/api/", 5) == 0 ? &missing_json : &missing_page;
    const char *run = NULL;
    size_t length = 0;

    request->run = "";
    request->asset = missing->asset;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (!matches(routes[i].pattern, path, &run, &length))
            continue;
        request->asset = routes[i].asset;
        if (run != NULL)
            request->run = dt_arena_strndup(request->arena, run, length);
        return &routes[i];
    }
    return missing;
}
