#include "runner/supervisor/connection/preparation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct dt_preparation {
    uv_work_t work;
    uv_async_t news;
    dt_preparation_calls calls;
    void *context;
    atomic_bool cancelled;
    dt_prepare_request request;
    dt_arena arena; /* used by the thread */
    dt_status st;
    dt_error err;

    uv_mutex_t lock; /* guards the fields below */
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
    dt_node_layout place = {0};

    preparation->st =
        dt_node_prepare(&place, &preparation->request, &preparation->arena, &preparation->err);
    if (preparation->st == DT_OK)
        preparation->st =
            dt_node_layout_write(&place, preparation->request.here, &preparation->err);
    json_decref(place.paths);
}

/* --- on the loop's thread */

static void on_news(uv_async_t *news)
{
    dt_preparation *preparation = news->data;
    char text[sizeof(preparation->text)] = "";

    uv_mutex_lock(&preparation->lock);
    if (preparation->fresh)
        memcpy(text, preparation->text, sizeof(text));
    preparation->fresh = false;
    uv_mutex_unlock(&preparation->lock);
    if (text[0] != '\0')
        preparation->calls.news(preparation->context, text);
}

static void on_closed(uv_handle_t *handle)
{
    dt_preparation *preparation = handle->data;

    uv_mutex_destroy(&preparation->lock);
    dt_arena_release(&preparation->arena);
    free(preparation);
}

static void on_prepared(uv_work_t *work, int status)
{
    dt_preparation *preparation = work->data;
    dt_status st = status == 0 ? preparation->st : DT_ERR_IO;

    on_news(&preparation->news);
    preparation->calls.done(preparation->context, st, &preparation->err);
    uv_close((uv_handle_t *)&preparation->news, on_closed);
}

dt_preparation *dt_preparation_begin(uv_loop_t *loop, const dt_prepare_request *request,
                                     const dt_preparation_calls *calls, void *context)
{
    dt_preparation *preparation = dt_calloc(1, sizeof(*preparation));

    preparation->calls = *calls;
    preparation->context = context;
    preparation->work.data = preparation->news.data = preparation;
    dt_arena_init(&preparation->arena, 0);
    atomic_init(&preparation->cancelled, false);
    preparation->request = *request;
    preparation->request.cancelled = &preparation->cancelled;
    preparation->request.progress = on_progress;
    preparation->request.context = preparation;
    uv_mutex_init(&preparation->lock);
    uv_async_init(loop, &preparation->news, on_news);
    uv_queue_work(loop, &preparation->work, prepare, on_prepared);
    return preparation;
}

void dt_preparation_cancel(dt_preparation *preparation)
{
    if (preparation == NULL)
        return;
    atomic_store(&preparation->cancelled, true);
    uv_cancel((uv_req_t *)&preparation->work); /* if it has not started yet */
}
