/* cleanup: lists the folders that an ended run left on its nodes, from the store, and removes them. */
#include "runner/supervisor/cleanup/cleanup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/folder/attempt_record.h"

/* Marker in attempt-N/node-K on this machine: nothing of it is left on the node. */
#define DT_CLEANUP_DONE_FILE "tidied"

/* The folder of an attempt on a node. */
typedef struct dt_cleanup_folder {
    dt_cleanup *cleanup;
    uv_work_t work; /* used by the first folder of a node, whose thread handles the others too */
    dt_node_layout place;
    const char *here; /* attempt-N/node-K on this machine */
    dt_strbuf kept;   /* checkpoints that were kept there, for the log */
    dt_strbuf files;  /* files of the command that were kept there, for the log */
    dt_error err;
} dt_cleanup_folder;

struct dt_cleanup {
    dt_cleanup_setup setup;
    dt_cleanup_calls calls;
    void *context;
    dt_arena arena;
    /* names of checkpoints that may be removed: they are on this machine, or not needed */
    dt_strbuf home;
    dt_cleanup_folder *folders;
    int64_t count, capacity, running;
    bool begun;
    double deadline; /* latest start of a folder */
    atomic_bool cancelled;
};

/* --- the list, from the store */

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

static bool has_released(const known *history, int64_t attempt, int64_t node)
{
    bool released = false;

    for (int64_t i = 0; i < history->event_count; i++)
        released =
            released ||
            (history->events[i].attempt == attempt && history->events[i].node == node &&
             strcmp(history->events[i].kind, "released") == 0 && left_nothing(&history->events[i]));
    return released;
}

/* True if the checkpoint is on this machine: its row exists, and its directory too (a row
 * outlives its directory). */
static bool is_here(const known *history, int64_t attempt, int64_t step)
{
    bool found = false;
    dt_strbuf marker;

    dt_strbuf_init(&marker);
    for (int64_t i = 0; i < history->row_count && !found; i++) {
        dt_strbuf_reset(&marker);
        dt_strbuf_add_fmt(&marker, "%s/" DT_CHECKPOINT_MARKER, history->rows[i].path);
        found = history->rows[i].attempt == attempt && history->rows[i].step == step &&
                dt_file_exists(marker.data);
    }
    dt_strbuf_release(&marker);
    return found;
}

/* Adds the names, as used on the nodes, of checkpoints that are on this machine. A name is
 * removed again if a later attempt saved a checkpoint under it that was not fetched. */
static void name_saved(json_t *names, const known *history)
{
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < history->event_count; i++) {
            const dt_store_event *event = &history->events[i];
            const char *name;
            json_t *json;

            if (strcmp(event->kind, "checkpoint") != 0 ||
                dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) != DT_OK)
                continue;
            name = json_string_value(json_object_get(json, "directory"));
            if (name != NULL) {
                bool home = is_here(history, event->attempt,
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

static dt_status add_attempt(dt_cleanup *cleanup, const known *history, int64_t attempt,
                             dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_node *rows;

    DT_TRY(dt_store_node_list(cleanup->setup.store, &rows, &count, cleanup->setup.run, attempt,
                              &cleanup->arena, err));
    cleanup->folders = dt_array_room(cleanup->folders, cleanup->count + count, &cleanup->capacity,
                                     sizeof(*cleanup->folders));
    for (int64_t i = 0; i < count; i++)
        if (!cleanup->calls.is_lost(cleanup->context, rows[i].name) &&
            has_released(history, attempt, rows[i].node))
            DT_TRY(add_folder(cleanup, attempt, rows[i].node, err));
out:
    return st;
}

static dt_status cleanup_list_folders(dt_cleanup *cleanup, dt_error *err)
{
    json_t *names = json_object();
    dt_status st = DT_OK;
    const char *name;
    json_t *unused;
    known history;

    DT_TRY(dt_store_event_list(cleanup->setup.store, &history.events, &history.event_count,
                               cleanup->setup.run, 0, 0, &cleanup->arena, err));
    DT_TRY(dt_store_checkpoint_list(cleanup->setup.store, &history.rows, &history.row_count,
                                    cleanup->setup.run, &cleanup->arena, err));
    for (int64_t attempt = 1; attempt <= cleanup->setup.attempt; attempt++) {
        name_sent(names, cleanup->setup.folder, attempt);
        DT_TRY(add_attempt(cleanup, &history, attempt, err));
    }
    name_saved(names, &history);
    json_object_foreach(names, name, unused)
        dt_strbuf_add_fmt(&cleanup->home, "%s\n", name);
out:
    json_decref(names);
    return st;
}

/* --- removal */

/* No folder is started later than this. One folder takes a login and up to 30 s more
 * (node_setup/forget.c); a node that does not answer is not asked again. */
#define BEGIN_SECONDS 60.0

/* --- on the threads */

/* Marks a folder as done, unless checkpoints are kept there: then it is handled and reported
 * again when the run ends the next time. */
static void note_done(const dt_cleanup_folder *one)
{
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" DT_CLEANUP_DONE_FILE, one->here);
    if (one->kept.length == 0)
        (void)dt_file_write_atomic(path.data, "", 0, 0600,
                                   NULL); /* if this fails, it is only done once more */
    dt_strbuf_release(&path);
}

/* True if this is the last folder on the node: only that one also removes the node's
 * checkpoints, which belong to the whole run. */
static bool is_last_there(const dt_cleanup_folder *one)
{
    const dt_cleanup_folder *end = one->cleanup->folders + one->cleanup->count, *earlier = one + 1;

    while (earlier < end && (strcmp(earlier->place.node, one->place.node) != 0 ||
                             strcmp(earlier->place.checkpoints, one->place.checkpoints) != 0))
        earlier++;
    return earlier == end;
}

/* Removes one folder. agent: of the newest attempt; older agents may lack a feature or be gone.
 * Returns false if the node did not answer: it is not asked again. */
static bool forget(dt_cleanup_folder *one, const char *agent)
{
    dt_cleanup *cleanup = one->cleanup;
    dt_node_layout place = one->place;
    dt_status st;

    place.agent = agent;
    if (!is_last_there(one)) {
        place.checkpoints_shared = true;
        place.workdir = NULL;
    }
    st = dt_node_forget(&one->kept, &one->files, &place, cleanup->home.data, &cleanup->cancelled,
                        &one->err);
    if (st == DT_OK)
        note_done(one);
    return st == DT_OK || st == DT_ERR_IO;
}

static bool is_first(const dt_cleanup_folder *one)
{
    const dt_cleanup_folder *earlier = one->cleanup->folders;

    while (earlier < one && strcmp(earlier->place.node, one->place.node) != 0)
        earlier++;
    return earlier == one;
}

static void forget_node(uv_work_t *work)
{
    dt_cleanup_folder *first = work->data, *end = first->cleanup->folders + first->cleanup->count;
    const char *agent = first->place.agent;
    bool reached = true;

    for (dt_cleanup_folder *one = first; one < end; one++)
        if (strcmp(one->place.node, first->place.node) == 0)
            agent = one->place.agent;
    for (dt_cleanup_folder *one = first; one < end; one++) {
        if (strcmp(one->place.node, first->place.node) != 0)
            continue;
        if (!reached)
            (void)DT_FAIL(&one->err, DT_ERR_PEER, "the node did not answer");
        else if (dt_clock_monotonic_seconds() > first->cleanup->deadline)
            (void)DT_FAIL(&one->err, DT_ERR_TIMEOUT, "the time for cleaning up was over");
        else
            reached = forget(one, agent);
    }
}

static void report_leftovers(dt_cleanup *cleanup)
{
    for (int64_t i = 0; i < cleanup->count; i++) {
        const dt_cleanup_folder *one = &cleanup->folders[i];

        if (one->err.code != DT_OK)
            dt_log_warn("%s: cannot remove the folder '%s': %s", one->place.node, one->place.folder,
                        one->err.message);
        if (one->kept.length > 0)
            dt_log_warn("%s: checkpoints that were not fetched are kept in '%s': %s",
                        one->place.node, one->place.checkpoints, one->kept.data);
        if (one->files.length > 0)
            cleanup->calls.kept(cleanup->context,
                                dt_arena_printf(&cleanup->arena,
                                                "%s keeps what the command wrote: %s",
                                                one->place.node, one->files.data));
    }
}

static void on_forgotten(uv_work_t *work, int status)
{
    dt_cleanup_folder *first = work->data;
    dt_cleanup *cleanup = first->cleanup;

    cleanup->running--;
    if (cleanup->running > 0 || cleanup->calls.is_over(cleanup->context))
        return;
    report_leftovers(cleanup);
    cleanup->calls.settled(cleanup->context);
}

/* --- open and close */

dt_cleanup *dt_cleanup_open(const dt_cleanup_setup *setup, const dt_cleanup_calls *calls,
                            void *context)
{
    dt_cleanup *cleanup = dt_calloc(1, sizeof(*cleanup));

    cleanup->setup = *setup;
    cleanup->calls = *calls;
    cleanup->context = context;
    dt_arena_init(&cleanup->arena, 0);
    dt_strbuf_init(&cleanup->home);
    atomic_init(&cleanup->cancelled, false);
    return cleanup;
}

static void begin(dt_cleanup *cleanup)
{
    dt_error problem = DT_ERROR_INIT;

    cleanup->begun = true;
    cleanup->deadline = dt_clock_monotonic_seconds() + BEGIN_SECONDS;
    if (cleanup_list_folders(cleanup, &problem) != DT_OK) {
        dt_log_warn("cannot clean up the nodes: %s", problem.message);
        return;
    }
    for (int64_t i = 0; i < cleanup->count; i++) {
        dt_cleanup_folder *one = &cleanup->folders[i];

        one->work.data = one;
        if (is_first(one) &&
            uv_queue_work(cleanup->setup.loop, &one->work, forget_node, on_forgotten) == 0)
            cleanup->running++;
    }
}

bool dt_cleanup_is_done(dt_cleanup *cleanup)
{
    if (!cleanup->begun)
        begin(cleanup);
    return cleanup->running == 0;
}

void dt_cleanup_cancel(dt_cleanup *cleanup)
{
    if (cleanup != NULL)
        atomic_store(&cleanup->cancelled, true);
}

void dt_cleanup_free(dt_cleanup *cleanup)
{
    if (cleanup == NULL)
        return;
    for (int64_t i = 0; i < cleanup->count; i++) {
        dt_strbuf_release(&cleanup->folders[i].kept);
        dt_strbuf_release(&cleanup->folders[i].files);
    }
    free(cleanup->folders);
    dt_strbuf_release(&cleanup->home);
    dt_arena_release(&cleanup->arena);
    free(cleanup);
}
