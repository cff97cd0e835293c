/* hope: what the silence of a node means.
 *
 *   silent for      and                                    then
 *    6 s                                                   a new connection is tried
 *    8 s            it is another machine                  it is probed (a command is run on it)
 *   10 s            no agent ever answered there           given up
 *   16 s            no probe has reached it since          given up: the node is gone
 *   20 s, 60 s      it is reached; the run stops, trains   its agent hangs: it is replaced, which
 *                                                          ends its ranks
 *   15 s            after that                             given up
 *
 * A node that was taken back (a Slurm job that ended) is given up at once (node.c), and so is one
 * whose agent refuses to start its ranks: nothing would ever be heard of them.
 *
 * A cut of ten seconds costs nothing: probes and connections after a silence do not share the one
 * that was cut, which may be stuck for as long again (TCP doubles its pauses); and the agent goes
 * on from the number that is stored here. The verdict on a node that is gone is there in less than
 * 20 s.
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

#define SILENT_SECONDS   6.0
#define DOUBT_SECONDS    8.0
#define PROBE_SECONDS    3.0 /* between two */
#define FRESH_SECONDS    10.0
#define GONE_SECONDS     16.0
#define STOPPING_SECONDS 20.0
#define RUNNING_SECONDS  60.0
#define REPLACED_SECONDS 15.0

/* --- a probe: can anything be run there? */

struct dt_probe {
    uv_process_t process;
    dt_supervised_node *node; /* NULL: let go of */
};

static void on_probe_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_probe_exit(uv_process_t *process, int64_t code, int number)
{
    dt_probe *probe = process->data;

    if (probe->node != NULL) {
        probe->node->probe = NULL;
        if (code == 0 && number == 0)
            probe->node->reached_seconds = dt_clock_monotonic_seconds();
    }
    uv_close((uv_handle_t *)process, on_probe_closed);
}

void dt_hope_forget(dt_supervised_node *node)
{
    if (node->probe == NULL)
        return;
    node->probe->node = NULL;
    uv_process_kill(&node->probe->process, SIGKILL);
    node->probe = NULL;
}

static void probe(dt_supervised_node *node)
{
    const char *const words[] = {node->place.agent, "--version", NULL};
    uv_process_options_t options = {.exit_cb = on_probe_exit}; /* its streams are /dev/null */
    const char **argv;
    dt_arena arena;

    dt_hope_forget(node);
    node->probed_seconds = dt_clock_monotonic_seconds();
    dt_arena_init(&arena, 0);
    node->probe = calloc(1, sizeof(*node->probe));
    DT_ASSERT(node->probe != NULL);
    node->probe->node = node;
    node->probe->process.data = node->probe;
    if (dt_node_command(&argv, node->row.name, words, true, &arena, NULL) == DT_OK) {
        options.file = argv[0];
        options.args = (char **)argv;
        if (uv_spawn(&node->session->loop, &node->probe->process, &options) != 0)
            on_probe_exit(&node->probe->process, -1, 0);
    } else {
        free(node->probe);
        node->probe = NULL;
    }
    dt_arena_release(&arena);
}

/* --- the table */

static bool anything_started(const dt_supervised_node *node)
{
    for (int64_t i = 0; i < node->session->world_size; i++)
        if (node->session->ranks[i].row.node == node->row.node &&
            node->session->ranks[i].row.pid != 0)
            return true;
    return false;
}

void dt_node_give_up(dt_supervised_node *node, const char *why)
{
    char reason[sizeof(node->problem)];

    if (node->given_up)
        return;
    memmove(reason, why, strnlen(why, sizeof(reason) - 1) + 1);
    reason[sizeof(reason) - 1] = '\0';
    memcpy(node->problem, reason, sizeof(reason));
    node->given_up = node->lost = true;
    dt_hope_forget(node);
    dt_prepare_cancel(node);
    dt_node_disconnect(node);
    if (node->retry_open)
        uv_timer_stop(&node->retry);
    dt_node_show_state(node, "lost");
    dt_state_take(node->session, DT_EVENT_LOST, node);
    dt_state_consider(node->session);
}

static void give_up(dt_supervised_node *node, bool gone, double silent)
{
    dt_strbuf why;

    dt_strbuf_init(&why);
    if (gone)
        dt_strbuf_add_fmt(&why, "node %s is gone: nothing was heard from it for %.0f s",
                          node->row.name, silent);
    else
        dt_strbuf_add_fmt(&why, "the agent on %s cannot be had", node->row.name);
    if (node->problem[0] != '\0')
        dt_strbuf_add_fmt(&why, "%s%.300s", gone ? " (" : ": ", node->problem);
    if (node->problem[0] != '\0' && gone)
        dt_strbuf_add_char(&why, ')');
    if (anything_started(node))
        dt_strbuf_add_str(&why, "; its ranks may still be there");
    dt_node_give_up(node, why.data);
    dt_strbuf_release(&why);
}

void dt_hope_refused(dt_supervised_node *node, const char *why)
{
    dt_strbuf reason;

    if (node->session->state != DT_RUN_STARTING || node->released || anything_started(node))
        return;
    dt_strbuf_init(&reason);
    dt_strbuf_add_fmt(&reason, "the agent on %s does not start its ranks: %.300s", node->row.name,
                      why);
    dt_node_give_up(node, reason.data);
    dt_strbuf_release(&reason);
}

void dt_hope_judge(dt_supervised_node *node)
{
    double now = dt_clock_monotonic_seconds(), silent = now - node->heard_seconds;
    bool fresh = !anything_started(node) && !node->idle;
    bool reached = node->place.here || node->reached_seconds > node->heard_seconds;
    double hope = node->session->state == DT_RUN_STOPPING ? STOPPING_SECONDS : RUNNING_SECONDS;

    if (node->given_up || node->released)
        return;
    if (!node->place.here && silent > DOUBT_SECONDS && now - node->probed_seconds > PROBE_SECONDS)
        probe(node);
    if (fresh && silent > FRESH_SECONDS) {
        give_up(node, false, silent);
    } else if (!fresh && !reached && silent > GONE_SECONDS) {
        give_up(node, true, silent);
    } else if (node->replace && silent > REPLACED_SECONDS) {
        give_up(node, false, silent);
    } else if (!fresh && reached && !node->replace && silent > hope) {
        dt_log_warn("%s: its agent is replaced", node->row.name);
        node->replace = true;
        node->heard_seconds = now;
        dt_node_disconnect(node);
    }
}

void dt_hope_look(dt_supervised_node *node)
{
    double now = dt_clock_monotonic_seconds();
    double since = node->heard_seconds > node->connected_seconds ? node->heard_seconds
                                                                 : node->connected_seconds;

    if (now - since > SILENT_SECONDS) {
        node->renew = true;
        dt_node_reconnect(node, "nothing was heard from it");
    } else {
        dt_hope_judge(node);
    }
}
