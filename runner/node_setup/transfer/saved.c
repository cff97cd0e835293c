#include "runner/node_setup/transfer/saved.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/workdir.h"

#define KEPT           2 /* checkpoints */
#define DEPTH_MAX      100
#define UNFINISHED     ".unfinished"

typedef struct fetching {
    const dt_saved_request *request;
    const char *folder, *unfinished, *document; /* step-N and so on */
    const char *parent, *name; /* parent and name of the checkpoint on the node of rank 0 */
    json_t *own_files;
    int64_t left_bytes; /* bytes left of the limit; -1: no limit */
    dt_arena arena;
} fetching;

/* --- what is known */

static const char *recipe_text(const json_t *plan, const char *group, const char *key)
{
    const json_t *recipe = json_object_get(plan, "recipe");

    return json_string_value(json_object_get(json_object_get(recipe, group), key));
}

bool dt_saved_is_far(const dt_node_layout *layout, const json_t *plan)
{
    const char *ship = recipe_text(plan, "workdir", "ship");

    return !layout->here &&
           (layout->workdir != NULL || (ship != NULL && strcmp(ship, "never") == 0));
}

static bool read_saved(dt_saved *out, json_t **json, const char *document, dt_arena *arena)
{
    const char *path;

    *json = NULL;
    if (dt_json_read(json, document, DT_TREE_BYTES_MAX, NULL) != DT_OK)
        return false;
    path = json_string_value(json_object_get(*json, "path"));
    if (json_integer_value(json_object_get(*json, "saved")) != 1 || path == NULL)
        return false;
    *out = (dt_saved){
        .path = dt_arena_strdup(arena, path),
        .step = (int64_t)json_integer_value(json_object_get(*json, "step")),
        .attempt = (int64_t)json_integer_value(json_object_get(*json, "attempt")),
        .time_ms = (int64_t)json_integer_value(json_object_get(*json, "time_ms")),
        .bytes = (int64_t)json_integer_value(json_object_get(*json, "bytes")),
    };
    return true;
}

/* Compares by attempt, then by step: checkpoints that were found by one look have almost the same time. */
static int newest_first(const void *a, const void *b)
{
    const dt_saved *x = a, *y = b;

    if (x->attempt != y->attempt)
        return x->attempt < y->attempt ? 1 : -1;
    return x->step < y->step ? 1 : x->step > y->step ? -1 : 0;
}

void dt_saved_list(dt_saved **out, int64_t *count, const char *run_folder, dt_arena *arena)
{
    const char *folder = dt_arena_printf(arena, "%s/" DT_SAVED_FOLDER, run_folder);
    struct dirent **names = NULL;
    int found = scandir(folder, &names, NULL, NULL);

    *out = dt_arena_alloc_array(arena, (size_t)(found > 0 ? found : 0) + 1, sizeof((*out)[0]));
    *count = 0;
    for (int i = 0; i < found; i++) {
        const char *ending = strrchr(names[i]->d_name, '.');
        json_t *json = NULL;

        if (ending != NULL && strcmp(ending, ".json") == 0 &&
            read_saved(&(*out)[*count], &json,
                       dt_arena_printf(arena, "%s/%s", folder, names[i]->d_name), arena))
            ++*count;
        json_decref(json);
        free(names[i]);
    }
    free(names);
    qsort(*out, (size_t)*count, sizeof((*out)[0]), newest_first);
}

static const char *in_saved(const char *run_folder, int64_t step, const char *ending,
                            dt_arena *arena)
{
    return dt_arena_printf(arena, "%s/" DT_SAVED_FOLDER "/step-%lld%s", run_folder, (long long)step,
                           ending);
}

bool dt_saved_tree(dt_tree *out, const char **folder, const char *run_folder, const char *path,
                   int64_t step, const char *node, dt_arena *arena)
{
    const json_t *tree, *own_files;
    const char *name;
    json_t *json;
    dt_saved found;
    bool good = read_saved(&found, &json, in_saved(run_folder, step, ".json", arena), arena) &&
                strcmp(found.path, path) == 0 && found.step == step;

    *out = (dt_tree){0};
    *folder = in_saved(run_folder, step, "", arena);
    own_files = node != NULL ? json_object_get(json_object_get(json, "own"), node) : json;
    tree = json_object_get(own_files, "tree");
    name = json_string_value(json_object_get(own_files, "folder"));
    if (name != NULL)
        *folder = dt_arena_printf(arena, "%s/" DT_SAVED_FOLDER "/%s", run_folder, name);
    good = good && tree != NULL && dt_tree_from_json(out, tree, arena, NULL) == DT_OK;
    json_decref(json);
    return good;
}

/* --- paths */

/* Returns what follows "/nodes/RUN/workdir-NUMBER/", which any node's copy of the folder has; NULL: no copy. */
static const char *below_copy(const char *path, const char *run)
{
    size_t length = strlen(run);

    for (const char *at = path; (at = strstr(at, "/nodes/")) != NULL; at++) {
        const char *name = at + strlen("/nodes/"), *number = name + length + strlen("/workdir-");
        size_t digits;

        if (strncmp(name, run, length) != 0 ||
            strncmp(name + length, "/workdir-", strlen("/workdir-")) != 0)
            continue;
        digits = strspn(number, "0123456789");
        if (digits > 0 && number[digits] == '/')
            return number + digits + 1;
    }
    return NULL;
}

const char *dt_saved_path_there(const char *path, const char *run, const char *folder_here,
                                const char *folder_there, dt_arena *arena)
{
    const char *below = below_copy(path, run);
    size_t length = folder_here != NULL ? strlen(folder_here) : 0;

    if (below == NULL && length > 0 && strncmp(path, folder_here, length) == 0 &&
        path[length] == '/')
        below = path + length + 1;
    return below != NULL && folder_there != NULL
               ? dt_arena_printf(arena, "%s/%s", folder_there, below)
               : path;
}

/* --- the files of one node */

/* A place with files of the program. */
typedef struct source {
    const char *node, *agent, *parent;
    bool shared; /* the folder of this machine */
} source;

static dt_status find_source(source *out, fetching *job, const dt_node_layout *layout,
                             dt_error *err)
{
    const dt_saved_request *request = job->request;
    const char *here = recipe_text(request->plan, "workdir", "folder");
    const char *run = json_string_value(json_object_get(request->plan, "run"));
    const char *there = layout->workdir != NULL ? layout->workdir : here;
    const char *path =
        dt_saved_path_there(request->saved.path, run != NULL ? run : "", here, there, &job->arena);
    dt_status st = DT_OK;

    *out =
        (source){.node = layout->node,
                 .agent = layout->agent,
                 .parent = dt_arena_strndup(&job->arena, path, (size_t)(strrchr(path, '/') - path)),
                 .shared = !dt_saved_is_far(layout, request->plan)};
    if (out->shared) { /* asked here, which does not need the node */
        out->node = "localhost";
        DT_TRY(dt_dir_program(&out->agent, "dtrun-agent", "DTRUN_AGENT", &job->arena, err));
    }
out:
    return st;
}

static dt_status take_node(fetching *job, const source *from, const char *into, bool first,
                           dt_error *err)
{
    const dt_saved_request *request = job->request;
    json_t *paths = json_pack("[s]", job->name);
    dt_collect_request collect = {.node = from->node,
                                  .agent = from->agent,
                                  .folder = from->parent,
                                  .paths = paths,
                                  .into = into,
                                  .first = first ? NULL : job->unfinished,
                                  .max_bytes = job->left_bytes,
                                  .quiet_ms = first ? 0 : request->quiet_ms,
                                  .cancelled = request->cancelled};
    dt_collect_result result = {0};
    dt_status st;

    dt_strbuf_init(&result.problems);
    DT_TRY(dt_nodes_collect(&result, &collect, err));
    job->left_bytes -= job->left_bytes >= 0 ? result.bytes : 0;
    if (result.problems.length > 0)
        DT_THROW(err, DT_ERR_PEER, "%.*s", (int)strcspn(result.problems.data, "\n"),
                 result.problems.data);
    if (first && json_array_size(result.missing) > 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "'%s' is not on %s any more", request->saved.path,
                 from->node);
out:
    json_decref(result.missing);
    json_decref(paths);
    dt_strbuf_release(&result.problems);
    return st;
}

/* Moves what `to` lacks there. Returns whether anything is left in `from`. */
static bool merge(const char *from, const char *to, int depth)
{
    struct dirent *entry;
    bool left = false;
    dt_strbuf one, other;
    DIR *directory = depth < DEPTH_MAX ? opendir(from) : NULL;

    dt_strbuf_init(&one);
    dt_strbuf_init(&other);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        struct stat info, there;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&one);
        dt_strbuf_reset(&other);
        dt_strbuf_add_fmt(&one, "%s/%s", from, entry->d_name);
        dt_strbuf_add_fmt(&other, "%s/%s", to, entry->d_name);
        if (lstat(one.data, &info) != 0)
            continue;
        if (lstat(other.data, &there) != 0)
            left = rename(one.data, other.data) != 0 || left;
        else if (S_ISDIR(info.st_mode) && S_ISDIR(there.st_mode))
            left = merge(one.data, other.data, depth + 1) || left;
        else
            left = true;
    }
    if (directory != NULL)
        closedir(directory);
    if (!left)
        (void)rmdir(from);
    dt_strbuf_release(&one);
    dt_strbuf_release(&other);
    return left;
}

/* --- the tree */

typedef struct listing {
    dt_tree_entry *entries;
    int64_t count, capacity;
    dt_arena *arena;
} listing;

static dt_status list(listing *found_files, const char *folder, const char *below, int depth,
                      dt_error *err)
{
    const char *full = dt_arena_printf(found_files->arena, "%s/%s", folder, below);
    struct dirent **names = NULL;
    int count = scandir(full, &names, NULL, NULL);
    dt_status st = DT_OK;

    if (count < 0 || depth > DEPTH_MAX)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", full, strerror(errno));
    for (int i = 0; i < count && st == DT_OK; i++) {
        const char *name = names[i]->d_name, *path;
        dt_tree_entry entry = {0};
        char target[4096];
        struct stat info;
        ssize_t length;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        path = dt_arena_printf(found_files->arena, "%s/%s", full, name);
        if (lstat(path, &info) != 0)
            continue;
        entry.path = below[0] != '\0' ? dt_arena_printf(found_files->arena, "%s/%s", below, name)
                                      : dt_arena_strdup(found_files->arena, name);
        entry.kind = S_ISDIR(info.st_mode)   ? DT_TREE_FOLDER
                     : S_ISLNK(info.st_mode) ? DT_TREE_LINK
                                             : DT_TREE_FILE;
        entry.mode = (int64_t)(info.st_mode & 0777);
        if (entry.kind == DT_TREE_LINK) {
            length = readlink(path, target, sizeof(target) - 1);
            target[length > 0 ? length : 0] = '\0';
            entry.target = dt_arena_strdup(found_files->arena, target);
        }
        found_files->entries = dt_array_room(found_files->entries, found_files->count + 1,
                                             &found_files->capacity, sizeof(entry));
        found_files->entries[found_files->count++] = entry;
        if (entry.kind == DT_TREE_FOLDER)
            st = list(found_files, folder, entry.path, depth + 1, err);
    }
out:
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return st;
}

static int by_path(const void *a, const void *b)
{
    return dt_tree_order(((const dt_tree_entry *)a)->path, ((const dt_tree_entry *)b)->path);
}

/* *out: new reference. */
static dt_status describe(json_t **out, int64_t *bytes, const char *folder, dt_arena *arena,
                          dt_error *err)
{
    listing found_files = {.arena = arena};
    dt_status st = DT_OK;
    dt_tree tree = {0};

    DT_TRY(list(&found_files, folder, "", 0, err));
    if (found_files.count > 0)
        qsort(found_files.entries, (size_t)found_files.count, sizeof(found_files.entries[0]),
              by_path);
    tree = (dt_tree){.entries = found_files.entries, .count = found_files.count};
    DT_TRY(dt_workdir_keep(&tree, folder, NULL, arena, err));
    *bytes += tree.bytes;
    *out = dt_tree_to_json(&tree);
out:
    free(found_files.entries);
    return st;
}

/* --- all nodes */

static dt_status take_other(fetching *job, int64_t index, int64_t *bytes, dt_error *err)
{
    const dt_node_layout *layout = &job->request->layouts[index];
    const char *into =
        dt_arena_printf(&job->arena, "%s.node-%lld", job->unfinished, (long long)index);
    dt_status st = DT_OK;
    json_t *tree = NULL;
    source from;

    DT_TRY(dt_file_remove_tree(into, err));
    DT_TRY(find_source(&from, job, layout, err));
    DT_TRY(take_node(job, &from, into, false, err));
    if (!dt_file_exists(into) || !merge(into, job->unfinished, 0))
        goto out;
    DT_TRY(describe(&tree, bytes, into, &job->arena, err));
    json_object_set_new(
        job->own_files, layout->node,
        json_pack("{s:o, s:O}", "folder",
                  json_sprintf("step-%lld.node-%lld", (long long)job->request->saved.step,
                               (long long)index),
                  "tree", tree));
out:
    json_decref(tree);
    return st;
}

/* Removes what is beyond the newest KEPT. */
static void prune(fetching *job)
{
    const char *folder = job->request->run_folder;
    dt_saved *found;
    int64_t count;

    dt_saved_list(&found, &count, folder, &job->arena);
    for (int64_t i = KEPT; i < count; i++) {
        (void)unlink(in_saved(folder, found[i].step, ".json", &job->arena));
        (void)dt_file_remove_tree(in_saved(folder, found[i].step, "", &job->arena), NULL);
        for (int64_t n = 0; n < job->request->count; n++)
            (void)dt_file_remove_tree(
                dt_arena_printf(&job->arena, "%s.node-%lld",
                                in_saved(folder, found[i].step, "", &job->arena), (long long)n),
                NULL);
    }
}

/* Gives the folders their names, and writes the document. */
static dt_status finish(fetching *job, json_t *tree, int64_t bytes, dt_error *err)
{
    const dt_saved *saved = &job->request->saved;
    dt_status st = DT_OK;
    dt_strbuf text;
    json_t *json;

    dt_strbuf_init(&text);
    (void)unlink(job->document); /* document of an older checkpoint of this step */
    for (int64_t i = -1; i < job->request->count; i++) {
        const char *ending = i < 0 ? "" : dt_arena_printf(&job->arena, ".node-%lld", (long long)i);
        const char *from = dt_arena_printf(&job->arena, "%s%s", job->unfinished, ending);
        const char *to = dt_arena_printf(&job->arena, "%s%s", job->folder, ending);

        DT_TRY(dt_file_remove_tree(to, err));
        if (rename(from, to) != 0 && errno != ENOENT)
            DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", from, strerror(errno));
    }
    json = json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:O, s:O}", "saved", 1, "path", saved->path,
                     "step", (json_int_t)saved->step, "attempt", (json_int_t)saved->attempt,
                     "time_ms", (json_int_t)saved->time_ms, "bytes", (json_int_t)bytes, "tree",
                     tree, "own", job->own_files);
    dt_json_write(&text, json);
    json_decref(json);
    DT_TRY(dt_file_write_atomic(job->document, text.data, text.length, 0600, err));
    prune(job);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status fetch(fetching *job, dt_error *err)
{
    const dt_saved_request *request = job->request;
    bool shared = false;
    json_t *tree = NULL;
    dt_status st = DT_OK;
    int64_t bytes = 0;
    source from;

    DT_TRY(dt_file_remove_tree(job->unfinished, err));
    DT_TRY(dt_file_make_dirs(job->unfinished, 0700, err));
    DT_TRY(find_source(&from, job, &request->layouts[0], err));
    DT_TRY(take_node(job, &from, job->unfinished, true, err));
    shared = from.shared;
    for (int64_t i = 1; i < request->count; i++) {
        if (request->layouts[i].node == NULL)
            continue;
        if (!dt_saved_is_far(&request->layouts[i], request->plan)) {
            if (shared)
                continue;
            shared = true;
        }
        DT_TRY(take_other(job, i, &bytes, err));
    }
    DT_TRY(describe(&tree, &bytes, job->unfinished, &job->arena, err));
    DT_TRY(finish(job, tree, bytes, err));
out:
    json_decref(tree);
    return st;
}

dt_status dt_nodes_fetch_saved(const dt_saved_request *request, dt_error *err)
{
    const json_t *checkpoints =
        json_object_get(json_object_get(request->plan, "recipe"), "checkpoints");
    int64_t max_mb = (int64_t)json_integer_value(json_object_get(checkpoints, "max_mb"));
    fetching job = {.request = request, .own_files = json_object(), .left_bytes = max_mb * 1000000};
    const dt_saved *saved = &request->saved;
    dt_status st = DT_OK;
    json_t *json = NULL;
    dt_saved found;

    dt_arena_init(&job.arena, 0);
    job.folder = in_saved(request->run_folder, saved->step, "", &job.arena);
    job.unfinished = in_saved(request->run_folder, saved->step, UNFINISHED, &job.arena);
    job.document = in_saved(request->run_folder, saved->step, ".json", &job.arena);
    job.name = strrchr(saved->path, '/') + 1;
    if (read_saved(&found, &json, job.document, &job.arena) && found.time_ms == saved->time_ms &&
        found.attempt == saved->attempt && strcmp(found.path, saved->path) == 0)
        goto out;
    if (request->count == 0 || request->layouts[0].node == NULL)
        DT_THROW(err, DT_ERR_PEER, "the node of rank 0 is not known");
    st = fetch(&job, err);
    if (st != DT_OK) {
        (void)dt_file_remove_tree(job.unfinished, NULL);
        for (int64_t i = 0; i < request->count; i++)
            (void)dt_file_remove_tree(
                dt_arena_printf(&job.arena, "%s.node-%lld", job.unfinished, (long long)i), NULL);
    }
out:
    json_decref(json);
    json_decref(job.own_files);
    dt_arena_release(&job.arena);
    return st;
}
