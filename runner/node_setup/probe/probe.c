/* probe: probes all nodes of a recipe at once: their facts, and whether an agent would outlive the login
 * that started it. */
#include "runner/node_setup/probe/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

/* outliving: tests whether an agent on each node would outlive the login that started it. */

#define ANSWER_SECONDS 20.0

typedef struct tests {
    const dt_probe_report *report;
    const dt_probe_wish *wish;
    const dt_bootstrap *bootstrap;
    bool *ended; /* [count]: the process was gone in the next login */
} tests;

/* Starts a process on the node over a connection that ends with the command, and reads its pid and
 * start time. Returns false if this fails; the node is then not tested. */
static bool leave(char *pid, char *start, const tests *probe_tests, const char *node,
                  const char *agent)
{
    const char *const words[] = {agent, "node", "leave", NULL};
    dt_remote remote = {0};
    dt_strbuf line;
    bool good;

    dt_strbuf_init(&line);
    good =
        dt_remote_open_apart(&remote, node, words, probe_tests->wish->cancelled, NULL) == DT_OK &&
        dt_nodes_line(&line, &remote, ANSWER_SECONDS, NULL) == DT_OK &&
        sscanf(line.data, "%31s %31s", pid, start) == 2 &&
        dt_remote_finish(&remote, NULL, NULL, ANSWER_SECONDS, NULL) == DT_OK;
    dt_remote_close(&remote);
    dt_strbuf_release(&line);
    return good;
}

static void test(void *context, int64_t i)
{
    tests *probe_tests = context;
    const dt_node_probe *probe = &probe_tests->report->probes[i];
    char pid[32], start[32];
    const char *agent;
    dt_strbuf answer;
    dt_arena arena;

    if (probe->facts == NULL || dt_nodes_is_here(probe->node))
        return;
    dt_arena_init(&arena, 1024);
    dt_strbuf_init(&answer);
    if (dt_bootstrap_agent(&agent, probe_tests->bootstrap, probe->node, probe->facts, &arena,
                           NULL) == DT_OK &&
        leave(pid, start, probe_tests, probe->node, agent)) {
        const char *const words[] = {agent, "node", "look", pid, start, NULL};

        probe_tests->ended[i] = dt_nodes_ask(&answer, probe->node, words, NULL, 0, ANSWER_SECONDS,
                                             probe_tests->wish->cancelled, NULL) == DT_OK &&
                                strcmp(answer.data, "gone\n") == 0;
    }
    dt_strbuf_release(&answer);
    dt_arena_release(&arena);
}

/* Adds a fault for each node that ends what a login has left running. */
static void probe_outliving(dt_probe_report *report, const dt_probe_wish *wish,
                            const dt_bootstrap *bootstrap, dt_arena *arena)
{
    tests probe_tests = {report, wish, bootstrap, dt_calloc((size_t)report->count, sizeof(bool))};

    dt_probe_parallel(report->count, test, &probe_tests);
    for (int64_t i = 0; i < report->count; i++)
        if (probe_tests.ended[i])
            dt_probe_add_fault(report, arena, report->probes[i].node, false, DT_OK,
                               "node '%s' kills background processes when the login ends: a "
                               "network outage would end its ranks and restart the run: run "
                               "'loginctl enable-linger USER' there, or set KillUserProcesses=no "
                               "in /etc/systemd/logind.conf; under Slurm use 'nodes: slurm'",
                               report->probes[i].node);
    free(probe_tests.ended);
}

/* --- all nodes */

/* --- asking */

typedef struct question {
    const dt_probe_wish *wish;
    const dt_bootstrap *bootstrap;
    dt_probe_bundles bundles;
    dt_node_probe *probes;
    dt_error *errors; /* [count] */
} question;

static void ask_node(void *context, int64_t i)
{
    question *ask = context;
    dt_node_probe *probe = &ask->probes[i];
    const dt_bundle *bundle = probe->gpus ? &ask->bundles.gpus : &ask->bundles.plain;
    double start = dt_clock_monotonic_seconds();

    if (ask->wish->renew)
        dt_remote_renew(probe->node);
    (void)dt_bootstrap_probe(&probe->facts, &probe->skew_ms, ask->bootstrap, probe->node,
                             bundle->hash, ask->wish->cancelled, &ask->errors[i]);
    probe->seconds += dt_clock_monotonic_seconds() - start;
}

/* Returns true if a node has GPUs although the recipe sets no number, so that it was probed with
 * the bundle without the GPU part. */
static bool is_surprise(const question *ask, int64_t i)
{
    const dt_node_probe *probe = &ask->probes[i];

    return ask->wish->devices != NULL && ask->wish->devices[i] == DT_PROBE_ALL && !probe->gpus &&
           json_array_size(json_object_get(probe->facts, "devices")) > 0;
}

static void ask_surprise(void *context, int64_t i)
{
    question *ask = context;
    dt_node_probe *probe = &ask->probes[i];

    if (!is_surprise(ask, i))
        return;
    probe->gpus = true;
    if (dt_nodes_is_here(probe->node))
        return; /* this machine needs no bundle */
    json_decref(probe->facts);
    ask_node(ask, i);
}

/* Probes all nodes in parallel, and again those that turn out to use GPUs. */
static dt_status ask_all(question *ask, dt_arena *arena, dt_error *err)
{
    int64_t count = ask->wish->count;
    const char *surprise = NULL;
    bool gpus = false;
    dt_status st;

    for (int64_t i = 0; i < count; i++) {
        ask->probes[i].gpus = ask->wish->devices != NULL && ask->wish->devices[i] > 0;
        gpus = gpus || ask->probes[i].gpus;
    }
    ask->bundles.plain = ask->bundles.gpus = (dt_bundle){.hash = "-"};
    if (!ask->wish->command)
        DT_TRY(dt_bundle_make(&ask->bundles.plain, false, arena, err));
    if (gpus && !ask->wish->command)
        DT_TRY(dt_bundle_make(&ask->bundles.gpus, true, arena, err));
    dt_probe_parallel(count, ask_node, ask);
    for (int64_t i = 0; i < count && surprise == NULL; i++)
        if (is_surprise(ask, i) && !dt_nodes_is_here(ask->probes[i].node))
            surprise = ask->probes[i].node;
    if (surprise != NULL && !gpus && !ask->wish->command) {
        st = dt_bundle_make(&ask->bundles.gpus, true, arena, err);
        if (st != DT_OK)
            dt_error_prefix(err, "node '%s' has GPUs", surprise);
        DT_TRY(st);
    }
    dt_probe_parallel(count, ask_surprise, ask);
out:
    return st;
}

/* Chooses the nodes' addresses. Another node's facts have the address of this machine that it
 * sees. */
static void find_addresses(dt_probe_report *report, const dt_probe_wish *wish, dt_arena *arena)
{
    size_t count = (size_t)report->count;
    dt_node_addresses *node_addresses =
        dt_arena_alloc_array(arena, count, sizeof(node_addresses[0]));
    const char **chosen = dt_arena_alloc_array(arena, count, sizeof(chosen[0]));
    dt_error problem = DT_ERROR_INIT;
    const json_t *seen_from = NULL;

    for (int64_t i = 0; i < report->count && seen_from == NULL; i++)
        if (!dt_nodes_is_here(report->probes[i].node))
            seen_from = report->probes[i].facts;
    for (int64_t i = 0; i < report->count; i++) {
        const dt_node_probe *probe = &report->probes[i];

        node_addresses[i] = (dt_node_addresses){.node = probe->node};
        dt_error_clear(&problem);
        if (probe->facts != NULL &&
            dt_node_addresses_find(&node_addresses[i], probe->node, probe->facts, seen_from,
                                   wish->interface, arena, &problem) != DT_OK)
            dt_probe_add_fault(report, arena, probe->node, true, problem.code, "%s",
                               problem.message);
    }
    dt_error_clear(&problem);
    if (dt_node_addresses_agree(chosen, node_addresses, report->count, &problem) != DT_OK)
        dt_probe_add_fault(report, arena, report->probes[0].node, true, problem.code, "%s",
                           problem.message);
    else
        for (int64_t i = 0; i < report->count; i++)
            report->probes[i].address = chosen[i];
}

dt_status dt_probe_all(dt_probe_report *out, const dt_probe_wish *wish, dt_arena *arena,
                       dt_error *err)
{
    question ask = {.wish = wish};
    dt_bootstrap bootstrap = {0};
    dt_status st = DT_OK;
    json_t *here = NULL;
    int64_t skew_ms;

    *out = (dt_probe_report){.count = wish->count};
    DT_TRY(dt_bootstrap_init(&bootstrap, arena, err));
    out->probes = dt_arena_alloc_array(arena, (size_t)wish->count, sizeof(out->probes[0]));
    out->faults = dt_arena_alloc_array(arena, (size_t)dt_probe_faults_max(wish->count),
                                       sizeof(out->faults[0]));
    ask.errors = dt_calloc((size_t)wish->count, sizeof(ask.errors[0]));
    for (int64_t i = 0; i < wish->count; i++)
        out->probes[i].node = wish->nodes[i];
    bootstrap.seen = wish->seen;
    out->command = wish->command;
    ask.bootstrap = &bootstrap;
    ask.probes = out->probes;
    DT_TRY(ask_all(&ask, arena, err));
    for (int64_t i = 0; i < wish->count; i++)
        if (out->probes[i].facts == NULL)
            dt_probe_add_fault(out, arena, wish->nodes[i], true, ask.errors[i].code, "%s",
                               ask.errors[i].message);
    DT_TRY(dt_bootstrap_probe(&here, &skew_ms, &bootstrap, "localhost", "-", wish->cancelled, err));
    dt_probe_judge(out, wish, &ask.bundles, here, arena);
    if (wish->outlive)
        probe_outliving(out, wish, &bootstrap, arena);
    if (wish->count > 1) {
        find_addresses(out, wish, arena);
        if (wish->meet)
            dt_probe_connectivity(out, wish, &bootstrap, arena);
    }
out:
    json_decref(here);
    free(ask.errors);
    dt_bootstrap_release(&bootstrap);
    if (st != DT_OK)
        dt_probe_release(out);
    return st;
}
