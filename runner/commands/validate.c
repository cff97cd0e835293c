/* dtrun validate: checks recipes and their data without starting anything. */
#include <string.h>
#include <unistd.h>

#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/launch/estimate.h"
#include "runner/launch/preflight.h"
#include "runner/launch/task.h"
#include "runner/term/term.h"
#include "runner/view/recipe/recipe_report.h"

enum { HASH_SIZE = 33 };

typedef struct verdict {
    const char *path;
    bool valid;
    dt_task_kind task;
    bool without_data; /* --no-data: the data were not checked */
    json_t *origins;   /* of the recipe's values; NULL without --origins */
    json_t *recipe;    /* resolved */
    char hash[HASH_SIZE];
    dt_preflight flight;
    const dt_gpu_spec *gpu; /* of --gpus-as; NULL: the devices that are there */
    dt_run_estimate estimate;
    dt_error problem; /* the first one, if not valid */
    dt_error tight;   /* why it does not fit the memory of this machine; no message if it fits */
} verdict;

/* Prefixes a problem with the recipe's path, unless it has a position, and adds it to call->problems. */
static void add_problem(const verdict *of, const dt_recipe_source *source, dt_status st,
                        const dt_call *call, dt_error *err)
{
    if (strncmp(err->message, of->path, strlen(of->path)) != 0 &&
        strncmp(err->message, "--set ", 6) != 0)
        dt_error_prefix(err, "%s", of->path);
    if (st == DT_ERR_RECIPE)
        dt_problems_add(call->problems, err, "data", false, source->origins->sources,
                        source->origins->sources_count);
}

/* Checks data, weights and memory. A problem is added to call->problems with its line. */
static dt_status check_flight(verdict *out, const dt_recipe *recipe, const dt_recipe_source *source,
                              const dt_call *call, dt_error *err)
{
    const dt_value *as = dt_arguments_get(call->args, "gpus-as");
    dt_status st;

    if (as->given && recipe->task != DT_TASK_TRAIN)
        return DT_FAIL(err, DT_ERR_USAGE, "--gpus-as is only for recipes that train");
    if (as->given)
        st = dt_run_estimate_preflight(&out->flight, &out->gpu, recipe, source, as->text,
                                       call->arena, err);
    else if (dt_arguments_flag(call->args, "no-data"))
        st = dt_preflight_without_data(&out->flight, recipe, call->arena, err);
    else
        st = dt_preflight_recipe(&out->flight, recipe, source, call->arena, err);

    if (st == DT_OK)
        st = dt_weights_preflight(&out->flight, call->arena, err);
    if (st == DT_OK && recipe->task == DT_TASK_TRAIN)
        st = dt_run_estimate_make(&out->estimate, &out->flight, out->gpu, call->arena, err);
    if (st != DT_OK && st != DT_ERR_USAGE)
        add_problem(out, source, st, call, err);
    return st;
}

/* Checks the input and the checkpoint of a recipe whose task is to generate or to score. */
static dt_status check_task(verdict *out, const dt_recipe *recipe, const dt_recipe_source *source,
                            const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    if (dt_arguments_get(call->args, "gpus-as")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--gpus-as is only for recipes that train");
    out->flight = (dt_preflight){.recipe = *recipe};
    if (!out->without_data)
        st = dt_task_preflight(&out->flight, recipe, source, call, err);
    if (st != DT_OK)
        add_problem(out, source, st, call, err);
    return st;
}

static dt_status check(verdict *out, const dt_call *call, dt_error *err)
{
    dt_recipe_source source;
    dt_call reader = *call;
    dt_status st = DT_OK;
    dt_recipe recipe;

    reader.json =
        call->json || dt_arguments_flag(call->args, "sarif"); /* warnings are part of the output */
    dt_problems_init(call->problems, call->arena);
    st = dt_read_recipe(&recipe, &source, out->path, &reader, err);
    if (source.origins != NULL && dt_arguments_flag(call->args, "origins"))
        out->origins = dt_origins_to_json(source.origins);
    DT_TRY(st);
    if (out->origins != NULL)
        out->recipe = dt_recipe_to_json(&recipe);
    out->without_data = dt_arguments_flag(call->args, "no-data");
    dt_recipe_hash(out->hash, &recipe);
    out->task = recipe.task;
    if (dt_task_has_lines(out->task))
        return check_task(out, &recipe, &source, call, err);
    DT_TRY(check_flight(out, &recipe, &source, call, err));
    if (out->gpu != NULL)
        (void)dt_run_estimate_check_gpu(&out->flight, out->gpu, &out->tight);
    else
        (void)dt_preflight_fits_here(&out->flight, &recipe, &out->tight);
out:
    return st;
}

static void add_json_warning(const char *line, size_t length, void *array)
{
    json_array_append_new(array, json_stringn(line, length));
}

/* The messages of all warnings, as a JSON array. */
static json_t *warnings_of(const verdict *of, const dt_problems *problems)
{
    json_t *warnings = json_array();

    for (size_t i = 0; i < problems->count; i++)
        if (problems->items[i].warning)
            json_array_append_new(warnings, dt_json_text(problems->items[i].message));
    dt_preflight_each_warning(of->flight.warnings, add_json_warning, warnings);
    if (of->flight.warning != NULL)
        json_array_append_new(warnings, dt_json_text(of->flight.warning));
    if (of->tight.message[0] != '\0')
        json_array_append_new(warnings, dt_json_text(of->tight.message));
    return warnings;
}

static json_t *to_json(const verdict *of, const dt_problems *problems)
{
    json_t *object = json_object();

    json_object_set_new(object, "path", dt_json_text(of->path));
    json_object_set_new(object, "valid", json_boolean(of->valid));
    if (of->valid) {
        json_object_set_new(object, "data_checked", json_boolean(!of->without_data));
        json_object_set_new(object, "hash", json_string(of->hash));
        json_object_set_new(object, "parameters", json_integer(of->flight.memory.parameter_count));
        json_object_set_new(object, "ranks", json_integer(of->flight.plan.world_size));
        json_object_set_new(object, "rank_bytes", json_integer(of->flight.memory.total_bytes));
        if (of->task == DT_TASK_TRAIN)
            dt_run_estimate_to_json(object, &of->estimate);
        else if (dt_task_has_lines(of->task))
            json_object_set_new(object, "lines", json_integer(of->flight.plan.task.lines));
        json_object_set_new(object, "warnings", warnings_of(of, problems));
    } else {
        json_object_set_new(object, "message", dt_json_text(of->problem.message));
    }
    json_object_set_new(object, "problems", dt_problems_to_json(problems));
    if (of->origins != NULL)
        json_object_set(object, "origins", of->origins);
    if (of->recipe != NULL)
        json_object_set(object, "recipe", of->recipe);
    return object;
}

static void add_task_text(dt_strbuf *out, const verdict *good)
{
    const dt_plan *plan = &good->flight.plan;

    if (good->task == DT_TASK_COMMAND)
        dt_strbuf_add_fmt(out, "%s: good (a command, %lld %s)\n", good->path,
                          (long long)plan->world_size,
                          plan->world_size == 1 ? "process" : "processes");
    else if (good->without_data)
        dt_strbuf_add_fmt(out, "%s: good (input and run not checked)\n", good->path);
    else
        dt_strbuf_add_fmt(out, "%s: good (%lld lines, %lld %s, a checkpoint of run %s)\n",
                          good->path, (long long)plan->task.lines, (long long)plan->world_size,
                          plan->world_size == 1 ? "rank" : "ranks", plan->task.run);
}

/* Context of add_text_warning. */
typedef struct warning_list {
    dt_strbuf *text;
    const char *path;
} warning_list;

static void add_text_warning(const char *line, size_t length, void *context)
{
    warning_list *list = context;

    dt_strbuf_add_fmt(list->text, "%s: warning: %.*s\n", list->path, (int)length, line);
}

static void add_text(dt_strbuf *out, const verdict *good, dt_arena *arena)
{
    warning_list warnings = {out, good->path};
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    dt_table table;
    dt_term term;
    char parameters[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];

    dt_strbuf_add_fmt(
        out, "%s: good%s (%s parameters, %lld %s of %s memory)\n", good->path,
        good->without_data ? " (data not checked)" : "",
        dt_format_count(parameters, sizeof(parameters),
                        (double)good->flight.memory.parameter_count),
        (long long)good->flight.plan.world_size,
        good->flight.plan.world_size == 1 ? "rank" : "ranks",
        dt_format_bytes(bytes, sizeof(bytes), (double)good->flight.memory.total_bytes));
    dt_term_init(&term, STDOUT_FILENO);
    dt_table_init(&table, columns, 2, arena);
    dt_run_estimate_add(&table, &good->estimate);
    dt_table_write(out, &table, &term, 2);
    dt_preflight_each_warning(good->flight.warnings, add_text_warning, &warnings);
    if (good->tight.message[0] != '\0')
        dt_strbuf_add_fmt(out, "%s: warning: a launch %s would be refused: %s\n", good->path,
                          good->gpu != NULL ? "there" : "here now", good->tight.message);
}

/* Prints errors at once; adds the verdict on a valid recipe to `text`. */
static void print_verdict(dt_strbuf *text, const verdict *of, const dt_call *call)
{
    dt_term term;

    if (of->valid && of->task != DT_TASK_TRAIN)
        add_task_text(text, of);
    else if (of->valid)
        add_text(text, of, call->arena);
    else if (call->problems->errors > 0)
        dt_report_problems(call->args->command, call->problems);
    else
        (void)dt_report_error(call->args->command, false, &of->problem);
    if (of->origins == NULL)
        return;
    dt_term_init(&term, STDOUT_FILENO);
    dt_origins_view(text, &term, of->origins, call->arena);
}

/* The report on all recipes, in the format that was asked for. */
typedef struct report {
    dt_strbuf text;
    json_t *recipes, *sarif; /* sarif NULL: not asked for */
} report;

static void add_verdict(report *out, const verdict *of, const dt_call *call)
{
    if (out->sarif == NULL && !call->json) {
        print_verdict(&out->text, of, call);
        return;
    }
    if (call->json)
        json_array_append_new(out->recipes, to_json(of, call->problems));
    if (out->sarif == NULL)
        return;
    dt_sarif_add(out->sarif, call->problems);
    if (!of->valid && call->problems->errors == 0)
        dt_sarif_add_error(out->sarif, of->path, of->problem.message);
}

/* Prints the report. With --json and --sarif, the JSON object contains the SARIF log. */
static dt_status print(report *of, const dt_call *call, dt_error *err)
{
    json_t *object;

    if (!call->json)
        return of->sarif != NULL ? dt_report_json(json_incref(of->sarif), err)
                                 : dt_report_styled(&of->text, err);
    object = dt_report_object();
    json_object_set(object, "recipes", of->recipes);
    if (of->sarif != NULL)
        json_object_set(object, "sarif", of->sarif);
    return dt_report_json(object, err);
}

/* Gives every recipe its verdict, also after a broken one. */
static dt_status validate(dt_call *call, dt_error *err)
{
    report all = {.recipes = json_array(),
                  .sarif = dt_arguments_flag(call->args, "sarif") ? dt_sarif_new() : NULL};
    dt_status st = DT_OK;

    dt_strbuf_init(&all.text);
    for (int i = 0; i < call->args->operands_count; i++) {
        verdict of = {
            .path = call->args->operands[i], .problem = DT_ERROR_INIT, .tight = DT_ERROR_INIT};

        of.valid = check(&of, call, &of.problem) == DT_OK;
        add_verdict(&all, &of, call);
        json_decref(of.origins);
        json_decref(of.recipe);
        if (!of.valid && call->exit_code == DT_EXIT_GOOD)
            call->exit_code = dt_report_exit_code(of.problem.code);
    }
    st = print(&all, call, err);
    json_decref(all.recipes);
    json_decref(all.sarif);
    dt_strbuf_release(&all.text);
    return st;
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("override a recipe value, as in launch"),
    {.name = "no-data",
     .kind = DT_OPTION_FLAG,
     .help = "do not check the data, which need not be here"},
    DT_GPUS_AS_OPTION(""),
    {.name = "sarif",
     .kind = DT_OPTION_FLAG,
     .help = "print SARIF 2.1.0, for code hosts and editors"},
    {.name = "origins",
     .kind = DT_OPTION_FLAG,
     .help = "show which line or --set gave each value, and what it overrides"},
    {0},
};

const dt_command dt_command_validate = {
    .name = "validate",
    .summary = "check recipes and their data without starting anything",
    .operands = "RECIPE...",
    .takes = DT_OPERAND_FILE,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "Prints a verdict on every recipe. The exit code is 2 if any is not valid. A recipe that\n"
        "does not fit the memory of this machine may fit another: it gets a warning, with the\n"
        "parts of its memory by size.\n",
    .run = validate,
};
