/* proc: simulates the processes of a machine, their ends, and who is notified. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sys/wait.h>

#include "base/clock.h"
#include "runner/agent/process/usage.h"
#include "tests/sim/sim.h"

sim_world sim;

/* A node that does the same all the time. */
void dt_usage_read(dt_usage *out, const dt_usage_question *question)
{
    double now = dt_clock_monotonic_seconds();

    *out = (dt_usage){.seconds = now,
                      .processors = 2,
                      .busy_seconds = now,
                      .run_seconds = now / 2,
                      .memory_bytes = 8e9,
                      .used_bytes = 4e9,
                      .run_bytes = 1e9,
                      .read_bytes = 1e6 * now,
                      .written_bytes = 1e6 * now,
                      .free_bytes = 1e12,
                      .received_bytes = 1e3 * now,
                      .sent_bytes = 1e3 * now};
}

void sim_trace(const char *fmt, ...)
{
    sim_proc *self = sim_self();
    va_list args;

    if (!sim.trace)
        return;
    printf("%10.3f ", (double)(sim_now_ns - SIM_BEGIN_NS) * 1e-9);
    if (self != NULL)
        printf("%s %s[%d]: ", self->machine->name, self->name, self->pid);
    else
        printf("== ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

static void run_main(void *context)
{
    sim_proc *proc = context;
    int code = proc->main(proc);

    sim_proc_exit(proc, (code & 0xff) << 8);
}

sim_proc *sim_proc_start(sim_machine *machine, sim_proc *parent, const char *name,
                         int (*entry)(sim_proc *), const char *const *argv)
{
    sim_proc *proc = sim_alloc(sizeof(*proc));

    proc->machine = machine;
    proc->parent = parent;
    proc->name = name;
    proc->pid = machine->next_pid++;
    proc->start_ticks = sim_now_ns / (10 * SIM_MS);
    proc->ready_fd = -1;
    snprintf(proc->cwd, sizeof(proc->cwd), "%s", "");
    for (int fd = 0; fd < 3; fd++)
        proc->fds[fd].kind = SIM_FD_NULL;
    proc->fd_count = 3;
    proc->main = entry;
    proc->argv = argv;
    proc->next = machine->procs;
    machine->procs = proc;
    sim.alive++;
    sim_trace("starts %s[%d] on %s", name, proc->pid, machine->name);
    if (entry != NULL)
        proc->tasks[proc->task_count++] = sim_task_start(proc, run_main, proc);
    return proc;
}

/* Ends or detaches the children of a process that has ended: ranks are killed, others get no parent. */
static void orphan(sim_proc *parent)
{
    for (sim_proc *each = parent->machine->procs; each != NULL; each = each->next)
        if (each->parent == parent) {
            each->parent = NULL;
            if (each->over)
                each->buried = true;
            else if (each->engine != NULL)
                sim_proc_signal(each, SIGKILL); /* PR_SET_PDEATHSIG */
        }
}

void sim_proc_exit(sim_proc *proc, int wait_status)
{
    bool own = sim_self() == proc;

    if (proc->over)
        return;
    if (WIFSIGNALED(wait_status))
        sim_trace("%s[%d] on %s is killed by signal %d", proc->name, proc->pid, proc->machine->name,
                  WTERMSIG(wait_status));
    else
        sim_trace("%s[%d] on %s exits %d", proc->name, proc->pid, proc->machine->name,
                  wait_status >> 8);
    proc->over = true;
    sim.alive--;
    proc->wait_status = wait_status;
    for (int i = 0; i < proc->task_count; i++)
        if (!own || proc->tasks[i] != sim_running)
            sim_task_drop(proc->tasks[i]);
    for (int fd = 0; fd < proc->fd_count; fd++)
        if (proc->fds[fd].kind != SIM_FD_NONE)
            sim_fd_close(proc, fd);
    sim_vfs_drop(proc);
    proc->loop = NULL;
    orphan(proc);
    if (proc->engine != NULL)
        sim_engine_ended(proc->engine);
    if (proc->on_over != NULL)
        proc->on_over(proc, proc->on_over_context);
    if (proc->ended != NULL)
        proc->ended(proc, proc->ended_context);
    if (proc->parent == NULL)
        proc->buried = true;
    else
        sim_proc_signal(proc->parent, SIGCHLD);
    if (own)
        sim_task_drop(sim_running); /* does not return */
}

static void pause_all(sim_proc *proc, bool paused)
{
    proc->paused = paused;
    proc->woken_ns = sim_now_ns;
    for (int i = 0; i < proc->task_count; i++)
        sim_task_hold(proc->tasks[i], paused);
    if (proc->engine != NULL)
        sim_engine_signal(proc->engine, paused ? SIGSTOP : SIGCONT);
}

static void on_death(void *context)
{
    sim_proc_exit(context, SIGKILL);
}

/* Kills a process. A rank may end only later, since it holds much memory and may wait in the kernel. */
static void kill_one(sim_proc *proc)
{
    if (proc->engine == NULL || sim_chance(0.8)) {
        sim_proc_exit(proc, SIGKILL);
        return;
    }
    pause_all(proc, true);
    proc->dying = true;
    sim_at(sim_now_ns + sim_between(10 * SIM_MS, 3 * SIM_SECOND), on_death, proc);
}

void sim_proc_signal(sim_proc *proc, int number)
{
    if (proc->over || proc->dying)
        return;
    if (number == SIGKILL)
        kill_one(proc);
    else if (number == SIGSTOP || number == SIGCONT)
        pause_all(proc, number == SIGSTOP);
    else if (proc->engine != NULL)
        sim_engine_signal(proc->engine, number);
    else if (proc->loop == NULL || !sim_loop_signal(proc->loop, number))
        if (number == SIGTERM || number == SIGINT || number == SIGUSR1 || number == SIGUSR2)
            sim_proc_exit(proc, number);
}

sim_proc *sim_proc_find(sim_machine *machine, int pid)
{
    for (sim_proc *each = machine->procs; each != NULL; each = each->next)
        if (each->pid == pid && !each->buried)
            return each;
    return NULL;
}

void sim_machine_reboot(sim_machine *machine, bool power_loss)
{
    sim_trace("%s is rebooted%s", machine->name, power_loss ? ", its power fails" : "");
    for (sim_proc *each = machine->procs; each != NULL; each = each->next) {
        each->ended = NULL; /* no process is notified */
        sim_proc_exit(each, SIGKILL);
        each->buried = true;
    }
    if (power_loss)
        sim_fs_power_loss(machine);
    snprintf(machine->boot_id, sizeof(machine->boot_id), "boot-%d-%llu", machine->number,
             (unsigned long long)(sim_draw() >> 32));
    sim_fs_put(machine, "/proc/sys/kernel/random/boot_id", machine->boot_id);
    sim_net_break(machine, true);
}
