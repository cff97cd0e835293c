#include "runner/launch/nodes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/memory.h"
#include "recipes/fields/nodes.h"
#include "runner/cli/report.h"
#include "runner/node_setup/workdir/workdir.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/term/term.h"

bool dt_launch_workdir_is_sent(const dt_recipe *recipe)
{
    struct stat info;

    return recipe->task == DT_TASK_COMMAND && recipe->workdir.ship == DT_SHIP_AUTO &&
           stat(recipe->workdir.folder, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_needed(const dt_probe_report *report)
{
    for (int64_t i = 0; report != NULL && i < report->count; i++)
        if (!dt_node_is_here(report->probes[i].node) &&
            !json_is_true(json_object_get(report->probes[i].facts, "sees")))
            return true;
    return false;
}

static void report_notes(char *notes, const dt_call *call)
{
    for (char *line = notes, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        dt_report_note(call, "%s", line);
    }
}

/* Reports where checkpoints of nodes that do not share the folder go. */
static void report_saved(const dt_recipe *recipe, int64_t nodes, const dt_call *call)
{
    char size[DT_FORMAT_SIZE];

    if (recipe->checkpoints.path[0] == '\0')
        return;
    if (recipe->checkpoints.max_mb > 0)
        dt_report_note(
            call,
            "checkpoints: the newest one, up to %s, is brought to the folder 'saved' of "
            "the run on this machine, and to nodes that lack it when the run continues",
            dt_format_bytes(size, sizeof(size), 1e6 * (double)recipe->checkpoints.max_mb));
    else if (nodes > 1)
        dt_report_note(call,
                       "warning: checkpoints.max_mb is 0: nodes that share no folder do not get a "
                       "checkpoint that another one saved, so restarts and 'dtrun resume' cannot "
                       "work unless each node saves all that it reads");
}

/* A listing of the folder on its own thread, while nodes are probed. */
struct dt_workdir_listing {
    pthread_t thread;
    bool running;
    const dt_recipe *recipe;
    dt_tree tree;
    dt_workdir_left_list left;
    dt_strbuf notes;
    dt_arena arena;
    dt_status st;
    dt_error err;
};

static void *list(void *argument)
{
    dt_workdir_listing *of = argument;

    of->st = dt_workdir_list(&of->tree, &of->left, &of->notes, of->recipe->workdir.folder,
                             of->recipe->workdir.max_mb * 1000000, &of->arena, &of->err);
    return NULL;
}

dt_workdir_listing *dt_launch_workdir_begin(const dt_recipe *recipe)
{
    dt_workdir_listing *made;

    if (!dt_launch_workdir_is_sent(recipe))
        return NULL;
    made = dt_calloc(1, sizeof(*made));
    made->recipe = recipe;
    made->err = (dt_error)DT_ERROR_INIT;
    dt_arena_init(&made->arena, 0);
    dt_strbuf_init(&made->notes);
    made->running = pthread_create(&made->thread, NULL, list, made) == 0;
    if (made->running)
        return made;
    dt_launch_workdir_end(made);
    return NULL;
}

static void await(dt_workdir_listing *listing)
{
    if (listing->running)
        pthread_join(listing->thread, NULL);
    listing->running = false;
}

/* Gives the caller's arena what was listed. */
static void take_listing(dt_tree *tree, dt_workdir_left_list *left, dt_strbuf *notes,
                         const dt_workdir_listing *from, dt_arena *arena)
{
    *tree = from->tree;
    tree->entries = dt_arena_alloc_array(arena, (size_t)tree->count + 1, sizeof(tree->entries[0]));
    for (int64_t i = 0; i < tree->count; i++) {
        tree->entries[i] = from->tree.entries[i];
        tree->entries[i].path = dt_arena_strdup(arena, from->tree.entries[i].path);
        if (tree->entries[i].target != NULL)
            tree->entries[i].target = dt_arena_strdup(arena, from->tree.entries[i].target);
    }
    *left = (dt_workdir_left_list){.count = from->left.count, .capacity = from->left.count};
    left->items = dt_arena_alloc_array(arena, (size_t)left->count + 1, sizeof(left->items[0]));
    for (int64_t i = 0; i < left->count; i++) {
        left->items[i] = from->left.items[i];
        left->items[i].path = dt_arena_strdup(arena, from->left.items[i].path);
        left->items[i].rule = dt_arena_strdup(arena, from->left.items[i].rule);
    }
    dt_strbuf_add(notes, from->notes.data, from->notes.length);
}

void dt_launch_workdir_end(dt_workdir_listing *listing)
{
    if (listing == NULL)
        return;
    await(listing);
    dt_strbuf_release(&listing->notes);
    dt_arena_release(&listing->arena);
    free(listing);
}

dt_status dt_launch_workdir_take(dt_preflight *flight, const dt_probe_report *report,
                                 dt_workdir_listing *listing, const dt_call *call, dt_error *err)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    char size[DT_FORMAT_SIZE], hex[DT_DIGEST_SIZE];
    dt_tree *tree = dt_arena_alloc(call->arena, sizeof(*tree));
    bool sent = is_needed(report);
    const char *cache;
    dt_status st = DT_OK;
    dt_workdir_left_list *left = dt_arena_alloc(call->arena, sizeof(*left));
    dt_strbuf notes;

    dt_strbuf_init(&notes);
    if (!dt_launch_workdir_is_sent(recipe) || (!sent && recipe->setup[0] == '\0'))
        goto out;
    if (listing != NULL) {
        await(listing);
        if (listing->st != DT_OK)
            DT_THROW(err, listing->st, "%s", listing->err.message);
        take_listing(tree, left, &notes, listing, call->arena);
    } else {
        DT_TRY(dt_workdir_list(tree, left, &notes, recipe->workdir.folder,
                               recipe->workdir.max_mb * 1000000, call->arena, err));
    }
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, call->arena, err));
    DT_TRY(dt_workdir_keep(tree, recipe->workdir.folder, sent ? cache : NULL, call->arena, err));
    dt_tree_digest(hex, tree);
    flight->plan.tree = dt_arena_strdup(call->arena, hex);
    if (!sent)
        goto out;
    flight->tree = tree;
    flight->left = left;
    if (notes.length > 0)
        report_notes(notes.data, call);
    dt_report_note(call, "workdir: %lld %s, %s, for nodes that do not share '%s'",
                   (long long)tree->files, tree->files == 1 ? "file" : "files",
                   dt_format_bytes(size, sizeof(size), (double)tree->bytes),
                   recipe->workdir.folder);
    report_saved(recipe, flight->plan.node_count, call);
out:
    dt_strbuf_release(&notes);
    return st;
}

/* Finds the folder of the command on the node, of the newest attempt that had one there. */
static bool find_place(dt_node_layout *out, const char *node, const dt_run *run, dt_arena *arena)
{
    const char *folder, *here;

    if (dt_run_path(&folder, run->id, NULL, arena, NULL) != DT_OK)
        return false;
    for (int64_t attempt = run->attempt; attempt >= 1; attempt--)
        for (int64_t i = 0;; i++) {
            here = dt_arena_printf(arena, "%s/attempt-%lld/node-%lld", folder, (long long)attempt,
                                   (long long)i);
            if (!dt_file_exists(here))
                break;
            if (dt_node_layout_read(out, here, arena, NULL) != DT_OK)
                continue;
            json_decref(out->paths);
            out->paths = NULL;
            if (out->workdir != NULL && strcmp(out->node, node) == 0)
                return true;
        }
    return false;
}

dt_status dt_launch_workdir_check(const dt_preflight *flight, const dt_run *run,
                                  const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; flight->tree != NULL && i < flight->plan.node_count; i++) {
        dt_error problem = DT_ERROR_INIT;
        dt_node_layout place;

        if (!find_place(&place, flight->plan.node_names[i], run, call->arena))
            continue;
        dt_send_request check = {.tree = flight->tree,
                                 .what = "workdir",
                                 .node = place.node,
                                 .agent = place.agent,
                                 .there = place.workdir,
                                 .mode = "check"};
        if (dt_workdir_send(&check, &problem) == DT_ERR_RECIPE)
            DT_THROW(err, DT_ERR_RECIPE, "%s", problem.message);
    }
out:
    return st;
}

static const char *tree_path(const char *folder, const char *digest, dt_arena *arena)
{
    return dt_arena_printf(arena, "%s/" DT_WORKDIR_TREE_FILE, folder, digest);
}

void dt_launch_workdir_compare(const dt_preflight *flight, const dt_run *run, const dt_call *call)
{
    const char *folder, *plan_path, *digest;
    json_t *plan = NULL;
    dt_tree before;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (flight->tree == NULL || dt_run_path(&folder, run->id, NULL, call->arena, NULL) != DT_OK)
        goto out;
    plan_path =
        dt_arena_printf(call->arena, "%s/attempt-%lld/plan.json", folder, (long long)run->attempt);
    if (dt_json_read(&plan, plan_path, (size_t)16 << 20, NULL) != DT_OK)
        goto out;
    digest = json_string_value(json_object_get(plan, "tree"));
    if (digest == NULL || strcmp(digest, flight->plan.tree) == 0 ||
        dt_tree_read(&before, tree_path(folder, digest, call->arena), call->arena, NULL) != DT_OK)
        goto out;
    dt_workdir_describe_changes(&text, &before, flight->tree, run->attempt);
    if (text.length > 0)
        dt_report_note(call, "workdir: %s", text.data);
out:
    json_decref(plan);
    dt_strbuf_release(&text);
}
