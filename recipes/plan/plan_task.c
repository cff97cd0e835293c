/* plan_task: writes a plan's task as JSON, and reads and checks a task that may be damaged. */
#include <stdint.h>
#include <string.h>

#include "recipes/plan/plan_int.h"

#define LINES_MAX  ((int64_t)1 << 40)
#define PARTS_MAX  ((int64_t)1 << 20)
#define WEIGHT_MAX ((int64_t)1 << 42) /* the sum over all parts fits into an int64_t */
#define WHERE      "plan: task"

json_t *dt_plan_task_to_json(const dt_plan_task *task)
{
    json_t *arguments = json_array(), *done = json_array(), *parts = json_array();

    for (int64_t i = 0; i < task->arguments.count; i++)
        json_array_append_new(arguments, json_string(task->arguments.items[i]));
    for (int64_t i = 0; i < task->part_count; i++)
        json_array_append_new(parts, json_pack("[I, I]", (json_int_t)task->parts[i].lines,
                                               (json_int_t)task->parts[i].weight));
    for (int64_t i = 0; i < task->done_count; i++)
        json_array_append_new(done, json_pack("[I, I]", (json_int_t)task->done[2 * i],
                                              (json_int_t)task->done[2 * i + 1]));
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "run", task->run, "input",
                     task->input, "target", task->target, "output", task->output, "replace",
                     (int)task->replace, "parts", parts, "arguments", arguments, "done", done);
}

static dt_status read_arguments(dt_plan_task *out, const json_t *task, dt_arena *arena,
                                dt_error *err)
{
    dt_status st = DT_OK;
    const char **items;
    json_t *list;

    DT_TRY(dt_json_get_array(&list, task, "arguments", WHERE, err));
    out->arguments.count = (int64_t)json_array_size(list);
    items = dt_arena_alloc_array(arena, (size_t)(out->arguments.count + 1), sizeof(*items));
    for (int64_t i = 0; i < out->arguments.count; i++) {
        const char *text = json_string_value(json_array_get(list, (size_t)i));

        if (text == NULL)
            DT_THROW(err, DT_ERR_CORRUPT, WHERE ": an argument is not text");
        items[i] = dt_arena_strdup(arena, text);
    }
    out->arguments.items = items;
out:
    return st;
}

static dt_status read_parts(dt_plan_task *out, const json_t *task, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *list;

    DT_TRY(dt_json_get_array(&list, task, "parts", WHERE, err));
    out->part_count = (int64_t)json_array_size(list);
    if (out->part_count < 1 || out->part_count > PARTS_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, WHERE ": %lld parts", (long long)out->part_count);
    out->parts = dt_arena_alloc_array(arena, (size_t)out->part_count, sizeof(*out->parts));
    for (int64_t i = 0; i < out->part_count; i++) {
        const json_t *pair = json_array_get(list, (size_t)i);
        dt_plan_part *part = &out->parts[i];

        *part = (dt_plan_part){out->lines, json_integer_value(json_array_get(pair, 0)),
                               json_integer_value(json_array_get(pair, 1))};
        if (json_array_size(pair) != 2 || part->lines < 1 || part->lines > LINES_MAX - out->lines ||
            part->weight < 1 || part->weight > WEIGHT_MAX)
            DT_THROW(err, DT_ERR_CORRUPT, WHERE ": part %lld: expected [lines, weight]",
                     (long long)i);
        out->lines += part->lines;
    }
out:
    return st;
}

static dt_status read_done(dt_plan_task *out, const json_t *task, dt_arena *arena, dt_error *err)
{
    int64_t before = 0;
    dt_status st = DT_OK;
    json_t *list;

    DT_TRY(dt_json_get_array(&list, task, "done", WHERE, err));
    out->done_count = (int64_t)json_array_size(list);
    out->done = dt_arena_alloc_array(arena, (size_t)(2 * out->done_count + 1), sizeof(*out->done));
    for (int64_t i = 0; i < out->done_count; i++) {
        const json_t *pair = json_array_get(list, (size_t)i);
        const json_t *first = json_array_get(pair, 0), *end = json_array_get(pair, 1);
        int64_t *at = &out->done[2 * i];

        at[0] = json_integer_value(first);
        at[1] = json_integer_value(end);
        if (json_array_size(pair) != 2 || !json_is_integer(first) || !json_is_integer(end) ||
            at[0] < before || at[1] <= at[0] || at[1] > out->part_count)
            DT_THROW(err, DT_ERR_CORRUPT,
                     WHERE ": 'done': expected an ascending list of [first, end]");
        before = at[1];
    }
out:
    return st;
}

dt_status dt_plan_task_from_json(dt_plan_task *out, const json_t *json, dt_arena *arena,
                                 dt_error *err)
{
    static const char *const known[] = {"run",   "input",     "target", "output", "replace",
                                        "parts", "arguments", "done",   NULL};
    dt_status st = DT_OK;
    json_t *task;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_json_get_object(&task, json, "task", "plan", err));
    DT_TRY(dt_plan_check_keys(task, known, "task", err));
    DT_TRY(dt_plan_get_string(&out->run, task, "run", false, WHERE, arena, err));
    DT_TRY(dt_plan_get_path(&out->input, task, "input", false, arena, err));
    DT_TRY(dt_plan_get_path(&out->target, task, "target", true, arena, err));
    DT_TRY(dt_plan_get_path(&out->output, task, "output", false, arena, err));
    DT_TRY(dt_json_get_bool(&out->replace, task, "replace", WHERE, err));
    DT_TRY(read_parts(out, task, arena, err));
    DT_TRY(read_arguments(out, task, arena, err));
    DT_TRY(read_done(out, task, arena, err));
out:
    return st;
}
