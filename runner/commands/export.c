/* dtrun export: runs as files of other programs. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "runner/view/run_select.h"
#include "runner/view/runs.h"

#include "base/banned.h"

typedef struct wish {
    const dt_export_format *format;
    const char *target;
    int refs_count; /* so many operands are runs */
} wish;

static dt_status read_wish(wish *out, const dt_call *call, dt_error *err)
{
    static const struct {
        const char *option;
        const dt_export_format *format;
    } only[] = {{"checkpoint", &dt_export_hf},     {"dtype", &dt_export_hf},
                {"file-mb", &dt_export_hf},        {"wide", &dt_export_csv},
                {"experiment", &dt_export_mlflow}, {"follow", &dt_export_mlflow}};
    static const struct {
        const char *option;
        const dt_export_format *format;
    } never[] = {{"name", &dt_export_hf},
                 {"name", &dt_export_html},
                 {"force", &dt_export_hf},
                 {"force", &dt_export_mlflow}};
    const dt_value *to = dt_arguments_get(call->args, "to");
    const char *output = dt_arguments_get(call->args, "output")->text;
    int count = call->args->operands_count;

    if (!to->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--to says what runs are exported to: --to csv");
    *out = (wish){.format = dt_export_formats[to->choice], .target = output, .refs_count = count};
    if (output == NULL && !out->format->to_stdout &&
        (count > 1 || (count == 1 && dt_arguments_get(call->args, "group")->given)))
        out->target = call->args->operands[--out->refs_count];
    if (out->target == NULL && !out->format->to_stdout)
        return DT_FAIL(err, DT_ERR_USAGE, "--to %s: %s is missing", out->format->name,
                       out->format->target);
    if (out->target != NULL && out->target[0] == '\0')
        return DT_FAIL(err, DT_ERR_USAGE, "the name of the %s is empty", out->format->target);
    if (out->target == NULL && call->json)
        return DT_FAIL(err, DT_ERR_USAGE, "--json tells of a file: --output names it");
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        if (dt_arguments_get(call->args, never[i].option)->given && out->format == never[i].format)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s does not apply to --to %s", never[i].option,
                           out->format->name);
    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++)
        if (dt_arguments_get(call->args, only[i].option)->given && out->format != only[i].format)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s goes with --to %s alone", only[i].option,
                           only[i].format->name);
    return DT_OK;
}

static dt_status add_run(dt_run *runs, size_t *count, const dt_run *run, const wish *asked,
                         dt_error *err)
{
    size_t most = asked->format->runs_most;

    for (size_t i = 0; i < *count; i++)
        if (strcmp(runs[i].id, run->id) == 0)
            return DT_OK;
    if (most > 0 && *count == most)
        return DT_FAIL(err, DT_ERR_USAGE, "--to %s takes %zu run%s at most", asked->format->name,
                       most, most > 1 ? "s" : "");
    runs[(*count)++] = *run;
    return DT_OK;
}

/* A name that is none may have been meant for the file. */
static dt_status find_named(dt_run *out, dt_store *store, int at, const wish *asked,
                            const dt_call *call, dt_error *err)
{
    const char *ref = call->args->operands[at];
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_runs_find(store, out, ref, call, &problem);

    if (st == DT_ERR_NOT_FOUND && asked->target == NULL && at > 0 && at + 1 == asked->refs_count)
        return DT_FAIL(err, st, "%s; --output %s writes to a file of that name", problem.message,
                       ref);
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    return DT_OK;
}

/* Those that are named, in that order, then those of the group, oldest first. */
static dt_status find_runs(dt_run **out, size_t *count, dt_store *store, const wish *asked,
                           const dt_call *call, dt_error *err)
{
    dt_run_selection selection = {.state = -1,
                                  .group = dt_arguments_get(call->args, "group")->text};
    dt_run_entries group = {0};
    dt_status st = DT_OK;
    dt_run run;

    *count = 0;
    if (selection.group != NULL)
        DT_TRY(dt_run_select(&group, store, &selection, call->arena, err));
    *out = dt_arena_alloc_array(call->arena, (size_t)asked->refs_count + group.count + 1,
                                sizeof((*out)[0]));
    if (*out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    for (int i = 0; i < asked->refs_count; i++) {
        DT_TRY(find_named(&run, store, i, asked, call, err));
        DT_TRY(add_run(*out, count, &run, asked, err));
    }
    for (size_t i = group.count; i-- > 0;)
        DT_TRY(add_run(*out, count, group.items[i].run, asked, err));
    if (*count == 0)
        DT_THROW(err, DT_ERR_USAGE, "no run is named: 'dtrun list' shows all");
out:
    dt_run_entries_release(&group);
    return st;
}

static dt_status check_metric(const dt_export_job *job, dt_error *err)
{
    dt_status st = DT_OK;
    dt_metric_end end;

    if (job->metric == NULL)
        return DT_OK;
    for (size_t i = 0; i < job->count; i++) {
        DT_TRY(dt_store_metric_end(job->store, &end, job->runs[i].id, job->metric, DT_METRIC_LAST,
                                   err));
        if (end.there)
            return DT_OK;
    }
    st = DT_FAIL(err, DT_ERR_USAGE, "none of these runs has a metric '%s'", job->metric);
out:
    return st;
}

static dt_status say_done(const dt_export_job *job, const dt_export_format *format, dt_error *err)
{
    json_t *object, *ids;

    if (job->target == NULL)
        return DT_OK;
    dt_report_note(job->call, "%zu run%s: '%s'", job->count, job->count > 1 ? "s" : "",
                   job->target);
    if (!job->call->json)
        return DT_OK;
    object = dt_report_object();
    ids = json_array();
    for (size_t i = 0; i < job->count; i++)
        json_array_append_new(ids, json_string(job->runs[i].id));
    json_object_set_new(object, "to", json_string(format->name));
    json_object_set_new(object, "path", dt_json_text(job->target));
    json_object_set_new(object, "runs", ids);
    return dt_report_json(object, err);
}

static dt_status export_runs(dt_call *call, dt_error *err)
{
    dt_export_job job = {.call = call,
                         .metric = dt_arguments_get(call->args, "name")->text,
                         .replace = dt_arguments_flag(call->args, "force")};
    dt_status st = DT_OK;
    dt_run *runs;
    wish asked;

    DT_TRY(read_wish(&asked, call, err));
    DT_TRY(dt_store_open_to_read(&job.store, NULL, err));
    DT_TRY(find_runs(&runs, &job.count, job.store, &asked, call, err));
    job.runs = runs;
    job.target = asked.target;
    DT_TRY(check_metric(&job, err));
    DT_TRY(asked.format->write(&job, err));
    DT_TRY(say_done(&job, asked.format, err));
out:
    dt_store_close(job.store);
    return st;
}

static const char *const dtypes[] = {"fp32", "bf16", "fp16", NULL};

static const dt_option options[] = {
    {.name = "to",
     .kind = DT_OPTION_CHOICE,
     .value = "FORMAT",
     .choices = dt_export_names,
     .help = "what is written"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "where it is written, instead of the last operand or stdout"},
    {.name = "group",
     .kind = DT_OPTION_TEXT,
     .value = "GROUP",
     .help = "the runs of this group, too, the oldest first"},
    {.name = "name", .kind = DT_OPTION_TEXT, .value = "NAME", .help = "only this metric"},
    {.name = "wide",
     .kind = DT_OPTION_FLAG,
     .help = "with --to csv: a line a step and a column a metric"},
    {.name = "checkpoint",
     .letter = 'c',
     .kind = DT_OPTION_TEXT,
     .value = "STEP|best|DIR",
     .help = "with --to hf: this checkpoint instead of the newest"},
    {.name = "dtype",
     .kind = DT_OPTION_CHOICE,
     .value = "TYPE",
     .choices = dtypes,
     .fallback = "fp32",
     .help = "with --to hf: type of the tensors"},
    {.name = "file-mb",
     .kind = DT_OPTION_NUMBER,
     .value = "N",
     .fallback = "5000",
     .low = 0.001,
     .high = 1e6,
     .help = "with --to hf: MB of tensors in one file; more files have an index"},
    {.name = "experiment",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .fallback = "dtrun",
     .help = "with --to mlflow: the experiment, which is made where there is none"},
    {.name = "follow",
     .kind = DT_OPTION_FLAG,
     .help = "with --to mlflow: continue until the runs have ended"},
    {.name = "force", .kind = DT_OPTION_FLAG, .help = "replace a file that is there"},
    {0},
};

const dt_command dt_command_export = {
    .name = "export",
    .summary = "runs as files of other programs",
    .operands = "RUN... [FILE|DIR]",
    .operands_max = -1,
    .options = options,
    .notes =
        "csv          a line a point, or with --wide a line a step and a column a metric; to\n"
        "             stdout, or to --output FILE\n"
        "jsonl        a JSON object a point and line; to stdout, or to --output FILE\n"
        "tensorboard  DIR/NAME-ID/events...: 'tensorboard --logdir DIR' shows them\n"
        "html         FILE: the page of a run, or of up to 8 their comparison, with its charts\n"
        "parquet      FILE, one table of all points: for pyarrow, pandas, DuckDB\n"
        "hf           DIR: a checkpoint for Hugging Face's transformers: config.json,\n"
        "             safetensors, and the tokenizer that model.from came with\n"
        "mlflow       URL of a tracking server, as http://localhost:5000: points, recipe, tags,\n"
        "             state. Again it sends what is missing, also where it broke off; --follow\n"
        "             continues until the runs have ended: a server that is away is waited for,\n"
        "             one that refuses for 10 minutes ends it. MLFLOW_TRACKING_USERNAME and\n"
        "             _PASSWORD, else _TOKEN, of the environment\n"
        "\n"
        "A file is there whole or not at all, and replaces another one only with --force. A run\n"
        "that continues is exported up to the step that it has done. Of a value that is not\n"
        "finite csv has nan, inf or -inf, JSON null and that word in \"not_finite\".\n",
    .run = export_runs,
};
