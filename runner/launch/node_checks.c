#include "runner/launch/node_checks.h"

#include <string.h>

#include "recipes/fields/nodes.h"
#include "runner/cli/report.h"
#include "runner/launch/placement.h"
#include "runner/launch/slurm_plan.h"
#include "runner/launch/workdir.h"
#include "runner/node_setup/workdir/workdir.h"

/* Parameters and two moments, fp32. A save needs space before an older checkpoint is removed. */
enum { CHECKPOINT_BYTES_PER_PARAMETER = 12 };

dt_status dt_nodes_probe(dt_probe_report *out, const dt_preflight *flight, bool outlive,
                         dt_arena *arena, dt_error *err)
{
    const dt_plan *plan = &flight->plan;
    int64_t *devices = dt_arena_alloc_array(arena, (size_t)plan->node_count, sizeof(devices[0]));
    int64_t *ranks = dt_arena_alloc_array(arena, (size_t)plan->node_count, sizeof(ranks[0]));
    dt_probe_wish wish = {
        .nodes = plan->node_names,
        .count = plan->node_count,
        .devices = devices,
        .ranks = ranks,
        .rank_bytes = flight->memory.total_bytes,
        .interface = plan->recipe.network.interface,
        .disk_bytes = flight->memory.parameter_count * CHECKPOINT_BYTES_PER_PARAMETER,
        .meet = true,
        .outlive = outlive,
        .renew = outlive, /* doctor: test a new connection */
    };
    dt_status st = DT_OK;
    char *mark = NULL;

    if (dt_slurm_is_promised(plan))
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "Slurm has not allocated the %lld nodes yet: run 'salloc --nodes=%lld', "
                       "then 'dtrun doctor' inside it",
                       (long long)plan->node_count, (long long)plan->node_count);
    if (dt_launch_workdir_is_sent(&plan->recipe))
        dt_workdir_mark(&mark, plan->recipe.workdir.folder);
    wish.seen = mark;
    for (int64_t r = 0; r < plan->world_size; r++)
        if (strncmp(plan->ranks[r].device, "cuda", 4) == 0)
            devices[plan->ranks[r].node] += plan->ranks[r].replicas;
        else
            ranks[plan->ranks[r].node]++;
    for (int64_t i = 0; i < plan->node_count; i++) {
        bool open;

        DT_TRY(dt_plan_devices_open(&open, plan, i, arena, err));
        if (open && !dt_node_is_here(plan->node_names[i])) /* known for this machine */
            devices[i] = DT_PROBE_ALL;
    }
    DT_TRY(dt_probe_all(out, &wish, arena, err));
out:
    dt_workdir_unmark(mark);
    return st;
}

static bool is_all_here(const dt_plan *plan)
{
    for (int64_t i = 0; i < plan->node_count; i++)
        if (!dt_node_is_here(plan->node_names[i]))
            return false;
    return true;
}

/* Recomputes threads with each node's own cores: the plan assumed this machine's. */
static void divide_cores(dt_plan *plan, const dt_probe_report *report)
{
    for (int64_t i = 0; i < report->count && plan->recipe.threads == 0; i++) {
        const json_t *cores = json_object_get(report->probes[i].facts, "cores");
        int64_t wanted = 0;

        if (dt_node_is_here(report->probes[i].node) || !json_is_integer(cores))
            continue;
        for (int64_t r = 0; r < plan->world_size; r++)
            wanted += plan->ranks[r].node == i ? plan->ranks[r].replicas : 0;
        for (int64_t r = 0; r < plan->world_size; r++)
            if (plan->ranks[r].node == i) {
                int64_t share = json_integer_value(cores) / wanted;

                plan->ranks[r].threads = share > 1 ? share : 1;
            }
    }
}

dt_status dt_nodes_check(dt_preflight *flight, const char *recipe, const dt_call *call,
                         dt_error *err)
{
    dt_probe_report report = {0};
    dt_status st = DT_OK;

    if (is_all_here(&flight->plan))
        return dt_launch_workdir_take(flight, NULL, call, err);
    if (dt_slurm_is_promised(&flight->plan)) {
        DT_TRY(dt_slurm_try(&flight->plan, call->arena, err));
        return dt_launch_workdir_take(flight, NULL, call, err);
    }
    DT_TRY(dt_nodes_probe(&report, flight, false, call->arena, err));
    for (int64_t i = 0; i < report.fault_count; i++) {
        const dt_probe_fault *fault = &report.faults[i];

        if (!fault->fatal) {
            dt_report_note(call, "%s", fault->text);
            continue;
        }
        if (st == DT_OK) /* nothing has run, so it is not a peer's failure */
            st = fault->status == DT_ERR_PEER ? DT_ERR_IO : fault->status;
        if (report.fatal_count > 1)
            DT_FAIL(err, st, "%s (and %lld more: 'dtrun doctor %s' shows all)", fault->text,
                    (long long)report.fatal_count - 1, recipe);
        else
            DT_FAIL(err, st, "%s", fault->text);
    }
    if (st == DT_OK)
        DT_TRY(dt_placement_assign(&flight->plan, &report, call->arena, err));
    if (st == DT_OK && !dt_node_is_slurm(flight->plan.recipe.nodes.items[0]))
        divide_cores(&flight->plan, &report);
    if (st == DT_OK)
        DT_TRY(dt_launch_workdir_take(flight, &report, call, err));
    if (st == DT_OK)
        flight->tokens_per_step = dt_preflight_items(flight);
out:
    dt_probe_release(&report);
    return st;
}
