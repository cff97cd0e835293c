/* nodes: reads the option --nodes, assigns GPUs to the ranks, makes plans of nodes that are lent, probes the nodes
 * of a recipe and judges the results. */
#include "runner/launch/nodes.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/resources.h"
#include "base/strbuf.h"
#include "recipes/fields/nodes.h"
#include "runner/cli/report.h"
#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/remote_helper/gpu_claims.h"
#include "runner/node_setup/workdir/workdir.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/transport/transport.h"

void dt_nodes_option(const char **out, const char *text, dt_arena *arena)
{
    dt_strbuf list;
    bool several = false;
    int depth = 0;

    *out = text;
    if (text == NULL || text[0] == '[')
        return;
    dt_strbuf_init(&list);
    dt_strbuf_add_str(&list, "[\"");
    for (; *text != '\0'; text++) {
        depth += (*text == '[') - (*text == ']');
        several = several || (*text == ',' && depth == 0);
        if (*text == ',' && depth == 0)
            dt_strbuf_add_str(&list, "\", \"");
        else
            dt_strbuf_add_char(&list, *text);
    }
    dt_strbuf_add_str(&list, "\"]");
    if (several)
        *out = dt_arena_strdup(arena, list.data);
    dt_strbuf_release(&list);
}

/* True for the device file of a GPU: "nvidia0". */
static bool is_gpu(const char *name)
{
    static const char kind[] = "nvidia";
    const char *digits = name + sizeof(kind) - 1;

    return strncmp(name, kind, sizeof(kind) - 1) == 0 && isdigit((unsigned char)*digits) &&
           digits[strspn(digits, "0123456789")] == '\0';
}

static int64_t count_words(const char *list)
{
    int64_t named = 0;

    for (const char *at = list; *at != '\0'; at += strcspn(at, ",")) {
        at += *at == ',';
        named += *at != '\0' && *at != ',' && *at != '-'; /* CUDA ignores everything from "-1" on */
    }
    return named;
}

int64_t dt_placement_gpus_here(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    DIR *folder = opendir("/dev");
    int64_t gpus = 0;

    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        gpus += is_gpu(entry->d_name);
    closedir(folder);
    if (visible != NULL && count_words(visible) < gpus)
        gpus = count_words(visible);
    return gpus;
}

static int64_t found_on(const dt_plan *plan, const dt_probe_report *report, int64_t node)
{
    const json_t *facts = report != NULL ? report->probes[node].facts : NULL;

    if (dt_node_is_here(plan->node_names[node]))
        return dt_placement_gpus_here();
    return facts != NULL ? (int64_t)json_array_size(json_object_get(facts, "devices")) : -1;
}

/* *out: the number of ranks is final, because no node uses all GPUs that it has yet to report. A
 * plan for nodes that are lent does not depend on their reports. */
static dt_status is_known(bool *out, const dt_plan *plan, const int64_t *found, dt_arena *arena,
                          dt_error *err)
{
    dt_status st = DT_OK;

    *out = true;
    if (dt_transport_is_lent(plan->node_names[0]))
        return DT_OK;
    for (int64_t node = 0; node < plan->node_count && *out; node++) {
        bool open = false;

        if (found[node] < 0)
            DT_TRY(dt_plan_devices_open(&open, plan, node, arena, err));
        *out = !open;
    }
out:
    return st;
}

dt_status dt_placement_assign(dt_plan *plan, const dt_probe_report *report, dt_arena *arena,
                              dt_error *err)
{
    int64_t *found = dt_arena_alloc_array(arena, (size_t)plan->node_count, sizeof(*found));
    dt_status st = DT_OK;
    bool known;

    for (int64_t node = 0; node < plan->node_count; node++)
        found[node] = found_on(plan, report, node);
    DT_TRY(dt_plan_use_devices(plan, found, arena, err));
    DT_TRY(is_known(&known, plan, found, arena, err));
    if (known)
        DT_TRY(dt_plan_check_groups(plan, err));
    st = dt_plan_divide_batch(plan, known ? err : NULL);
    if (!known && st == DT_ERR_RECIPE)
        st = DT_OK; /* checked once the nodes have reported their GPUs */
out:
    return st;
}

dt_status dt_placement_imagine(dt_plan *plan, int64_t gpus, dt_arena *arena, dt_error *err)
{
    int64_t *found = dt_arena_alloc_array(arena, (size_t)plan->node_count, sizeof(*found));
    dt_status st = DT_OK;

    for (int64_t node = 0; node < plan->node_count; node++)
        found[node] = gpus;
    DT_TRY(dt_plan_use_devices(plan, found, arena, err));
    DT_TRY(dt_plan_check_groups(plan, err));
    DT_TRY(dt_plan_divide_batch(plan, err));
out:
    return st;
}

/* Returns a node as an item of a recipe, "slurm:12/gpu-a ranks=2"; ranks 0: not given. */
static const char *as_item(const char *name, int64_t ranks, dt_arena *arena)
{
    return ranks > 0 ? dt_arena_printf(arena, "%s ranks=%lld", name, (long long)ranks) : name;
}

dt_status dt_nodes_plan(dt_plan *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_recipe expanded = *recipe;
    const dt_transport *lender;
    dt_lent_nodes nodes;
    const char **items;
    dt_node_spec spec;
    int64_t count;
    dt_status st;

    DT_TRY(dt_node_spec_parse(&spec, recipe->nodes.items[0], arena, err));
    lender = dt_transport_lender(&count, spec.destination);
    if (lender == NULL)
        return dt_plan_make(out, recipe, dt_resources_cores(), arena, err);
    DT_TRY(lender->expand(&nodes, count, arena, err));
    if (recipe->strategy.kind == DT_STRATEGY_DP && nodes.count > 1)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'strategy' is 'dp', which trains on one node, but 'nodes: %s' has %lld: use "
                 "'ddp' or 'nodes: %s:1'",
                 spec.destination, (long long)nodes.count, lender->kind);
    items = dt_arena_alloc_array(arena, (size_t)nodes.count, sizeof(items[0]));
    for (int64_t i = 0; i < nodes.count; i++) {
        int64_t lent = recipe->ranks == 1 ? nodes.ranks[i] : 0;

        items[i] = as_item(nodes.names[i], spec.ranks > 0 ? spec.ranks : lent, arena);
    }
    expanded.nodes = (dt_string_list){.items = items, .count = nodes.count};
    DT_TRY(dt_plan_make_on(out, &expanded, nodes.cores, arena, err));
    if (spec.gpus >= 0)
        out->recipe.gpus = spec.gpus;
    else if (recipe->gpus < 0 && nodes.gpus >= 0)
        out->recipe.gpus = nodes.gpus;
    out->recipe.nodes = recipe->nodes; /* a resumed run may be lent other nodes */
out:
    return st;
}

/* Returns an error if nodes must still be lent for the run. */
static dt_status check_placed(const dt_plan *plan, dt_error *err)
{
    const dt_transport *transport;

    if (dt_transport_find(&transport, plan->node_names[0], NULL) != DT_OK ||
        transport->check_placed == NULL)
        return DT_OK;
    return transport->check_placed(plan->node_names[0], err);
}

/* Checks whether they would be lent, without asking for them. */
static dt_status try_place(const dt_plan *plan, dt_arena *arena, dt_error *err)
{
    json_t *json = dt_plan_to_json(plan);
    dt_status st = dt_nodes_try_place(json, plan->node_names[0], plan->node_count, arena, err);

    json_decref(json);
    return st;
}

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
        .disk_bytes = flight->memory.trained_count * CHECKPOINT_BYTES_PER_PARAMETER,
        .command = plan->recipe.task == DT_TASK_COMMAND,
        .meet = true,
        .outlive = outlive,
        .renew = outlive, /* doctor: test a new connection */
    };
    dt_status st = DT_OK;
    char *mark = NULL;

    DT_TRY(check_placed(plan, err));
    if (dt_launch_workdir_is_sent(&plan->recipe))
        dt_workdir_mark(&mark, plan->recipe.workdir.folder);
    wish.seen = mark;
    for (int64_t r = 0; r < plan->world_size; r++)
        if (dt_device_gpu(plan->ranks[r].device) >= 0)
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

/* Returns the GPUs that the ranks use on the node, as a mask. */
static uint64_t gpus_on(const dt_plan *plan, int64_t node)
{
    uint64_t mask = 0;

    for (int64_t r = 0; r < plan->world_size; r++) {
        int first = dt_device_gpu(plan->ranks[r].device);

        for (int64_t i = 0; i < plan->ranks[r].replicas && first >= 0; i++)
            if (plan->ranks[r].node == node && first + i < 64)
                mask |= UINT64_C(1) << (first + i);
    }
    return mask;
}

/* Refuses GPUs that runs of other people, or of other state folders, have claimed. */
static dt_status check_uses(const dt_plan *plan, int64_t node, const json_t *uses, dt_arena *arena,
                            dt_error *err)
{
    const char *mine = dt_run_claim_owner(arena);
    uint64_t mask = gpus_on(plan, node);
    const json_t *use;
    size_t i;

    json_array_foreach((json_t *)uses, i, use) {
        int64_t gpu = json_integer_value(json_object_get(use, "gpu"));
        const char *owner = json_string_value(json_object_get(use, "owner"));
        const char *who = json_string_value(json_object_get(use, "who"));
        bool claimed = json_string_length(json_object_get(use, "run")) > 0;

        if (claimed && gpu >= 0 && gpu < 64 && (mask >> gpu & 1) != 0 && owner != NULL &&
            who != NULL && strcmp(owner, mine) != 0)
            return DT_FAIL(err, DT_ERR_IO,
                           "GPU %lld of %s is used by %s: choose another one with 'first_gpu', or "
                           "wait for it with --queue",
                           (long long)gpu, plan->node_names[node], who);
    }
    return DT_OK;
}

/* Whether the command was given --queue. */
static bool is_queued(const dt_call *call)
{
    for (size_t i = 0; i < call->args->options_count; i++)
        if (strcmp(call->args->options[i].name, "queue") == 0)
            return call->args->values[i].given;
    return false;
}

/* A launch that waits starts once they are free. The agents look again when they start the ranks. */
static dt_status check_claims(const dt_plan *plan, const dt_probe_report *report,
                              const dt_call *call, dt_error *err)
{
    json_t *here = NULL;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < plan->node_count && !is_queued(call); i++) {
        if (gpus_on(plan, i) == 0)
            continue;
        if (report != NULL) {
            DT_TRY(check_uses(plan, i, json_object_get(report->probes[i].facts, "gpu_uses"),
                              call->arena, err));
            continue;
        }
        if (here == NULL)
            here = dt_gpus_are_claimed() ? dt_gpu_uses() : json_array();
        DT_TRY(check_uses(plan, i, here, call->arena, err));
    }
out:
    json_decref(here);
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
    dt_workdir_listing *listing = NULL;
    dt_probe_report report = {0};
    dt_status st = DT_OK;

    if (is_all_here(&flight->plan)) {
        DT_TRY(check_claims(&flight->plan, NULL, call, err));
        return dt_launch_workdir_take(flight, NULL, NULL, call, err);
    }
    if (check_placed(&flight->plan, NULL) != DT_OK) {
        DT_TRY(try_place(&flight->plan, call->arena, err));
        return dt_launch_workdir_take(flight, NULL, NULL, call, err);
    }
    listing = dt_launch_workdir_begin(&flight->plan.recipe);
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
    if (st == DT_OK)
        DT_TRY(check_claims(&flight->plan, &report, call, err));
    if (st == DT_OK && !dt_transport_is_lent(flight->plan.node_names[0]))
        divide_cores(&flight->plan, &report);
    if (st == DT_OK)
        DT_TRY(dt_launch_workdir_take(flight, &report, listing, call, err));
    if (st == DT_OK)
        flight->tokens_per_step = dt_preflight_items(flight);
out:
    dt_launch_workdir_end(listing);
    dt_probe_release(&report);
    return st;
}
