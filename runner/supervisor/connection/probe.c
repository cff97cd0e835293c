#include "runner/supervisor/connection/probe.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/connection/node_process.h"

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
    const char *const words[] = {agent, "--version", NULL};
    probe *one = dt_calloc(1, sizeof(*one));
    const char **argv;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    one->prober = prober;
    one->begun_seconds = now_seconds;
    one->next = prober->first;
    prober->first = one;
    if (dt_node_probe_command(&argv, node, words, &arena, NULL) == DT_OK)
        one->process = dt_node_process_start(prober->loop, argv, on_exited, one);
    dt_arena_release(&arena);
    if (one->process == NULL)
        on_exited(one, DT_CONTACT_UNKNOWN, 0); /* dtrun-reach is not installed here */
}

void dt_node_prober_forget(dt_node_prober *prober)
{
    while (prober->first != NULL) {
        dt_node_process_let_go(prober->first->process);
        take_out(prober->first);
    }
}

void dt_node_prober_close(dt_node_prober *prober)
{
    if (prober != NULL)
        dt_node_prober_forget(prober);
    free(prober);
}
