/* probe: can anything be run on a node that is silent, and does the machine answer at all?
 *
 * `dtrun-reach --probe` tells by its exit code (transport/contact.h). A few may be on their way at
 * once: one that was begun while the network was cut may hang for longer than the cut.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>

#include "base/log.h"
#include "runner/supervisor/state.h"
#include "runner/transport/contact.h"

#include "base/banned.h"

struct dt_probe {
    uv_process_t process;
    dt_supervised_node *node; /* NULL: let go of */
    dt_probe *next;
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void take_out(dt_probe *probe)
{
    dt_probe **at = &probe->node->probes;

    while (*at != probe)
        at = &(*at)->next;
    *at = probe->next;
    probe->node = NULL;
}

static void note(dt_supervised_node *node, int64_t code)
{
    double now = dt_session_now(node->session);

    if (code == DT_CONTACT_COMMAND)
        node->command_seconds = now;
    else if (code == DT_CONTACT_HOST)
        node->answered_seconds = now;
    else if (code == DT_CONTACT_UNKNOWN)
        node->unknown_seconds = now;
}

static void on_probed(uv_process_t *process, int64_t code, int number)
{
    dt_probe *probe = process->data;

    if (probe->node != NULL) {
        dt_supervised_node *node = probe->node;

        take_out(probe);
        if (number == 0)
            note(node, code);
    }
    uv_close((uv_handle_t *)process, on_closed);
}

void dt_probe_begin(dt_supervised_node *node)
{
    const char *const words[] = {node->place.agent, "--version", NULL};
    uv_process_options_t options = {.exit_cb = on_probed}; /* its streams are /dev/null */
    dt_probe *probe = calloc(1, sizeof(*probe));
    const char **argv;
    dt_arena arena;

    DT_ASSERT(probe != NULL);
    node->probed_seconds = dt_session_now(node->session);
    dt_arena_init(&arena, 0);
    probe->node = node;
    probe->process.data = probe;
    probe->next = node->probes;
    node->probes = probe;
    if (dt_node_probe_command(&argv, node->row.name, words, &arena, NULL) == DT_OK) {
        options.file = argv[0];
        options.args = (char **)argv;
        if (uv_spawn(&node->session->loop, &probe->process, &options) != 0)
            on_probed(&probe->process, DT_CONTACT_UNKNOWN, 0);
    } else {
        take_out(probe);
        free(probe);
        note(node, DT_CONTACT_UNKNOWN); /* dtrun-reach is not here */
    }
    dt_arena_release(&arena);
}

void dt_probe_forget(dt_supervised_node *node)
{
    while (node->probes != NULL) {
        dt_probe *probe = node->probes;

        take_out(probe);
        uv_process_kill(&probe->process, SIGKILL);
    }
}
