#include "runner/supervisor/collect/collection.h"

#include <stdlib.h>
#include <string.h>

#include "base/dirs.h"
#include "base/memory.h"
#include "runner/node_setup/workdir/workdir.h"

struct dt_collection {
    dt_collection_setup setup;
    dt_collection_calls calls;
    void *context;
    uv_work_t work;
    bool begun, running;
    atomic_bool cancelled;
    dt_node_layout *places;
    dt_arena arena;    /* used by the thread */
    dt_strbuf text;    /* result, lines */
    dt_strbuf problem; /* why files are not here; "": all are */
    int64_t asked;     /* folders */
    json_t *missing;   /* object: in how many of them a path does not exist */
};

static const json_t *recipe_of(const dt_collection *collection, const char *key)
{
    return json_object_get(json_object_get(collection->setup.plan, "recipe"), key);
}

static const char *folder_here(const dt_collection *collection)
{
    return json_string_value(json_object_get(recipe_of(collection, "workdir"), "folder"));
}

/* --- on the thread */

/* A folder with files of the command. */
typedef struct source {
    const char *node, *agent, *folder;
    int64_t index;
    bool shared; /* the folder of this machine */
} source;

static dt_status find_source(source *out, const dt_collection *collection, int64_t index,
                             dt_arena *arena, dt_error *err)
{
    const dt_node_layout *place = &collection->places[index];
    const char *ship = json_string_value(json_object_get(recipe_of(collection, "workdir"), "ship"));
    dt_status st = DT_OK;

    *out = (source){.node = place->node,
                    .agent = place->agent,
                    .folder = place->workdir != NULL ? place->workdir : folder_here(collection),
                    .index = index,
                    .shared = place->here || (place->workdir == NULL && ship != NULL &&
                                              strcmp(ship, "never") != 0)};
    if (out->shared && !place->here) { /* asked here, which does not need the node */
        out->node = "localhost";
        DT_TRY(dt_dir_program(&out->agent, "dtrun-agent", "DTRUN_AGENT", arena, err));
    }
out:
    return st;
}

static void add_result(dt_collection *collection, const source *from, const char *into,
                       const dt_collect_result *result, const dt_error *problem)
{
    if (result->files > 0)
        dt_strbuf_add_fmt(&collection->text, "collected %lld %s (%.1f MB) from %s into '%s'\n",
                          (long long)result->files, result->files == 1 ? "file" : "files",
                          (double)result->bytes / 1e6, from->node, into);
    for (const char *line = result->problems.data, *end;
         line != NULL && (end = strchr(line, '\n')) != NULL; line = end + 1)
        dt_strbuf_add_fmt(&collection->text, "not collected: %.*s\n", (int)(end - line), line);
    if (problem->code == DT_OK)
        return;
    dt_strbuf_add_fmt(&collection->text, "not collected: %s\n", problem->message);
    if (collection->problem.length == 0)
        dt_strbuf_add_fmt(&collection->problem, "not collected: %s", problem->message);
}

static void count_missing(dt_collection *collection, const json_t *paths)
{
    const json_t *path;
    size_t i;

    json_array_foreach((json_t *)paths, i, path) {
        const char *name = json_string_value(path);
        json_int_t count = json_integer_value(json_object_get(collection->missing, name));

        json_object_set_new(collection->missing, name, json_integer(count + 1));
    }
}

/* A file that only some nodes have is not missing. */
static void report_missing(dt_collection *collection)
{
    const char *path;
    json_t *count;

    json_object_foreach(collection->missing, path, count)
        if (json_integer_value(count) == collection->asked)
            dt_strbuf_add_fmt(&collection->text, "not collected: '%s' does not exist%s\n", path,
                              collection->asked > 1 ? " on any node" : "");
}

static void collect_node(dt_collection *collection, const source *from, const char *first,
                         const char *into)
{
    dt_collect_request request = {.node = from->node,
                                  .agent = from->agent,
                                  .folder = from->folder,
                                  .paths = recipe_of(collection, "collect"),
                                  .into = into,
                                  .first = first,
                                  .max_bytes = -1,
                                  .cancelled = &collection->cancelled};
    dt_collect_result result = {0};
    dt_error problem = DT_ERROR_INIT;

    dt_strbuf_init(&result.problems);
    if (dt_nodes_collect(&result, &request, &problem) == DT_OK) {
        collection->asked++;
        count_missing(collection, result.missing);
    }
    add_result(collection, from, into, &result, &problem);
    json_decref(result.missing);
    dt_strbuf_release(&result.problems);
}

static void collect_all(uv_work_t *work)
{
    dt_collection *collection = work->data;
    const char *first =
        dt_arena_printf(&collection->arena, "%s/collected", collection->setup.folder);
    bool shared = false, any = false;

    for (int64_t i = 0; i < collection->setup.node_count; i++) {
        const char *into = any ? dt_arena_printf(&collection->arena, "%s/collected-node-%lld",
                                                 collection->setup.folder, (long long)i)
                               : first;
        dt_error problem = DT_ERROR_INIT;
        source from;

        if (collection->places[i].node == NULL)
            continue;
        if (find_source(&from, collection, i, &collection->arena, &problem) != DT_OK ||
            (from.shared && shared))
            continue;
        shared = shared || from.shared;
        collect_node(collection, &from, any ? first : NULL, into);
        any = true;
    }
    report_missing(collection);
}

/* --- on the loop */

static void on_collected(uv_work_t *work, int status)
{
    dt_collection *collection = work->data;

    collection->running = false;
    if (collection->calls.is_over(collection->context))
        return;
    for (char *line = collection->text.data, *end;
         line != NULL && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        collection->calls.collected(collection->context, line);
    }
    collection->calls.settled(collection->context);
}

dt_collection *dt_collection_open(const dt_collection_setup *setup,
                                  const dt_collection_calls *calls, void *context)
{
    dt_collection *collection = dt_calloc(1, sizeof(*collection));

    collection->setup = *setup;
    collection->calls = *calls;
    collection->context = context;
    collection->work.data = collection;
    dt_arena_init(&collection->arena, 0);
    dt_strbuf_init(&collection->text);
    dt_strbuf_init(&collection->problem);
    collection->missing = json_object();
    atomic_init(&collection->cancelled, false);
    return collection;
}

bool dt_collection_is_done(dt_collection *collection, const dt_node_layout *places)
{
    size_t count = (size_t)collection->setup.node_count;

    if (collection->begun)
        return !collection->running;
    collection->begun = true;
    if (json_array_size(recipe_of(collection, "collect")) == 0 || folder_here(collection) == NULL)
        return true;
    collection->places = dt_calloc(count, sizeof(places[0]));
    memcpy(collection->places, places, count * sizeof(places[0]));
    collection->running =
        uv_queue_work(collection->setup.loop, &collection->work, collect_all, on_collected) == 0;
    return !collection->running;
}

const char *dt_collection_problem(const dt_collection *collection)
{
    return collection->problem.length > 0 ? collection->problem.data : NULL;
}

void dt_collection_cancel(dt_collection *collection)
{
    if (collection != NULL)
        atomic_store(&collection->cancelled, true);
}

void dt_collection_free(dt_collection *collection)
{
    if (collection == NULL)
        return;
    free(collection->places);
    dt_strbuf_release(&collection->text);
    dt_strbuf_release(&collection->problem);
    json_decref(collection->missing);
    dt_arena_release(&collection->arena);
    free(collection);
}
