/* list_folders: lists the folders to remove on the nodes of a run that ends, from the store. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "runner/supervisor/cleanup/cleanup_int.h"
#include "runner/supervisor/folder/copies.h"

#define PLAN_MAX_BYTES ((size_t)16 << 20)

typedef struct known {
    dt_store_event *events;
    dt_store_checkpoint *rows;
    int64_t event_count, row_count;
} known;

static bool left_nothing(const dt_store_event *event)
{
    json_t *json = NULL;
    bool nothing = dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) == DT_OK &&
                   json_array_size(json_object_get(json, "left")) == 0;

    json_decref(json);
    return nothing;
}

static bool has_released(const known *all, int64_t attempt, int64_t node)
{
    bool released = false;

    for (int64_t i = 0; i < all->event_count; i++)
        released = released ||
                   (all->events[i].attempt == attempt && all->events[i].node == node &&
                    strcmp(all->events[i].kind, "released") == 0 && left_nothing(&all->events[i]));
    return released;
}

/* True if the checkpoint is on this machine: its row exists, and its directory too (a row
 * outlives its directory). */
static bool is_here(const known *all, int64_t attempt, int64_t step)
{
    bool found = false;
    dt_strbuf marker;

    dt_strbuf_init(&marker);
    for (int64_t i = 0; i < all->row_count && !found; i++) {
        dt_strbuf_reset(&marker);
        dt_strbuf_add_fmt(&marker, "%s/" DT_CHECKPOINT_MARKER, all->rows[i].path);
        found = all->rows[i].attempt == attempt && all->rows[i].step == step &&
                dt_file_exists(marker.data);
    }
    dt_strbuf_release(&marker);
    return found;
}

/* Adds the names, as used on the nodes, of checkpoints that are on this machine. A name is
 * removed again if a later attempt saved a checkpoint under it that was not fetched. */
static void name_saved(json_t *names, const known *all)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < all->event_count; i++) {
            const dt_store_event *event = &all->events[i];
            const char *name;
            json_t *json;

            if (strcmp(event->kind, "checkpoint") != 0 ||
                dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) != DT_OK)
                continue;
            name = json_string_value(json_object_get(json, "directory"));
            if (name != NULL) {
                bool home = is_here(all, event->attempt,
                                    (int64_t)json_integer_value(json_object_get(json, "step")));

                if (pass == 0 && home)
                    json_object_set_new(names, name, json_true());
                else if (pass == 1 && !home)
                    json_object_del(names, name);
            }
            json_decref(json);
        }
}

/* Adds the checkpoint that the attempt resumed from: it was sent to its nodes from this machine. */
static void name_sent(json_t *names, const char *folder, int64_t attempt)
{
    const char *from, *slash;
    json_t *plan = NULL;
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-%lld/plan.json", folder, (long long)attempt);
    if (dt_json_read(&plan, path.data, PLAN_MAX_BYTES, NULL) == DT_OK) {
        from = json_string_value(json_object_get(plan, "resume_from"));
        slash = from != NULL ? strrchr(from, '/') : NULL;
        if (slash != NULL)
            json_object_set_new(names, slash + 1, json_true());
    }
    json_decref(plan);
    dt_strbuf_release(&path);
}

static dt_status add_folder(dt_cleanup *cleanup, int64_t attempt, int64_t node, dt_error *err)
{
    const char *here = dt_arena_printf(&cleanup->arena, "%s/attempt-%lld/node-%lld",
                                       cleanup->setup.folder, (long long)attempt, (long long)node);
    const char *done = dt_arena_printf(&cleanup->arena, "%s/" DT_CLEANUP_DONE_FILE, here);
    dt_cleanup_folder *one = &cleanup->folders[cleanup->count];
    bool restored;
    dt_status st;

    if (dt_file_exists(done))
        return DT_OK;
    *one = (dt_cleanup_folder){.cleanup = cleanup, .here = here, .err = DT_ERROR_INIT};
    st = dt_copies_place(&one->place, &restored, cleanup->setup.store, cleanup->setup.run, attempt,
                         node, here, &cleanup->arena, err);
    json_decref(one->place.paths);
    one->place.paths = NULL;
    if (st != DT_OK || one->place.here)
        return st == DT_ERR_NOT_FOUND ? DT_OK : st;
    dt_strbuf_init(&one->kept);
    dt_strbuf_init(&one->files);
    cleanup->count++;
    return DT_OK;
}

static dt_status add_attempt(dt_cleanup *cleanup, const known *all, int64_t attempt, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_node *rows;

    DT_TRY(dt_store_node_list(cleanup->setup.store, &rows, &count, cleanup->setup.run, attempt,
                              &cleanup->arena, err));
    cleanup->folders = dt_realloc(cleanup->folders, (size_t)(cleanup->count + count + 1),
                                  sizeof(*cleanup->folders));
    for (int64_t i = 0; i < count; i++)
        if (!cleanup->calls.is_lost(cleanup->context, rows[i].name) &&
            has_released(all, attempt, rows[i].node))
            DT_TRY(add_folder(cleanup, attempt, rows[i].node, err));
out:
    return st;
}

dt_status dt_cleanup_list_folders(dt_cleanup *cleanup, dt_error *err)
{
    json_t *names = json_object();
    dt_status st = DT_OK;
    const char *name;
    json_t *unused;
    known all;

    DT_TRY(dt_store_event_list(cleanup->setup.store, &all.events, &all.event_count,
                               cleanup->setup.run, 0, 0, &cleanup->arena, err));
    DT_TRY(dt_store_checkpoint_list(cleanup->setup.store, &all.rows, &all.row_count,
                                    cleanup->setup.run, &cleanup->arena, err));
    for (int64_t attempt = 1; attempt <= cleanup->setup.attempt; attempt++) {
        name_sent(names, cleanup->setup.folder, attempt);
        DT_TRY(add_attempt(cleanup, &all, attempt, err));
    }
    name_saved(names, &all);
    json_object_foreach(names, name, unused)
        dt_strbuf_add_fmt(&cleanup->home, "%s\n", name);
out:
    json_decref(names);
    return st;
}
