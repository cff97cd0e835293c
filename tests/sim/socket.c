/* socket: simulates sockets that have a name in the file system; replaces runner/channel/socket.c. */
#include <stdio.h>
#include <string.h>

#include "runner/channel/socket.h"
#include "tests/sim/wrap.h"

static sim_listener *listeners[256];
static int listener_count;

sim_listener *sim_listener_find(sim_machine *machine, const char *path)
{
    for (int i = 0; i < listener_count; i++)
        if (!listeners[i]->closed && listeners[i]->machine == machine &&
            strcmp(listeners[i]->path, path) == 0)
            return listeners[i];
    return NULL;
}

void sim_listener_add(sim_listener *listener)
{
    int kept = 0;

    if (listener == NULL) { /* in a new world */
        listener_count = 0;
        return;
    }
    for (int i = 0; i < listener_count; i++)
        if (!listeners[i]->closed)
            listeners[kept++] = listeners[i];
    listener_count = kept;
    DT_ASSERT(listener_count < (int)(sizeof(listeners) / sizeof(listeners[0])));
    listeners[listener_count++] = listener;
}

static const char *socket_path(const char *folder, const char *name)
{
    char full[SIM_PATH_BYTES], both[SIM_PATH_BYTES];

    snprintf(both, sizeof(both), "%s/%s", folder, name);
    return sim_print("%s", sim_fs_resolve(full, sizeof(full), both));
}

dt_status dt_socket_listen(int *fd, const char *folder, const char *name, dt_error *err)
{
    sim_listener *listener = sim_alloc(sizeof(*listener));
    sim_machine *machine = sim_machine_self();

    listener->machine = machine;
    listener->path = socket_path(folder, name);
    listener->proc = sim_self();
    if (sim_fs_find(machine, listener->path) == NULL)
        sim_fs_make(machine, listener->path, false);
    sim_listener_add(listener);
    *fd = sim_fd_new(sim_self(), SIM_FD_LISTENER);
    sim_self()->fds[*fd].listener = listener;
    return DT_OK;
}

dt_status dt_socket_connect(int *fd, const char *folder, const char *name, dt_error *err)
{
    sim_listener *listener = sim_listener_find(sim_machine_self(), socket_path(folder, name));
    sim_end *ends[2];

    *fd = -1;
    if (listener == NULL || listener->count == 16)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "cannot connect to '%s/%s': nobody listens", folder,
                       name);
    sim_pair(ends);
    listener->waiting[listener->count++] = ends[0];
    sim_loop_wake(listener->proc->loop);
    *fd = sim_fd_new(sim_self(), SIM_FD_END);
    sim_self()->fds[*fd].end = ends[1];
    return DT_OK;
}
