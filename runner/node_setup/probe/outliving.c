/* outliving: tests whether an agent on each node would outlive the login that started it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/probe/probe_int.h"
#include "runner/transport/remote.h"

#include "base/alloc.h"

#define ANSWER_SECONDS 20.0

typedef struct tests {
    const dt_probe_report *report;
    const dt_probe_wish *wish;
    const dt_bootstrap *bootstrap;
    bool *ended; /* [count]: the process was gone in the next login */
} tests;

/* Starts a process on the node over a connection that ends with the command, and reads its pid and
 * start time. Returns false if this fails; the node is then not tested. */
static bool leave(char *pid, char *start, const tests *all, const char *node, const char *agent)
{
    const char *const words[] = {agent, "node", "leave", NULL};
    dt_remote remote = {0};
    dt_strbuf line;
    bool good;

    dt_strbuf_init(&line);
    good = dt_remote_open_apart(&remote, node, words, all->wish->cancelled, NULL) == DT_OK &&
           dt_nodes_line(&line, &remote, ANSWER_SECONDS, NULL) == DT_OK &&
           sscanf(line.data, "%31s %31s", pid, start) == 2 &&
           dt_remote_finish(&remote, NULL, NULL, ANSWER_SECONDS, NULL) == DT_OK;
    dt_remote_close(&remote);
    dt_strbuf_release(&line);
    return good;
}

static void test(void *context, int64_t i)
{
    tests *all = context;
    const dt_node_probe *probe = &all->report->probes[i];
    char pid[32], start[32];
    const char *agent;
    dt_strbuf answer;
    dt_arena arena;

    if (probe->facts == NULL || dt_nodes_is_here(probe->node))
        return;
    dt_arena_init(&arena, 1024);
    dt_strbuf_init(&answer);
    if (dt_bootstrap_agent(&agent, all->bootstrap, probe->node, probe->facts, &arena, NULL) ==
            DT_OK &&
        leave(pid, start, all, probe->node, agent)) {
        const char *const words[] = {agent, "node", "look", pid, start, NULL};

        all->ended[i] = dt_nodes_ask(&answer, probe->node, words, NULL, 0, ANSWER_SECONDS,
                                     all->wish->cancelled, NULL) == DT_OK &&
                        strcmp(answer.data, "gone\n") == 0;
    }
    dt_strbuf_release(&answer);
    dt_arena_release(&arena);
}

void dt_probe_outliving(dt_probe_report *report, const dt_probe_wish *wish,
                        const dt_bootstrap *bootstrap, dt_arena *arena)
{
    tests all = {report, wish, bootstrap, dt_calloc((size_t)report->count, sizeof(bool))};

    dt_probe_parallel(report->count, test, &all);
    for (int64_t i = 0; i < report->count; i++)
        if (all.ended[i])
            dt_probe_add_fault(report, arena, report->probes[i].node, false, DT_OK,
                               "node '%s' kills background processes when the login ends: a "
                               "network outage would end its ranks and restart the run: run "
                               "'loginctl enable-linger USER' there, or set KillUserProcesses=no "
                               "in /etc/systemd/logind.conf; under Slurm use 'nodes: slurm'",
                               report->probes[i].node);
    free(all.ended);
}
