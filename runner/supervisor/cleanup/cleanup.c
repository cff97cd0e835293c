#define _GNU_SOURCE
#include "runner/supervisor/cleanup/cleanup.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/folder/copies.h"

#include "base/banned.h"

#define PLAN_MAX_BYTES ((size_t)16 << 20)
#define BEGIN_SECONDS \
    20.0 /* no errand is begun later; one takes up to 30 s (node_setup/forget.c) */
#define TIDIED "tidied"

/* An attempt's folder on a node. */
typedef struct errand {
    dt_cleanup *cleanup;
    uv_work_t work; /* of the first errand of a node, which does the others too */
    dt_node_layout place;
    const char *here; /* attempt-N/node-K on this machine */
    dt_strbuf kept;   /* names that stay there, for the log */
    dt_error err;
} errand;

struct dt_cleanup {
    dt_cleanup_setup setup;
    dt_cleanup_calls calls;
    void *context;
    dt_arena arena;
    dt_strbuf home; /* names of checkpoints that are here too, or need not be */
    errand *errands;
    int64_t count, running;
    bool begun;
    double deadline; /* to begin an errand */
    atomic_bool cancelled;
};

/* --- what there is to do */

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

/* And is still there: a row stays when its directory goes. */
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

/* By the name on the nodes, which may have another here. One that a later attempt saved again under
 * its name, and that did not come, is not the one that is here. */
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

/* What an attempt went on from was sent to its nodes. */
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

static dt_status add_errand(dt_cleanup *cleanup, int64_t attempt, int64_t node, dt_error *err)
{
    const char *here = dt_arena_printf(&cleanup->arena, "%s/attempt-%lld/node-%lld",
                                       cleanup->setup.folder, (long long)attempt, (long long)node);
    const char *done = dt_arena_printf(&cleanup->arena, "%s/" TIDIED, here);
    errand *one = &cleanup->errands[cleanup->count];
    bool restored;
    dt_status st;

    if (here == NULL || done == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    if (dt_file_exists(done))
        return DT_OK;
    *one = (errand){.cleanup = cleanup, .here = here, .err = DT_ERROR_INIT};
    st = dt_copies_place(&one->place, &restored, cleanup->setup.store, cleanup->setup.run, attempt,
                         node, here, &cleanup->arena, err);
    json_decref(one->place.paths);
    one->place.paths = NULL;
    if (st != DT_OK || one->place.here)
        return st == DT_ERR_NOT_FOUND ? DT_OK : st;
    dt_strbuf_init(&one->kept);
    cleanup->count++;
    return DT_OK;
}

static dt_status add_attempt(dt_cleanup *cleanup, const known *all, int64_t attempt, dt_error *err)
{
    dt_status st = DT_OK;
    errand *grown;
    int64_t count;
    dt_node *rows;

    DT_TRY(dt_store_node_list(cleanup->setup.store, &rows, &count, cleanup->setup.run, attempt,
                              &cleanup->arena, err));
    grown = realloc(cleanup->errands, (size_t)(cleanup->count + count + 1) * sizeof(*grown));
    if (grown == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    cleanup->errands = grown;
    for (int64_t i = 0; i < count; i++)
        if (!cleanup->calls.is_lost(cleanup->context, rows[i].name) &&
            has_released(all, attempt, rows[i].node))
            DT_TRY(add_errand(cleanup, attempt, rows[i].node, err));
out:
    return st;
}

static dt_status plan(dt_cleanup *cleanup, dt_error *err)
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
    json_object_foreach(names, name, unused) dt_strbuf_add_fmt(&cleanup->home, "%s\n", name);
out:
    json_decref(names);
    return st;
}

/* --- on the threads */

/* What stays is asked for again, and told again, when the run ends the next time. */
static void note_done(const errand *one)
{
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" TIDIED, one->here);
    if (one->kept.length == 0)
        (void)dt_file_write_atomic(path.data, "", 0, 0600, NULL); /* without it: once more */
    dt_strbuf_release(&path);
}

/* A node's checkpoints are the run's: one errand asks for them. */
static bool is_last_there(const errand *one)
{
    const errand *end = one->cleanup->errands + one->cleanup->count, *at = one + 1;

    while (at < end && (strcmp(at->place.node, one->place.node) != 0 ||
                        strcmp(at->place.checkpoints, one->place.checkpoints) != 0))
        at++;
    return at == end;
}

/* agent: that of the newest attempt. Those of older ones may know less, or be gone. False where the
 * node did not answer: it is not asked again. */
static bool forget(errand *one, const char *agent)
{
    dt_cleanup *cleanup = one->cleanup;
    dt_node_layout place = one->place;
    dt_status st;

    place.agent = agent;
    place.checkpoints_shared = place.checkpoints_shared || !is_last_there(one);
    st = dt_node_forget(&one->kept, &place, cleanup->home.data, &cleanup->cancelled, &one->err);
    if (st == DT_OK)
        note_done(one);
    return st == DT_OK || st == DT_ERR_IO;
}

static bool is_first(const errand *one)
{
    const errand *at = one->cleanup->errands;

    while (at < one && strcmp(at->place.node, one->place.node) != 0)
        at++;
    return at == one;
}

static void forget_node(uv_work_t *work)
{
    errand *first = work->data, *end = first->cleanup->errands + first->cleanup->count;
    const char *agent = first->place.agent;
    bool reached = true;

    for (errand *one = first; one < end; one++)
        if (strcmp(one->place.node, first->place.node) == 0)
            agent = one->place.agent;
    for (errand *one = first; one < end; one++) {
        if (strcmp(one->place.node, first->place.node) != 0)
            continue;
        if (!reached)
            (void)DT_FAIL(&one->err, DT_ERR_PEER, "the node did not answer");
        else if (dt_clock_monotonic_seconds() > first->cleanup->deadline)
            (void)DT_FAIL(&one->err, DT_ERR_TIMEOUT, "there was no time to ask for it");
        else
            reached = forget(one, agent);
    }
}

static void tell(const dt_cleanup *cleanup)
{
    for (int64_t i = 0; i < cleanup->count; i++) {
        const errand *one = &cleanup->errands[i];

        if (one->err.code != DT_OK)
            dt_log_warn("%s: its folder '%s' stays: %s", one->place.node, one->place.folder,
                        one->err.message);
        if (one->kept.length > 0)
            dt_log_warn("%s: checkpoints that did not come here stay in '%s': %s", one->place.node,
                        one->place.checkpoints, one->kept.data);
    }
}

static void on_forgotten(uv_work_t *work, int status)
{
    errand *first = work->data;
    dt_cleanup *cleanup = first->cleanup;

    cleanup->running--;
    if (cleanup->running > 0 || cleanup->calls.is_over(cleanup->context))
        return;
    tell(cleanup);
    cleanup->calls.settled(cleanup->context);
}

/* --- its life */

dt_cleanup *dt_cleanup_open(const dt_cleanup_setup *setup, const dt_cleanup_calls *calls,
                            void *context)
{
    dt_cleanup *cleanup = calloc(1, sizeof(*cleanup));

    DT_ASSERT(cleanup != NULL);
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
    if (plan(cleanup, &problem) != DT_OK) {
        dt_log_warn("the nodes keep what the run left: %s", problem.message);
        return;
    }
    for (int64_t i = 0; i < cleanup->count; i++) {
        errand *one = &cleanup->errands[i];

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
    for (int64_t i = 0; i < cleanup->count; i++)
        dt_strbuf_release(&cleanup->errands[i].kept);
    free(cleanup->errands);
    dt_strbuf_release(&cleanup->home);
    dt_arena_release(&cleanup->arena);
    free(cleanup);
}
