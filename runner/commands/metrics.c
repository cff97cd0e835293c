/* dtrun metrics: prints the metrics of runs as CSV or JSON lines. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/display.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "runner/view/compare/compare.h"
#include "runner/view/runs/runs.h"

static const char *const formats[] = {"csv", "jsonl", "wide", NULL};
enum { FORMAT_CSV, FORMAT_JSONL, FORMAT_WIDE };

/* run: NULL if only one run is printed. */
static json_t *to_json(const dt_metric *point, const char *run)
{
    char time[DT_CLOCK_ISO_SIZE];
    json_t *object = json_object();

    if (run != NULL)
        json_object_set_new(object, "run", json_string(run));
    json_object_set_new(object, "attempt", json_integer(point->attempt));
    json_object_set_new(object, "step", json_integer(point->step));
    json_object_set_new(object, "name", dt_json_text(point->name));
    json_object_set_new(object, "value", dt_json_number(point->value));
    json_object_set_new(object, "time", json_string(dt_clock_iso(time, point->time_ms)));
    return object;
}

static void add_csv(dt_strbuf *out, const dt_metric *point, const char *run)
{
    char value[DT_FORMAT_SIZE], time[DT_CLOCK_ISO_SIZE];

    if (run != NULL)
        dt_strbuf_add_fmt(out, "%s,", run);
    dt_strbuf_add_fmt(out, "%lld,%lld,", (long long)point->attempt, (long long)point->step);
    dt_csv_add_text(out, point->name);
    dt_strbuf_add_fmt(out, ",%s,%s\n", dt_format_exact(value, sizeof(value), point->value),
                      dt_clock_iso(time, point->time_ms));
}

static dt_status print_lines(const dt_run_points *runs, size_t count, int format, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    if (format == FORMAT_CSV)
        dt_strbuf_add_fmt(&text, "%sattempt,step,name,value,time\n", count > 1 ? "run," : "");
    for (size_t r = 0; r < count; r++)
        for (int64_t i = 0; i < runs[r].count; i++) {
            const char *run = count > 1 ? runs[r].run : NULL;

            if (format == FORMAT_CSV) {
                add_csv(&text, &runs[r].points[i], run);
            } else {
                json_t *object = to_json(&runs[r].points[i], run);
                dt_json_write(&text, object);
                dt_strbuf_add_char(&text, '\n');
                json_decref(object);
            }
        }
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* With several runs, each point names its run. */
static dt_status print_json(const dt_run_points *runs, size_t count, dt_error *err)
{
    json_t *object = dt_report_object(), *array = json_array(), *ids = json_array();

    for (size_t r = 0; r < count; r++) {
        json_array_append_new(ids, json_string(runs[r].run));
        for (int64_t i = 0; i < runs[r].count; i++)
            json_array_append_new(array,
                                  to_json(&runs[r].points[i], count > 1 ? runs[r].run : NULL));
    }
    if (count == 1)
        json_object_set_new(object, "run", json_string(runs[0].run));
    else
        json_object_set(object, "runs", ids);
    json_object_set_new(object, "metrics", array);
    json_decref(ids);
    return dt_report_json(object, err);
}

/* Refuses a metric, or a prefix, that the run does not have; a run without any metric yet passes. */
static dt_status check_name(const char *name, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err)
{
    dt_store_curves found;
    const char **names;
    int64_t count;
    dt_strbuf all;
    dt_status st = DT_OK;

    dt_strbuf_init(&all);
    DT_TRY(dt_store_curves_find(store, &found, run->id, name, arena, err));
    if (found.count > 0)
        goto out;
    DT_TRY(dt_store_metric_names(store, &names, &count, run->id, arena, err));
    for (int64_t i = 0; i < count; i++)
        dt_strbuf_add_fmt(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    if (count > 0)
        DT_THROW(err, DT_ERR_USAGE, "run '%s' has no metric '%s' (it has %s)", run->id, name,
                 all.data);
out:
    dt_strbuf_release(&all);
    return st;
}

static dt_status read_run(dt_run_points *out, dt_store *store, const char *ref, const char *name,
                          const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_runs_find(store, &run, ref, call, err));
    if (name != NULL)
        DT_TRY(check_name(name, store, &run, call->arena, err));
    out->run = run.id;
    DT_TRY(dt_store_metric_list(store, &out->points, &out->count, run.id, name, -1, 0, call->arena,
                                err));
out:
    return st;
}

static dt_status metrics(dt_call *call, dt_error *err)
{
    const char *name = dt_arguments_get(call->args, "name")->text;
    int format = dt_arguments_get(call->args, "format")->choice;
    size_t count = (size_t)call->args->operands_count;
    dt_run_points *runs = dt_arena_alloc_array(call->arena, count, sizeof(runs[0]));
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    for (size_t i = 0; i < count; i++)
        DT_TRY(read_run(&runs[i], store, call->args->operands[i], name, call, err));
    if (call->json) {
        DT_TRY(print_json(runs, count, err));
    } else if (format == FORMAT_WIDE) {
        DT_TRY(dt_wide_add(&text, runs, count, call->arena, err));
        DT_TRY(dt_report_text(&text, err));
    } else {
        DT_TRY(print_lines(runs, count, format, err));
    }
out:
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "name",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help = "print only this metric, as in --name valid_loss; with a / at the end all that begin "
             "so: system/ is what the nodes were used for"},
    {.name = "format",
     .kind = DT_OPTION_CHOICE,
     .value = "FORMAT",
     .choices = formats,
     .fallback = "csv",
     .help = "output format"},
    {0},
};

const dt_command dt_command_metrics = {
    .name = "metrics",
    .summary = "print the metrics of runs as CSV or JSON lines",
    .operands = "RUN...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "csv starts with the line attempt,step,name,value,time and is ordered by name, then step.\n"
        "wide is CSV with one line a step and one column a metric: step,loss,valid_loss,...\n"
        "With several runs, lines start with the run: run,attempt,step,... and run,step,loss,...\n"
        "For a resumed run, a step that was repeated by a later attempt is printed once.\n",
    .run = metrics,
};
