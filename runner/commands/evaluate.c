/* dtrun evaluate: computes the metrics of evaluation tasks with models of runs and folders. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/evaluation/evaluation.h"
#include "runner/benchmarks/benchmarks.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/launch/evaluate.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/task.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/results.h"
#include "runner/view/runs/runs.h"

enum { MODELS_MOST = 16 };

/* The rows of all tasks. */
typedef struct task_rows {
    dt_strbuf lines;
    dt_evaluation_task *tasks;
    size_t tasks_count;
    int64_t rows;
} task_rows;

typedef struct evaluated {
    const char *title;
    dt_evaluated_model place;
    bool of_run;
    dt_run run;
    int64_t step;
    dt_evaluation_results results;
} evaluated;

static dt_status read_tasks(task_rows *out, const dt_call *call, dt_error *err)
{
    const dt_value *files = dt_arguments_get(call->args, "task");
    dt_status st = DT_OK;

    if (files->items_count == 0)
        DT_THROW(err, DT_ERR_USAGE, "--task is missing: a file of a task (docs/evaluation.md)");
    out->tasks_count = files->items_count;
    DT_TRY(dt_evaluation_read(&out->lines, &out->tasks, files->items, files->items_count,
                              call->arena, err));
    for (size_t i = 0; i < out->tasks_count; i++)
        out->rows += out->tasks[i].rows;
out:
    return st;
}

/* --- models */

/* Whether an operand is a folder: a path, or a name that no run has. */
static bool is_folder(const char *operand, bool is_run)
{
    struct stat info;

    if (strchr(operand, '/') != NULL || strcmp(operand, ".") == 0)
        return true;
    return !is_run && stat(operand, &info) == 0 && S_ISDIR(info.st_mode);
}

static dt_status find_step(int64_t *step, const char *path, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    *step = dt_checkpoint_get_info(checkpoint)->step;
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

static dt_status open_run(evaluated *out, dt_store *store, const char *operand, const dt_call *call,
                          dt_error *err)
{
    const char *ref, *which;
    dt_status st = DT_OK;

    DT_TRY(dt_from_checkpoint_ref(&ref, &which, operand, true, call, err));
    DT_TRY(dt_runs_find(store, &out->run, ref, call, err));
    DT_TRY(dt_from_checkpoint_find(&out->place.checkpoint, store, &out->run, which, call, err));
    DT_TRY(find_step(&out->step, out->place.checkpoint, err));
    out->of_run = strchr(which != NULL ? which : "", '/') == NULL; /* else another run's folder */
    out->title = dt_arena_printf(call->arena, "%s@%lld", out->run.name, (long long)out->step);
out:
    return st;
}

static dt_status open_model(evaluated *out, dt_store *store, const char *operand,
                            const dt_call *call, dt_error *err)
{
    dt_error unknown = DT_ERROR_INIT;
    dt_status st;

    *out = (evaluated){.title = operand};
    if (is_folder(operand, true))
        return dt_evaluated_folder(&out->place, operand, call->arena, err);
    st = open_run(out, store, operand, call, &unknown);
    if (st == DT_ERR_NOT_FOUND && is_folder(operand, false))
        return dt_evaluated_folder(&out->place, operand, call->arena, err);
    return st == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", unknown.message);
}

static dt_status check_models(const dt_call *call, dt_error *err)
{
    const dt_value *output = dt_arguments_get(call->args, "output");
    int count = call->args->operands_count;

    if (count > MODELS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "%d models, and at most %d are possible", count,
                       MODELS_MOST);
    if (count > 1 && output->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--output needs a single model");
    if (!output->given)
        return DT_OK;
    return dt_output_check(output->text, dt_arguments_flag(call->args, "force"), call->arena, err);
}

static dt_status evaluate_model(evaluated *io, const task_rows *work, dt_store *store,
                                const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf lines;

    dt_strbuf_init(&lines);
    DT_TRY(dt_evaluate_model(&lines, &io->place, io->title, &work->lines, work->rows, call, err));
    DT_TRY(dt_evaluation_totals(&io->results, lines.data, lines.length, call->arena, err));
    DT_TRY(dt_output_write_asked(&lines, call, err));
    if (io->of_run)
        DT_TRY(dt_task_results_store(store, &io->run, io->step, &io->results, err));
out:
    dt_strbuf_release(&lines);
    return st;
}

/* --- what is printed */

static json_t *to_json(const task_rows *work, const evaluated *models, int count)
{
    json_t *object = dt_report_object(), *tasks = json_array(), *list = json_array(), *one;

    for (size_t i = 0; i < work->tasks_count; i++)
        json_array_append_new(tasks, json_pack("{s:s, s:o, s:s, s:I}", "task", work->tasks[i].name,
                                               "file", dt_json_text(work->tasks[i].path), "kind",
                                               dt_evaluation_kind_name(work->tasks[i].kind), "rows",
                                               (json_int_t)work->tasks[i].rows));
    for (int i = 0; i < count; i++) {
        one = json_pack("{s:o}", "model", dt_json_text(models[i].title));
        if (models[i].of_run) {
            json_object_set_new(one, "run", json_string(models[i].run.id));
            json_object_set_new(one, "step", json_integer(models[i].step));
        }
        json_object_set_new(one, "tasks", dt_evaluation_to_json(&models[i].results));
        json_array_append_new(list, one);
    }
    json_object_set_new(object, "tasks", tasks);
    json_object_set_new(object, "models", list);
    return object;
}

static void note_cut(const evaluated *model, const dt_call *call)
{
    for (size_t i = 0; i < model->results.count; i++)
        if (model->results.items[i].cut > 0)
            dt_report_note(call,
                           "%s: %lld of %lld rows of '%s' exceed the model's context: their "
                           "prompts lost their beginning",
                           model->title, (long long)model->results.items[i].cut,
                           (long long)model->results.items[i].rows, model->results.items[i].task);
}

static dt_status print(const task_rows *work, const evaluated *models, int count,
                       const dt_call *call, dt_error *err)
{
    dt_results_column columns[MODELS_MOST];
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_term term;

    if (call->json)
        return dt_report_json(to_json(work, models, count), err);
    dt_strbuf_init(&text);
    dt_term_init(&term, STDOUT_FILENO);
    for (int i = 0; i < count; i++) {
        columns[i] = (dt_results_column){models[i].title, &models[i].results};
        note_cut(&models[i], call);
    }
    dt_results_add(&text, &term, columns, (size_t)count, 0, call->arena);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- on the ranks of a run */

static dt_status print_run(dt_store *store, const char *run, const char *title, const dt_call *call,
                           dt_error *err)
{
    evaluated model = {.title = title};
    dt_task_results newest;
    dt_status st = DT_OK;

    DT_TRY(dt_results_newest(&newest, store, run, call->arena, err));
    model.results = newest.results;
    DT_TRY(print(NULL, &model, 1, call, err));
out:
    return st;
}

static dt_status launch_folder(const char **task, const evaluated *model, const dt_call *call,
                               dt_error *err)
{
    char folder[4096];

    if (realpath(model->title, folder) == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot open the folder '%s'", model->title);
    return dt_task_launch_folder(task, dt_arena_strdup(call->arena, folder), &model->place, call,
                                 err);
}

static dt_status launch(dt_call *call, dt_error *err)
{
    const char *operand = call->args->operands[0], *task;
    dt_store *store = NULL;
    json_t *object = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    evaluated model;

    dt_strbuf_init(&text);
    if (call->args->operands_count > 1)
        DT_THROW(err, DT_ERR_USAGE, "--ranks, --nodes and --gpus need a single RUN or FOLDER");
    if (dt_arguments_get(call->args, "task")->items_count == 0)
        DT_THROW(err, DT_ERR_USAGE, "--task is missing: a file of a task (docs/evaluation.md)");
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(open_model(&model, store, operand, call, err));
    if (model.run.id != NULL && !model.of_run)
        DT_THROW(err, DT_ERR_USAGE,
                 "--ranks, --nodes and --gpus need a checkpoint of the RUN itself");
    if (model.of_run)
        DT_TRY(dt_task_launch(&task, &model.run, model.place.checkpoint, call, err));
    else
        DT_TRY(launch_folder(&task, &model, call, err));
    DT_TRY(dt_task_follow(&text, &object, store, task, call, err));
    if (object != NULL)
        DT_TRY(dt_report_json(json_incref(object), err));
    else if (call->exit_code == DT_EXIT_GOOD && !dt_arguments_flag(call->args, "detach"))
        DT_TRY(print_run(store, task, model.title, call, err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

/* --- --convert: files of tasks from those of published benchmarks */

static dt_status check_convert(const dt_call *call, dt_error *err)
{
    static const char *const allowed[] = {"convert", "output", "force", "json", NULL};
    const dt_arguments *args = call->args;

    for (size_t i = 0, k; i < args->options_count; i++) {
        for (k = 0; allowed[k] != NULL && strcmp(allowed[k], args->options[i].name) != 0;)
            k++;
        if (args->values[i].given && allowed[k] == NULL)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--convert and --%s cannot be combined: convert the files first",
                           args->options[i].name);
    }
    if (call->json && !dt_arguments_get(args, "output")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--convert with --json needs --output FILE");
    return DT_OK;
}

static dt_status report_converted(const dt_converted *counts, int form, const dt_call *call,
                                  dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "output")->text;
    json_t *object;

    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "benchmark", json_string(dt_benchmark_names[form]));
        json_object_set_new(object, "file", dt_json_text(path));
        json_object_set_new(object, "rows", json_integer(counts->rows));
        return dt_report_json(object, err);
    }
    if (path != NULL)
        dt_report_note(call, "wrote %lld rows to %s: dtrun evaluate MODEL --task %s",
                       (long long)counts->rows, path, path);
    return DT_OK;
}

static dt_status convert(dt_call *call, dt_error *err)
{
    const dt_arguments *args = call->args;
    int form = dt_arguments_get(args, "convert")->choice;
    dt_converted counts;
    dt_output output;
    dt_status st = DT_OK;
    dt_strbuf lines;

    dt_strbuf_init(&lines);
    DT_TRY(check_convert(call, err));
    DT_TRY(dt_benchmark_convert(&lines, &counts, form, (const char *const *)args->operands,
                                (size_t)args->operands_count, err));
    if (counts.unnamed > 0)
        dt_report_note(call,
                       "%lld of %lld rows have no 'subject': their prompts lack the sentence that "
                       "names it",
                       (long long)counts.unnamed, (long long)counts.rows);
    DT_TRY(dt_output_open(&output, dt_arguments_get(args, "output")->text,
                          dt_arguments_flag(args, "force"), call->arena, err));
    dt_strbuf_add(&output.text, lines.data, lines.length);
    DT_TRY(dt_output_close(&output, DT_OK, err));
    DT_TRY(report_converted(&counts, form, call, err));
out:
    dt_strbuf_release(&lines);
    return st;
}

/* --- the command */

static dt_status evaluate(dt_call *call, dt_error *err)
{
    int count = call->args->operands_count;
    evaluated *models = dt_arena_alloc_array(call->arena, MODELS_MOST, sizeof(*models));
    dt_store *store = NULL;
    task_rows work = {.rows = 0};
    dt_status st = DT_OK;
    bool ranks;

    if (dt_arguments_get(call->args, "convert")->given)
        return convert(call, err);
    dt_strbuf_init(&work.lines);
    DT_TRY(dt_task_is_wanted(&ranks, call, err));
    DT_TRY(check_models(call, err));
    if (ranks)
        return launch(call, err);
    DT_TRY(read_tasks(&work, call, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    for (int i = 0; i < count; i++)
        DT_TRY(open_model(&models[i], store, call->args->operands[i], call, err));
    for (int i = 0; i < count; i++)
        DT_TRY(evaluate_model(&models[i], &work, store, call, err));
    DT_TRY(print(&work, models, count, call, err));
out:
    dt_strbuf_release(&work.lines);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "task",
     .letter = 't',
     .kind = DT_OPTION_LIST,
     .value = "FILE",
     .help = "a file of a task, as docs/evaluation.md describes it"},
    {.name = "convert",
     .kind = DT_OPTION_CHOICE,
     .value = "BENCHMARK",
     .choices = dt_benchmark_names,
     .help = "evaluate nothing: convert FILEs of this benchmark into the file of a task"},
    DT_FROM_CHECKPOINT_OPTIONS,
    DT_PRECISION_OPTION,
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "write the result of each row, or the converted rows, to this file, as a JSON object "
             "a line"},
    {.name = "force", .kind = DT_OPTION_FLAG, .help = "with --output: replace an existing file"},
    DT_TASK_OPTIONS_OF("", "rows"),
    {0},
};

const dt_command dt_command_evaluate = {
    .name = "evaluate",
    .summary = "compute accuracy and perplexity on tasks",
    .operands = "RUN[@STEP|@best]|FOLDER... | --convert BENCHMARK FILE...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "A task is a .jsonl file: rows with choices, of which the likeliest counts (acc, acc_norm\n"
        "by characters, acc_bytes by bytes), rows with an answer that the model generates\n"
        "(exact_match), or texts (word, byte and token perplexity). Each value has its standard\n"
        "error. The values are those of EleutherAI's lm-evaluation-harness on the same rows.\n"
        "FOLDER has config.json, weights and tokenizer.json, as Hugging Face publishes them, or\n"
        "is a checkpoint; a FOLDER has a '/' or is not the name of a run. Several models are\n"
        "printed in one table. Results of a RUN are kept in the history: `dtrun show` and `dtrun\n"
        "compare` show them.\n"
        "With --ranks, --nodes or --gpus the ranks of a new run share the rows of one model; the\n"
        "new run, and RUN, get the results, and --json prints the object of `launch`.\n"
        "--convert writes the rows of the files, as they are published, as one task, without\n"
        "examples before the questions; with --json and --output it prints benchmark, file and\n"
        "rows.\n"
        "--json prints tasks, each with task, file, kind and rows, and models, each with model,\n"
        "run, step, and tasks: kind, rows, cut (rows longer than the context) and metrics, each\n"
        "with value and stderr.\n"
        "  dtrun evaluate ./smollm2 last@best -t arc.jsonl -t wiki.jsonl\n"
        "  dtrun evaluate --convert arc ARC-Easy-Test.jsonl -o arc.jsonl\n",
    .run = evaluate,
};
