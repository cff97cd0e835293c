#include "engine/program/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/interface.h"
#include "base/process.h"
#include "base/resources.h"
#include "base/strbuf.h"
#include "engine/program/words.h"
#include "recipes/fields/fields.h"

#define SECRET "DTRUN_SECRET_"

extern char **environ;

/* --- the environment */

typedef struct variables {
    const char **items; /* [count + 1], the last one NULL */
    size_t count;
    dt_arena *arena;
} variables;

static bool names(const char *item, const char *name)
{
    size_t length = strlen(name);

    return strncmp(item, name, length) == 0 && item[length] == '=';
}

static void unset(variables *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (names(all->items[i], name)) {
            all->items[i--] = all->items[--all->count];
            all->items[all->count] = NULL;
        }
}

static void set(variables *all, const char *name, const char *value)
{
    unset(all, name);
    all->items[all->count++] = dt_arena_printf(all->arena, "%s=%s", name, value);
    all->items[all->count] = NULL;
}

static void set_int(variables *all, const char *name, int64_t value)
{
    set(all, name, dt_arena_printf(all->arena, "%lld", (long long)value));
}

/* Begins with the environment of this process, without what is for the engine alone. */
static void begin(variables *all, const dt_plan *plan, dt_arena *arena)
{
    static const char *const own[] = {"DTRUN_CHANNEL", "DTRUN_RUN_SECRET",
                                      "DTRUN_INTERFACE_ADDRESS"};
    size_t count = 0;

    while (environ[count] != NULL)
        count++;
    all->arena = arena;
    all->count = 0;
    all->items = dt_arena_alloc_array(arena, count + (size_t)plan->recipe.env.count + 32,
                                      sizeof(all->items[0]));
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], SECRET, strlen(SECRET)) != 0)
            all->items[all->count++] = environ[i];
    all->items[all->count] = NULL;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        unset(all, own[i]);
}

/* Adds the value of a reference "NAME" or "NAME:-default". */
static dt_status add_reference(dt_strbuf *out, const char *inside, size_t length, const char *item,
                               dt_arena *arena, dt_error *err)
{
    const char *text = dt_arena_strndup(arena, inside, length), *dash = strstr(text, ":-");
    size_t name = dash != NULL ? (size_t)(dash - text) : length;
    const char *value = getenv(dt_arena_printf(arena, SECRET "%.*s", (int)name, text));

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

static dt_status set_own(variables *all, const char *item, dt_error *err)
{
    const char *name = dt_arena_strndup(all->arena, item, strcspn(item, "="));
    const char *at = item + strlen(name) + 1, *from, *end;
    dt_status st = DT_OK;
    dt_strbuf value;

    dt_strbuf_init(&value);
    while ((from = strstr(at, "${env:")) != NULL && (end = strchr(from, '}')) != NULL) {
        dt_strbuf_add(&value, at, (size_t)(from - at));
        from += strlen("${env:");
        DT_TRY(add_reference(&value, from, (size_t)(end - from), item, all->arena, err));
        at = end + 1;
    }
    dt_strbuf_add_str(&value, at);
    set(all, name, value.data);
out:
    dt_strbuf_release(&value);
    return st;
}

/* Returns the GPU with this number as CUDA_VISIBLE_DEVICES of this process names it. */
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
static void set_devices(variables *all, const dt_plan *plan, int64_t node)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
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
                              visible_name(visible, first + i, all->arena));
    }
    if (list.length > 0 || plan->recipe.gpus == 0)
        set(all, "CUDA_VISIBLE_DEVICES", list.data);
    dt_strbuf_release(&list);
}

/* A launcher, such as torchrun, divides the cores itself. */
static void set_threads(variables *all, const dt_plan *plan, int64_t local_ranks)
{
    int64_t share = dt_resources_cores() / local_ranks;

    if (plan->recipe.threads > 0)
        set_int(all, "OMP_NUM_THREADS", plan->recipe.threads);
    else if (dt_recipe_processes(&plan->recipe) == DT_PROCESSES_NODE)
        unset(all, "OMP_NUM_THREADS");
    else
        set_int(all, "OMP_NUM_THREADS", share > 1 ? share : 1);
}

static int64_t count_local(const dt_plan *plan, int64_t node)
{
    int64_t count = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        count += plan->ranks[r].node == node;
    return count;
}

static const char *master_address(void)
{
    const char *address = getenv("MASTER_ADDR");

    return address != NULL && address[0] != '\0' ? address : "127.0.0.1";
}

/* Names the interface between the nodes, which Gloo and NCCL otherwise guess: Gloo takes that of the host's name, often
 * a loopback. What the node's environment sets stays. */
static void set_interface(variables *all, const dt_plan *plan)
{
    const char *address = getenv("DTRUN_INTERFACE_ADDRESS");
    char name[DT_INTERFACE_SIZE];

    if (plan->node_count == 1 || address == NULL || !dt_interface_name(name, address))
        return;
    if (getenv("GLOO_SOCKET_IFNAME") == NULL)
        set(all, "GLOO_SOCKET_IFNAME", name);
    if (getenv("NCCL_SOCKET_IFNAME") == NULL)
        set(all, "NCCL_SOCKET_IFNAME", dt_arena_printf(all->arena, "=%s", name));
}

static dt_status make_environment(variables *all, const dt_plan *plan, int64_t rank, int64_t port,
                                  dt_arena *arena, dt_error *err)
{
    int64_t node = plan->ranks[rank].node, local_ranks = count_local(plan, node);
    dt_status st = DT_OK;

    begin(all, plan, arena);
    set_int(all, "RANK", rank);
    set_int(all, "LOCAL_RANK", plan->ranks[rank].local_rank);
    set_int(all, "WORLD_SIZE", plan->world_size);
    set_int(all, "LOCAL_WORLD_SIZE", local_ranks);
    set_int(all, "NODE_RANK", node);
    set_int(all, "GROUP_RANK", node);
    set(all, "MASTER_ADDR", master_address());
    set_int(all, "MASTER_PORT", port);
    set_int(all, "TORCHELASTIC_RESTART_COUNT", plan->attempt - 1);
    set(all, "DTRUN_RUN_ID", plan->run);
    set_int(all, "DTRUN_ATTEMPT", plan->attempt);
    set(all, "DTRUN_RESUME_FROM", plan->program_checkpoint);
    if (plan->git_commit != NULL && plan->git_commit[0] != '\0')
        set(all, "DTRUN_GIT_COMMIT", plan->git_commit);
    if (getenv("PYTHONUNBUFFERED") ==
        NULL) /* else its lines come when a buffer is full, or never */
        set(all, "PYTHONUNBUFFERED", "1");
    set_devices(all, plan, node);
    set_threads(all, plan, local_ranks);
    set_interface(all, plan);
    for (int64_t i = 0; i < plan->recipe.env.count; i++)
        DT_TRY(set_own(all, plan->recipe.env.items[i], err));
out:
    return st;
}

/* --- the process */

static const char *value_in(const variables *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (names(all->items[i], name))
            return all->items[i] + strlen(name) + 1;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* Finds the program in the PATH that it will have; a name with a slash is relative to its folder. A file that is not
 * executable is returned too, for a better message than 'not found'. */
static dt_status find(const char **out, const char *name, const variables *all, dt_arena *arena,
                      dt_error *err)
{
    const char *path = value_in(all, "PATH"), *weak = NULL;

    *out = name;
    if (strchr(name, '/') != NULL)
        return DT_OK;
    for (const char *at = path; *at != '\0';) {
        size_t length = strcspn(at, ":");
        const char *file = dt_arena_printf(arena, "%.*s/%s", (int)length, at, name);
        struct stat info;

        if (length > 0 && stat(file, &info) == 0 && S_ISREG(info.st_mode)) {
            *out = file;
            if (access(file, X_OK) == 0)
                return DT_OK;
            weak = file;
        }
        at += length + (at[length] == ':');
    }
    if (weak != NULL)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s' was not found on this node (PATH is %s): install it, or write its path",
                   name, path);
}

/* Runs in the child: only calls that are safe between fork and exec. Returns on failure. */
static void become(const char *program, const char **words, const variables *all, int out,
                   int errors, pid_t parent)
{
    int nothing;

    dt_startup_child_detached();
    setpgid(0, 0); /* so that a program that signals its group does not reach this process */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return;
    if (getppid() != parent)
        _exit(127);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, 0) < 0 || (out >= 0 && dup2(out, 1) < 0) ||
        dup2(errors, 2) < 0)
        return;
    execve(program, (char *const *)words, (char *const *)all->items);
}

/* Says why a program could not be executed. */
static dt_status refuse(const char *program, int problem, dt_error *err)
{
    if (problem == ENOENT && access(program, F_OK) == 0)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "cannot run '%s': the interpreter that its first line names does not exist on "
            "this node",
            program);
    if (problem == ENOEXEC)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "cannot run '%s': it is neither a program nor a script that begins with '#!'", program);
    return DT_FAIL(err, DT_ERR_RECIPE, "cannot run '%s' on this node: %s", program,
                   strerror(problem));
}

static dt_status start(pid_t *pid, const char *program, const char **words, const variables *all,
                       int out, int errors, dt_error *err)
{
    int pipe_fds[2], problem;
    pid_t parent = getpid();

    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
    *pid = fork();
    if (*pid == 0) {
        become(program, words, all, out, errors, parent);
        problem = errno;
        if (write(pipe_fds[1], &problem, sizeof(problem)) < 0)
            _exit(126);
        _exit(127);
    }
    close(pipe_fds[1]);
    problem = *pid < 0 ? errno : dt_startup_wait_for_exec(pipe_fds[0]);
    close(pipe_fds[0]);
    if (*pid < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot start a process: %s", strerror(problem));
    if (problem == 0)
        return DT_OK;
    waitpid(*pid, NULL, 0);
    *pid = -1;
    return refuse(program, problem, err);
}

dt_status dt_child_enter(const dt_recipe *recipe, dt_error *err)
{
    const char *folder = recipe->workdir.folder;

    if (folder[0] != '\0' && chdir(folder) != 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "cannot run in the folder '%s' of this node: %s%s",
                       folder, strerror(errno),
                       recipe->workdir.ship == DT_SHIP_NEVER
                           ? " (workdir.ship is never: put it there, or set workdir.ship: auto)"
                           : "");
    return DT_OK;
}

dt_status dt_child_start(pid_t *pid, const dt_plan *plan, int64_t rank, int64_t port, int out,
                         int errors, dt_arena *arena, dt_error *err)
{
    const dt_words_facts facts = {.rank = rank,
                                  .local_ranks = count_local(plan, plan->ranks[rank].node),
                                  .master_address = master_address(),
                                  .master_port = port};
    const char *program, **words = dt_program_words(plan, &facts, arena);
    dt_status st = DT_OK;
    variables all;

    *pid = -1;
    DT_TRY(make_environment(&all, plan, rank, port, arena, err));
    set(&all, "PWD", plan->recipe.workdir.folder);
    DT_TRY(find(&program, words[0], &all, arena, err));
    DT_TRY(start(pid, program, words, &all, out, errors, err));
out:
    return st;
}
