/* tidy: what a run that has ended left on its nodes is removed there, once all of it is here.
 *
 * Of each attempt and node: its folder where the journal is in the store to its last line,
 * `released`; its checkpoints but for those that are not here. (An agent that is about to leave is
 * waited for over there.) What a lost node has stays, and everything where processes were left.
 * Before the end is in the store: nobody resumes the run meanwhile, and where this supervisor dies
 * the next one comes here again and finds less to do: what is done has the file `tidied` beside its
 * place here. What cannot be removed, or not in time, stays and is told, and the run ends all the
 * same.
 *
 * Nodes at once, on threads of the pool; the attempts of one node one after the other.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/supervisor/copies.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define PLAN_MAX_BYTES ((size_t)16 << 20)
#define BEGIN_SECONDS \
    20.0 /* no errand is begun later; one takes up to 30 s (node_setup/forget.c) */
#define TIDIED "tidied"

/* An attempt's folder on a node. */
typedef struct errand {
    dt_tidy *tidy;
    uv_work_t work; /* of the first errand of a node, which does the others too */
    dt_node_layout place;
    const char *here; /* attempt-N/node-K on this machine */
    dt_strbuf kept;   /* names that stay there, for the log */
    dt_error err;
} errand;

struct dt_tidy {
    dt_session *session;
    dt_arena arena;
    dt_strbuf home; /* names of checkpoints that are here too, or need not be */
    errand *errands;
    int64_t count, running;
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

/* Whatever attempt it is about: ranks may live there, and nobody answers. */
static bool is_lost(const dt_session *session, const char *name)
{
    bool lost = false;

    for (int64_t i = 0; i < session->node_count; i++)
        lost = lost || (dt_node_is_lost(&session->nodes[i]) &&
                        strcmp(session->nodes[i].row.name, name) == 0);
    return lost;
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
static void name_sent(json_t *names, const dt_session *session, int64_t attempt)
{
    const char *from, *slash;
    json_t *plan = NULL;
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-%lld/plan.json", session->folder, (long long)attempt);
    if (dt_json_read(&plan, path.data, PLAN_MAX_BYTES, NULL) == DT_OK) {
        from = json_string_value(json_object_get(plan, "resume_from"));
        slash = from != NULL ? strrchr(from, '/') : NULL;
        if (slash != NULL)
            json_object_set_new(names, slash + 1, json_true());
    }
    json_decref(plan);
    dt_strbuf_release(&path);
}

static dt_status add_errand(dt_tidy *tidy, int64_t attempt, int64_t node, dt_error *err)
{
    const char *here = dt_arena_printf(&tidy->arena, "%s/attempt-%lld/node-%lld",
                                       tidy->session->folder, (long long)attempt, (long long)node);
    const char *done = dt_arena_printf(&tidy->arena, "%s/" TIDIED, here);
    errand *one = &tidy->errands[tidy->count];
    bool restored;
    dt_status st;

    if (here == NULL || done == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    if (dt_file_exists(done))
        return DT_OK;
    *one = (errand){.tidy = tidy, .here = here, .err = DT_ERROR_INIT};
    st = dt_copies_place(&one->place, &restored, tidy->session->store, tidy->session->run, attempt,
                         node, here, &tidy->arena, err);
    json_decref(one->place.paths);
    one->place.paths = NULL;
    if (st != DT_OK || one->place.here)
        return st == DT_ERR_NOT_FOUND ? DT_OK : st;
    dt_strbuf_init(&one->kept);
    tidy->count++;
    return DT_OK;
}

static dt_status add_attempt(dt_tidy *tidy, const known *all, int64_t attempt, dt_error *err)
{
    dt_session *session = tidy->session;
    dt_status st = DT_OK;
    errand *grown;
    int64_t count;
    dt_node *rows;

    DT_TRY(dt_store_node_list(session->store, &rows, &count, session->run, attempt, &tidy->arena,
                              err));
    grown = realloc(tidy->errands, (size_t)(tidy->count + count + 1) * sizeof(*grown));
    if (grown == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    tidy->errands = grown;
    for (int64_t i = 0; i < count; i++)
        if (!is_lost(session, rows[i].name) && has_released(all, attempt, rows[i].node))
            DT_TRY(add_errand(tidy, attempt, rows[i].node, err));
out:
    return st;
}

static dt_status plan(dt_tidy *tidy, dt_error *err)
{
    dt_session *session = tidy->session;
    json_t *names = json_object();
    dt_status st = DT_OK;
    const char *name;
    json_t *unused;
    known all;

    DT_TRY(dt_store_event_list(session->store, &all.events, &all.event_count, session->run, 0, 0,
                               &tidy->arena, err));
    DT_TRY(dt_store_checkpoint_list(session->store, &all.rows, &all.row_count, session->run,
                                    &tidy->arena, err));
    for (int64_t attempt = 1; attempt <= session->attempt; attempt++) {
        name_sent(names, session, attempt);
        DT_TRY(add_attempt(tidy, &all, attempt, err));
    }
    name_saved(names, &all);
    json_object_foreach(names, name, unused) dt_strbuf_add_fmt(&tidy->home, "%s\n", name);
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
    const errand *end = one->tidy->errands + one->tidy->count, *at = one + 1;

    while (at < end && (strcmp(at->place.node, one->place.node) != 0 ||
                        strcmp(at->place.checkpoints, one->place.checkpoints) != 0))
        at++;
    return at == end;
}

/* agent: that of the newest attempt. Those of older ones may know less, or be gone. False where the
 * node did not answer: it is not asked again. */
static bool forget(errand *one, const char *agent)
{
    dt_tidy *tidy = one->tidy;
    dt_node_layout place = one->place;
    dt_status st;

    place.agent = agent;
    place.checkpoints_shared = place.checkpoints_shared || !is_last_there(one);
    st = dt_node_forget(&one->kept, &place, tidy->home.data, &tidy->cancelled, &one->err);
    if (st == DT_OK)
        note_done(one);
    return st == DT_OK || st == DT_ERR_IO;
}

static bool is_first(const errand *one)
{
    const errand *at = one->tidy->errands;

    while (at < one && strcmp(at->place.node, one->place.node) != 0)
        at++;
    return at == one;
}

static void forget_node(uv_work_t *work)
{
    errand *first = work->data, *end = first->tidy->errands + first->tidy->count;
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
        else if (dt_clock_monotonic_seconds() > first->tidy->deadline)
            (void)DT_FAIL(&one->err, DT_ERR_TIMEOUT, "there was no time to ask for it");
        else
            reached = forget(one, agent);
    }
}

static void tell(const dt_tidy *tidy)
{
    for (int64_t i = 0; i < tidy->count; i++) {
        const errand *one = &tidy->errands[i];

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
    dt_tidy *tidy = first->tidy;

    tidy->running--;
    if (tidy->running > 0 || tidy->session->trouble != DT_OK)
        return;
    tell(tidy);
    dt_state_take(tidy->session, DT_EVENT_RELEASED, NULL); /* which looks whether it was all */
}

/* --- the end */

static void begin(dt_session *session)
{
    dt_tidy *tidy = calloc(1, sizeof(*tidy));
    dt_error problem = DT_ERROR_INIT;

    DT_ASSERT(tidy != NULL);
    session->tidy = tidy;
    tidy->session = session;
    dt_arena_init(&tidy->arena, 0);
    dt_strbuf_init(&tidy->home);
    tidy->deadline = dt_clock_monotonic_seconds() + BEGIN_SECONDS;
    atomic_init(&tidy->cancelled, false);
    if (session->verdict.left.length > 0)
        return;
    if (plan(tidy, &problem) != DT_OK) {
        dt_log_warn("the nodes keep what the run left: %s", problem.message);
        return;
    }
    for (int64_t i = 0; i < tidy->count; i++) {
        errand *one = &tidy->errands[i];

        one->work.data = one;
        if (is_first(one) &&
            uv_queue_work(&session->loop, &one->work, forget_node, on_forgotten) == 0)
            tidy->running++;
    }
}

bool dt_tidy_is_over(dt_session *session)
{
    if (session->tidy == NULL)
        begin(session);
    return session->tidy->running == 0;
}

void dt_tidy_cancel(dt_session *session)
{
    if (session->tidy != NULL)
        atomic_store(&session->tidy->cancelled, true);
}

void dt_tidy_release(dt_session *session)
{
    dt_tidy *tidy = session->tidy;

    if (tidy == NULL)
        return;
    for (int64_t i = 0; i < tidy->count; i++)
        dt_strbuf_release(&tidy->errands[i].kept);
    free(tidy->errands);
    dt_strbuf_release(&tidy->home);
    dt_arena_release(&tidy->arena);
    free(tidy);
    session->tidy = NULL;
}
