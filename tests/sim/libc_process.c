/* libc_process: answers the calls for clocks, processes, signals and random numbers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/wrap.h"

WRAP(int, clock_gettime, clockid_t which, struct timespec *out)
{
    sim_proc *self = sim_self();
    int64_t ns = sim_now_ns;

    if (self == NULL)
        return __real_clock_gettime(which, out);
    if (which == CLOCK_REALTIME)
        ns += 1700000000 * SIM_SECOND + self->machine->wall_offset_ms * SIM_MS;
    out->tv_sec = (time_t)(ns / SIM_SECOND);
    out->tv_nsec = (long)(ns % SIM_SECOND);
    return 0;
}

WRAP(int, nanosleep, const struct timespec *wanted, struct timespec *left)
{
    sim_sleep(wanted->tv_sec * SIM_SECOND + wanted->tv_nsec);
    return 0;
}

WRAP(pid_t, getpid, void)
{
    return sim_self() != NULL ? sim_self()->pid : __real_getpid();
}

WRAP(int, kill, pid_t pid, int number)
{
    sim_proc *found;

    if (sim_self() == NULL)
        return __real_kill(pid, number);
    found = sim_proc_find(sim_machine_self(), pid);
    if (found == NULL)
        return sim_errno(ESRCH);
    sim_proc_signal(found, number);
    return 0;
}

static sim_proc *find_dead(pid_t wanted)
{
    for (sim_proc *each = sim_machine_self()->procs; each != NULL; each = each->next)
        if (each->parent == sim_self() && each->over && !each->buried &&
            (wanted == -1 || each->pid == wanted))
            return each;
    return NULL;
}

WRAP(pid_t, waitpid, pid_t wanted, int *status, int options)
{
    sim_proc *dead;

    if (sim_self() == NULL)
        return __real_waitpid(wanted, status, options);
    while ((dead = find_dead(wanted)) == NULL) {
        if ((options & WNOHANG) != 0)
            return 0;
        sim_wait(sim_now_ns + 10 * SIM_MS);
    }
    dead->buried = true;
    if (status != NULL)
        *status = dead->wait_status;
    return dead->pid;
}

WRAP(int, prctl, int option, ...)
{
    return 0; /* children end with their agent anyway (proc.c) */
}

WRAP(sighandler_t, signal, int number, sighandler_t handler)
{
    return SIG_DFL;
}

WRAP(int, gethostname, char *out, size_t size)
{
    snprintf(out, size, "%s", sim_machine_self()->name);
    return 0;
}

WRAP(ssize_t, getrandom, void *bytes, size_t length, unsigned flags)
{
    for (size_t i = 0; i < length; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)sim_draw();
    return (ssize_t)length;
}
