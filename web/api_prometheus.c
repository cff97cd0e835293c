/* api_prometheus: serves /metrics for Prometheus: the number of runs in each state, and progress and metrics of the
 * runs that have not ended. Text format 0.0.4; unknown values are left out, infinities are written as such.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/metric_kinds.h"
#include "base/version.h"
#include "web/web_int.h"

#define RUNS_MOST    1000
#define USAGE_OLD_MS (60 * 1000) /* what a node was used for is left out after this time */

typedef struct active_run {
    dt_run run;
    dt_activity activity;
    dt_metric *usage; /* newest points of its nodes, by name */
    int64_t usage_count;
    dt_node *nodes;
    int64_t nodes_count;
} active_run;

typedef struct family {
    const char *name, *type, *help;
    double (*value)(const active_run *active, int64_t now_ms);
} family;

static double step_of(const active_run *active, int64_t now_ms)
{
    return (double)active->run.step;
}

static double steps_of(const active_run *active, int64_t now_ms)
{
    return active->run.steps_total > 0 ? (double)active->run.steps_total : NAN;
}

static double attempt_of(const active_run *active, int64_t now_ms)
{
    return (double)active->run.attempt;
}

static double loss_of(const active_run *active, int64_t now_ms)
{
    return active->run.loss;
}

static double valid_loss_of(const active_run *active, int64_t now_ms)
{
    return active->run.valid_loss;
}

static double speed_of(const active_run *active, int64_t now_ms)
{
    return dt_web_speed(&active->run, &active->activity);
}

static double elapsed_of(const active_run *active, int64_t now_ms)
{
    return dt_run_elapsed_seconds(&active->run, now_ms);
}

static const family of_run[] = {
    {"dtrun_run_step", "gauge", "Steps that the run has done.", step_of},
    {"dtrun_run_steps", "gauge", "Steps of the whole run.", steps_of},
    {"dtrun_run_attempt", "gauge", "Number of the newest attempt, from 1.", attempt_of},
    {"dtrun_run_loss", "gauge", "Newest training loss.", loss_of},
    {"dtrun_run_valid_loss", "gauge", "Newest validation loss.", valid_loss_of},
    {"dtrun_run_tokens_per_second", "gauge", "Throughput of all ranks, while steps come in.",
     speed_of},
    {"dtrun_run_elapsed_seconds", "gauge", "Total time of all attempts.", elapsed_of},
};

static void add_head(dt_strbuf *out, const char *name, const char *type, const char *help)
{
    dt_strbuf_add_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Appends the value of a label, escaped so that it can end neither the label nor the line. */
static void add_label(dt_strbuf *out, const char *text)
{
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_display_add_page(&shown, text, strlen(text));
    for (size_t i = 0; i < shown.length; i++) {
        if (shown.data[i] == '\n')
            dt_strbuf_add_str(out, "\\n");
        else if (shown.data[i] == '"' || shown.data[i] == '\\')
            dt_strbuf_add_fmt(out, "\\%c", shown.data[i]);
        else
            dt_strbuf_add_char(out, shown.data[i]);
    }
    dt_strbuf_release(&shown);
}

static void add_run(dt_strbuf *out, const char *name, const dt_run *run)
{
    dt_strbuf_add_fmt(out, "%s{run=\"", name);
    add_label(out, run->id);
    dt_strbuf_add_str(out, "\",name=\"");
    add_label(out, run->name);
    dt_strbuf_add_str(out, "\",group=\"");
    add_label(out, run->group);
}

static void add_sample(dt_strbuf *out, const char *name, const dt_run *run, double value)
{
    if (isnan(value))
        return;
    add_run(out, name, run);
    if (isinf(value)) /* not a number */
        dt_strbuf_add_str(out, "\"} NaN\n");
    else
        dt_strbuf_add_fmt(out, "\"} %.17g\n", value);
}

/* --- what the nodes are used for */

static bool keep_newest(void *context, const dt_metric *point)
{
    active_run *active = context;

    active->usage[active->usage_count++] = *point;
    return false;
}

static dt_status usage_read(active_run *active, const dt_web_request *request, dt_error *err)
{
    const char *id = active->run.id;
    dt_store_curves curves;
    dt_status st = DT_OK;

    DT_TRY(
        dt_store_curves_find(request->store, &curves, id, DT_METRIC_SYSTEM, request->arena, err));
    active->usage =
        dt_arena_alloc_array(request->arena, (size_t)curves.count + 1, sizeof(active->usage[0]));
    for (int64_t i = 0; i < curves.count; i++)
        DT_TRY(dt_store_curve_newest(request->store, &curves, i,
                                     (request->now_ms - USAGE_OLD_MS) / 1000, keep_newest, active,
                                     err));
    if (active->usage_count > 0)
        DT_TRY(dt_store_node_list(request->store, &active->nodes, &active->nodes_count, id,
                                  active->run.attempt, request->arena, err));
out:
    return st;
}

static const char *host_of(const active_run *active, int64_t node)
{
    for (int64_t i = 0; i < active->nodes_count; i++)
        if (active->nodes[i].node == node)
            return active->nodes[i].name;
    return "";
}

/* Adds the points of a metric, which are of nodes or of GPUs. */
static void add_usage(dt_strbuf *out, const char *name, const dt_metric_kind *kind,
                      const active_run *active)
{
    for (int64_t i = 0; i < active->usage_count; i++) {
        const dt_metric *point = &active->usage[i];
        long long node, gpu = -1;

        if (strncmp(point->name, kind->name, strlen(kind->name)) != 0 || !isfinite(point->value) ||
            sscanf(point->name + strlen(kind->name), "_node_%lld_gpu_%lld", &node, &gpu) < 1)
            continue;
        add_run(out, name, &active->run);
        dt_strbuf_add_str(out, "\",node=\"");
        add_label(out, host_of(active, node));
        if (kind->source == DT_FROM_NODE_GPUS)
            dt_strbuf_add_fmt(out, "\",gpu=\"%lld", gpu);
        dt_strbuf_add_fmt(out, "\"} %.17g\n", point->value);
    }
}

static void add_usages(dt_strbuf *out, const active_run *runs, int64_t count)
{
    for (int id = 0; id < DT_METRIC_COUNT; id++) {
        const dt_metric_kind *kind = &dt_metric_kinds[id];
        char name[96];

        if (kind->source != DT_FROM_NODES && kind->source != DT_FROM_NODE_GPUS)
            continue;
        snprintf(name, sizeof(name), "dtrun_node_%s", kind->name + strlen(DT_METRIC_SYSTEM));
        add_head(out, name, "gauge", kind->help);
        for (int64_t i = 0; i < count; i++)
            add_usage(out, name, kind, &runs[i]);
    }
}

/* Counts the runs in a state, and appends those that are active to the list. */
static dt_status add_state(dt_strbuf *out, active_run *runs, int64_t *count, dt_run_state state,
                           const dt_web_request *request, dt_error *err)
{
    dt_run_search search = {.state = (int)state,
                            .archived = true,
                            .limit = dt_run_state_is_terminal(state) ? 1 : RUNS_MOST};
    int64_t found, total;
    const char **ids;
    dt_status st;

    DT_TRY(dt_store_run_search(request->store, &ids, &found, &total, &search, request->arena, err));
    dt_strbuf_add_fmt(out, "dtrun_runs{state=\"%s\"} %lld\n", dt_run_state_name(state),
                      (long long)total);
    for (int64_t i = 0; i < found && !dt_run_state_is_terminal(state) && *count < RUNS_MOST; i++) {
        dt_error gone = DT_ERROR_INIT;

        if (dt_store_run_find(request->store, &runs[*count].run, ids[i], request->arena, &gone) !=
            DT_OK)
            continue;
        DT_TRY(dt_activity_read(&runs[*count].activity, request->store, &runs[*count].run,
                                request->now_ms, request->arena, err));
        DT_TRY(usage_read(&runs[*count], request, err));
        (*count)++;
    }
out:
    return st;
}

static dt_status add_all(dt_strbuf *out, const dt_web_request *request, dt_error *err)
{
    active_run *runs = dt_arena_alloc_array(request->arena, RUNS_MOST, sizeof(runs[0]));
    dt_status st = DT_OK;
    int64_t count = 0;

    add_head(out, "dtrun_build_info", "gauge", "Version and commit of this server.");
    dt_strbuf_add_fmt(out, "dtrun_build_info{version=\"%s\",commit=\"%s\"} 1\n", DT_VERSION,
                      DT_COMMIT);
    add_head(out, "dtrun_runs", "gauge", "Runs of the history by state.");
    for (dt_run_state state = 0; state < DT_RUN_STATE_COUNT; state++)
        DT_TRY(add_state(out, runs, &count, state, request, err));
    for (size_t f = 0; f < sizeof(of_run) / sizeof(of_run[0]); f++) {
        add_head(out, of_run[f].name, of_run[f].type, of_run[f].help);
        for (int64_t i = 0; i < count; i++)
            add_sample(out, of_run[f].name, &runs[i].run,
                       of_run[f].value(&runs[i], request->now_ms));
    }
    add_usages(out, runs, count);
out:
    return st;
}

dt_status dt_web_prometheus(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    st = add_all(&text, request, err);
    if (st != DT_OK) {
        dt_strbuf_release(&text);
        return st;
    }
    reply->status = 200;
    reply->type = "text/plain; version=0.0.4; charset=utf-8";
    reply->length = text.length;
    reply->owned = dt_strbuf_detach(&text);
    return DT_OK;
}
