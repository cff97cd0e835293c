#include "runner/launch/placement.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/nodes.h"

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
    int64_t words = 0;

    for (const char *at = list; *at != '\0'; at += strcspn(at, ",")) {
        at += *at == ',';
        words += *at != '\0' && *at != ',' && *at != '-'; /* CUDA ignores everything from "-1" on */
    }
    return words;
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
 * plan for Slurm's nodes does not depend on their reports. */
static dt_status is_known(bool *out, const dt_plan *plan, const int64_t *found, dt_arena *arena,
                          dt_error *err)
{
    dt_status st = DT_OK;

    *out = true;
    if (dt_node_is_slurm(plan->recipe.nodes.items[0]))
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
