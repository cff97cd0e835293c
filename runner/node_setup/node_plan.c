/* node_plan: adapts the plan for the engine of one node.
 *
 * If all nodes share the run's folder, their ranks write one checkpoint together. Otherwise every
 * node writes its ranks' files below its own folder, and gather.c copies them; nodes that share the
 * run's folder then use a separate subfolder of it (node-K).
 */
#include <string.h>

#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/transfer/saved.h"

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
    json_t *out = json_deep_copy(plan), *data;
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
    json_object_set_new(data, "validation",
                        moved(json_object_get(data, "validation"), layout->paths));
    move_text(data, "tokenizer", layout->paths);
    return out;
}
