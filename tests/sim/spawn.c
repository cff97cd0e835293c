/* spawn: starts ranks, and shows an agent the processes; replaces its spawn.c and process.c,
 * one function of describe.c and one of direct.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/file.h"
#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"
#include "runner/channel/detach.h"
#include "runner/supervisor/supervisor.h"
#include "tests/sim/sim.h"

/* --- spawn.h: a rank */

static const char *variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment;
    return NULL;
}

dt_status dt_spawn(dt_spawned *spawned, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, dt_error *err)
{
    sim_proc *agent = sim_self(), *rank;
    sim_end *ends[3][2];
    int *const fds[] = {&spawned->channel, &spawned->out, &spawned->err};

    for (int i = 0; i < 3; i++) {
        sim_pair(ends[i]);
        *fds[i] = sim_fd_new(agent, SIM_FD_END);
        agent->fds[*fds[i]].end = ends[i][0];
    }
    rank = sim_proc_start(agent->machine, agent, "engine", NULL, NULL);
    rank->mark = sim_print("%s", variable(environment, "DTRUN_NODE_DIR"));
    sim_engine_begin(rank, (const char *const *)environment, argv[3], ends[0][1], ends[1][1],
                     ends[2][1]);
    spawned->pid = rank->pid;
    return DT_OK;
}

/* --- process.h */

static void describe(dt_process *out, const sim_proc *proc)
{
    *out = (dt_process){.pid = proc->pid,
                        .parent = proc->parent != NULL ? proc->parent->pid : 1,
                        .start_ticks = proc->start_ticks,
                        .state = proc->over     ? 'Z'
                                 : proc->paused ? 'T'
                                                : 'S'};
    snprintf(out->command, sizeof(out->command), "%s", proc->name);
}

bool dt_process_read(dt_process *out, pid_t pid)
{
    const sim_proc *proc = sim_proc_find(sim_machine_self(), pid);

    if (proc == NULL)
        return false;
    describe(out, proc);
    return true;
}

static bool descends(const sim_proc *proc, pid_t ancestor)
{
    while ((proc = proc->parent) != NULL)
        if (proc->pid == ancestor)
            return true;
    return false;
}

dt_status dt_process_find(dt_process **out, size_t *count, pid_t ancestor, const char *mark,
                          const char *cgroup, dt_error *err)
{
    size_t most = 0;

    for (const sim_proc *each = sim_machine_self()->procs; each != NULL; each = each->next)
        most++;
    *count = 0;
    *out = calloc(most + 1, sizeof(**out));
    for (const sim_proc *each = sim_machine_self()->procs; each != NULL; each = each->next)
        if (!each->over && each->pid != ancestor &&
            (descends(each, ancestor) || (each->mark != NULL && strcmp(each->mark, mark) == 0)))
            describe(&(*out)[(*count)++], each);
    return DT_OK;
}

bool dt_process_signal(pid_t pid, int64_t start_ticks, int number)
{
    sim_proc *proc = sim_proc_find(sim_machine_self(), pid);

    if (proc == NULL || proc->start_ticks != start_ticks)
        return false;
    if (number == SIGKILL && strcmp(proc->name, "agent") == 0 &&
        strcmp(sim_self()->name, "connect") == 0)
        sim_check_replaced(proc);
    sim_proc_signal(proc, number);
    return true;
}

bool dt_process_activity_read(dt_process_activity *out, pid_t pid)
{
    const sim_proc *proc = sim_proc_find(sim_machine_self(), pid);
    sim_activity seen;

    if (proc == NULL || proc->engine == NULL)
        return false;
    seen = sim_engine_activity(proc->engine, proc->paused);
    *out = (dt_process_activity){.state = seen.state, .cpu_seconds = seen.cpu_seconds};
    return true;
}

/* --- agent_int.h: the ranks on this machine, by their marks */

dt_status dt_agent_list_running(json_t **runs, dt_error *err)
{
    *runs = json_object();
    for (const sim_proc *each = sim_machine_self()->procs; each != NULL; each = each->next)
        if (!each->over && each->mark != NULL)
            json_object_set_new(*runs, strchr(each->mark, '=') + 1,
                                json_pack("{s:[i]}", "pids", each->pid));
    return DT_OK;
}

/* --- control groups: nodes have none */

void dt_cgroup_init(dt_cgroup *cgroup)
{
    *cgroup = (dt_cgroup){.procs = -1};
}

void dt_cgroup_release(dt_cgroup *cgroup) {}

dt_status dt_cgroup_make(dt_cgroup *out, const char *name, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "there are none here");
}

dt_status dt_cgroup_adopt(dt_cgroup *out, const char *folder, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "there are none here");
}

bool dt_cgroup_holds(const char *inside, pid_t pid)
{
    return false;
}

void dt_cgroup_kill(const dt_cgroup *cgroup) {}

int64_t dt_cgroup_oom_kills(const dt_cgroup *cgroup)
{
    return -1;
}

bool dt_cgroup_remove(const dt_cgroup *cgroup)
{
    return true;
}
