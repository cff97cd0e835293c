/* fd: manages the descriptors of a process. */
#include <errno.h>
#include <string.h>

#include "tests/sim/sim.h"

int sim_fd_new(sim_proc *proc, sim_fd_kind kind)
{
    for (int fd = 3; fd < SIM_FDS; fd++)
        if (proc->fds[fd].kind == SIM_FD_NONE) {
            proc->fds[fd] = (sim_fd){.kind = kind};
            proc->fd_count = fd >= proc->fd_count ? fd + 1 : proc->fd_count;
            return fd;
        }
    DT_ASSERT(false && "a process has too many descriptors: is one leaked?");
    return -1;
}

sim_fd *sim_fd_get(int fd)
{
    sim_proc *self = sim_self();

    if (fd >= 0 && fd < SIM_FDS && self->fds[fd].kind != SIM_FD_NONE)
        return &self->fds[fd];
    errno = EBADF;
    return NULL;
}

static void close_listener(sim_machine *machine, sim_listener *listener)
{
    sim_inode *inode = sim_fs_find(machine, listener->path);

    listener->closed = true;
    for (int i = 0; i < listener->count; i++)
        sim_end_release(listener->waiting[i]);
    listener->count = 0;
    if (inode != NULL && sim_listener_find(machine, listener->path) == NULL)
        inode->lock_fd = -1; /* the name stays, as for a socket */
}

void sim_fd_close(sim_proc *proc, int fd)
{
    sim_fd *entry = &proc->fds[fd];

    if (entry->kind == SIM_FD_END)
        sim_end_release(entry->end);
    if (entry->kind == SIM_FD_LISTENER)
        close_listener(proc->machine, entry->listener);
    if (entry->kind == SIM_FD_FILE && entry->locks)
        entry->inode->lock_proc = NULL;
    *entry = (sim_fd){.kind = SIM_FD_NONE};
}

sim_end *sim_fd_end(sim_proc *proc, int fd)
{
    return fd >= 0 && fd < SIM_FDS && proc->fds[fd].kind == SIM_FD_END ? proc->fds[fd].end : NULL;
}
