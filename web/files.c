/* files: serves the files that are embedded in the program. To add one: its name in
 * web/CMakeLists.txt, a line here, a route. */
#include <string.h>

#include "web/request.h"

#define EMBEDDED(name) extern const char dt_embedded_##name[], dt_embedded_##name##_end[]
EMBEDDED(runs_html);
EMBEDDED(run_html);
EMBEDDED(compare_html);
EMBEDDED(missing_html);
EMBEDDED(locked_html);
EMBEDDED(app_css);
EMBEDDED(app_js);
EMBEDDED(list_js);
EMBEDDED(run_js);
EMBEDDED(panels_js);
EMBEDDED(curves_js);
EMBEDDED(live_js);
EMBEDDED(dom_js);
EMBEDDED(compare_js);
EMBEDDED(series_js);
EMBEDDED(view_js);
EMBEDDED(run_charts_js);
EMBEDDED(marks_js);
EMBEDDED(metric_names_js);
EMBEDDED(metric_table_js);
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
    {"missing.html", HTML, dt_embedded_missing_html, dt_embedded_missing_html_end},
    {"locked.html", HTML, dt_embedded_locked_html, dt_embedded_locked_html_end},
    {"app.css", "text/css; charset=utf-8", dt_embedded_app_css, dt_embedded_app_css_end},
    {"app.js", SCRIPT, dt_embedded_app_js, dt_embedded_app_js_end},
    {"list.js", SCRIPT, dt_embedded_list_js, dt_embedded_list_js_end},
    {"run.js", SCRIPT, dt_embedded_run_js, dt_embedded_run_js_end},
    {"panels.js", SCRIPT, dt_embedded_panels_js, dt_embedded_panels_js_end},
    {"live.js", SCRIPT, dt_embedded_live_js, dt_embedded_live_js_end},
    {"dom.js", SCRIPT, dt_embedded_dom_js, dt_embedded_dom_js_end},
    {"curves.js", SCRIPT, dt_embedded_curves_js, dt_embedded_curves_js_end},
    {"compare.js", SCRIPT, dt_embedded_compare_js, dt_embedded_compare_js_end},
    {"series.js", SCRIPT, dt_embedded_series_js, dt_embedded_series_js_end},
    {"view.js", SCRIPT, dt_embedded_view_js, dt_embedded_view_js_end},
    {"run_charts.js", SCRIPT, dt_embedded_run_charts_js, dt_embedded_run_charts_js_end},
    {"marks.js", SCRIPT, dt_embedded_marks_js, dt_embedded_marks_js_end},
    {"metric_names.js", SCRIPT, dt_embedded_metric_names_js, dt_embedded_metric_names_js_end},
    {"metric_table.js", SCRIPT, dt_embedded_metric_table_js, dt_embedded_metric_table_js_end},
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

dt_status dt_web_file(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_web_reply_file(reply, strcmp(request->asset, "missing.html") == 0 ? 404 : 200,
                      request->asset);
    return DT_OK;
}

dt_status dt_web_run_page(dt_web_request *request, dt_web_reply *reply, dt_error *err)
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
