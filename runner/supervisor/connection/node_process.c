/* node_process: what runs beside the loop for a node: commands there, probes of a silent node, and its
 * preparation on a thread. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/connection/connection_int.h"
#include "runner/supervisor/connection/node_link.h"

/* A command is dtrun-reach, which ends its ssh with all that this started however it ends itself (base/child.h), or, on
 * this machine, the agent, which starts nothing that ends with it. So it is ended alone. */
struct dt_node_process {
    uv_process_t process;
    dt_node_exited_fn *exited; /* NULL: no callback */
    void *context;
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_process_exit(uv_process_t *handle, int64_t code, int number)
{
    dt_node_process *process = handle->data;

    if (process->exited != NULL)
        process->exited(process->context, code, number);
    uv_close((uv_handle_t *)handle, on_closed);
}

/* Returns NULL if the command cannot be started; then `exited` is not called. */
static dt_node_process *node_process_start(uv_loop_t *loop, const char **argv,
                                           dt_node_exited_fn *exited, void *context)
{
    uv_process_options_t options = {.exit_cb = on_process_exit,
                                    .file = argv[0],
                                    .args = (char **)argv}; /* streams: /dev/null */
    dt_node_process *process = dt_calloc(1, sizeof(*process));

    process->exited = exited;
    process->context = context;
    if (uv_spawn(loop, &process->process, &options) != 0) {
        process->process.data = process;
        uv_close((uv_handle_t *)&process->process, on_closed);
        return NULL;
    }
    process->process.data = process;
    return process;
}

void dt_node_process_kill(dt_node_process *process)
{
    if (process != NULL)
        uv_process_kill(&process->process, SIGKILL);
}

void dt_node_process_abandon(dt_node_process *process)
{
    if (process == NULL)
        return;
    process->exited = NULL;
    uv_process_kill(&process->process, SIGKILL);
}

dt_node_process *dt_node_process_end_agent(uv_loop_t *loop, const char *node, const char *agent,
                                           const char *folder, dt_node_exited_fn *exited,
                                           void *context)
{
    const char *const arguments[] = {agent, "end", folder, NULL};
    dt_node_process *process = NULL;
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_node_command(&argv, node, arguments, true, &arena, NULL) == DT_OK)
        process = node_process_start(loop, argv, exited, context);
    dt_arena_release(&arena);
    return process;
}

/* --- probes */

typedef struct probe {
    dt_node_process *process;
    dt_node_prober *prober;
    double begun_seconds;
    struct probe *next;
} probe;

struct dt_node_prober {
    uv_loop_t *loop;
    dt_node_probed_fn *probed;
    void *context;
    probe *first; /* running probes */
};

dt_node_prober *dt_node_prober_open(uv_loop_t *loop, dt_node_probed_fn *probed, void *context)
{
    dt_node_prober *prober = dt_calloc(1, sizeof(*prober));

    *prober = (dt_node_prober){.loop = loop, .probed = probed, .context = context};
    return prober;
}

static void take_out(probe *one)
{
    probe **at = &one->prober->first;

    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    free(one);
}

static void on_exited(void *context, int64_t code, int number)
{
    probe *one = context;
    dt_node_prober *prober = one->prober;
    double begun_seconds = one->begun_seconds;

    take_out(one);
    if (number == 0)
        prober->probed(prober->context, (dt_contact)code, begun_seconds);
}

void dt_node_prober_begin(dt_node_prober *prober, const char *node, const char *agent,
                          double now_seconds)
{
    const char *const arguments[] = {agent, "--version", NULL};
    probe *one = dt_calloc(1, sizeof(*one));
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    one->prober = prober;
    one->begun_seconds = now_seconds;
    one->next = prober->first;
    prober->first = one;
    if (dt_node_probe_command(&argv, node, arguments, &arena, NULL) == DT_OK)
        one->process = node_process_start(prober->loop, argv, on_exited, one);
    dt_arena_release(&arena);
    if (one->process == NULL)
        on_exited(one, DT_CONTACT_UNKNOWN, 0); /* dtrun-reach is not installed here */
}

void dt_node_prober_forget(dt_node_prober *prober)
{
    while (prober->first != NULL) {
        dt_node_process_abandon(prober->first->process);
        take_out(prober->first);
    }
}

void dt_node_prober_close(dt_node_prober *prober)
{
    if (prober != NULL)
        dt_node_prober_forget(prober);
    free(prober);
}

/* --- the preparation */

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

static void on_preparation_closed(uv_handle_t *handle)
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
    uv_close((uv_handle_t *)&preparation->news, on_preparation_closed);
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
