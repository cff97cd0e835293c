/* stage_saved: gives a node the checkpoint of a command's program that the attempt continues from (saved.h). */
#include <string.h>

#include "base/file.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/transfer/saved.h"
#include "runner/node_setup/workdir/send.h"

#define ASIDE "continued" /* in the attempt's folder on the node */

/* Merges the tree that all nodes have with the node's own entries, and sets the file of each entry. */
static void choose(dt_tree *out, const char ***sources, const dt_tree *common, const dt_tree *own,
                   const char *folder, const char *own_folder, dt_arena *arena)
{
    size_t most = (size_t)(common->count + own->count) + 1;
    int64_t i = 0, j = 0;

    *out = (dt_tree){.entries = dt_arena_alloc_array(arena, most, sizeof(out->entries[0]))};
    *sources = dt_arena_alloc_array(arena, most, sizeof((*sources)[0]));
    while (i < common->count || j < own->count) {
        int order = i == common->count ? 1
                    : j == own->count
                        ? -1
                        : dt_tree_order(common->entries[i].path, own->entries[j].path);
        const dt_tree_entry *entry = order < 0 ? &common->entries[i] : &own->entries[j];

        (*sources)[out->count] =
            dt_arena_printf(arena, "%s/%s", order < 0 ? folder : own_folder, entry->path);
        out->entries[out->count++] = *entry;
        out->files += entry->kind == DT_TREE_FILE;
        out->bytes += entry->bytes;
        i += order <= 0;
        j += order >= 0;
    }
}

dt_status dt_stage_saved(dt_node_layout *layout, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err)
{
    const json_t *continues = json_object_get(request->plan, "continues");
    const json_t *recipe = json_object_get(request->plan, "recipe");
    const char *path = json_string_value(json_object_get(continues, "checkpoint"));
    int64_t step = (int64_t)json_integer_value(json_object_get(continues, "step"));
    const char *here =
        json_string_value(json_object_get(json_object_get(recipe, "workdir"), "folder"));
    const char *folder, *own_folder, *there, **sources,
        *slash = strrchr(request->checkpoints_here, '/');
    const char *run_folder = dt_arena_strndup(arena, request->checkpoints_here,
                                              (size_t)(slash - request->checkpoints_here));
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_tree common, own, tree;
    dt_send_request send;

    if (path == NULL || path[0] != '/' ||
        !dt_saved_tree(&common, &folder, run_folder, path, step, NULL, arena))
        return DT_OK; /* it was not brought here: the node has it, or the program's rank reports that */
    if (!dt_saved_tree(&own, &own_folder, run_folder, path, step, request->node, arena))
        own = (dt_tree){0};
    choose(&tree, &sources, &common, &own, folder, own_folder, arena);
    there = dt_saved_path_there(path, request->run, here,
                                layout->workdir != NULL ? layout->workdir : here, arena);
    send = (dt_send_request){
        .tree = &tree,
        .what = "the checkpoint",
        .node = request->node,
        .agent = layout->agent,
        .there = dt_arena_strndup(arena, there, (size_t)(strrchr(there, '/') - there)),
        .mode = "add",
        .sources = sources,
        .cancelled = request->cancelled,
        .progress = request->progress,
        .context = request->context};
    if (send.there[0] == '\0')
        send.there = "/";
    st = dt_workdir_send(&send, &problem);
    if (st == DT_ERR_RECIPE) { /* the program has written other files there since */
        send.there = dt_arena_printf(arena, "%s/" ASIDE, layout->folder);
        layout->saved = dt_arena_printf(arena, "%s%s", send.there, strrchr(there, '/'));
        dt_error_clear(&problem);
        st = dt_workdir_send(&send, &problem);
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    return st;
}
