/* variables: makes the environment of a program of the user. */
#include <stdlib.h>
#include <string.h>

#include "base/interface.h"
#include "base/resources.h"
#include "recipes/fields/fields.h"
#include "runner/agent/program/program_int.h"

#define SECRET "DTRUN_SECRET_"

/* Removes what is for dtrun alone. */
static void remove_own(dt_environment *out)
{
    static const char *const own[] = {
        SECRET, "DTRUN_CHANNEL=", "DTRUN_RUN_SECRET=", "DTRUN_INTERFACE_ADDRESS="};

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        dt_environment_unset(out, own[i]);
}

/* Adds the value of a reference "NAME" or "NAME:-default". */
static dt_status add_reference(dt_strbuf *out, const char *inside, size_t length, const char *item,
                               const dt_environment *of_rank, dt_arena *arena, dt_error *err)
{
    const char *text = dt_arena_strndup(arena, inside, length), *dash = strstr(text, ":-");
    size_t name = dash != NULL ? (size_t)(dash - text) : length;
    const char *value =
        dt_environment_get(of_rank, dt_arena_printf(arena, SECRET "%.*s", (int)name, text));

    if (value != NULL && value[0] == '\0')
        value = NULL;
    if (value == NULL && dash == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'env.%.*s' needs the variable '%s', which is not set where the run was "
                       "launched or resumed",
                       (int)strcspn(item, "="), item, text);
    dt_strbuf_add_str(out, value != NULL ? value : dash + 2);
    return DT_OK;
}

/* Sets a variable of the recipe's `env`. */
static dt_status set_item(dt_environment *out, const char *item, const dt_environment *of_rank,
                          dt_arena *arena, dt_error *err)
{
    const char *name = dt_arena_strndup(arena, item, strcspn(item, "="));
    const char *at = item + strlen(name) + 1, *from, *end;
    dt_status st = DT_OK;
    dt_strbuf value;

    dt_strbuf_init(&value);
    while ((from = strstr(at, "${env:")) != NULL && (end = strchr(from, '}')) != NULL) {
        dt_strbuf_add(&value, at, (size_t)(from - at));
        from += strlen("${env:");
        DT_TRY(add_reference(&value, from, (size_t)(end - from), item, of_rank, arena, err));
        at = end + 1;
    }
    dt_strbuf_add_str(&value, at);
    dt_environment_set(out, name, value.data);
out:
    dt_strbuf_release(&value);
    return st;
}

/* Returns the GPU with this number as CUDA_VISIBLE_DEVICES of the node names it. */
static const char *visible_name(const char *visible, int64_t number, dt_arena *arena)
{
    for (int64_t i = 0; visible != NULL && *visible != '\0'; i++) {
        size_t length = strcspn(visible, ",");

        if (i == number)
            return dt_arena_strndup(arena, visible, length);
        visible += length + (visible[length] == ',');
    }
    return dt_arena_printf(arena, "%lld", (long long)number);
}

/* Sets CUDA_VISIBLE_DEVICES to all GPUs of the run on this node. Without GPUs it is empty if the recipe wants none,
 * else as it was: there may be devices that dtrun does not know. */
static void set_devices(dt_environment *out, const dt_plan *plan, int64_t node, dt_arena *arena)
{
    const char *visible = dt_environment_get(out, "CUDA_VISIBLE_DEVICES");
    dt_strbuf list;

    dt_strbuf_init(&list);
    for (int64_t r = 0; r < plan->world_size; r++) {
        const dt_plan_rank *rank = &plan->ranks[r];
        int64_t first;

        if (rank->node != node || strncmp(rank->device, "cuda:", 5) != 0)
            continue;
        first = strtoll(rank->device + 5, NULL, 10);
        if (rank->local_rank > 0 &&
            first == strtoll(plan->ranks[r - rank->local_rank].device + 5, NULL, 10))
            break; /* from here on ranks share the GPUs that are listed */
        for (int64_t i = 0; i < rank->replicas; i++)
            dt_strbuf_add_fmt(&list, "%s%s", list.length > 0 ? "," : "",
                              visible_name(visible, first + i, arena));
    }
    if (list.length > 0 || plan->recipe.gpus == 0)
        dt_environment_set(out, "CUDA_VISIBLE_DEVICES", list.data);
    dt_strbuf_release(&list);
}

/* A launcher, such as torchrun, divides the cores itself. */
static void set_threads(dt_environment *out, const dt_plan *plan, int64_t local_ranks)
{
    int64_t share = dt_resources_cores() / local_ranks;

    if (plan->recipe.threads > 0)
        dt_environment_set_int(out, "OMP_NUM_THREADS", plan->recipe.threads);
    else if (dt_recipe_processes(&plan->recipe) == DT_PROCESSES_NODE)
        dt_environment_unset(out, "OMP_NUM_THREADS=");
    else
        dt_environment_set_int(out, "OMP_NUM_THREADS", share > 1 ? share : 1);
}

/* Names the interface between the nodes, which Gloo and NCCL otherwise guess: Gloo takes that of the host's name, often
 * a loopback. What the node's environment sets stays. */
static void set_interface(dt_environment *out, const dt_plan *plan, const dt_environment *of_rank,
                          dt_arena *arena)
{
    const char *address = dt_environment_get(of_rank, "DTRUN_INTERFACE_ADDRESS");
    char name[DT_INTERFACE_SIZE];

    if (plan->node_count == 1 || address == NULL || !dt_interface_name(name, address))
        return;
    if (dt_environment_get(out, "GLOO_SOCKET_IFNAME") == NULL)
        dt_environment_set(out, "GLOO_SOCKET_IFNAME", name);
    if (dt_environment_get(out, "NCCL_SOCKET_IFNAME") == NULL)
        dt_environment_set(out, "NCCL_SOCKET_IFNAME", dt_arena_printf(arena, "=%s", name));
}

dt_status dt_program_variables(dt_environment *out, const dt_environment *of_rank,
                               const dt_plan *plan, const dt_words_facts *facts, dt_error *err)
{
    const dt_plan_rank *rank = &plan->ranks[facts->rank];
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_environment_copy(out, of_rank);
    remove_own(out);
    dt_environment_set_int(out, "RANK", facts->rank);
    dt_environment_set_int(out, "LOCAL_RANK", rank->local_rank);
    dt_environment_set_int(out, "WORLD_SIZE", plan->world_size);
    dt_environment_set_int(out, "LOCAL_WORLD_SIZE", facts->local_ranks);
    dt_environment_set_int(out, "NODE_RANK", rank->node);
    dt_environment_set_int(out, "GROUP_RANK", rank->node);
    dt_environment_set(out, "MASTER_ADDR", facts->master_address);
    dt_environment_set_int(out, "MASTER_PORT", facts->master_port);
    dt_environment_set_int(out, "TORCHELASTIC_RESTART_COUNT", plan->attempt - 1);
    dt_environment_set(out, "DTRUN_RUN_ID", plan->run);
    dt_environment_set_int(out, "DTRUN_ATTEMPT", plan->attempt);
    dt_environment_set(out, "DTRUN_RESUME_FROM", plan->program_checkpoint);
    if (plan->git_commit != NULL && plan->git_commit[0] != '\0')
        dt_environment_set(out, "DTRUN_GIT_COMMIT", plan->git_commit);
    if (dt_environment_get(out, "PYTHONUNBUFFERED") == NULL)
        dt_environment_set(out, "PYTHONUNBUFFERED",
                           "1"); /* else its lines come when a buffer is full, or never */
    set_devices(out, plan, rank->node, &arena);
    set_threads(out, plan, facts->local_ranks);
    set_interface(out, plan, of_rank, &arena);
    for (int64_t i = 0; i < plan->recipe.env.count; i++)
        DT_TRY(set_item(out, plan->recipe.env.items[i], of_rank, &arena, err));
    dt_environment_set(out, "PWD", plan->recipe.workdir.folder);
out:
    if (st != DT_OK)
        dt_environment_release(out);
    dt_arena_release(&arena);
    return st;
}
