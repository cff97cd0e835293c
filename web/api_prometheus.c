/* api_prometheus: serves /metrics for Prometheus: the number of runs in each state, and progress and metrics of the
 * runs that have not ended. Text format 0.0.4; unknown values are left out, infinities are written as such.
 */
#include <math.h>
#include <string.h>

#include "base/display.h"
#include "base/version.h"
#include "web/web_int.h"

#define RUNS_MOST 1000

typedef struct active_run {
    dt_run run;
    dt_activity activity;
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

static void add_sample(dt_strbuf *out, const char *name, const dt_run *run, double value)
{
    if (isnan(value))
        return;
    dt_strbuf_add_fmt(out, "%s{run=\"", name);
    add_label(out, run->id);
    dt_strbuf_add_str(out, "\",name=\"");
    add_label(out, run->name);
    dt_strbuf_add_str(out, "\",group=\"");
    add_label(out, run->group);
    if (isinf(value)) /* not a number */
        dt_strbuf_add_str(out, "\"} NaN\n");
    else
        dt_strbuf_add_fmt(out, "\"} %.17g\n", value);
}

/* Counts the runs in a state, and appends those that are active to the list. */
static dt_status add_state(dt_strbuf *out, active_run *runs, int64_t *count, dt_run_state state,
                           const dt_web_request *request, dt_error *err)
{
    dt_run_search search = {.state = (int)state,
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
