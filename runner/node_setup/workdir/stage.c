/* stage: gives a node the folder of a command while the node is prepared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/node_setup/workdir/send.h"
#include "runner/node_setup/workdir/workdir.h"

static const json_t *recipe_workdir(const json_t *plan)
{
    return json_object_get(json_object_get(plan, "recipe"), "workdir");
}

const char *dt_stage_workdir_folder(const json_t *plan)
{
    const json_t *workdir = recipe_workdir(plan);
    const char *folder = json_string_value(json_object_get(workdir, "folder"));
    const char *ship = json_string_value(json_object_get(workdir, "ship"));
    struct stat info;

    if (folder == NULL || folder[0] != '/' || (ship != NULL && strcmp(ship, "never") == 0) ||
        stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return NULL;
    return folder;
}

/* Returns a number that stands for the node in file names. A restart without other nodes does not change it. */
static unsigned long node_number(const char *node)
{
    char hex[DT_DIGEST_SIZE];

    dt_digest_of(hex, node, strlen(node));
    hex[8] = '\0';
    return strtoul(hex, NULL, 16);
}

dt_status dt_stage_workdir(dt_node_layout *layout, const json_t *facts,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    const char *digest = json_string_value(json_object_get(request->plan, "tree"));
    const char *folder = dt_stage_workdir_folder(request->plan), *state, *cache, *slash, *path;
    dt_status st = DT_OK;
    dt_send_request send;
    dt_tree tree;

    if (folder == NULL || json_is_true(json_object_get(facts, "sees")))
        return DT_OK; /* the node has it, or must have it */
    if (digest == NULL)
        return DT_OK; /* the program's rank reports that the folder is missing */
    slash = strrchr(request->checkpoints_here, '/');
    path = dt_arena_printf(arena, "%.*s/" DT_WORKDIR_TREE_FILE,
                           (int)(slash - request->checkpoints_here), request->checkpoints_here,
                           digest);
    if (!dt_file_exists(path))
        return DT_OK; /* the same: at the launch no node was known to need it */
    DT_TRY(dt_tree_read(&tree, path, arena, err));
    DT_TRY(dt_json_get_string(&state, facts, "state", request->node, err));
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    layout->workdir = dt_arena_printf(arena, "%s/nodes/%s/workdir-%lu", state, request->run,
                                      node_number(request->node));
    send = (dt_send_request){.tree = &tree,
                             .what = "workdir",
                             .node = request->node,
                             .agent = layout->agent,
                             .there = layout->workdir,
                             .mode = "build",
                             .cache = cache,
                             .cancelled = request->cancelled,
                             .progress = request->progress,
                             .context = request->context};
    DT_TRY(dt_workdir_send(&send, err));
out:
    return st;
}
