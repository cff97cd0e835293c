/* plan_json: writes a plan as JSON, and reads and checks a plan that may be damaged. */
#include "recipes/plan/plan.h"

#include <stdint.h>
#include <string.h>

#include "recipes/fields/fields.h"

/* --- single keys */

/* DT_ERR_CORRUPT: the object has a key that is not in the NULL-terminated list. `map`: "" or "ranks". */
static dt_status plan_check_keys(const json_t *object, const char *const *known, const char *map,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    json_t *borrowed = (json_t *)object; /* json_object_foreach reads only */
    const char *key;
    json_t *value;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (!json_is_object(object))
        DT_THROW(err, DT_ERR_CORRUPT, "plan%s%s: expected an object", map[0] != '\0' ? ": " : "",
                 map);
    json_object_foreach(borrowed, key, value) {
        size_t i = 0;

        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] != NULL)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s%s%s", map, map[0] != '\0' ? "." : "", key);
        DT_TRY(dt_version_unknown_key(path.data, "plan", err));
    }
out:
    dt_strbuf_release(&path);
    return st;
}

static dt_status plan_get_int(int64_t *out, const json_t *object, const char *key, int64_t low,
                              int64_t high, const char *where, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_json_get_int(out, object, key, where, err));
    if (*out < low || *out > high)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is %lld: expected %lld to %lld", where, key,
                 (long long)*out, (long long)low, (long long)high);
out:
    return st;
}

/* Copies the string into the arena; `empty` allows "". */
static dt_status plan_get_string(const char **out, const json_t *object, const char *key,
                                 bool empty, const char *where, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *text;

    DT_TRY(dt_json_get_string(&text, object, key, where, err));
    if (text[0] == '\0' && !empty)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is empty", where, key);
    *out = dt_arena_strdup(arena, text);
out:
    return st;
}

/* The same for an absolute path. */
static dt_status plan_get_path(const char **out, const json_t *object, const char *key, bool empty,
                               dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(plan_get_string(out, object, key, empty, "plan", arena, err));
    if ((*out)[0] != '\0' && (*out)[0] != '/')
        DT_THROW(err, DT_ERR_CORRUPT, "plan: '%s' is not an absolute path", key);
out:
    return st;
}

/* --- the task */

#define LINES_MAX  ((int64_t)1 << 40)
#define PARTS_MAX  ((int64_t)1 << 20)
#define WEIGHT_MAX ((int64_t)1 << 42) /* the sum over all parts fits into an int64_t */
#define WHERE      "plan: task"

/* New reference. */
static json_t *plan_task_to_json(const dt_plan_task *task)
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

/* Reads the task of the plan `json`. DT_ERR_CORRUPT. */
static dt_status plan_task_from_json(dt_plan_task *out, const json_t *json, dt_arena *arena,
                                     dt_error *err)
{
    static const char *const known[] = {"run",   "input",     "target", "output", "replace",
                                        "parts", "arguments", "done",   NULL};
    dt_status st = DT_OK;
    json_t *task;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_json_get_object(&task, json, "task", "plan", err));
    DT_TRY(plan_check_keys(task, known, "task", err));
    DT_TRY(plan_get_string(&out->run, task, "run", false, WHERE, arena, err));
    DT_TRY(plan_get_path(&out->input, task, "input", false, arena, err));
    DT_TRY(plan_get_path(&out->target, task, "target", true, arena, err));
    DT_TRY(plan_get_path(&out->output, task, "output", false, arena, err));
    DT_TRY(dt_json_get_bool(&out->replace, task, "replace", WHERE, err));
    DT_TRY(read_parts(out, task, arena, err));
    DT_TRY(read_arguments(out, task, arena, err));
    DT_TRY(read_done(out, task, arena, err));
out:
    return st;
}

/* --- the plan */

#define PLAN_BYTES_MAX ((size_t)16 << 20)
#define WORLD_SIZE_MAX ((int64_t)1 << 20)
#define THREADS_MAX    ((int64_t)4096)
#define DEVICES_MAX    ((int64_t)1024)

/* --- to JSON --- */

static json_t *weights_to_json(const dt_weights_files *weights)
{
    json_t *files = json_array();

    for (int64_t i = 0; i < weights->files.count; i++)
        json_array_append_new(files, json_string(weights->files.items[i]));
    return json_pack("{s:s, s:s, s:o}", "kind", dt_weights_kind_name(weights->kind), "description",
                     weights->description, "files", files);
}

static json_t *prompts_to_json(const dt_plan *plan)
{
    json_t *out = json_array();

    for (int64_t i = 0; i < plan->prompt_count; i++) {
        json_t *ids = json_array();

        for (int64_t k = 0; k < plan->prompts[i].count; k++)
            json_array_append_new(ids, json_integer(plan->prompts[i].ids[k]));
        json_array_append_new(out, ids);
    }
    return out;
}

json_t *dt_plan_to_json(const dt_plan *plan)
{
    json_t *nodes = json_array(), *ranks = json_array(), *out;

    for (int64_t i = 0; i < plan->node_count; i++)
        json_array_append_new(nodes, json_pack("{s:s}", "name", plan->node_names[i]));
    for (int64_t i = 0; i < plan->world_size; i++) {
        const dt_plan_rank *rank = &plan->ranks[i];

        json_array_append_new(ranks, json_pack("{s:I, s:I, s:I, s:s, s:I, s:I}", "rank",
                                               (json_int_t)i, "node", (json_int_t)rank->node,
                                               "local_rank", (json_int_t)rank->local_rank, "device",
                                               rank->device, "replicas", (json_int_t)rank->replicas,
                                               "threads", (json_int_t)rank->threads));
    }
    out = json_pack("{s:i, s:s, s:I, s:I, s:s, s:b, s:s, s:o, s:o, s:o}", "plan", DT_PLAN_VERSION,
                    "run", plan->run, "attempt", (json_int_t)plan->attempt, "world_size",
                    (json_int_t)plan->world_size, "directory", plan->directory, "shared",
                    (int)plan->shared, "resume_from", plan->resume_from, "nodes", nodes, "ranks",
                    ranks, "recipe", dt_recipe_to_json(&plan->recipe));
    if (plan->new_data)
        json_object_set_new(out, "new_data", json_true());
    if (plan->new_model)
        json_object_set_new(out, "new_model", json_true());
    if (plan->until > 0)
        json_object_set_new(out, "until", json_integer((json_int_t)plan->until));
    if (plan->tree != NULL && plan->tree[0] != '\0')
        json_object_set_new(out, "tree", json_string(plan->tree));
    if (plan->git_commit != NULL && plan->git_commit[0] != '\0')
        json_object_set_new(out, "git_commit", json_string(plan->git_commit));
    if (plan->weights.kind != DT_WEIGHTS_NONE)
        json_object_set_new(out, "weights", weights_to_json(&plan->weights));
    if (plan->prompt_count > 0)
        json_object_set_new(out, "prompts", prompts_to_json(plan));
    if (dt_task_has_lines(plan->recipe.task))
        json_object_set_new(out, "task", plan_task_to_json(&plan->task));
    if (plan->program_checkpoint != NULL && plan->program_checkpoint[0] != '\0')
        json_object_set_new(out, "continues",
                            json_pack("{s:s, s:I}", "checkpoint", plan->program_checkpoint, "step",
                                      (json_int_t)plan->program_step));
    return out;
}

/* --- from JSON --- */

static dt_status read_weights_kind(dt_weights_kind *out, const json_t *weights, dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;

    DT_TRY(dt_json_get_string(&name, weights, "kind", "plan: weights", err));
    *out = DT_WEIGHTS_HUGGINGFACE;
    while (*out < DT_WEIGHTS_KINDS && strcmp(dt_weights_kind_name(*out), name) != 0)
        ++*out;
    if (*out == DT_WEIGHTS_KINDS)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "plan: unsupported weights of kind '%.40s'", name);
out:
    return st;
}

static dt_status read_weights(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    static const char *const known[] = {"kind", "description", "files", NULL};
    dt_status st = DT_OK;
    json_t *weights, *files;
    const char **items = NULL;

    DT_TRY(dt_json_get_object(&weights, json, "weights", "plan", err));
    DT_TRY(plan_check_keys(weights, known, "weights", err));
    DT_TRY(read_weights_kind(&out->weights.kind, weights, err));
    DT_TRY(plan_get_path(&out->weights.description, weights, "description", false, arena, err));
    DT_TRY(dt_json_get_array(&files, weights, "files", "plan: weights", err));
    if (json_array_size(files) < 1)
        DT_THROW(err, DT_ERR_CORRUPT, "plan: weights: 'files' is empty");
    items = dt_arena_alloc_array(arena, json_array_size(files), sizeof(*items));
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *path = json_string_value(json_array_get(files, i));

        if (path == NULL || path[0] != '/')
            DT_THROW(err, DT_ERR_CORRUPT, "plan: weights: a file is not an absolute path");
        items[i] = dt_arena_strdup(arena, path);
    }
    out->weights.files = (dt_string_list){items, (int64_t)json_array_size(files)};
out:
    return st;
}

static dt_status read_prompts(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    json_t *prompts, *ids, *id;
    dt_plan_prompt *items;
    dt_status st = DT_OK;
    size_t i, k;

    DT_TRY(dt_json_get_array(&prompts, json, "prompts", "plan", err));
    out->prompt_count = (int64_t)json_array_size(prompts);
    out->prompts = items = dt_arena_alloc_array(arena, json_array_size(prompts), sizeof(*items));
    json_array_foreach(prompts, i, ids) {
        int32_t *to = dt_arena_alloc_array(arena, json_array_size(ids) + 1, sizeof(*to));

        if (json_array_size(ids) == 0)
            DT_THROW(err, DT_ERR_CORRUPT, "plan: 'prompts' has one without ids");
        items[i] = (dt_plan_prompt){to, (int64_t)json_array_size(ids)};
        json_array_foreach(ids, k, id) {
            if (!json_is_integer(id) || json_integer_value(id) < 0 ||
                json_integer_value(id) > INT32_MAX)
                DT_THROW(err, DT_ERR_CORRUPT, "plan: 'prompts' has an id that is not one");
            to[k] = (int32_t)json_integer_value(id);
        }
    }
out:
    return st;
}

static dt_status read_nodes(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    static const char *const known[] = {"name", NULL};
    dt_status st = DT_OK;
    json_t *nodes;

    DT_TRY(dt_json_get_array(&nodes, json, "nodes", "plan", err));
    out->node_count = (int64_t)json_array_size(nodes);
    if (out->node_count < 1)
        DT_THROW(err, DT_ERR_CORRUPT, "plan: 'nodes' is empty");
    out->node_names =
        dt_arena_alloc_array(arena, (size_t)out->node_count, sizeof(*out->node_names));
    for (int64_t i = 0; i < out->node_count; i++) {
        const json_t *node = json_array_get(nodes, (size_t)i);

        DT_TRY(plan_check_keys(node, known, "nodes", err));
        DT_TRY(
            plan_get_string(&out->node_names[i], node, "name", false, "plan: nodes", arena, err));
    }
out:
    return st;
}

static dt_status read_rank(dt_plan *out, const json_t *plan, const json_t *json, dt_arena *arena,
                           dt_error *err)
{
    static const char *const known[] = {"rank",     "node",    "local_rank", "device",
                                        "replicas", "threads", NULL};
    const char *where = "plan: ranks";
    dt_status st = DT_OK;
    dt_plan_rank *rank;
    int64_t index;

    DT_TRY(plan_check_keys(json, known, "ranks", err));
    DT_TRY(plan_get_int(&index, json, "rank", 0, out->world_size - 1, where, err));
    rank = &out->ranks[index];
    if (rank->device != NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: rank %lld is listed twice", where, (long long)index);
    DT_TRY(plan_get_int(&rank->node, json, "node", 0, out->node_count - 1, where, err));
    DT_TRY(plan_get_int(&rank->local_rank, json, "local_rank", 0, out->world_size - 1, where, err));
    DT_TRY(plan_get_int(&rank->replicas, json, "replicas", 1, DEVICES_MAX, where, err));
    DT_TRY(plan_get_int(&rank->threads, json, "threads", 1, THREADS_MAX, where, err));
    DT_TRY(plan_get_string(&rank->device, json, "device", false, where, arena, err));
out:
    return st;
}

/* Checks that the ranks of a node are contiguous, in node order, with local ranks from 0. */
static dt_status check_local_ranks(const dt_plan *plan, dt_error *err)
{
    for (int64_t i = 0; i < plan->world_size; i++) {
        const dt_plan_rank *rank = &plan->ranks[i], *before = i > 0 ? rank - 1 : NULL;
        bool same_node = before != NULL && before->node == rank->node;

        if (rank->local_rank != (same_node ? before->local_rank + 1 : 0) ||
            (before != NULL && rank->node < before->node))
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "plan: ranks: rank %lld: local rank %lld of node %lld is out of order",
                           (long long)i, (long long)rank->local_rank, (long long)rank->node);
    }
    return DT_OK;
}

static dt_status read_ranks(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *ranks;

    DT_TRY(plan_get_int(&out->world_size, json, "world_size", 1, WORLD_SIZE_MAX, "plan", err));
    DT_TRY(dt_json_get_array(&ranks, json, "ranks", "plan", err));
    if ((int64_t)json_array_size(ranks) != out->world_size)
        DT_THROW(err, DT_ERR_CORRUPT, "plan: 'ranks' has %zu entries, 'world_size' is %lld",
                 json_array_size(ranks), (long long)out->world_size);
    out->ranks = dt_arena_alloc_array(arena, (size_t)out->world_size, sizeof(*out->ranks));
    for (size_t i = 0; i < json_array_size(ranks); i++)
        DT_TRY(read_rank(out, json, json_array_get(ranks, i), arena, err));
    DT_TRY(check_local_ranks(out, err));
out:
    return st;
}

static dt_status read_continues(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    static const char *const known[] = {"checkpoint", "step", NULL};
    const json_t *continues = json_object_get(json, "continues");
    dt_status st = DT_OK;

    out->program_checkpoint = "";
    if (continues == NULL)
        return DT_OK;
    if (!json_is_object(continues))
        DT_THROW(err, DT_ERR_CORRUPT, "plan: 'continues': expected an object");
    DT_TRY(plan_check_keys(continues, known, "continues", err));
    DT_TRY(plan_get_path(&out->program_checkpoint, continues, "checkpoint", false, arena, err));
    DT_TRY(plan_get_int(&out->program_step, continues, "step", 0, INT64_MAX, "continues", err));
out:
    return st;
}

dt_status dt_plan_from_json(dt_plan *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    static const char *const known[] = {
        "plan",     "run",       "attempt",   "world_size", "directory", "shared",  "resume_from",
        "new_data", "new_model", "nodes",     "ranks",      "recipe",    "weights", "task",
        "tree",     "setup",     "continues", "git_commit", "until",     "prompts", NULL};
    dt_status st = DT_OK;
    json_t *recipe;

    memset(out, 0, sizeof(*out));
    if (!json_is_object(json))
        DT_THROW(err, DT_ERR_CORRUPT, "plan: expected an object");
    DT_TRY(dt_version_check(json, "plan", DT_PLAN_VERSION, "plan", err));
    DT_TRY(plan_check_keys(json, known, "", err));
    DT_TRY(plan_get_string(&out->run, json, "run", false, "plan", arena, err));
    DT_TRY(plan_get_int(&out->attempt, json, "attempt", 1, INT32_MAX, "plan", err));
    DT_TRY(plan_get_path(&out->directory, json, "directory", false, arena, err));
    DT_TRY(dt_json_get_bool(&out->shared, json, "shared", "plan", err));
    DT_TRY(plan_get_path(&out->resume_from, json, "resume_from", true, arena, err));
    if (json_object_get(json, "new_data") != NULL)
        DT_TRY(dt_json_get_bool(&out->new_data, json, "new_data", "plan", err));
    if (json_object_get(json, "new_model") != NULL)
        DT_TRY(dt_json_get_bool(&out->new_model, json, "new_model", "plan", err));
    if (json_object_get(json, "until") != NULL)
        DT_TRY(plan_get_int(&out->until, json, "until", 1, INT64_MAX, "plan", err));
    out->tree = "";
    if (json_object_get(json, "tree") != NULL)
        DT_TRY(plan_get_string(&out->tree, json, "tree", false, "plan", arena, err));
    out->git_commit = "";
    if (json_object_get(json, "git_commit") != NULL)
        DT_TRY(plan_get_string(&out->git_commit, json, "git_commit", false, "plan", arena, err));
    if (json_object_get(json, "weights") != NULL)
        DT_TRY(read_weights(out, json, arena, err));
    if (json_object_get(json, "prompts") != NULL)
        DT_TRY(read_prompts(out, json, arena, err));
    DT_TRY(read_nodes(out, json, arena, err));
    DT_TRY(read_ranks(out, json, arena, err));
    DT_TRY(dt_json_get_object(&recipe, json, "recipe", "plan", err));
    DT_TRY(dt_recipe_from_json(&out->recipe, recipe, arena, err));
    if (dt_task_has_lines(out->recipe.task))
        DT_TRY(plan_task_from_json(&out->task, json, arena, err));
    DT_TRY(read_continues(out, json, arena, err));
out:
    return st;
}

dt_status dt_plan_read(dt_plan *out, const char *path, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *json = NULL;

    DT_TRY(dt_json_read(&json, path, PLAN_BYTES_MAX, err));
    st = dt_plan_from_json(out, json, arena, err);
    if (st != DT_OK)
        dt_error_prefix(err, "%s", path);
out:
    json_decref(json);
    return st;
}
