/* dtrun export: writes runs in the formats of other programs. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"
#include "runner/launch/existing_run.h"
#include "runner/view/runs/runs.h"

typedef struct wish {
    const dt_export_format *format;
    const char *target;
    int refs_count;    /* this many leading operands are runs */
    const char *which; /* hf: which checkpoint; NULL: the newest */
} wish;

static dt_status read_wish(wish *out, const dt_call *call, dt_error *err)
{
    static const struct {
        const char *option;
        const dt_export_format *format, *or_else, *or_third;
    } only[] = {{"checkpoint", &dt_export_hf, &dt_export_peft, &dt_export_gguf},
                {"dtype", &dt_export_hf, &dt_export_peft, NULL},
                {"file-mb", &dt_export_hf, NULL, NULL},
                {"merge", &dt_export_hf, &dt_export_gguf, NULL},
                {"type", &dt_export_gguf, NULL, NULL},
                {"wide", &dt_export_csv, NULL, NULL},
                {"experiment", &dt_export_mlflow, NULL, NULL},
                {"follow", &dt_export_mlflow, NULL, NULL}};
    static const struct {
        const char *option;
        const dt_export_format *format;
    } never[] = {{"name", &dt_export_hf},  {"name", &dt_export_peft},  {"name", &dt_export_html},
                 {"force", &dt_export_hf}, {"force", &dt_export_peft}, {"force", &dt_export_mlflow},
                 {"name", &dt_export_gguf}};
    const dt_value *to = dt_arguments_get(call->args, "to");
    const char *output = dt_arguments_get(call->args, "output")->text;
    int count = call->args->operands_count;

    if (!to->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--to is missing (for example --to csv)");
    *out = (wish){.format = dt_export_formats[to->choice],
                  .target = output,
                  .refs_count = count,
                  .which = dt_arguments_get(call->args, "checkpoint")->text};
    if (output == NULL && !out->format->to_stdout &&
        (count > 1 || (count == 1 && dt_arguments_get(call->args, "group")->given)))
        out->target = call->args->operands[--out->refs_count];
    if (out->target == NULL && !out->format->to_stdout)
        return DT_FAIL(err, DT_ERR_USAGE, "--to %s: %s is missing", out->format->name,
                       out->format->target);
    if (out->target != NULL && out->target[0] == '\0')
        return DT_FAIL(err, DT_ERR_USAGE, "the name of the %s is empty", out->format->target);
    if (out->target == NULL && call->json)
        return DT_FAIL(err, DT_ERR_USAGE, "--json needs --output FILE");
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        if (dt_arguments_get(call->args, never[i].option)->given && out->format == never[i].format)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s does not apply to --to %s", never[i].option,
                           out->format->name);
    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++)
        if (dt_arguments_get(call->args, only[i].option)->given && out->format != only[i].format &&
            out->format != only[i].or_else && out->format != only[i].or_third)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s needs --to %s", only[i].option,
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

/* Finds the run of operand `at`. If the last operand is not a run, the message suggests --output. */
static dt_status find_named(dt_run *out, dt_store *store, int at, wish *asked, const dt_call *call,
                            dt_error *err)
{
    const char *ref = call->args->operands[at];
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (asked->format == &dt_export_hf || asked->format == &dt_export_peft ||
        asked->format == &dt_export_gguf)
        st = dt_from_checkpoint_ref(&ref, &asked->which, ref, true, call, err);
    if (st != DT_OK)
        return st;
    st = dt_runs_find(store, out, ref, call, &problem);

    if (st == DT_ERR_NOT_FOUND && asked->target == NULL && at > 0 && at + 1 == asked->refs_count)
        return DT_FAIL(err, st, "%s; --output %s writes to a file of that name", problem.message,
                       ref);
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    return DT_OK;
}

/* Collects the runs given as operands, in this order, then those of --group, oldest first. */
static dt_status find_runs(dt_run **out, size_t *count, dt_store *store, wish *asked,
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
    for (int i = 0; i < asked->refs_count; i++) {
        DT_TRY(find_named(&run, store, i, asked, call, err));
        DT_TRY(add_run(*out, count, &run, asked, err));
    }
    for (size_t i = group.count; i-- > 0;)
        DT_TRY(add_run(*out, count, group.items[i].run, asked, err));
    if (*count == 0)
        DT_THROW(err, DT_ERR_USAGE, "RUN is missing ('dtrun list' shows all)");
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

static dt_status report_done(const dt_export_job *job, const dt_export_format *format,
                             dt_error *err)
{
    json_t *object, *ids;

    if (job->target == NULL)
        return DT_OK;
    dt_report_note(job->call, "wrote %zu run%s to '%s'", job->count, job->count > 1 ? "s" : "",
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
    job.which = asked.which;
    DT_TRY(check_metric(&job, err));
    DT_TRY(asked.format->write(&job, err));
    DT_TRY(report_done(&job, asked.format, err));
out:
    dt_store_close(job.store);
    return st;
}

static const char *const gguf_types[] = {"f32", "f16", "bf16", "q8_0", NULL};
static const char *const dtypes[] = {"fp32", "bf16", "fp16", NULL};

static const dt_option options[] = {
    {.name = "to",
     .kind = DT_OPTION_CHOICE,
     .value = "FORMAT",
     .choices = dt_export_names,
     .help = "format to write"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "write to this file, instead of the last operand or stdout"},
    {.name = "group",
     .kind = DT_OPTION_TEXT,
     .value = "GROUP",
     .help = "add the runs of this group, oldest first"},
    {.name = "name", .kind = DT_OPTION_TEXT, .value = "NAME", .help = "export only this metric"},
    {.name = "wide",
     .kind = DT_OPTION_FLAG,
     .help = "with --to csv: one line a step, one column a metric"},
    {.name = "checkpoint",
     .letter = 'c',
     .kind = DT_OPTION_TEXT,
     .value = "STEP|best|DIR",
     .help = "with --to hf, peft or gguf: export this checkpoint instead of the newest"},
    {.name = "dtype",
     .kind = DT_OPTION_CHOICE,
     .value = "TYPE",
     .choices = dtypes,
     .fallback = "fp32",
     .help = "with --to hf or peft: data type of the tensors"},
    {.name = "merge",
     .kind = DT_OPTION_FLAG,
     .help = "with --to hf or gguf: add a run's adapter to the weights that it was trained on"},
    {.name = "type",
     .kind = DT_OPTION_CHOICE,
     .value = "TYPE",
     .choices = gguf_types,
     .fallback = "f16",
     .help = "with --to gguf: data type of the matrices"},
    {.name = "file-mb",
     .kind = DT_OPTION_NUMBER,
     .value = "N",
     .fallback = "5000",
     .low = 0.001,
     .high = 1e6,
     .help = "with --to hf: maximum MB of tensors in one file; several files get an index"},
    {.name = "experiment",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .fallback = "dtrun",
     .help = "with --to mlflow: name of the experiment, created if missing"},
    {.name = "follow",
     .kind = DT_OPTION_FLAG,
     .help = "with --to mlflow: keep exporting until the runs have ended"},
    {.name = "force", .kind = DT_OPTION_FLAG, .help = "replace an existing file"},
    {0},
};

const dt_command dt_command_export = {
    .name = "export",
    .summary = "export runs to CSV, Parquet, TensorBoard, MLflow and others",
    .operands = "RUN... [FILE|DIR]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_max = -1,
    .options = options,
    .notes =

        "csv          one line a point, or with --wide one line a step and one column a metric;\n"
        "             to stdout, or to --output FILE\n"
        "jsonl        one JSON object a point; to stdout, or to --output FILE\n"
        "tensorboard  DIR/NAME-ID/events...; view with 'tensorboard --logdir DIR'\n"
        "html         FILE: the page of a run with its charts, or the comparison of up to 20 runs\n"
        "parquet      FILE: one table of all points, for pyarrow, pandas and DuckDB\n"
        "hf           DIR: a checkpoint for Hugging Face's transformers: config.json,\n"
        "             safetensors, and the tokenizer that came with model.from; of a run with\n"
        "             lora with --merge, which prints by how much logits differ on a sample\n"
        "peft         DIR: the adapter of a run with lora, for PEFT\n"
        "gguf         FILE: a checkpoint with tokenizer and chat template for llama.cpp. What\n"
        "             llama.cpp cannot compute is refused by name, and what it does differently\n"
        "             is printed; of a run with lora with --merge\n"
        "mlflow       URL of a tracking server, for example http://localhost:5000: uploads\n"
        "             points, recipe, tags and state. Run it again to send what is missing, also\n"
        "             after an interruption. With --follow it waits while the server is down, and\n"
        "             gives up after 10 minutes of refused requests. Credentials are taken from\n"
        "             MLFLOW_TRACKING_USERNAME and _PASSWORD, else _TOKEN.\n"
        "\n"
        "A file is written whole or not at all; --force replaces an existing one. An active run\n"
        "is exported up to its current step. Values that are not finite are nan, inf or -inf in\n"
        "CSV; in JSON they are null, and \"not_finite\" has that word.\n",
    .run = export_runs,
};
