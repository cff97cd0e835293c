/* dtrun import: imports runs of other programs into the history, and converts command lines to recipes. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/options.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/convert/tool.h"
#include "runner/import/import.h"

static const dt_import_format *const formats[] = {&dt_import_csv, &dt_import_mlflow,
                                                  &dt_import_tensorboard, NULL};

static dt_status find_format(const dt_import_format **out, const char *name, dt_error *err)
{
    for (size_t i = 0; formats[i] != NULL; i++)
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return DT_OK;
        }
    return DT_FAIL(
        err, DT_ERR_USAGE,
        "'%s': expected csv, mlflow, tensorboard, fairseq, llm.c, nanogpt, slurm or command", name);
}

enum { SHOWN_MOST = 10 };

/* Names what was left out. */
static void report_left_out(const dt_imported *imported, const dt_call *call)
{
    const dt_import_names *names = &imported->left_out;
    dt_strbuf text;

    if (names->count == 0)
        return;
    dt_strbuf_init(&text);
    for (int32_t i = 0; i < names->count && i < SHOWN_MOST; i++)
        dt_strbuf_add_fmt(&text, "%s'%s'", i > 0 ? ", " : "", names->items[i]);
    if (names->count > SHOWN_MOST)
        dt_strbuf_add_fmt(&text, " and %d more", (int)names->count - SHOWN_MOST);
    dt_report_note(call, "left out, not metrics: %s%s", text.data,
                   imported->decimal_comma ? " (write numbers with a decimal point: 2.5)" : "");
    dt_strbuf_release(&text);
}

static json_t *names_to_json(const dt_import_names *names)
{
    json_t *array = json_array();

    for (int32_t i = 0; i < names->count; i++)
        json_array_append_new(array, dt_json_text(names->items[i]));
    return array;
}

static dt_status report_imported(const char *const *ids, const dt_imported *imported,
                                 const dt_call *call, dt_error *err)
{
    int64_t replaced = imported->count - imported->stored;
    json_t *object = dt_report_object(), *runs = json_array(), *empty = json_array();
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int32_t i = 0; i < imported->runs.count; i++) {
        if (ids[i] == NULL) {
            json_array_append_new(empty, dt_json_text(imported->runs.items[i]));
            continue;
        }
        json_array_append_new(runs, json_string(ids[i]));
        dt_strbuf_add_fmt(&text, "%s\n", ids[i]);
    }
    dt_report_note(call, "imported %lld points of %zu run%s", (long long)imported->stored,
                   json_array_size(runs), json_array_size(runs) == 1 ? "" : "s");
    if (replaced > 0)
        dt_report_note(call, "%lld points were replaced by a later one of the same metric and step",
                       (long long)replaced);
    for (size_t i = 0; i < json_array_size(empty); i++)
        dt_report_note(call, "run '%s' has no points and was left out",
                       json_string_value(json_array_get(empty, i)));
    report_left_out(imported, call);
    json_object_set(object, "runs", runs);
    json_object_set_new(object, "points", json_integer(imported->stored));
    json_object_set_new(object, "replaced", json_integer(replaced));
    json_object_set_new(object, "skipped", json_integer(imported->skipped));
    json_object_set_new(object, "left_out", names_to_json(&imported->left_out));
    json_object_set(object, "empty_runs", empty);
    if (call->json)
        DT_TRY(dt_report_json(json_incref(object), err));
    else
        DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    json_decref(runs);
    json_decref(empty);
    json_decref(object);
    return st;
}

/* Refuses options of other formats, which would have no effect. */
static dt_status check_options(const dt_call *call, const dt_import_format *format, dt_error *err)
{
    const char *of = call->args->operands[0];
    const struct {
        const char *option;
        bool applies;
    } options[] = {
        {"name", format != NULL},
        {"metric", format != NULL && format->has_metric},
        {"experiment", format != NULL && format->has_experiment},
        {"tag", format != NULL},
        {"group", format != NULL},
        {"note", format != NULL},
        {"output", format == NULL},
        {"flags", format == NULL},
        {"as", format == NULL},
        {"yes", false},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (!options[i].applies && dt_arguments_get(call->args, options[i].option)->given)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s does not apply to 'import %s'",
                           options[i].option, of);
    return DT_OK;
}

static dt_status import_runs(dt_call *call, dt_error *err)
{
    dt_import_source source = {.path =
                                   call->args->operands_count > 1 ? call->args->operands[1] : NULL,
                               .metric = dt_arguments_get(call->args, "metric")->text,
                               .call = call};
    const dt_import_format *format = NULL;
    dt_store *store = NULL;
    dt_imported imported;
    dt_status st = DT_OK;
    dt_labels labels;
    const char **ids;

    dt_imported_init(&imported, call->arena);
    if (source.path == NULL || call->args->operands_count > 2)
        DT_THROW(err, DT_ERR_USAGE, "'%s' takes one FILE", call->args->operands[0]);
    DT_TRY(find_format(&format, call->args->operands[0], err));
    DT_TRY(check_options(call, format, err));
    DT_TRY(dt_label_options_read(&labels, call, err));
    DT_TRY(format->read(&imported, &source, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_import_write(&ids, store, &imported, &source,
                           dt_arguments_get(call->args, "name")->text, &labels, err));
    DT_TRY(report_imported(ids, &imported, call, err));
out:
    dt_imported_release(&imported);
    dt_store_close(store);
    return st;
}

/* Runs `dtrun import --record -- bash train.sh`. */
static dt_status import_recorded(dt_call *call, dt_error *err)
{
    static const char *const others[] = {"name", "metric", "experiment", "tag", "group",
                                         "note", "flags",  "as",         NULL};

    for (size_t i = 0; others[i] != NULL; i++)
        if (dt_arguments_get(call->args, others[i])->given)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s and --record cannot be combined", others[i]);
    return dt_convert_record(call, err);
}

static dt_status import(dt_call *call, dt_error *err)
{
    dt_status st;

    if (dt_arguments_flag(call->args, "record"))
        return import_recorded(call, err);
    if (!dt_convert_knows(call->args->operands[0]))
        return import_runs(call, err);
    st = check_options(call, NULL, err);
    return st == DT_OK ? dt_convert(call, err) : st;
}

static const dt_option options[] = {
    {.name = "name",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help =
         "name of the run (default: from the file); with several runs, a prefix of their names"},
    {.name = "metric",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help = "metric of a CSV with only a column 'value' (default: the name of the file)"},
    {.name = "experiment",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help = "mlflow: import only the runs of this experiment"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "write the recipe to this file (default: stdout)"},
    {.name = "flags",
     .kind = DT_OPTION_FLAG,
     .help = "print how each flag of fairseq, llm.c, nanogpt, slurm or torchrun is converted"},
    {.name = "as",
     .kind = DT_OPTION_TEXT,
     .value = "command",
     .help = "fairseq, llm.c, nanogpt: keep the program, as 'import command' does"},
    {.name = "record",
     .kind = DT_OPTION_FLAG,
     .help = "run the script that follows with stand-ins for launchers, and convert the commands "
             "that it starts"},
    {.name = "yes", .letter = 'y', .kind = DT_OPTION_FLAG, .help = "with --record: do not ask"},
    DT_LABEL_OPTIONS,
    {0},
};

const dt_command dt_command_import = {
    .name = "import",
    .summary = "import runs and command lines of other programs",
    .operands = "FORMAT FILE...",
    .takes = DT_OPERAND_WORD,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "With csv, mlflow and tensorboard, prints the ids of the new runs. They can be listed,\n"
        "drawn and compared like others.\n"
        "\n"
        "csv          a column 'step', and either one column a metric, or the columns 'name' and\n"
        "             'value'. 'run' and 'time' (seconds since 1970, or ISO 8601 in UTC) are\n"
        "             optional. Reads what 'dtrun export --to csv' writes.\n"
        "mlflow       the runs of a tracking server, for example http://localhost:5000: points of\n"
        "             metrics, and params to compare the runs by. Credentials are taken from\n"
        "             MLFLOW_TRACKING_USERNAME and _PASSWORD, else _TOKEN.\n"
        "tensorboard  an event file, or a folder: each folder in it that has event files is a\n"
        "             run. Imports scalars and skips everything else.\n"
        "\n"
        "A file is imported whole or not at all: a cell that should be a number and a record with\n"
        "a wrong checksum are errors that name their place.\n"
        "\n"
        "The other formats convert a command line to a recipe; each value has a comment with its\n"
        "flag. Flags that cannot be converted are reported with the reason (docs/import.md).\n"
        "\n"
        "fairseq      -- fairseq-train ..., with or without torchrun or the like in front; or the\n"
        "             command in quotes, a FILE that contains it, or - for stdin\n"
        "llm.c        -- ./train_gpt2cu ..., with or without mpirun in front; or as for fairseq\n"
        "nanogpt      CONFIG.py ... -- --key=value ...: assignments are read, nothing is executed\n"
        "slurm        SCRIPT: its #SBATCH lines, and its command\n"
        "command      -- torchrun train.py ...: any program. torchrun, deepspeed, mpirun, srun\n"
        "             and 'accelerate launch' become nodes and processes; the program stays, and\n"
        "             dtrun runs and supervises it (docs/command.md)\n"
        "\n"
        "A script may have one command, with literal variables; everything that only a shell\n"
        "knows is refused with its line. 'dtrun import --record -- bash train.sh' runs such a\n"
        "script with stand-ins for torchrun, accelerate, deepspeed, mpirun, srun and others that\n"
        "note their exact words; its other commands really run, so it asks before.\n",
    .run = import,
};
