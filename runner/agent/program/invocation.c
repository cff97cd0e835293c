/* invocation: makes the words and the environment of a program for one rank, and the paths of its recipe. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/names.h"
#include "base/resources.h"
#include "base/strbuf.h"
#include "recipes/fields/fields.h"
#include "runner/agent/program/program_int.h"

typedef struct replacement {
    const char *name;
    const char *value;
} replacement;

static void add(replacement *all, size_t *count, const char *name, const char *value)
{
    all[(*count)++] = (replacement){name, value};
}

static void add_int(replacement *all, size_t *count, const char *name, int64_t value,
                    dt_arena *arena)
{
    add(all, count, name, dt_arena_printf(arena, "%lld", (long long)value));
}

static const char *replace(const char *word, const replacement *all, size_t count, dt_arena *arena)
{
    const char *result;
    dt_strbuf out;

    dt_strbuf_init(&out);
    while (*word != '\0') {
        size_t i = 0;

        while (i < count && strncmp(word, all[i].name, strlen(all[i].name)) != 0)
            i++;
        if (i < count) {
            dt_strbuf_add_str(&out, all[i].value);
            word += strlen(all[i].name);
        } else {
            dt_strbuf_add_char(&out, *word++);
        }
    }
    result = dt_arena_strdup(arena, out.length > 0 ? out.data : "");
    dt_strbuf_release(&out);
    return result;
}

/* Returns the processes of the run; with `processes: node` those that a launcher starts on each node. */
static int64_t count_processes(const dt_plan *plan)
{
    int64_t count = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        count += plan->ranks[r].replicas;
    return count;
}

/* Lists what is replaced. *count: their number. */
static replacement *list(size_t *count, const dt_plan *plan, const dt_words_facts *facts,
                         dt_arena *arena)
{
    const dt_plan_rank *own = &plan->ranks[facts->rank];
    const dt_string_list *args = &plan->recipe.args;
    bool one = dt_recipe_processes(&plan->recipe) == DT_PROCESSES_NODE;
    replacement *all = dt_arena_alloc_array(arena, (size_t)args->count + 16, sizeof(*all));

    *count = 0;
    add_int(all, count, "{nnodes}", plan->node_count, arena);
    add_int(all, count, "{node_rank}", own->node, arena);
    add_int(all, count, "{nproc}", one ? own->replicas : facts->local_ranks, arena);
    add_int(all, count, "{world_size}", count_processes(plan), arena);
    add_int(all, count, "{rank}", facts->rank, arena);
    add_int(all, count, "{local_rank}", own->local_rank, arena);
    add(all, count, "{master_addr}", facts->master_address);
    add_int(all, count, "{master_port}", facts->master_port, arena);
    add(all, count, "{run}", plan->run);
    /* a shell gets the path as a variable, since it may have any characters */
    add(all, count, "{checkpoint}",
        plan->recipe.shell ? "\"$DTRUN_RESUME_FROM\"" : plan->program_checkpoint);
    for (int64_t i = 0; i < args->count; i++) {
        const char *item = args->items[i];
        size_t length = strcspn(item, "=");

        add(all, count, dt_arena_printf(arena, "{args.%.*s}", (int)length, item),
            item + length + (item[length] == '='));
    }
    return all;
}

static bool continues(const dt_plan *plan)
{
    return plan->attempt > 1 &&
           (plan->recipe.checkpoints.path[0] == '\0' || plan->program_checkpoint[0] != '\0');
}

/* Puts a shell before the program that changes its environment and becomes the program. Returns its words. */
static size_t add_activation(const char **out, const dt_recipe *recipe, dt_arena *arena)
{
    size_t count = 0;
    bool has_bash = access(DT_ACTIVATE_SHELL, X_OK) == 0;

    out[count++] = has_bash ? DT_ACTIVATE_SHELL : "/bin/sh";
    if (has_bash)
        out[count++] = "-l";
    out[count++] = "-c";
    out[count++] = dt_command_activated(recipe->activate, "exec \"$@\"", arena);
    out[count++] = "activate"; /* $0 */
    return count;
}

const char **dt_program_words(const dt_plan *plan, const dt_words_facts *facts, dt_arena *arena)
{
    const dt_recipe *recipe = &plan->recipe;
    const dt_string_list *command = &recipe->command, *resume = &recipe->resume;
    size_t words = (size_t)(command->count + resume->count) + 8, count = 0, replacements;
    const char **out = dt_arena_alloc_array(arena, words, sizeof(*out));
    const replacement *all = list(&replacements, plan, facts, arena);

    if (recipe->activate[0] != '\0')
        count = add_activation(out, recipe, arena);

    if (recipe->shell) {
        out[count++] = "/bin/sh";
        out[count++] = "-c";
    }
    for (int64_t i = 0; i < command->count; i++)
        out[count++] = replace(command->items[i], all, replacements, arena);
    for (int64_t i = 0; continues(plan) && i < resume->count; i++) {
        const char *word = replace(resume->items[i], all, replacements, arena);

        if (recipe->shell)
            out[count - 1] = dt_arena_printf(arena, "%s %s", out[count - 1], word);
        else
            out[count++] = word;
    }
    out[count] = NULL;
    return out;
}

const char *dt_program_replace_run(const dt_plan *plan, const char *text, dt_arena *arena)
{
    const replacement run = {"{run}", plan->run};

    return replace(text, &run, 1, arena);
}

const char *dt_program_path(const dt_plan *plan, const char *path, bool pattern, dt_arena *arena)
{
    const char *text = dt_program_replace_run(plan, path, arena);
    const char *folder = plan->recipe.workdir.folder;
    dt_strbuf out;

    if (text[0] == '/' || folder[0] == '\0')
        return text;
    dt_strbuf_init(&out);
    for (; *folder != '\0'; folder++) {
        if (pattern && strchr("*?[\\", *folder) != NULL)
            dt_strbuf_add_char(&out, '\\');
        dt_strbuf_add_char(&out, *folder);
    }
    if (text[0] != '\0')
        dt_strbuf_add_fmt(&out, "/%s", text);
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return text;
}

/* the environment */

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
        int64_t first = dt_device_gpu(rank->device);

        if (rank->node != node || first < 0)
            continue;
        if (rank->local_rank > 0 &&
            first == dt_device_gpu(plan->ranks[r - rank->local_rank].device))
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
