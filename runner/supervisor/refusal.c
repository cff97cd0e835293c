/* refusal: an agent that answers, and with which nothing can be done.
 *
 * After refusals of some weight (policy/refusal.h) `dtrun-agent end` of the run's own bundle is run
 * there: it speaks no protocol, kills the agent, ends all of the ranks, and proves it.
 *
 * A node where it was done is released, with what its journal told so far; the attempt failed, and
 * may be followed by another, unless a stop was asked for.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define END_MS       40000 /* that one `end` may take: killing takes 10 s, proof of GPUs 20 s */
#define END_LATER_MS 5000

struct dt_ending {
    uv_process_t process;
    uv_timer_t timer;         /* until it is killed, or until the next try */
    dt_supervised_node *node; /* NULL: let go of */
    int tries, handles;
    bool running;
    char why[300];
};

static void on_closed(uv_handle_t *handle)
{
    dt_ending *ending = handle->data;

    if (--ending->handles == 0)
        free(ending);
}

static void try_end(dt_ending *ending);

static void on_time(uv_timer_t *timer)
{
    dt_ending *ending = timer->data;

    if (ending->running)
        uv_process_kill(&ending->process, SIGKILL);
    else if (ending->node != NULL && ending->node->session->trouble == DT_OK)
        try_end(ending);
}

void dt_refusal_forget(dt_supervised_node *node)
{
    dt_ending *ending = node->ending;

    node->ending = NULL;
    if (ending == NULL)
        return;
    ending->node = NULL;
    if (ending->running)
        uv_process_kill(&ending->process, SIGKILL);
    uv_close((uv_handle_t *)&ending->timer, on_closed);
}

/* Nothing of it is left there; what it had not told is lost. */
static dt_status note_ended(dt_supervised_node *node, const char *why, dt_error *err)
{
    dt_session *session = node->session;
    dt_status st;

    snprintf(node->problem, sizeof(node->problem), "%s", why);
    if (!session->verdict.stop_asked && !dt_verdict_has_failed(&session->verdict))
        dt_state_take(session, DT_EVENT_LOST, node); /* the others end too */
    DT_TRY(dt_follow_own_event(session,
                               json_pack("{s:s, s:I, s:s, s:o}", "event", "ended", "node",
                                         (json_int_t)node->row.node, "host", node->row.name,
                                         "message", dt_json_text(why)),
                               err));
    node->row.state = "released";
    node->released = node->changed = true; /* the commit lets it go */
    DT_TRY(dt_follow_commit(session, err));
    dt_state_consider(session);
out:
    return st;
}

static void on_ended(uv_process_t *process, int64_t code, int number)
{
    dt_ending *ending = process->data;
    dt_supervised_node *node = ending->node;
    dt_error err = DT_ERROR_INIT;
    char why[sizeof(ending->why)];
    dt_status st;

    ending->running = false;
    uv_close((uv_handle_t *)process, on_closed);
    if (node == NULL || node->session->trouble != DT_OK)
        return;
    memcpy(why, ending->why, sizeof(why));
    if (code == 0 && number == 0) {
        dt_refusal_forget(node);
        dt_log_info("%s: what ran there was ended: %s", node->row.name, why);
        st = note_ended(node, why, &err);
        if (st != DT_OK)
            dt_session_trouble(node->session, st, &err);
    } else if (ending->tries < DT_REFUSAL_END_TRIES) {
        uv_timer_start(&ending->timer, on_time, END_LATER_MS, 0);
    } else {
        dt_refusal_forget(node);
        dt_node_give_up(node, why);
    }
}

static void try_end(dt_ending *ending)
{
    dt_supervised_node *node = ending->node;
    const char *const words[] = {node->place.agent, "end", node->place.folder, NULL};
    uv_process_options_t options = {.exit_cb = on_ended}; /* its streams are /dev/null */
    int problem = UV_ENOENT;
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    ending->tries++;
    ending->process.data = ending;
    if (dt_node_command(&argv, node->row.name, words, true, &arena, NULL) == DT_OK) {
        options.file = argv[0];
        options.args = (char **)argv;
        ending->handles++;
        ending->running = true;
        problem = uv_spawn(&node->session->loop, &ending->process, &options);
    }
    dt_arena_release(&arena);
    uv_timer_start(&ending->timer, on_time, END_MS, 0);
    if (problem != 0 && ending->running)
        on_ended(&ending->process, -1, 0);
    else if (problem != 0)
        uv_timer_start(&ending->timer, on_time, END_LATER_MS, 0);
}

static void end_there(dt_supervised_node *node, const char *why)
{
    dt_ending *ending = calloc(1, sizeof(*ending));

    DT_ASSERT(ending != NULL);
    ending->node = node;
    ending->handles = 1;
    ending->timer.data = ending;
    snprintf(ending->why, sizeof(ending->why), "the agent on %.60s cannot be used: %.200s",
             node->row.name, why);
    dt_log_warn("%s: what runs there is ended", ending->why);
    uv_timer_init(&node->session->loop, &ending->timer);
    node->ending = ending;
    dt_node_disconnect(node);
    if (node->retry_open)
        uv_timer_stop(&node->retry);
    try_end(ending);
}

void dt_refusal_take(dt_supervised_node *node, const char *why, bool lasting)
{
    if (node->ending != NULL || node->given_up || node->released)
        return;
    if (dt_refusal_is_last(&node->refusals, node->row.acknowledged, lasting))
        end_there(node, why);
    else
        dt_node_reconnect(node, why);
}
