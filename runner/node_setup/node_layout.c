/* node_layout: the paths on a node (attempt-N/node-K/place.json), and the plan with the paths of one node. */
#include <string.h>

#include "base/file.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/transfer/saved.h"

/* --- place.json */

#define PLACE_MAX_BYTES ((size_t)4 << 20)
#define PLACE_FILE      DT_NODE_LAYOUT_FILE

dt_status dt_node_layout_write(const dt_node_layout *layout, const char *here, dt_error *err)
{
    json_t *json =
        json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:s, s:b, s:o}", "node", layout->node, "here",
                  (int)layout->here, "agent", layout->agent, "engine", layout->engine, "folder",
                  layout->folder, "checkpoints", layout->checkpoints, "address", layout->address,
                  "checkpoints_shared", (int)layout->checkpoints_shared, "paths",
                  layout->paths != NULL ? json_incref(layout->paths) : json_object());
    dt_strbuf path, text;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (json == NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "cannot write the paths of node '%s' as JSON", layout->node);
    if (layout->other_address != NULL)
        json_object_set_new(json, "other_address", json_string(layout->other_address));
    if (layout->workdir != NULL)
        json_object_set_new(json, "workdir", json_string(layout->workdir));
    if (layout->saved != NULL)
        json_object_set_new(json, "saved", json_string(layout->saved));
    if (layout->setup != NULL)
        json_object_set_new(json, "setup", json_string(layout->setup));
    dt_strbuf_add_fmt(&path, "%s/" PLACE_FILE, here);
    dt_json_write_pretty(&text, json);
    DT_TRY(dt_file_make_dirs(here, 0700, err));
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* Copies a string into the arena, so that it outlives the document. */
static dt_status take_string(const char **out, const json_t *json, const char *key, dt_arena *arena,
                             dt_error *err)
{
    const char *text;
    dt_status st = dt_json_get_string(&text, json, key, PLACE_FILE, err);

    if (st != DT_OK)
        return st;
    *out = dt_arena_strdup(arena, text);
    return DT_OK;
}

dt_status dt_node_layout_parse(dt_node_layout *out, const char *text, dt_arena *arena,
                               dt_error *err)
{
    json_t *json = NULL;
    dt_status st;

    *out = (dt_node_layout){0};
    DT_TRY(dt_json_parse(&json, text, strlen(text), PLACE_FILE, err));
    DT_TRY(take_string(&out->node, json, "node", arena, err));
    DT_TRY(take_string(&out->agent, json, "agent", arena, err));
    DT_TRY(take_string(&out->engine, json, "engine", arena, err));
    DT_TRY(take_string(&out->folder, json, "folder", arena, err));
    DT_TRY(take_string(&out->checkpoints, json, "checkpoints", arena, err));
    DT_TRY(take_string(&out->address, json, "address", arena, err));
    if (json_object_get(json, "other_address") != NULL)
        DT_TRY(take_string(&out->other_address, json, "other_address", arena, err));
    if (json_object_get(json, "workdir") != NULL)
        DT_TRY(take_string(&out->workdir, json, "workdir", arena, err));
    if (json_object_get(json, "saved") != NULL)
        DT_TRY(take_string(&out->saved, json, "saved", arena, err));
    if (json_object_get(json, "setup") != NULL)
        DT_TRY(take_string(&out->setup, json, "setup", arena, err));
    DT_TRY(dt_json_get_bool(&out->here, json, "here", PLACE_FILE, err));
    DT_TRY(dt_json_get_bool(&out->checkpoints_shared, json, "checkpoints_shared", PLACE_FILE, err));
    DT_TRY(dt_json_get_object(&out->paths, json, "paths", PLACE_FILE, err));
    json_incref(out->paths);
out:
    json_decref(json);
    return st;
}

dt_status dt_node_layout_read(dt_node_layout *out, const char *here, dt_arena *arena, dt_error *err)
{
    dt_strbuf path, text;
    dt_status st;

    *out = (dt_node_layout){0};
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/" PLACE_FILE, here);
    DT_TRY(dt_file_read(&text, path.data, PLACE_MAX_BYTES, err));
    DT_TRY(dt_node_layout_parse(out, text.data, arena, err));
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* node_plan: adapts the plan for the engine of one node.
 *
 * If all nodes share the run's folder, their ranks write one checkpoint together. Otherwise every
 * node writes its ranks' files below its own folder, and gather.c copies them; nodes that share the
 * run's folder then use a separate subfolder of it (node-K).
 */

static json_t *join(const char *folder, const char *name)
{
    dt_strbuf path;
    json_t *out;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    out = json_string(path.data);
    dt_strbuf_release(&path);
    return out;
}

/* Returns the list with each path replaced by its paths on the node, if they differ; a pattern can
 * become several paths. */
static json_t *moved(const json_t *list, const json_t *paths)
{
    json_t *out = json_array();
    const json_t *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item) {
        json_t *there = json_object_get(paths, json_string_value(item));

        if (json_is_array(there))
            json_array_extend(out, there);
        else
            json_array_append(out, there != NULL ? there : (json_t *)item);
    }
    return out;
}

static void move_text(json_t *object, const char *key, const json_t *paths)
{
    const char *text = json_string_value(json_object_get(object, key));
    json_t *there = text != NULL ? json_object_get(paths, text) : NULL;

    if (json_is_array(there))
        json_object_set(object, key, json_array_get(there, 0));
}

/* Replaces the files of the parts of a mixture, as those of data.train. */
static void move_parts(json_t *mixture, const json_t *paths)
{
    json_t *part;
    size_t i;

    json_array_foreach(mixture, i, part)
        json_object_set_new(part, "files", moved(json_object_get(part, "files"), paths));
}

/* Replaces the paths of weights, each of which is a single file. */
static void move_weights(json_t *weights, const json_t *paths)
{
    if (weights == NULL)
        return;
    move_text(weights, "description", paths);
    json_object_set_new(weights, "files", moved(json_object_get(weights, "files"), paths));
}

void dt_nodes_parts(dt_strbuf *out, const dt_node_layout *layout)
{
    const char *slash = strrchr(layout->folder, '/');

    dt_strbuf_add_fmt(out, "%s/%s", layout->checkpoints,
                      slash != NULL ? slash + 1 : layout->folder); /* the last component, node-K */
}

/* Replaces the path of the program's checkpoint, which is that on the node of rank 0. */
static void move_saved(json_t *plan, const dt_node_layout *layout)
{
    json_t *continues = json_object_get(plan, "continues");
    const char *path = json_string_value(json_object_get(continues, "checkpoint"));
    const char *run = json_string_value(json_object_get(plan, "run"));
    const char *here = json_string_value(
        json_object_get(json_object_get(json_object_get(plan, "recipe"), "workdir"), "folder"));
    dt_arena arena;

    if (path == NULL || run == NULL)
        return;
    dt_arena_init(&arena, 0);
    json_object_set_new(
        continues, "checkpoint",
        json_string(layout->saved != NULL
                        ? layout->saved
                        : dt_saved_path_there(path, run, here,
                                              layout->workdir != NULL ? layout->workdir : here,
                                              &arena)));
    dt_arena_release(&arena);
}

json_t *dt_node_plan(const json_t *plan, const dt_node_layout *layout, bool all_shared)
{
    json_t *out = json_deep_copy(plan), *data, *evaluate;
    const char *from = json_string_value(json_object_get(plan, "resume_from"));
    dt_strbuf parts;

    dt_strbuf_init(&parts);
    dt_nodes_parts(&parts, layout);
    json_object_set_new(
        out, "directory",
        json_string(layout->checkpoints_shared && !all_shared ? parts.data : layout->checkpoints));
    dt_strbuf_release(&parts);
    json_object_set_new(out, "shared", json_boolean(all_shared));
    if (from != NULL && from[0] != '\0') {
        const char *slash = strrchr(from, '/');

        json_object_set_new(out, "resume_from",
                            join(layout->checkpoints, slash != NULL ? slash + 1 : from));
    }
    move_weights(json_object_get(out, "weights"), layout->paths);
    move_text(json_object_get(json_object_get(out, "recipe"), "lora"), "from", layout->paths);
    if (json_object_get(out, "task") != NULL) {
        move_text(json_object_get(out, "task"), "input", layout->paths);
        move_text(json_object_get(out, "task"), "target", layout->paths);
    }
    move_saved(out, layout);
    if (layout->workdir != NULL)
        json_object_set_new(json_object_get(json_object_get(out, "recipe"), "workdir"), "folder",
                            json_string(layout->workdir));
    if (layout->setup != NULL)
        json_object_set_new(out, "setup", json_string(layout->setup));
    data = json_object_get(json_object_get(out, "recipe"), "data");
    json_object_set_new(data, "train", moved(json_object_get(data, "train"), layout->paths));
    move_parts(json_object_get(data, "mixture"), layout->paths);
    json_object_set_new(data, "validation",
                        moved(json_object_get(data, "validation"), layout->paths));
    move_text(data, "tokenizer", layout->paths);
    evaluate = json_object_get(json_object_get(out, "recipe"), "evaluate");
    if (json_object_get(evaluate, "tasks") != NULL)
        json_object_set_new(evaluate, "tasks",
                            moved(json_object_get(evaluate, "tasks"), layout->paths));
    return out;
}
