#include "runner/launch/task.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/data/data.h"
#include "engine/evaluation/evaluation.h"
#include "engine/tokens/text_lines.h"
#include "engine/weights/weights.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/launch/attempt.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/nodes.h"
#include "runner/launch/preflight.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"

#define INPUT_MOST ((size_t)1 << 30)
#define NAME_MOST  64
/* the work for a line, in bytes of text (task.h): each new token of a text takes a pass of its own */
#define LINE_WEIGHT  16
#define TOKEN_WEIGHT 4
#define WEIGHT_BYTES 4
#define SETS_MOST    4

static const char *text_of(const dt_call *call, const char *name)
{
    return dt_arguments_get(call->args, name)->text;
}

static bool is_given(const dt_call *call, const char *name)
{
    return dt_arguments_get(call->args, name)->given;
}

static bool evaluates(const dt_call *call)
{
    return strcmp(call->args->command->name, "evaluate") == 0;
}

/* --- whether a run is requested */

dt_status dt_task_is_wanted(bool *out, const dt_call *call, dt_error *err)
{
    static const char *const asks[] = {"ranks", "nodes", "gpus", NULL};
    static const char *const of_it[] = {"name", "tag", "group", "note", "wait", "detach", NULL};

    *out = false;
    for (size_t i = 0; asks[i] != NULL; i++)
        *out = *out || is_given(call, asks[i]);
    for (size_t i = 0; !*out && of_it[i] != NULL; i++)
        if (is_given(call, of_it[i]))
            return DT_FAIL(err, DT_ERR_USAGE, "--%s requires --ranks, --nodes or --gpus", of_it[i]);
    if (!*out)
        return DT_OK;
    if (!evaluates(call) && !is_given(call, "input"))
        return DT_FAIL(err, DT_ERR_USAGE, "--ranks, --nodes and --gpus require --input");
    if (is_given(call, "device"))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--device cannot be combined with --ranks or --nodes: use --gpus");
    if (is_given(call, "wait") && is_given(call, "detach"))
        return DT_FAIL(err, DT_ERR_USAGE, "--wait and --detach cannot be combined");
    return DT_OK;
}

/* --- the input */

static int64_t count_lines(const dt_strbuf *text)
{
    dt_text_lines lines = {text->data, text->data + text->length};
    const char *line;
    int64_t count = 0;
    size_t length;

    while (dt_text_lines_next(&line, &length, &lines))
        count++;
    return count;
}

static dt_status read_lines(dt_strbuf *out, int64_t *count, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_read(out, strcmp(path, "-") == 0 ? "/dev/stdin" : path, INPUT_MOST, err));
    *count = count_lines(out);
    if (*count == 0)
        DT_THROW(err, DT_ERR_USAGE, "'%s' has no lines to distribute", path);
out:
    return st;
}

static bool is_of_pairs(const dt_checkpoint *checkpoint)
{
    const json_t *tokenizer = dt_checkpoint_get_info(checkpoint)->tokenizer;
    const char *kind = json_string_value(json_object_get(tokenizer, "kind"));

    return kind != NULL && strcmp(kind, "pairs") == 0;
}

/* Makes the engine's check before there is a run. */
static dt_status check_sides(bool pairs, dt_task_kind kind, bool target, dt_error *err)
{
    if (kind == DT_TASK_EVALUATE && pairs)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "the run was trained on sentence pairs: tasks need a model that predicts the "
            "next token of a text");
    if (kind == DT_TASK_SCORE && pairs && !target)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "the run was trained on sentence pairs: give the translations too (--target, or "
            "lines.target in a recipe)");
    if (target && !pairs)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the run was not trained on sentence pairs: leave out the translations "
                       "(--target, or lines.target in a recipe)");
    return DT_OK;
}

static dt_status read_target(dt_strbuf *out, int64_t lines, const dt_recipe *recipe, dt_error *err)
{
    const char *input = recipe->lines.input, *target = recipe->lines.target;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(read_lines(out, &count, target, err));
    if (count < lines)
        DT_THROW(err, DT_ERR_USAGE, "'%s' ends before line %lld of '%s'", target,
                 (long long)count + 1, input);
    if (count > lines)
        DT_THROW(err, DT_ERR_USAGE, "'%s' ends before line %lld of '%s'", input,
                 (long long)lines + 1, target);
out:
    return st;
}

/* "-", which is stdin, stays. */
static dt_status absolute(const char **out, const char *path, dt_arena *arena, dt_error *err)
{
    char here[4096];

    *out = path;
    if (path[0] == '/' || strcmp(path, "-") == 0)
        return DT_OK;
    if (getcwd(here, sizeof(here)) == NULL)
        return DT_FAIL(err, DT_ERR_IO, "the current folder has no name");
    *out = dt_arena_printf(arena, "%s/%s", here, path);
    return DT_OK;
}

/* --- its recipe: the checkpoint's, with the fields of the task (recipes/fields/fields.h) and one line per
 * step */

static void add_set(const char **sets, size_t *count, const char *key, const char *value,
                    dt_arena *arena)
{
    if (value == NULL)
        return;
    sets[(*count)++] = dt_arena_printf(arena, "%s=%s", key, value);
}

static void begin_recipe(dt_recipe *out, dt_task_kind kind)
{
    static const char *here[] = {"localhost"};

    out->task = kind;
    out->nodes = (dt_string_list){here, 1};
    out->hostfile = "";
    out->gpus = -1;
    out->nodes_min = 0;
    out->ranks = 1;
    out->threads = 0;
    out->tensor.size = 1;
    out->strategy.kind = DT_STRATEGY_DDP;
    out->schedule.epochs = 0;
    out->schedule.warmup_steps = 0;
    out->schedule.decay_steps = 0;
    out->time_limit_seconds = 0;
    out->early_stop.metric = "";
    out->early_stop.after = 0;
    out->notify.webhook = "";
    out->evaluate.tasks = (dt_string_list){0};
}

static dt_status choose_name(dt_recipe *out, const dt_run *parent, const dt_call *call,
                             dt_error *err)
{
    const char *asked = text_of(call, "name"), *task = call->args->command->name;

    if (asked != NULL) {
        out->name = asked;
        return dt_run_name_check(asked, err);
    }
    out->name = dt_arena_printf(call->arena, "%.*s-%s", NAME_MOST - 1 - (int)strlen(task),
                                parent->name, task);
    return DT_OK;
}

/* Sets a field to the value of the option, or to the default of the option. */
static dt_status take_option(dt_recipe *out, const dt_field *field, const char *option,
                             const dt_call *call, dt_error *err)
{
    const dt_value *value = dt_arguments_get(call->args, option);

    if (field->type == DT_FIELD_BOOL)
        return dt_field_set_text(out, field, value->given ? "true" : "false", err);
    if (field->type == DT_FIELD_STRINGS)
        return dt_field_set_list(out, field, (const char **)value->items,
                                 (int64_t)value->items_count, err);
    return value->text != NULL ? dt_field_set_text(out, field, value->text, err) : DT_OK;
}

/* Sets the files and the precision of an evaluation. */
static dt_status take_tasks(dt_recipe *out, const dt_call *call, dt_error *err)
{
    const dt_value *tasks = dt_arguments_get(call->args, "task");
    const char **files = dt_arena_alloc_array(call->arena, tasks->items_count, sizeof(files[0]));
    dt_status st = DT_OK;

    for (size_t i = 0; i < tasks->items_count; i++)
        DT_TRY(absolute(&files[i], tasks->items[i], call->arena, err));
    out->evaluate.tasks = (dt_string_list){files, (int64_t)tasks->items_count};
    DT_TRY(
        dt_field_set_text(out, dt_field_find("precision.kind"), text_of(call, "precision"), err));
out:
    return st;
}

/* Sets the fields of generate and evaluate, which are options of the command. */
static dt_status take_options(dt_recipe *out, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    if (out->task == DT_TASK_EVALUATE)
        return take_tasks(out, call, err);
    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *option = dt_field_generate_option(&dt_fields[i]);

        if (option != NULL && out->task == DT_TASK_GENERATE)
            DT_TRY(take_option(out, &dt_fields[i], option, call, err));
    }
out:
    return st;
}

static dt_status take_lines(dt_recipe *out, const dt_run *parent, const dt_call *call,
                            dt_error *err)
{
    const char *target = out->task == DT_TASK_SCORE ? text_of(call, "target") : NULL;
    const char *output = text_of(call, "output");
    dt_status st = DT_OK;

    out->lines.run = parent->id;
    out->lines.target = out->lines.output = out->lines.input = "";
    if (!evaluates(call))
        DT_TRY(absolute(&out->lines.input, text_of(call, "input"), call->arena, err));
    if (target != NULL)
        DT_TRY(absolute(&out->lines.target, target, call->arena, err));
    if (output != NULL && strcmp(output, "-") == 0)
        output = "./-";
    if (output != NULL)
        DT_TRY(absolute(&out->lines.output, output, call->arena, err));
    out->lines.replace = dt_arguments_flag(call->args, "force");
out:
    return st;
}

/* The recipe that the options of generate or score ask for. */
static dt_status recipe_by_options(dt_recipe *out, dt_recipe *before, const dt_run *parent,
                                   const dt_call *call, dt_error *err)
{
    bool scores = strcmp(call->args->command->name, "score") == 0;
    const char *sets[SETS_MOST], *nodes;
    dt_status st = DT_OK;
    size_t count = 0;

    begin_recipe(before, evaluates(call) ? DT_TASK_EVALUATE
                         : scores        ? DT_TASK_SCORE
                                         : DT_TASK_GENERATE);
    DT_TRY(choose_name(before, parent, call, err));
    DT_TRY(take_lines(before, parent, call, err));
    DT_TRY(take_options(before, call, err));
    dt_nodes_option(&nodes, text_of(call, "nodes"), call->arena);
    add_set(sets, &count, "nodes", nodes, call->arena);
    add_set(sets, &count, "ranks", text_of(call, "ranks"), call->arena);
    add_set(sets, &count, "gpus", text_of(call, "gpus"), call->arena);
    add_set(sets, &count, "threads", text_of(call, "threads"), call->arena);
    DT_TRY(dt_recipe_change(out, before, sets, count, call->arena, err));
out:
    return st;
}

/* The recipe that a recipe file asks for. */
static dt_status recipe_by_file(dt_recipe *out, const dt_recipe *before, const dt_recipe *asked,
                                dt_arena *arena, dt_error *err)
{
    json_t *value = NULL;
    dt_status st = DT_OK;

    *out = *before;
    begin_recipe(out, asked->task);
    for (size_t i = 0; i < dt_fields_count; i++) {
        if (!dt_field_is_of_task(&dt_fields[i], asked->task))
            continue;
        value = dt_field_to_json(asked, &dt_fields[i]);
        DT_TRY(dt_field_set_json(out, &dt_fields[i], value, arena, err));
        json_decref(value);
        value = NULL;
    }
out:
    json_decref(value);
    return st;
}

/* --- the plan */

/* Adds "--option VALUE"; of a flag only the option, and nothing if it is not set. */
static void add_argument(const char **items, dt_string_list *out, const char *option,
                         const json_t *value, dt_arena *arena)
{
    dt_strbuf number;

    if (json_is_false(value))
        return;
    items[out->count++] = dt_arena_printf(arena, "--%s", option);
    if (json_is_true(value))
        return;
    dt_strbuf_init(&number);
    if (!json_is_string(value))
        dt_json_write(&number, value);
    items[out->count++] =
        dt_arena_strdup(arena, json_is_string(value) ? json_string_value(value) : number.data);
    dt_strbuf_release(&number);
}

/* Returns the arguments of the engine's command `generate` that the recipe asks for. */
static dt_string_list list_arguments(const dt_recipe *recipe, dt_arena *arena)
{
    size_t most = 2 * (dt_fields_count + (size_t)recipe->generate.stop.count), k;
    const char **items = dt_arena_alloc_array(arena, most, sizeof(*items));
    dt_string_list list = {items, 0};
    json_t *value, *item;

    for (size_t i = 0; recipe->task == DT_TASK_GENERATE && i < dt_fields_count; i++) {
        const char *option = dt_field_generate_option(&dt_fields[i]);

        if (option == NULL)
            continue;
        value = dt_field_to_json(recipe, &dt_fields[i]);
        json_array_foreach(value, k, item)
            add_argument(items, &list, option, item, arena);
        if (!json_is_array(value))
            add_argument(items, &list, option, value, arena);
        json_decref(value);
    }
    return list;
}

static dt_status place(dt_preflight *flight, const dt_recipe *recipe, dt_arena *arena,
                       dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_preflight_without_data(flight, recipe, arena, err));
    flight->memory.total_bytes = flight->memory.parameter_count * WEIGHT_BYTES;
out:
    return st;
}

/* The contents of the files that a run gets. */
typedef struct texts {
    dt_strbuf input, target;
} texts;

static void texts_init(texts *out)
{
    dt_strbuf_init(&out->input);
    dt_strbuf_init(&out->target);
}

static void texts_release(texts *out)
{
    dt_strbuf_release(&out->input);
    dt_strbuf_release(&out->target);
}

/* The lines of a task: those of its input, or the rows of its evaluation tasks. */
static dt_status read_input(dt_strbuf *out, int64_t *count, const dt_recipe *recipe,
                            dt_arena *arena, dt_error *err)
{
    const dt_string_list *files = &recipe->evaluate.tasks;
    dt_evaluation_task *tasks;
    dt_status st = DT_OK;

    if (recipe->task != DT_TASK_EVALUATE)
        return read_lines(out, count, recipe->lines.input, err);
    DT_TRY(dt_evaluation_read(out, &tasks, files->items, (size_t)files->count, arena, err));
    *count = count_lines(out);
out:
    if (st != DT_OK)
        dt_error_prefix(err, "evaluate.tasks");
    return st;
}

/* Lists the files of the base of an adapter, which nodes get with the checkpoint; of kind none for others. */
static dt_status find_base(dt_weights_files *out, const dt_checkpoint *checkpoint, const char *run,
                           dt_arena *arena, dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    dt_status st = DT_OK;
    dt_recipe trained;

    DT_TRY(dt_recipe_from_json(&trained, info->recipe, arena, err));
    if (trained.lora.rank == 0)
        return DT_OK;
    DT_TRY(dt_weights_find(out, trained.model.from, arena, err));
    DT_TRY(dt_weights_base_check(out, info->base, run, err));
out:
    return st;
}

/* Plans a run whose recipe is complete but for the number of lines. checkpoint: NULL for the weights of a folder. */
static dt_status plan(dt_preflight *flight, texts *out, dt_recipe *recipe,
                      dt_checkpoint *checkpoint, const dt_run *parent, const dt_call *call,
                      dt_error *err)
{
    bool target = recipe->lines.target[0] != '\0';
    bool pairs = checkpoint != NULL && is_of_pairs(checkpoint);
    bool continues = recipe->task == DT_TASK_GENERATE && !pairs;
    int64_t line_weight = LINE_WEIGHT + (continues ? TOKEN_WEIGHT * recipe->generate.tokens : 0);
    dt_plan_task task = {.run = parent->id,
                         .input = recipe->lines.input,
                         .target = recipe->lines.target,
                         .output = recipe->lines.output,
                         .replace = recipe->lines.replace};
    dt_status st = DT_OK;
    int64_t lines;

    if (checkpoint != NULL)
        DT_TRY(dt_checkpoint_verify(checkpoint, err)); /* a damaged one would fail every attempt */
    DT_TRY(check_sides(pairs, recipe->task, target, err));
    DT_TRY(read_input(&out->input, &lines, recipe, call->arena, err));
    if (target)
        DT_TRY(read_target(&out->target, lines, recipe, err));
    dt_task_parts_cut(&task, &out->input, target ? &out->target : NULL, line_weight, call->arena);
    recipe->schedule.steps = task.lines;
    if (recipe->nodes_min == 0 && recipe->nodes.count > 1)
        recipe->nodes_min = 1; /* other nodes take over the lines of lost ones */
    DT_TRY(place(flight, recipe, call->arena, err));
    task.arguments = list_arguments(recipe, call->arena);
    flight->plan.task = task;
    if (checkpoint != NULL)
        DT_TRY(find_base(&flight->plan.weights, checkpoint, parent->id, call->arena, err));
    else
        DT_TRY(dt_weights_find(&flight->plan.weights, recipe->model.from, call->arena, err));
out:
    return st;
}

/* --- launch */

static dt_status launch(const char **run, const dt_recipe_source *source, const dt_labels *labels,
                        const char *checkpoint, dt_preflight *flight, const texts *inputs,
                        const dt_call *call, dt_error *err)
{
    const dt_task_start start = {checkpoint, &inputs->input,
                                 flight->plan.task.target[0] != '\0' ? &inputs->target : NULL};
    dt_store *store = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_nodes_check(flight, flight->recipe.name, call, err));
    dt_interrupt_catch(); /* from here on Ctrl-C leaves a complete run */
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_attempt_launch_task(run, store, source, labels, &start, flight, call->arena, err));
out:
    dt_store_close(store);
    return st;
}

/* before: the recipe of the model. checkpoint: NULL if its weights are those of model.from. */
static dt_status launch_by_options(const char **run, const dt_run *parent, dt_recipe *before,
                                   dt_checkpoint *checkpoint, const char *path, const dt_call *call,
                                   dt_error *err)
{
    dt_recipe_source source = {.path = parent->recipe_path};
    dt_labels labels = {0};
    dt_status st = DT_OK;
    dt_preflight flight;
    dt_recipe recipe;
    texts inputs;

    texts_init(&inputs);
    DT_TRY(dt_label_options_read(&labels, call, err));
    source.text = dt_arena_printf(call->arena, "# dtrun %s %s%s%s\n", call->args->command->name,
                                  parent->id, path[0] != '\0' ? " --checkpoint " : "", path);
    DT_TRY(recipe_by_options(&recipe, before, parent, call, err));
    DT_TRY(plan(&flight, &inputs, &recipe, checkpoint, parent, call, err));
    DT_TRY(launch(run, &source, &labels, path, &flight, &inputs, call, err));
out:
    texts_release(&inputs);
    return st;
}

dt_status dt_task_launch(const char **run, const dt_run *parent, const char *path,
                         const dt_call *call, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;
    dt_recipe before;

    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    DT_TRY(
        dt_recipe_from_json(&before, dt_checkpoint_get_info(checkpoint)->recipe, call->arena, err));
    DT_TRY(launch_by_options(run, parent, &before, checkpoint, path, call, err));
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

dt_status dt_task_launch_folder(const char **run, const char *folder,
                                const dt_evaluated_model *model, const dt_call *call, dt_error *err)
{
    dt_run of = {.id = folder, .name = "folder", .recipe_path = ""};
    const char *name = strrchr(folder, '/');
    dt_recipe before = model->recipe;

    if (name != NULL && dt_run_name_check(name + 1, NULL) == DT_OK)
        of.name = name + 1;
    return model->checkpoint[0] != '\0' ? dt_task_launch(run, &of, model->checkpoint, call, err)
                                        : launch_by_options(run, &of, &before, NULL, "", call, err);
}

/* --- by a recipe file */

/* Checks before the work that the output can be written. */
static dt_status check_output(const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    const char *output = recipe->lines.output;
    dt_status st = DT_OK;

    if (output[0] == '\0')
        return DT_OK;
    if (!recipe->lines.replace && dt_file_exists(output))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "lines.output: '%s' exists; set 'lines.replace: true' to replace it",
                       output);
    st = dt_output_check(output, recipe->lines.replace, arena, err);
    if (st != DT_OK)
        dt_error_prefix(err, "lines.output");
    return st;
}

/* Finds the run and the checkpoint that lines.run names. DT_ERR_RECIPE if they do not exist. */
static dt_status find_checkpoint(const char **path, dt_run *parent, const dt_recipe *asked,
                                 const dt_call *call, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_store *store = NULL;
    const char *ref, *which;
    dt_status st = DT_OK;

    DT_TRY(dt_from_checkpoint_ref(&ref, &which, asked->lines.run, false, call, &problem));
    DT_TRY(dt_store_open_to_read(&store, NULL, &problem));
    DT_TRY(dt_store_run_find(store, parent, ref, call->arena, &problem));
    DT_TRY(dt_from_checkpoint_find(path, store, parent, which, call, &problem));
out:
    dt_store_close(store);
    if (st == DT_ERR_NOT_FOUND || st == DT_ERR_USAGE)
        st = DT_ERR_RECIPE;
    return st == DT_OK ? st : DT_FAIL(err, st, "lines.run: %s", problem.message);
}

static dt_status plan_file(dt_preflight *flight, texts *out, const char **checkpoint,
                           const dt_recipe *asked, const dt_recipe_source *source,
                           const dt_call *call, dt_error *err)
{
    dt_checkpoint *opened = NULL;
    dt_recipe recipe, before;
    dt_status st = DT_OK;
    dt_run parent;

    DT_TRY(check_output(asked, call->arena, err));
    DT_TRY(find_checkpoint(checkpoint, &parent, asked, call, err));
    DT_TRY(dt_checkpoint_open(&opened, *checkpoint, err));
    DT_TRY(dt_recipe_from_json(&before, dt_checkpoint_get_info(opened)->recipe, call->arena, err));
    DT_TRY(recipe_by_file(&recipe, &before, asked, call->arena, err));
    DT_TRY(plan(flight, out, &recipe, opened, &parent, call, err));
out:
    dt_checkpoint_close(opened);
    if (st == DT_OK)
        return DT_OK;
    dt_recipe_locate_lines(err, source, call->arena);
    if (st == DT_ERR_USAGE ||
        st == DT_ERR_NOT_FOUND) /* the recipe is wrong, not the command line */
        err->code = st = DT_ERR_RECIPE;
    return st;
}

dt_status dt_task_preflight(dt_preflight *flight, const dt_recipe *recipe,
                            const dt_recipe_source *source, const dt_call *call, dt_error *err)
{
    const char *checkpoint;
    dt_status st;
    texts inputs;

    texts_init(&inputs);
    st = plan_file(flight, &inputs, &checkpoint, recipe, source, call, err);
    texts_release(&inputs);
    return st;
}

dt_status dt_task_launch_recipe(const char **run, const dt_recipe *recipe,
                                const dt_recipe_source *source, const dt_labels *labels,
                                const dt_call *call, dt_error *err)
{
    const char *checkpoint;
    dt_status st = DT_OK;
    dt_preflight flight;
    texts inputs;

    texts_init(&inputs);
    DT_TRY(plan_file(&flight, &inputs, &checkpoint, recipe, source, call, err));
    flight.origins = source->origins;
    DT_TRY(launch(run, source, labels, checkpoint, &flight, &inputs, call, err));
out:
    texts_release(&inputs);
    return st;
}

/* --- resume */

static dt_status check_resume(const dt_run *run, const dt_plan *plan, const dt_call *call,
                              dt_error *err)
{
    static const char *const of_training[] = {"set", "from", "new-data", "new-model", NULL};

    for (size_t i = 0; of_training[i] != NULL; i++)
        if (is_given(call, of_training[i]))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--%s is only for training runs, and '%s' is a %s run", of_training[i],
                           run->id, dt_task_of(run));
    if (run->state == DT_RUN_FINISHED)
        return DT_FAIL(err, DT_ERR_USAGE, "run '%s' is finished: its lines are in '%s'", run->id,
                       plan->task.output);
    return DT_OK;
}

dt_status dt_task_resume(dt_store *store, dt_run *run, const dt_call *call, dt_error *err)
{
    dt_budget_place resume_place = {0};
    dt_preflight flight;
    dt_status st = DT_OK;
    const char *folder;
    dt_plan before;

    DT_TRY(dt_task_plan(&before, run, call->arena, err));
    DT_TRY(check_resume(run, &before, call, err));
    DT_TRY(dt_run_path(&folder, run->id, NULL, call->arena, err));
    DT_TRY(place(&flight, &before.recipe, call->arena, err));
    DT_TRY(dt_nodes_check(&flight, before.recipe.name, call, err));
    flight.plan.task = before.task;
    flight.plan.weights = before.weights;
    DT_TRY(dt_task_folder_look(&flight.plan.task, folder, call->arena, err));
    resume_place.step = dt_task_lines_done(&flight.plan.task);
    dt_interrupt_catch(); /* from here on Ctrl-C leaves a complete attempt */
    DT_TRY(dt_attempt_resume(store, run, before.resume_from, &resume_place, &flight, call->arena,
                             err));
out:
    return st;
}
