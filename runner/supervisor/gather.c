/* gather: a checkpoint of nodes that do not share its folder is brought here, in the background.
 *
 * Only what is whole on this machine becomes a row, and is what a restart or resume goes on from.
 * One at a time, in their order, on a thread of the pool. One that fails is tried again; it is let
 * go where a newer one waits, and with a node that is lost. The run ends when all are here or let
 * go.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define AGAIN_MS       5000
#define TRIES_RUNNING  20
#define TRIES_STOPPING 3
#define NAME_SIZE      128

struct dt_gather {
    dt_gather *next;
    dt_session *session;
    dt_message message; /* `checkpoint`, with a reference of its own */
    int tries;

    uv_work_t work; /* what the thread sees: */
    char name[NAME_SIZE], digest[NAME_SIZE];
    char kept_as[DT_CHECKPOINT_NAME_SIZE];
    const json_t *plan; /* the session's, which reads it as well */
    dt_node_layout *places;
    int64_t count;
    const char *here;
    atomic_bool cancelled;
    dt_status st;
    dt_error err;
};

bool dt_gather_is_needed(const dt_session *session)
{
    bool shared = true;

    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_node_layout *place = dt_node_link_place(session->nodes[i].link);

        shared = shared && (place == NULL || place->checkpoints_shared);
    }
    return !shared;
}

static void fetch(uv_work_t *work)
{
    dt_gather *gather = work->data;
    dt_gather_request request = {.layouts = gather->places,
                                 .count = gather->count,
                                 .name = gather->name,
                                 .digest = gather->digest,
                                 .checkpoints_here = gather->here,
                                 .plan = gather->plan,
                                 .cancelled = &gather->cancelled};

    gather->st = dt_nodes_gather(gather->kept_as, &request, &gather->err);
}

static void drop_first(dt_session *session)
{
    dt_gather *gather = session->gathers;

    session->gathers = gather->next;
    json_decref(gather->message.json);
    free(gather->places);
    free(gather);
}

static dt_status keep(dt_session *session, const dt_gather *gather, dt_error *err)
{
    dt_status st;

    json_object_set_new(gather->message.json, "directory", json_string(gather->kept_as));
    DT_TRY(dt_follow_checkpoint(session, &gather->message, err));
    DT_TRY(dt_follow_commit(session, err));
out:
    return st;
}

static dt_status say_let_go(dt_session *session, const dt_gather *gather, dt_error *err)
{
    dt_status st;

    dt_log_error("checkpoint '%s' is not brought here: %s", gather->name, gather->err.message);
    DT_TRY(dt_follow_own_event(session,
                               json_pack("{s:s, s:s, s:I, s:o}", "event", "checkpoint_left",
                                         "directory", gather->name, "step",
                                         (json_int_t)dt_message_int(&gather->message, "step", 0),
                                         "message", dt_json_text(gather->err.message)),
                               err));
    DT_TRY(dt_follow_commit(session, err));
out:
    return st;
}

static bool is_let_go(const dt_session *session, const dt_gather *gather)
{
    bool ending = session->state != DT_RUN_RUNNING && session->state != DT_RUN_STARTING;

    bool lasting =
        gather->st != DT_ERR_PEER && gather->st != DT_ERR_TIMEOUT && gather->st != DT_ERR_IO;

    return lasting || gather->next != NULL || atomic_load(&gather->cancelled) ||
           gather->tries >= (ending ? TRIES_STOPPING : TRIES_RUNNING);
}

static void start_next(dt_session *session);

static void on_again(uv_timer_t *timer)
{
    start_next(timer->data);
}

static void on_fetched(uv_work_t *work, int status)
{
    dt_gather *gather = work->data;
    dt_session *session = gather->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st = DT_OK;

    session->gathering = false;
    if (session->trouble != DT_OK)
        return; /* the next session begins it anew */
    if (status == 0 && gather->st == DT_OK) {
        dt_log_info("checkpoint '%s' is here", gather->name);
        st = keep(session, gather, &err);
        drop_first(session);
    } else if (is_let_go(session, gather)) {
        st = say_let_go(session, gather, &err);
        drop_first(session);
    } else {
        dt_log_warn("checkpoint '%s' is not here yet: %s", gather->name, gather->err.message);
        uv_timer_start(&session->gather_again, on_again, AGAIN_MS, 0);
        return;
    }
    if (st != DT_OK) {
        dt_session_trouble(session, st, &err);
        return;
    }
    start_next(session);
    dt_state_consider(session);
}

static void start_next(dt_session *session)
{
    dt_gather *gather = session->gathers;

    if (gather == NULL || session->gathering || session->trouble != DT_OK)
        return;
    gather->tries++;
    gather->err = (dt_error)DT_ERROR_INIT;
    session->gathering = true;
    uv_queue_work(&session->loop, &gather->work, fetch, on_fetched);
}

void dt_gather_add(dt_session *session, const dt_message *message)
{
    dt_gather *gather = calloc(1, sizeof(*gather)), **last = &session->gathers;

    DT_ASSERT(gather != NULL);
    gather->session = session;
    gather->message = *message;
    json_incref(gather->message.json);
    gather->work.data = gather;
    gather->here = session->checkpoints;
    gather->plan = session->plan;
    gather->count = session->node_count;
    gather->places = calloc((size_t)session->node_count, sizeof(gather->places[0]));
    DT_ASSERT(gather->places != NULL);
    for (int64_t i = 0; i < session->node_count; i++)
        if (dt_node_link_place(session->nodes[i].link) != NULL)
            gather->places[i] = *dt_node_link_place(session->nodes[i].link);
    snprintf(gather->name, sizeof(gather->name), "%s", dt_message_string(message, "directory"));
    snprintf(gather->digest, sizeof(gather->digest), "%s", dt_message_string(message, "digest"));
    atomic_init(&gather->cancelled, false);
    while (*last != NULL)
        last = &(*last)->next;
    *last = gather;
    session->gather_again.data = session;
    if (!uv_is_active((uv_handle_t *)&session->gather_again))
        start_next(session);
}

bool dt_gather_is_over(const dt_session *session)
{
    return session->gathers == NULL;
}

void dt_gather_cancel(dt_session *session)
{
    dt_gather *running = session->gathering ? session->gathers : NULL;

    uv_timer_stop(&session->gather_again);
    if (running != NULL) {
        atomic_store(&running->cancelled, true); /* its thread has it; it is dropped then */
        uv_cancel((uv_req_t *)&running->work);
        session->gathers = running->next;
        while (session->gathers != NULL)
            drop_first(session);
        running->next = NULL;
        session->gathers = running;
        return;
    }
    while (session->gathers != NULL)
        drop_first(session);
}

void dt_gather_release(dt_session *session)
{
    session->gathering = false;
    while (session->gathers != NULL)
        drop_first(session);
}
