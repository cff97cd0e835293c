#include "runner/launch/task.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/data/data.h"
#include "engine/tokens/text_lines.h"
#include "recipes/fields/fields.h"
#include "runner/cli/interrupt.h"
#include "runner/cli/tags.h"
#include "runner/launch/attempt.h"
#include "runner/launch/from_checkpoint.h"
#include "runner/launch/node_checks.h"
#include "runner/launch/preflight.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/folder/task_run.h"

#include "base/banned.h"

#define INPUT_MOST ((size_t)1 << 30)
#define NAME_MOST  64
/* so that ranks end at about the same time, and little work is lost with a rank */
#define PARTS_A_RANK 64
#define PART_MOST    64 /* lines */
#define PARTS_MOST   16384
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
            return DT_FAIL(err, DT_ERR_USAGE, "--%s requires --ranks or --nodes", of_it[i]);
    if (!*out)
        return DT_OK;
    if (!is_given(call, "input"))
        return DT_FAIL(err, DT_ERR_USAGE, "--ranks and --nodes require --input");
    if (is_given(call, "device"))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--device cannot be combined with --ranks or --nodes: use --gpus");
    if (is_given(call, "wait") && is_given(call, "detach"))
        return DT_FAIL(err, DT_ERR_USAGE, "--wait and --detach cannot be combined");
    return DT_OK;
}

static dt_status read_recipe_of(dt_recipe *out, const dt_run *run, dt_arena *arena, dt_error *err)
{
    json_t *json = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "stored recipe", err));
    DT_TRY(dt_recipe_from_json(out, json, arena, err));
out:
    json_decref(json);
    return st;
}

/* --- the input */

static int64_t count_lines(const dt_strbuf *text)
{
    dt_text_lines all = {text->data, text->data + text->length};
    const char *line;
    int64_t count = 0;
    size_t length;

    while (dt_text_lines_next(&line, &length, &all))
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

/* Makes the engine's check before there is a run. */
static dt_status check_sides(const dt_checkpoint *checkpoint, dt_task_kind kind, bool target,
                             dt_error *err)
{
    const json_t *tokenizer = dt_checkpoint_get_info(checkpoint)->tokenizer;
    const char *of = json_string_value(json_object_get(tokenizer, "kind"));
    bool pairs = of != NULL && strcmp(of, "pairs") == 0;

    if (kind == DT_TASK_SCORE && pairs && !target)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "the run was trained on sentence pairs: give the translations too (--target)");
    if (target && !pairs)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the run was not trained on sentence pairs: leave out --target");
    return DT_OK;
}

static dt_status read_target(dt_strbuf *out, int64_t lines, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(read_lines(out, &count, path, err));
    if (count < lines)
        DT_THROW(err, DT_ERR_USAGE, "--target ends before line %lld of --input",
                 (long long)count + 1);
    if (count > lines)
        DT_THROW(err, DT_ERR_USAGE, "--input ends before line %lld of --target",
                 (long long)lines + 1);
out:
    return st;
}

static int64_t part_lines(int64_t lines, int64_t ranks)
{
    int64_t each = lines / (ranks * PARTS_A_RANK), least = (lines + PARTS_MOST - 1) / PARTS_MOST;

    each = each < 1 ? 1 : each > PART_MOST ? PART_MOST : each;
    return each < least ? least : each;
}

static dt_status absolute(const char **out, const char *path, dt_arena *arena, dt_error *err)
{
    char here[4096];

    *out = path;
    if (path[0] == '/')
        return DT_OK;
    if (getcwd(here, sizeof(here)) == NULL)
        return DT_FAIL(err, DT_ERR_IO, "the current folder has no name");
    *out = dt_arena_printf(arena, "%s/%s", here, path);
    return DT_OK;
}

/* --- its recipe: the checkpoint's, for other nodes, with one line per step */

static void add_set(const char **sets, size_t *count, const char *key, const char *value,
                    dt_arena *arena)
{
    if (value == NULL)
        return;
    sets[(*count)++] = dt_arena_printf(arena, "%s=%s", key, value);
}

/* Turns "gpu[01-04],big" into a list as in a recipe; a text without a comma, or a list, is
 * unchanged. */
static void list_nodes(const char **out, const char *text, dt_arena *arena)
{
    dt_strbuf list;
    bool several = false;
    int depth = 0;

    *out = text;
    if (text == NULL || text[0] == '[')
        return;
    dt_strbuf_init(&list);
    dt_strbuf_add_str(&list, "[\"");
    for (; *text != '\0'; text++) {
        depth += (*text == '[') - (*text == ']');
        several = several || (*text == ',' && depth == 0);
        if (*text == ',' && depth == 0)
            dt_strbuf_add_str(&list, "\", \"");
        else
            dt_strbuf_add_char(&list, *text);
    }
    dt_strbuf_add_str(&list, "\"]");
    if (several)
        *out = dt_arena_strdup(arena, list.data);
    dt_strbuf_release(&list);
}

static void begin_recipe(dt_recipe *out, int64_t lines)
{
    static const char *here[] = {"localhost"};

    out->nodes = (dt_string_list){here, 1};
    out->hostfile = "";
    out->gpus = -1;
    out->nodes_min = 0;
    out->ranks = 1;
    out->threads = 0;
    out->tensor = 1;
    out->strategy.kind = DT_STRATEGY_DDP;
    out->schedule.steps = lines;
    out->schedule.epochs = 0;
    out->schedule.warmup_steps = 0;
    out->schedule.decay_steps = 0;
    out->time_limit_seconds = 0;
    out->early_stop.metric = "";
    out->early_stop.after = 0;
    out->notify.webhook = "";
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

static dt_status make_recipe(dt_recipe *out, const dt_checkpoint *checkpoint, dt_task_kind kind,
                             int64_t lines, const dt_run *parent, const dt_call *call,
                             dt_error *err)
{
    const char *sets[SETS_MOST], *nodes;
    dt_status st = DT_OK;
    dt_recipe before;
    size_t count = 0;

    DT_TRY(
        dt_recipe_from_json(&before, dt_checkpoint_get_info(checkpoint)->recipe, call->arena, err));
    begin_recipe(&before, lines);
    DT_TRY(choose_name(&before, parent, call, err));
    list_nodes(&nodes, text_of(call, "nodes"), call->arena);
    add_set(sets, &count, "nodes", nodes, call->arena);
    add_set(sets, &count, "ranks", text_of(call, "ranks"), call->arena);
    add_set(sets, &count, "gpus", text_of(call, "gpus"), call->arena);
    add_set(sets, &count, "threads", text_of(call, "threads"), call->arena);
    DT_TRY(dt_recipe_change(out, &before, sets, count, call->arena, err));
    /* other nodes take over the lines of lost ones */
    out->nodes_min = out->nodes.count > 1 ? 1 : 0;
    out->task = kind;
out:
    return st;
}

/* --- placement */

static dt_status place(dt_preflight *flight, const dt_recipe *recipe, const dt_call *call,
                       dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_preflight_without_data(flight, recipe, call->arena, err));
    flight->memory.total_bytes = flight->memory.parameter_count * WEIGHT_BYTES;
    DT_TRY(dt_nodes_check(flight, recipe->name, call, err));
out:
    return st;
}

static dt_status launch(const char **run, const dt_run *parent, const char *path,
                        dt_preflight *flight, const dt_task_start *start, const dt_call *call,
                        dt_error *err)
{
    dt_recipe_source source = {.path = parent->recipe_path};
    dt_store *store = NULL;
    dt_labels labels = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_label_options_read(&labels, call, err));
    source.text = dt_arena_printf(call->arena, "# dtrun %s %s --checkpoint %s\n",
                                  call->args->command->name, parent->id, path);
    dt_interrupt_catch(); /* from here on Ctrl-C leaves a complete run */
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(dt_attempt_launch_task(run, store, &source, &labels, start, flight, call->arena, err));
out:
    dt_store_close(store);
    return st;
}

dt_status dt_task_launch(const char **run, const dt_run *parent, const char *path,
                         const dt_call *call, dt_error *err)
{
    bool scores = strcmp(call->args->command->name, "score") == 0;
    const char *target = scores ? text_of(call, "target") : NULL, *output = text_of(call, "output");
    dt_task_kind kind = scores ? DT_TASK_SCORE : DT_TASK_GENERATE;
    dt_plan_task task = {.run = parent->id, .input = "/", .target = "", .output = ""};
    dt_checkpoint *checkpoint = NULL;
    dt_strbuf input, other;
    dt_status st = DT_OK;
    dt_preflight flight;
    dt_recipe recipe;

    dt_strbuf_init(&input);
    dt_strbuf_init(&other);
    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    DT_TRY(check_sides(checkpoint, kind, target != NULL, err));
    DT_TRY(read_lines(&input, &task.lines, text_of(call, "input"), err));
    if (target != NULL)
        DT_TRY(read_target(&other, task.lines, target, err));
    if (output != NULL)
        DT_TRY(absolute(&task.output, output, call->arena, err));
    DT_TRY(make_recipe(&recipe, checkpoint, kind, task.lines, parent, call, err));
    DT_TRY(place(&flight, &recipe, call, err));
    task.replace = dt_arguments_flag(call->args, "force");
    task.part_lines = part_lines(task.lines, flight.plan.world_size);
    dt_from_checkpoint_arguments(&task.arguments, call);
    flight.plan.task = task;
    DT_TRY(launch(run, parent, path, &flight,
                  &(dt_task_start){path, &input, target != NULL ? &other : NULL}, call, err));
out:
    dt_checkpoint_close(checkpoint);
    dt_strbuf_release(&input);
    dt_strbuf_release(&other);
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
    dt_budget_place at = {0};
    dt_preflight flight;
    dt_status st = DT_OK;
    const char *folder;
    dt_recipe recipe;
    dt_plan before;

    DT_TRY(dt_task_plan(&before, run, call->arena, err));
    DT_TRY(check_resume(run, &before, call, err));
    DT_TRY(read_recipe_of(&recipe, run, call->arena, err));
    DT_TRY(dt_run_path(&folder, run->id, NULL, call->arena, err));
    DT_TRY(place(&flight, &recipe, call, err));
    flight.plan.task = before.task;
    DT_TRY(dt_task_folder_look(&flight.plan.task, folder, call->arena, err));
    at.step = dt_task_lines_done(&flight.plan.task);
    dt_interrupt_catch(); /* from here on Ctrl-C leaves a complete attempt */
    DT_TRY(dt_attempt_resume(store, run, before.resume_from, &at, &flight, call->arena, err));
out:
    return st;
}
