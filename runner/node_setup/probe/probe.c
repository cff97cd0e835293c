#include "runner/node_setup/probe/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runner/node_setup/address.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/probe/probe_int.h"
#include "runner/transport/remote.h"

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
    DT_TRY(dt_bundle_make(&ask->bundles.plain, false, arena, err));
    if (gpus)
        DT_TRY(dt_bundle_make(&ask->bundles.gpus, true, arena, err));
    dt_probe_parallel(count, ask_node, ask);
    for (int64_t i = 0; i < count && surprise == NULL; i++)
        if (is_surprise(ask, i) && !dt_nodes_is_here(ask->probes[i].node))
            surprise = ask->probes[i].node;
    if (surprise != NULL && !gpus) {
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
    dt_node_addresses *all = dt_arena_alloc_array(arena, count, sizeof(all[0]));
    const char **chosen = dt_arena_alloc_array(arena, count, sizeof(chosen[0]));
    dt_error problem = DT_ERROR_INIT;
    const json_t *seen_from = NULL;

    for (int64_t i = 0; i < report->count && seen_from == NULL; i++)
        if (!dt_nodes_is_here(report->probes[i].node))
            seen_from = report->probes[i].facts;
    for (int64_t i = 0; i < report->count; i++) {
        const dt_node_probe *probe = &report->probes[i];

        all[i] = (dt_node_addresses){.node = probe->node};
        dt_error_clear(&problem);
        if (probe->facts != NULL &&
            dt_node_addresses_find(&all[i], probe->node, probe->facts, seen_from, wish->interface,
                                   arena, &problem) != DT_OK)
            dt_probe_add_fault(report, arena, probe->node, true, problem.code, "%s",
                               problem.message);
    }
    dt_error_clear(&problem);
    if (dt_node_addresses_agree(chosen, all, report->count, &problem) != DT_OK)
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
        dt_probe_outliving(out, wish, &bootstrap, arena);
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
