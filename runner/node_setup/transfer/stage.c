/* stage: gives a node what its ranks need: data, weights, and the checkpoint that the run resumes or the
 * program continues from. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/name.h"
#include "recipes/foreign/peft.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/transfer/saved.h"
#include "runner/node_setup/workdir/workdir.h"

/* --- data and weights, to the node's cache; the checkpoint, to its folder of checkpoints */

#define INDEX_MAX_BYTES ((size_t)64 << 20)

/* --- data */

typedef struct staging {
    json_t *paths;
    dt_talk *talk;
    bool never;
    const dt_prepare_request *request;
    dt_arena *arena;
} staging;

/* Escapes a name so that, as a pattern, it matches only itself. A name without a wildcard is not a
 * pattern, and stays unchanged even if it has backslashes. */
static json_t *as_pattern(const char *name)
{
    dt_strbuf text;
    json_t *out;

    if (strpbrk(name, "*?[") == NULL)
        return json_string(name);
    dt_strbuf_init(&text);
    for (; *name != '\0'; name++) {
        if (strchr("*?[\\", *name) != NULL)
            dt_strbuf_add_char(&text, '\\');
        dt_strbuf_add_char(&text, *name);
    }
    out = json_string(text.data);
    dt_strbuf_release(&text);
    return out;
}

/* Copies the file to the node if the node lacks it. *there: its path on the node; equal to `path`
 * if nothing was copied. */
static dt_status place_file(const char **there, const char *path, const staging *stage,
                            dt_error *err)
{
    const dt_prepare_request *request = stage->request;
    dt_status st = DT_OK;
    int64_t bytes;
    dt_same same;

    *there = path;
    if (!dt_file_exists(path)) {
        DT_TRY(dt_talk_size(&bytes, stage->talk, path, err));
        if (bytes < 0)
            DT_THROW(err, DT_ERR_IO, "'%s' exists neither on this machine nor on node '%s'", path,
                     request->node);
        return DT_OK; /* the file exists on the nodes only */
    }
    DT_TRY(dt_nodes_compare(&same, path, stage->talk, request, stage->arena, err));
    if (same == DT_SAME)
        return DT_OK;
    if (stage->never)
        DT_THROW(err, DT_ERR_RECIPE,
                 "data '%s' %s on node '%s', but data.ship is never: put the file there, or set "
                 "data.ship: auto",
                 path, same == DT_MISSING ? "is not" : "is a different file", request->node);
    DT_TRY(dt_upload_file(there, path, NULL, NULL, stage->talk, request, stage->arena, err));
out:
    return st;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Copies the files of one entry, which can be a pattern, in the order in which the engine reads
 * them. A pattern is replaced by the names on this machine, since the node may have more files that
 * match it. */
static dt_status place_entry(const char *entry, const staging *stage, dt_error *err)
{
    json_t *names = json_array();
    bool elsewhere = strpbrk(entry, "*?[\\") != NULL;
    dt_status st = DT_OK;
    glob_t found = {0};
    const char *there;

    if (glob(entry, GLOB_NOSORT | GLOB_ERR | GLOB_NOCHECK, NULL, &found) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot search for '%s' on this machine", entry);
    qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), by_bytes);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        DT_TRY(place_file(&there, found.gl_pathv[i], stage, err));
        elsewhere = elsewhere || there != found.gl_pathv[i];
        json_array_append_new(names, as_pattern(there));
    }
    if (elsewhere)
        json_object_set(stage->paths, entry, names);
out:
    globfree(&found);
    json_decref(names);
    return st;
}

static dt_status place_text(const json_t *item, const staging *stage, dt_error *err)
{
    const char *entry = json_string_value(item);

    return entry != NULL && entry[0] == '/' && json_object_get(stage->paths, entry) == NULL
               ? place_entry(entry, stage, err)
               : DT_OK;
}

static dt_status place_list(const json_t *list, const staging *stage, dt_error *err)
{
    dt_status st = DT_OK;
    const json_t *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item)
        DT_TRY(place_text(item, stage, err));
out:
    return st;
}

/* Copies one file, whose name is not a pattern. */
static dt_status place_weight(const json_t *path, const staging *stage, dt_error *err)
{
    const char *here = json_string_value(path), *there;
    dt_status st = DT_OK;

    if (here == NULL || json_object_get(stage->paths, here) != NULL)
        return DT_OK;
    DT_TRY(place_file(&there, here, stage, err));
    if (there != here)
        json_object_set_new(stage->paths, here, json_pack("[s]", there));
out:
    return st;
}

static bool has_adapter(const json_t *plan)
{
    const json_t *lora = json_object_get(json_object_get(plan, "recipe"), "lora");

    return json_integer_value(json_object_get(lora, "rank")) > 0;
}

/* Copies the folder of an adapter that is trained further to FOLDER/adapter on the node. */
static dt_status place_adapter(const staging *stage, const char *folder, dt_error *err)
{
    static const char *const names[] = {DT_PEFT_CONFIG, DT_PEFT_MODEL};
    const json_t *lora = json_object_get(json_object_get(stage->request->plan, "recipe"), "lora");
    const char *from = json_string_value(json_object_get(lora, "from")), *path, *there;
    const char *into = dt_arena_printf(stage->arena, "%s/adapter", folder);
    dt_status st = DT_OK;

    if (from == NULL || from[0] == '\0')
        return DT_OK;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path = dt_arena_printf(stage->arena, "%s/%s", from, names[i]);
        DT_TRY(dt_upload_file(&there, path, NULL, into, stage->talk, stage->request, stage->arena,
                              err));
    }
    json_object_set_new(stage->paths, from, json_pack("[s]", into));
out:
    return st;
}

/* Copies the tokenizer's file, or what is read of a folder of Hugging Face to FOLDER/tokenizer on the node. */
static dt_status place_tokenizer(const staging *stage, const char *folder, dt_error *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    const json_t *data = json_object_get(json_object_get(stage->request->plan, "recipe"), "data");
    const json_t *item = json_object_get(data, "tokenizer");
    const char *from = json_string_value(item), *path, *there;
    const char *into = dt_arena_printf(stage->arena, "%s/tokenizer", folder);
    dt_status st = DT_OK;

    if (from == NULL || from[0] != '/' ||
        !dt_file_exists(dt_arena_printf(stage->arena, "%s/%s", from, names[0])))
        return place_text(item, stage, err);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path = dt_arena_printf(stage->arena, "%s/%s", from, names[i]);
        if (dt_file_exists(path))
            DT_TRY(dt_upload_file(&there, path, NULL, into, stage->talk, stage->request,
                                  stage->arena, err));
    }
    json_object_set_new(stage->paths, from, json_pack("[s]", into));
out:
    return st;
}

/* Copies the initial weights. A run that resumes from a checkpoint needs none but the base of an adapter, as does a
 * task with the checkpoint of an adapter. */
static dt_status place_weights(const staging *stage, const char *folder, dt_error *err)
{
    const json_t *plan = stage->request->plan, *weights = json_object_get(plan, "weights"), *file;
    const char *from = json_string_value(json_object_get(plan, "resume_from"));
    bool resumes = from != NULL && from[0] != '\0', task = json_object_get(plan, "task") != NULL;
    dt_status st = DT_OK;
    size_t i;

    if (weights == NULL || (resumes && !task && !has_adapter(plan)))
        return DT_OK;
    if (!resumes)
        DT_TRY(place_adapter(stage, folder, err));
    DT_TRY(place_weight(json_object_get(weights, "description"), stage, err));
    json_array_foreach(json_object_get(weights, "files"), i, file)
        DT_TRY(place_weight(file, stage, err));
out:
    return st;
}

/* Copies the lines of the task; the checkpoint's training data are not needed. */
static dt_status place_task(staging *stage, const char *folder, dt_error *err)
{
    const json_t *plan = stage->request->plan, *task = json_object_get(plan, "task");
    const char *from = json_string_value(json_object_get(plan, "resume_from"));
    const char *target = json_string_value(json_object_get(task, "target"));
    dt_status st = DT_OK;

    stage->never = false; /* data.ship does not apply: these files exist on this machine only */
    DT_TRY(place_weight(json_object_get(task, "input"), stage, err));
    if (target != NULL && target[0] != '\0')
        DT_TRY(place_weight(json_object_get(task, "target"), stage, err));
    if (from == NULL || from[0] == '\0') /* a checkpoint has its own tokenizer */
        DT_TRY(place_tokenizer(stage, folder, err));
    DT_TRY(place_weights(stage, NULL, err));
out:
    return st;
}

/* Copies the files of evaluation tasks, whose names are not patterns. */
static dt_status place_tasks(const staging *stage, dt_error *err)
{
    const json_t *recipe = json_object_get(stage->request->plan, "recipe"), *file;
    dt_status st = DT_OK;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(recipe, "evaluate"), "tasks"), i, file)
        DT_TRY(place_weight(file, stage, err));
out:
    return st;
}

dt_status dt_stage_data(json_t *paths, const char *folder, dt_talk *talk,
                        const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    const json_t *data = json_object_get(json_object_get(request->plan, "recipe"), "data");
    const char *ship = json_string_value(json_object_get(data, "ship"));
    staging stage = {.paths = paths,
                     .talk = talk,
                     .never = ship != NULL && strcmp(ship, "never") == 0,
                     .request = request,
                     .arena = arena};
    dt_status st = DT_OK;

    if (json_object_get(request->plan, "task") != NULL)
        return place_task(&stage, folder, err);
    DT_TRY(place_list(json_object_get(data, "train"), &stage, err));
    DT_TRY(place_list(json_object_get(data, "validation"), &stage, err));
    DT_TRY(place_tokenizer(&stage, folder, err));
    DT_TRY(place_tasks(&stage, err));
    DT_TRY(place_weights(&stage, folder, err));
out:
    return st;
}

/* --- the checkpoint to resume from */

static dt_status stage_part(const char *folder, const char *name, const char *digest, dt_talk *talk,
                            const char *into, const dt_prepare_request *request, dt_arena *arena,
                            dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/%s", folder, name), *there;

    return dt_upload_file(&there, path, digest, into, talk, request, arena, err);
}

dt_status dt_stage_checkpoint(const dt_node_layout *layout, dt_talk *talk,
                              const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    const char *from = json_string_value(json_object_get(request->plan, "resume_from"));
    const char *index_path, *into, *name, *digest;
    json_t *index = NULL, *files, *item;
    dt_status st = DT_OK;
    size_t i;

    if (layout->checkpoints_shared || from == NULL || from[0] == '\0')
        return DT_OK;
    index_path = dt_arena_printf(arena, "%s/" DT_CHECKPOINT_INDEX, from);
    into = dt_arena_printf(arena, "%s/%s", layout->checkpoints, basename(from));
    DT_TRY(dt_json_read(&index, index_path, INDEX_MAX_BYTES, err));
    DT_TRY(dt_json_get_array(&files, index, "files", index_path, err));
    json_array_foreach(files, i, item) {
        DT_TRY(dt_json_get_string(&name, item, "name", index_path, err));
        if (json_object_get(request->plan, "task") != NULL &&
            strncmp(name, DT_CHECKPOINT_OPTIMIZER, strlen(DT_CHECKPOINT_OPTIMIZER)) == 0)
            continue; /* ranks that do not train read no state of the optimizer */
        DT_TRY(dt_json_get_string(&digest, item, "xxh3_128", index_path, err));
        DT_TRY(stage_part(from, name, digest, talk, into, request, arena, err));
    }
    DT_TRY(stage_part(from, DT_CHECKPOINT_INDEX, NULL, talk, into, request, arena, err));
    DT_TRY(stage_part(from, DT_CHECKPOINT_MARKER, NULL, talk, into, request, arena, err));
out:
    json_decref(index);
    return st;
}

/* stage_saved: gives a node the checkpoint of a command's program that the attempt continues from (saved.h). */

#define ASIDE "continued" /* in the attempt's folder on the node */

/* Merges the tree that all nodes have with the node's own entries, and sets the file of each entry. */
static void choose(dt_tree *out, const char ***sources, const dt_tree *common,
                   const dt_tree *stage_tree, const char *folder, const char *own_folder,
                   dt_arena *arena)
{
    size_t most = (size_t)(common->count + stage_tree->count) + 1;
    int64_t i = 0, j = 0;

    *out = (dt_tree){.entries = dt_arena_alloc_array(arena, most, sizeof(out->entries[0]))};
    *sources = dt_arena_alloc_array(arena, most, sizeof((*sources)[0]));
    while (i < common->count || j < stage_tree->count) {
        int order = i == common->count ? 1
                    : j == stage_tree->count
                        ? -1
                        : dt_tree_order(common->entries[i].path, stage_tree->entries[j].path);
        const dt_tree_entry *entry = order < 0 ? &common->entries[i] : &stage_tree->entries[j];

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
    dt_tree common, stage_tree, tree;
    dt_send_request send;

    if (path == NULL || path[0] != '/' ||
        !dt_saved_tree(&common, &folder, run_folder, path, step, NULL, arena))
        return DT_OK; /* it was not brought here: the node has it, or the program's rank reports that */
    if (!dt_saved_tree(&stage_tree, &own_folder, run_folder, path, step, request->node, arena))
        stage_tree = (dt_tree){0};
    choose(&tree, &sources, &common, &stage_tree, folder, own_folder, arena);
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
