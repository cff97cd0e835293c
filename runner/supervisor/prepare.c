/* prepare: a node is made ready on a thread of libuv's pool, while the session's loop goes on.
 *
 * The thread has a copy of what it needs and touches nothing of the session; its words come over
 * an async handle. Where things lie then is read back from place.json, as a later supervisor does.
 * Whether a node that cannot be had is tried again is decided by policy/node_loss.h.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/copies.h"
#include "runner/supervisor/policy/node_loss.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define AGAIN_MS 5000

struct dt_preparation {
    uv_work_t work;
    uv_async_t news;
    dt_supervised_node *node;
    atomic_bool cancelled;
    dt_prepare_request request;
    dt_arena arena; /* the thread's */
    dt_status st;
    dt_error err;

    uv_mutex_t lock; /* of what follows */
    char text[256];
    bool fresh;
};

/* --- on the thread */

static void on_progress(void *context, const char *text)
{
    dt_preparation *preparation = context;

    uv_mutex_lock(&preparation->lock);
    snprintf(preparation->text, sizeof(preparation->text), "%s", text);
    preparation->fresh = true;
    uv_mutex_unlock(&preparation->lock);
    uv_async_send(&preparation->news);
}

static void prepare(uv_work_t *work)
{
    dt_preparation *preparation = work->data;
    dt_node_place place = {0};

    preparation->st =
        dt_node_prepare(&place, &preparation->request, &preparation->arena, &preparation->err);
    if (preparation->st == DT_OK)
        preparation->st = dt_node_place_write(&place, preparation->request.here, &preparation->err);
    json_decref(place.paths);
}

/* --- on the session's */

static void say(dt_supervised_node *node, const char *text)
{
    dt_session *session = node->session;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    dt_log_info("%s: %s", node->row.name, text);
    node->row.state = dt_arena_strdup(&session->arena, text); /* until it is ready */
    if (node->row.state == NULL)
        node->row.state = "connecting";
    node->changed = true;
    DT_TRY(dt_follow_own_event(session,
                               json_pack("{s:s, s:I, s:s, s:o}", "event", "preparing", "node",
                                         (json_int_t)node->row.node, "host", node->row.name,
                                         "message", dt_json_text(text)),
                               &err));
    DT_TRY(dt_follow_commit(session, &err));
out:
    if (st != DT_OK)
        dt_session_trouble(session, st, &err);
}

static void on_news(uv_async_t *news)
{
    dt_preparation *preparation = news->data;
    char text[sizeof(preparation->text)] = "";

    uv_mutex_lock(&preparation->lock);
    if (preparation->fresh)
        memcpy(text, preparation->text, sizeof(text));
    preparation->fresh = false;
    uv_mutex_unlock(&preparation->lock);
    if (text[0] != '\0' && preparation->node->session->trouble == DT_OK)
        say(preparation->node, text);
}

static void on_news_closed(uv_handle_t *handle)
{
    dt_preparation *preparation = handle->data;

    uv_mutex_destroy(&preparation->lock);
    dt_arena_release(&preparation->arena);
    free(preparation);
}

dt_status dt_prepare_recall(dt_supervised_node *node, dt_error *err)
{
    dt_session *session = node->session;
    dt_error problem = DT_ERROR_INIT;
    bool restored = false;
    dt_status st;

    st = dt_copies_place(&node->place, &restored, session->store, session->run, session->attempt,
                         node->row.node, node->here, &session->arena, &problem);
    node->placed = st == DT_OK;
    node->place_lost = st == DT_ERR_CORRUPT || st == DT_ERR_UNSUPPORTED;
    if (node->placed)
        node->row.name = node->place.node; /* a Slurm node has its name once its job runs */
    else if (node->place_lost)
        dt_log_warn("%s: where things lie there is found out anew: %s", node->row.name,
                    problem.message);
    else if (st != DT_ERR_NOT_FOUND)
        return DT_FAIL(err, st, "%s", problem.message);
    return restored ? dt_follow_own_event(session,
                                          json_pack("{s:s, s:s, s:I}", "event", "restored", "file",
                                                    DT_NODE_PLACE_FILE, "node",
                                                    (json_int_t)node->row.node),
                                          err)
                    : DT_OK;
}

/* Whether it is worth another try, which is then on its way. */
static bool try_again(dt_supervised_node *node, dt_status st)
{
    dt_session *session = node->session;
    dt_preparation_facts facts = {
        .failed = st,
        .preparing = session->state == DT_RUN_PREPARING,
        .restarts = session->restarts,
        .nodes = session->node_count,
        .nodes_min = session->nodes_min,
        .waited_seconds = dt_session_now(session) - session->begun_seconds,
    };

    if (!dt_node_loss_waits(&facts))
        return false;
    say(node, node->problem);
    dt_node_retry_in(node, AGAIN_MS);
    return true;
}

static void on_prepared(uv_work_t *work, int status)
{
    dt_preparation *preparation = work->data;
    dt_supervised_node *node = preparation->node;
    dt_session *session = node->session;
    dt_error err = preparation->err;
    dt_status st = preparation->st;

    on_news(&preparation->news);
    node->preparation = NULL;
    if (status == 0 && st == DT_OK)
        st = dt_prepare_recall(node, &err);
    uv_close((uv_handle_t *)&preparation->news, on_news_closed);
    if (session->trouble != DT_OK)
        return;
    if (node->given_up || node->released) {
        dt_state_consider(session); /* which may have waited for this */
        return;
    }
    if (node->placed) {
        dt_node_connect(node);
        return;
    }
    snprintf(node->problem, sizeof(node->problem), "%.*s", (int)sizeof(node->problem) - 1,
             err.message[0] != '\0' ? err.message : "its preparation was given up");
    if (try_again(node, st))
        return;
    node->unrecoverable = dt_node_loss_is_final(st);
    dt_node_give_up(node, node->problem);
}

void dt_prepare_node(dt_supervised_node *node)
{
    dt_session *session = node->session;
    dt_preparation *preparation = calloc(1, sizeof(*preparation));

    DT_ASSERT(preparation != NULL);
    preparation->node = node;
    preparation->work.data = preparation->news.data = preparation;
    dt_arena_init(&preparation->arena, 0);
    atomic_init(&preparation->cancelled, false);
    preparation->request = (dt_prepare_request){.node = node->row.name,
                                                .run = session->run,
                                                .attempt = session->attempt,
                                                .node_index = node->row.node,
                                                .node_count = session->node_count,
                                                .here = node->here,
                                                .checkpoints_here = session->checkpoints,
                                                .plan = session->plan,
                                                .cancelled = &preparation->cancelled,
                                                .progress = on_progress,
                                                .context = preparation};
    uv_mutex_init(&preparation->lock);
    uv_async_init(&session->loop, &preparation->news, on_news);
    node->preparation = preparation;
    uv_queue_work(&session->loop, &preparation->work, prepare, on_prepared);
}

void dt_prepare_cancel(dt_supervised_node *node)
{
    if (node->preparation == NULL)
        return;
    atomic_store(&node->preparation->cancelled, true);
    uv_cancel((uv_req_t *)&node->preparation->work); /* where it has not begun */
}
