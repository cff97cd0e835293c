#include "web/routes.h"

#include <string.h>

static const dt_web_route routes[] = {
    /* pages, and the JSON routes of the same data */
    {"/", dt_web_file, "runs.html", DT_WEB_NO_STORE, DT_WEB_PAGE},
    {"/compare", dt_web_file, "compare.html", DT_WEB_NO_STORE, DT_WEB_PAGE},
    {"/api/v1/runs", dt_web_runs, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/runs/ID", dt_web_run_page, NULL, DT_WEB_LITTLE, DT_WEB_PAGE},
    {"/api/v1/runs/ID", dt_web_run_view, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    /* parts of a run */
    {"/api/v1/runs/ID/metrics", dt_web_metrics, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/checkpoints", dt_web_checkpoints, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/events", dt_web_events, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/logs", dt_web_logs, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/recipe", dt_web_recipe, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/api/v1/runs/ID/live", dt_web_live_of_run, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/live", dt_web_live_of_several, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/band", dt_web_band, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/csv", dt_web_csv, NULL, DT_WEB_MUCH, DT_WEB_LOCKED},
    {"/api/v1/command", dt_web_command, NULL, DT_WEB_NO_STORE, DT_WEB_LOCKED},
    /* for monitoring programs */
    {"/metrics", dt_web_prometheus, NULL, DT_WEB_LITTLE, DT_WEB_LOCKED},
    {"/healthz", dt_web_health, NULL, DT_WEB_LITTLE, DT_WEB_OPEN},
    /* files that the pages load */
    {"/app.css", dt_web_file, "app.css", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/app.js", dt_web_file, "app.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/list.js", dt_web_file, "list.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/run.js", dt_web_file, "run.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/panels.js", dt_web_file, "panels.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/live.js", dt_web_file, "live.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/dom.js", dt_web_file, "dom.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/curves.js", dt_web_file, "curves.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/compare.js", dt_web_file, "compare.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/series.js", dt_web_file, "series.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/view.js", dt_web_file, "view.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/run_charts.js", dt_web_file, "run_charts.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/marks.js", dt_web_file, "marks.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/metric_names.js", dt_web_file, "metric_names.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/metric_table.js", dt_web_file, "metric_table.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/text.js", dt_web_file, "text.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/chart.js", dt_web_file, "chart.js", DT_WEB_NO_STORE, DT_WEB_OPEN},
    {"/icon.svg", dt_web_file, "icon.svg", DT_WEB_NO_STORE, DT_WEB_OPEN},
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

static const dt_web_route missing_page = {"", dt_web_file, "missing.html", DT_WEB_NO_STORE,
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
