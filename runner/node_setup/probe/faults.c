/* faults: collects the faults of nodes, and finds those of the nodes that answered. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runner/node_setup/node_setup_int.h"

/* --- the report */

enum { FAULTS_PER_NODE = 8 };

int64_t dt_probe_faults_max(int64_t nodes)
{
    return (nodes + 1) * FAULTS_PER_NODE;
}

void dt_probe_add_fault(dt_probe_report *report, dt_arena *arena, const char *node, bool fatal,
                        dt_status status, const char *fmt, ...)
{
    dt_probe_fault *fault = &report->faults[report->fault_count];
    char text[2048];
    va_list args;

    if (report->fault_count == dt_probe_faults_max(report->count))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    *fault = (dt_probe_fault){node, fatal, status, dt_arena_strdup(arena, text)};
    report->fault_count++;
    report->fatal_count += fatal;
}

void dt_probe_release(dt_probe_report *report)
{
    for (int64_t i = 0; report->probes != NULL && i < report->count; i++)
        json_decref(report->probes[i].facts);
    *report = (dt_probe_report){0};
}

/* --- faults of the nodes that answered */

#define SKEW_MS    5000                /* events have corrected times, but logs have not */
#define ROOM_BYTES ((int64_t)16 << 20) /* journal and logs */
#define MB(bytes)  ((bytes) >> 20)

static const char *text_of(const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));

    return text != NULL ? text : "";
}

/* Returns -1 if the node did not report the number. */
static int64_t number_of(const json_t *facts, const char *key)
{
    const json_t *value = json_object_get(facts, key);

    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* Finds two names of one machine, which would start all of its ranks twice. */
static void judge_names(dt_probe_report *report, const json_t *here, dt_arena *arena)
{
    for (int64_t i = 0; i < report->count; i++) {
        const dt_node_probe *probe = &report->probes[i];
        const char *identity = text_of(probe->facts, "identity");

        if (identity[0] == '\0' || dt_nodes_is_here(probe->node))
            continue;
        if (strcmp(identity, text_of(here, "identity")) == 0)
            dt_probe_add_fault(report, arena, probe->node, false, DT_OK,
                               "node '%s' is this machine: use 'localhost', which copies nothing",
                               probe->node);
        for (int64_t j = 0; j < report->count; j++) {
            const dt_node_probe *other = &report->probes[j];

            if (j != i && (j < i || dt_nodes_is_here(other->node)) &&
                strcmp(identity, text_of(other->facts, "identity")) == 0) {
                dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_RECIPE,
                                   "nodes '%s' and '%s' are the same machine: remove one of them",
                                   other->node, probe->node);
                break;
            }
        }
    }
}

static void judge_clock(dt_probe_report *report, const dt_node_probe *probe, dt_arena *arena)
{
    char by[32];

    if (llabs(probe->skew_ms) < SKEW_MS)
        return;
    dt_probe_add_fault(report, arena, probe->node, false, DT_OK,
                       "node '%s': its clock is %s %s: events are still ordered correctly, but the "
                       "times in its logs are wrong; run 'timedatectl set-ntp true' there",
                       probe->node,
                       dt_clock_duration(by, sizeof(by), (double)llabs(probe->skew_ms) / 1e3),
                       probe->skew_ms > 0 ? "ahead" : "behind");
}

static void judge_devices(dt_probe_report *report, const dt_node_probe *probe, int64_t wanted,
                          dt_arena *arena)
{
    int64_t has = (int64_t)json_array_size(json_object_get(probe->facts, "devices"));
    const char *driver = text_of(probe->facts, "driver");

    if (wanted <= has)
        return;
    if (driver[0] == '\0')
        dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_UNSUPPORTED,
                           "node '%s': %" PRId64
                           " GPUs are requested, but it has no NVIDIA driver: "
                           "install it, or set 'gpus: none'",
                           probe->node, wanted);
    else
        dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_UNSUPPORTED,
                           "node '%s': %" PRId64 " GPUs are requested, but the driver has %" PRId64
                           " (%s): look at 'nvidia-smi' there, or request fewer",
                           probe->node, wanted, has, driver);
}

static void judge_memory(dt_probe_report *report, const dt_node_probe *probe, int64_t ranks,
                         int64_t rank_bytes, dt_arena *arena)
{
    int64_t has = number_of(probe->facts, "memory_free_bytes");

    if (has < 0 || ranks == 0 || rank_bytes <= has / ranks)
        return;
    dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_RECIPE,
                       "node '%s': %" PRId64 " rank%s take%s %" PRId64 " MB each, and %" PRId64
                       " MB of memory are free: lower 'batch.sequences', the model's size%s, or "
                       "end other processes there",
                       probe->node, ranks, ranks == 1 ? "" : "s", ranks == 1 ? "s" : "",
                       MB(rank_bytes), MB(has), ranks == 1 ? "" : " or 'ranks'");
}

static void judge_room(dt_probe_report *report, const dt_node_probe *probe,
                       const dt_probe_wish *wish, const dt_bundle *bundle, dt_arena *arena)
{
    int64_t state = number_of(probe->facts, "state_free_bytes");
    int64_t cache = number_of(probe->facts, "cache_free_bytes");
    bool lacks = !wish->command && !dt_nodes_is_here(probe->node) &&
                 !json_is_true(json_object_get(probe->facts, "bundle"));

    if (state >= 0 && state < wish->disk_bytes + ROOM_BYTES)
        dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_IO,
                           "node '%s': checkpoints and logs take %" PRId64
                           " MB in '%s', and %" PRId64
                           " MB are free: free some, or set XDG_STATE_HOME there",
                           probe->node, MB(wish->disk_bytes + ROOM_BYTES),
                           text_of(probe->facts, "state"), MB(state));
    if (lacks && cache >= 0 && cache < bundle->bytes + ROOM_BYTES)
        dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_IO,
                           "node '%s': the engine takes %" PRId64 " MB in '%s', and %" PRId64
                           " MB are free: free some, or make it a link to a larger disk",
                           probe->node, MB(bundle->bytes + ROOM_BYTES),
                           text_of(probe->facts, "cache"), MB(cache));
}

void dt_probe_judge(dt_probe_report *report, const dt_probe_wish *wish,
                    const dt_probe_bundles *bundles, const json_t *here, dt_arena *arena)
{
    judge_names(report, here, arena);
    for (int64_t i = 0; i < report->count; i++) {
        const dt_node_probe *probe = &report->probes[i];
        const dt_bundle *bundle = probe->gpus ? &bundles->gpus : &bundles->plain;
        dt_error problem = DT_ERROR_INIT;

        if (probe->facts == NULL)
            continue;
        if (!wish->command && !dt_nodes_is_here(probe->node) &&
            dt_nodes_check_glibc(probe->node, probe->facts, bundle->glibc, &problem) != DT_OK)
            dt_probe_add_fault(report, arena, probe->node, true, problem.code, "%s",
                               problem.message);
        judge_clock(report, probe, arena);
        judge_devices(report, probe, wish->devices != NULL ? wish->devices[i] : 0, arena);
        judge_memory(report, probe, wish->ranks != NULL && !probe->gpus ? wish->ranks[i] : 0,
                     wish->rank_bytes, arena);
        judge_room(report, probe, wish, bundle, arena);
    }
}
