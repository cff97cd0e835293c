/* libc: the calls of the programs that are answered here (the linker's --wrap). Outside a task they
 * are the system's. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#include "base/banned.h"

#define PATH_BYTES 512

/* REAL(type, name, (arguments)): declares both, so that the wrapper begins right below. */
#define WRAP(type, name, ...)        \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static int fail(int number)
{
    errno = number;
    return -1;
}

static sim_inode *find(const char *path)
{
    char full[PATH_BYTES];

    return sim_fs_find(sim_machine_self(), sim_fs_resolve(full, sizeof(full), path));
}

/* --- clocks */

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

/* --- files */

static int open_at(const char *path, int flags)
{
    sim_machine *machine = sim_machine_self();
    char full[PATH_BYTES];
    sim_inode *inode = sim_fs_find(machine, sim_fs_resolve(full, sizeof(full), path));
    sim_fd *entry;
    int fd;

    if (strcmp(full, "/dev/null") == 0)
        return sim_fd_new(sim_self(), SIM_FD_NULL);
    if (inode == NULL && (flags & O_CREAT) == 0)
        return fail(ENOENT);
    if (inode == NULL) {
        char *slash = strrchr(full, '/');

        *slash = '\0';
        if (slash != full && sim_fs_find(machine, full) == NULL)
            return fail(ENOENT);
        *slash = '/';
        if (machine->full_until_ns > sim_now_ns)
            return fail(ENOSPC);
        inode = sim_fs_make(machine, full, false);
    }
    if (inode->folder != ((flags & O_DIRECTORY) != 0) && (flags & O_DIRECTORY) != 0)
        return fail(ENOTDIR);
    if ((flags & O_TRUNC) != 0)
        sim_fs_cut(inode, 0);
    fd = sim_fd_new(sim_self(), SIM_FD_FILE);
    entry = &sim_self()->fds[fd];
    entry->inode = inode;
    entry->append = (flags & O_APPEND) != 0;
    return fd;
}

WRAP(int, open, const char *path, int flags, ...)
{
    va_list args;
    mode_t mode = 0;

    if (sim_self() != NULL)
        return open_at(path, flags);
    va_start(args, flags);
    if ((flags & O_CREAT) != 0)
        mode = va_arg(args, mode_t);
    va_end(args);
    return __real_open(path, flags, mode);
}

static const char *join(char *out, size_t size, int parent, const char *name)
{
    sim_fd *entry = parent != AT_FDCWD ? sim_fd_get(parent) : NULL;

    if (entry != NULL && entry->kind == SIM_FD_FILE && entry->inode->path != NULL && name[0] != '/')
        snprintf(out, size, "%s/%s", entry->inode->path, name);
    else
        snprintf(out, size, "%s", name);
    return out;
}

WRAP(int, openat, int parent, const char *name, int flags, ...)
{
    char path[PATH_BYTES];

    return open_at(join(path, sizeof(path), parent, name), flags);
}

WRAP(int, close, int fd)
{
    if (sim_self() == NULL)
        return __real_close(fd);
    if (sim_fd_get(fd) == NULL)
        return -1;
    sim_fd_close(sim_self(), fd);
    return 0;
}

static int64_t read_file(sim_fd *entry, void *bytes, size_t length, int64_t offset)
{
    int64_t left = entry->inode->length - offset;

    if (left <= 0)
        return 0;
    if ((size_t)left > length)
        left = (int64_t)length;
    memcpy(bytes, entry->inode->data + offset, (size_t)left);
    return left;
}

/* Until there is something, or the end, or the descriptor's patience is over. */
static int wait_to_read(sim_fd *entry)
{
    int64_t until = entry->patience_ns > 0 ? sim_now_ns + entry->patience_ns : SIM_NEVER;
    sim_end *end = entry->end;

    while (sim_end_waiting(end) == 0 && !end->eof) {
        if (entry->nonblocking || sim_now_ns >= until)
            return fail(EAGAIN);
        end->reader = sim_running;
        sim_wait(until);
        end->reader = NULL;
    }
    return 0;
}

WRAP(ssize_t, read, int fd, void *bytes, size_t length)
{
    sim_fd *entry;
    int64_t got;

    if (sim_self() == NULL)
        return __real_read(fd, bytes, length);
    if ((entry = sim_fd_get(fd)) == NULL)
        return -1;
    if (entry->kind == SIM_FD_END)
        return wait_to_read(entry) == 0 ? (ssize_t)sim_end_read(entry->end, bytes, length) : -1;
    if (entry->kind != SIM_FD_FILE)
        return 0;
    got = read_file(entry, bytes, length, entry->offset);
    entry->offset += got;
    return (ssize_t)got;
}

WRAP(ssize_t, pread, int fd, void *bytes, size_t length, off_t offset)
{
    sim_fd *entry = sim_fd_get(fd);

    return entry != NULL ? (ssize_t)read_file(entry, bytes, length, offset) : -1;
}

static ssize_t write_file(sim_fd *entry, const void *bytes, size_t length, int64_t offset)
{
    if (!sim_fs_write(sim_machine_self(), entry->inode, offset, bytes, (int64_t)length))
        return fail(ENOSPC);
    return (ssize_t)length;
}

static void trace_log(const char *bytes, size_t length)
{
    const char *said = memmem(bytes, length, ": ", 2);
    size_t skip = said != NULL && bytes[0] == '2' ? (size_t)(said - bytes) + 2 : 0;

    if (length > skip)
        sim_trace("%.*s", (int)(length - skip - (bytes[length - 1] == '\n')), bytes + skip);
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t length)
{
    sim_fd *entry;
    ssize_t put;

    if (sim_self() == NULL)
        return __real_write(fd, bytes, length);
    if ((entry = sim_fd_get(fd)) == NULL)
        return -1;
    if (fd == STDERR_FILENO && sim.trace)
        trace_log(bytes, length);
    if (entry->kind == SIM_FD_END)
        return sim_end_write(entry->end, bytes, length) ? (ssize_t)length : fail(EPIPE);
    if (entry->kind != SIM_FD_FILE)
        return (ssize_t)length;
    put = write_file(entry, bytes, length, entry->append ? entry->inode->length : entry->offset);
    if (put > 0)
        entry->offset = entry->append ? entry->inode->length : entry->offset + put;
    return put;
}

WRAP(ssize_t, pwrite, int fd, const void *bytes, size_t length, off_t offset)
{
    sim_fd *entry = sim_fd_get(fd);

    return entry != NULL ? write_file(entry, bytes, length, offset) : -1;
}

WRAP(off_t, lseek, int fd, off_t offset, int whence)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL || entry->kind != SIM_FD_FILE)
        return fail(EBADF);
    if (whence == SEEK_DATA && offset >= entry->inode->length)
        return fail(ENXIO);
    if (whence == SEEK_SET || whence == SEEK_DATA) /* no file here has holes */
        entry->offset = offset;
    else if (whence == SEEK_CUR)
        entry->offset += offset;
    else
        entry->offset = entry->inode->length + (whence == SEEK_END ? offset : 0);
    return entry->offset;
}

static int sync_fd(int fd)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    if (entry->kind == SIM_FD_FILE)
        sim_fs_sync(sim_machine_self(), entry->inode);
    return 0;
}

WRAP(int, fsync, int fd)
{
    return sync_fd(fd);
}

WRAP(int, fdatasync, int fd)
{
    return sync_fd(fd);
}

WRAP(int, ftruncate, int fd, off_t length)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    sim_fs_cut(entry->inode, length);
    return 0;
}

WRAP(int, fallocate, int fd, int mode, off_t offset, off_t length)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    if (offset < entry->inode->length)
        memset(entry->inode->data + offset, 0,
               (size_t)(offset + length < entry->inode->length ? length
                                                               : entry->inode->length - offset));
    return 0;
}

WRAP(int, flock, int fd, int operation)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    if ((operation & LOCK_UN) != 0) {
        if (entry->locks)
            entry->inode->lock_proc = NULL;
        entry->locks = false;
        return 0;
    }
    if (entry->inode->lock_proc != NULL && !entry->locks)
        return fail(EWOULDBLOCK);
    entry->inode->lock_proc = sim_self();
    entry->locks = true;
    return 0;
}

static int describe(const sim_inode *inode, struct stat *out)
{
    if (inode == NULL)
        return fail(ENOENT);
    memset(out, 0, sizeof(*out));
    out->st_mode = (inode->folder ? S_IFDIR : S_IFREG) | inode->mode;
    out->st_size = inode->length;
    out->st_ino = inode->number;
    out->st_dev = 1;
    out->st_nlink = 1;
    out->st_uid = geteuid();
    return 0;
}

WRAP(int, stat, const char *path, struct stat *out)
{
    return sim_self() != NULL ? describe(find(path), out) : __real_stat(path, out);
}

WRAP(int, lstat, const char *path, struct stat *out)
{
    return sim_self() != NULL ? describe(find(path), out) : __real_lstat(path, out);
}

WRAP(int, fstat, int fd, struct stat *out)
{
    sim_fd *entry;

    if (sim_self() == NULL)
        return __real_fstat(fd, out);
    if ((entry = sim_fd_get(fd)) == NULL)
        return -1;
    if (entry->kind == SIM_FD_FILE)
        return describe(entry->inode, out);
    memset(out, 0, sizeof(*out));
    out->st_mode = S_IFCHR;
    return 0;
}

WRAP(int, statfs, const char *path, struct statfs *out)
{
    memset(out, 0, sizeof(*out));
    out->f_type = 0x01021994; /* of a local disk */
    return 0;
}

WRAP(int, access, const char *path, int mode)
{
    if (sim_self() == NULL)
        return __real_access(path, mode);
    return find(path) != NULL ? 0 : fail(ENOENT);
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
    sim_machine *machine = sim_machine_self();
    char full[PATH_BYTES];

    if (sim_fs_find(machine, sim_fs_resolve(full, sizeof(full), path)) != NULL)
        return fail(EEXIST);
    if (machine->full_until_ns > sim_now_ns)
        return fail(ENOSPC);
    sim_fs_make(machine, full, true);
    return 0;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static int remove_entry(const char *path, bool folder)
{
    sim_machine *machine = sim_machine_self();
    sim_inode *inode = find(path);

    if (inode == NULL)
        return fail(ENOENT);
    if (inode->folder != folder)
        return fail(folder ? ENOTDIR : EISDIR);
    for (int i = 0; folder && i < machine->file_count; i++)
        if (is_below(machine->files[i]->path, inode->path))
            return fail(ENOTEMPTY);
    sim_fs_remove(machine, inode);
    return 0;
}

WRAP(int, unlink, const char *path)
{
    return remove_entry(path, false);
}

WRAP(int, rmdir, const char *path)
{
    return remove_entry(path, true);
}

WRAP(int, unlinkat, int parent, const char *name, int flags)
{
    char path[PATH_BYTES];

    return remove_entry(join(path, sizeof(path), parent, name), (flags & AT_REMOVEDIR) != 0);
}

WRAP(int, rename, const char *from, const char *to)
{
    sim_machine *machine = sim_machine_self();
    sim_inode *moved = find(from), *there = find(to);
    char full[PATH_BYTES];
    uint64_t number;

    if (moved == NULL)
        return fail(ENOENT);
    if (there != NULL)
        sim_fs_remove(machine, there);
    sim_fs_resolve(full, sizeof(full), to);
    number = moved->number;
    sim_fs_remove(machine, moved);
    /* the same file under another name */
    there = sim_fs_make(machine, full, moved->folder);
    moved->path = there->path;
    moved->hash = there->hash;
    moved->number = number;
    machine->files[machine->file_count - 1] = moved;
    return 0;
}

WRAP(char *, realpath, const char *path, char *out)
{
    char full[PATH_BYTES];

    if (sim_self() == NULL)
        return __real_realpath(path, out);
    if (sim_fs_find(sim_machine_self(), sim_fs_resolve(full, sizeof(full), path)) == NULL) {
        errno = ENOENT;
        return NULL;
    }
    return out != NULL ? memcpy(out, full, strlen(full) + 1) : strdup(full);
}

WRAP(int, chdir, const char *path)
{
    char full[PATH_BYTES];

    if (find(path) == NULL)
        return fail(ENOENT);
    snprintf(sim_self()->cwd, sizeof(sim_self()->cwd), "%s",
             sim_fs_resolve(full, sizeof(full), path));
    return 0;
}

WRAP(ssize_t, readlink, const char *path, char *out, size_t size)
{
    return fail(ENOENT);
}

WRAP(int, fchmod, int fd, mode_t mode)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    if (entry->kind == SIM_FD_FILE)
        entry->inode->mode = mode;
    return 0;
}

WRAP(int, chmod, const char *path, mode_t mode)
{
    sim_inode *inode = find(path);

    if (inode == NULL)
        return fail(ENOENT);
    inode->mode = mode;
    return 0;
}

/* --- folders */

typedef struct listing {
    struct dirent entry;
    int count, at, fd;
    const char *names[];
} listing;

static DIR *list(const char *path, int fd)
{
    sim_machine *machine = sim_machine_self();
    char full[PATH_BYTES];
    const sim_inode *folder = sim_fs_find(machine, sim_fs_resolve(full, sizeof(full), path));
    listing *made;

    if (folder == NULL || !folder->folder) {
        errno = ENOENT;
        return NULL;
    }
    made = sim_alloc(sizeof(*made) + (size_t)machine->file_count * sizeof(made->names[0]));
    made->fd = fd;
    for (int i = 0; i < machine->file_count; i++) {
        const char *name = machine->files[i]->path;

        if (is_below(name, full) && strchr(name + strlen(full) + 1, '/') == NULL)
            made->names[made->count++] = name + strlen(full) + 1;
    }
    return (DIR *)made;
}

WRAP(DIR *, opendir, const char *path)
{
    return sim_self() != NULL ? list(path, -1) : __real_opendir(path);
}

WRAP(DIR *, fdopendir, int fd)
{
    sim_fd *entry = sim_fd_get(fd);

    return entry != NULL ? list(entry->inode->path, fd) : NULL;
}

WRAP(struct dirent *, readdir, DIR *dir)
{
    listing *open = (listing *)dir;

    if (sim_self() == NULL)
        return __real_readdir(dir);
    if (open->at == open->count)
        return NULL;
    snprintf(open->entry.d_name, sizeof(open->entry.d_name), "%s", open->names[open->at++]);
    return &open->entry;
}

WRAP(int, closedir, DIR *dir)
{
    if (sim_self() == NULL)
        return __real_closedir(dir);
    if (((listing *)dir)->fd >= 0)
        sim_fd_close(sim_self(), ((listing *)dir)->fd);
    return 0;
}

/* --- pipes and sockets */

static void pair_fds(int fds[2])
{
    sim_end *ends[2];

    sim_pair(ends);
    for (int i = 0; i < 2; i++) {
        fds[i] = sim_fd_new(sim_self(), SIM_FD_END);
        sim_self()->fds[fds[i]].end = ends[i];
    }
}

WRAP(int, socketpair, int domain, int type, int protocol, int fds[2])
{
    pair_fds(fds);
    return 0;
}

WRAP(int, pipe2, int fds[2], int flags)
{
    if (sim_self() == NULL)
        return __real_pipe2(fds, flags);
    pair_fds(fds);
    return 0;
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    sim_fd *entry = sim_fd_get(fd);
    int made;

    if (entry == NULL || entry->listener->count == 0)
        return fail(EAGAIN);
    made = sim_fd_new(sim_self(), SIM_FD_END);
    sim_self()->fds[made].end = entry->listener->waiting[0];
    sim_self()->fds[made].nonblocking = true;
    entry->listener->count--;
    memmove(entry->listener->waiting, entry->listener->waiting + 1,
            (size_t)entry->listener->count * sizeof(entry->listener->waiting[0]));
    return made;
}

WRAP(int, shutdown, int fd, int how)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    sim_end_shut(entry->end);
    return 0;
}

WRAP(ssize_t, send, int fd, const void *bytes, size_t length, int flags)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry == NULL)
        return -1;
    return sim_end_write(entry->end, bytes, length) ? (ssize_t)length : fail(EPIPE);
}

WRAP(int, setsockopt, int fd, int level, int option, const void *value, socklen_t length)
{
    sim_fd *entry = sim_fd_get(fd);

    if (entry != NULL && option == SO_RCVTIMEO)
        entry->patience_ns = ((const struct timeval *)value)->tv_sec * SIM_SECOND;
    return 0;
}

WRAP(int, fcntl, int fd, int command, ...)
{
    return 0;
}

static int look(struct pollfd *waiting, nfds_t count)
{
    int found = 0;

    for (nfds_t i = 0; i < count; i++) {
        sim_end *end = sim_fd_end(sim_self(), waiting[i].fd);

        waiting[i].revents = 0;
        if (end != NULL && (waiting[i].events & POLLIN) != 0 &&
            (sim_end_waiting(end) > 0 || end->eof))
            waiting[i].revents |= POLLIN;
        if (end != NULL && (waiting[i].events & POLLRDHUP) != 0 && end->eof)
            waiting[i].revents |= POLLRDHUP;
        found += waiting[i].revents != 0;
    }
    return found;
}

WRAP(int, poll, struct pollfd *waiting, nfds_t count, int timeout_ms)
{
    int64_t until = timeout_ms < 0 ? SIM_NEVER : sim_now_ns + timeout_ms * SIM_MS;
    int found;

    if (sim_self() == NULL)
        return __real_poll(waiting, count, timeout_ms);
    while ((found = look(waiting, count)) == 0 && sim_now_ns < until) {
        for (nfds_t i = 0; i < count; i++) {
            sim_end *end = sim_fd_end(sim_self(), waiting[i].fd);

            if (end != NULL)
                end->reader = sim_running;
        }
        sim_wait(until);
    }
    return found;
}

/* --- processes */

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
        return fail(ESRCH);
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
    return 0; /* children die with their agent anyway (proc.c) */
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

/* --- sockets with a name (in place of runner/channel/socket.c) */

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

    if (listener == NULL) { /* a new world */
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

#include "runner/channel/socket.h"

static const char *socket_path(const char *folder, const char *name)
{
    char full[PATH_BYTES], both[PATH_BYTES];

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
    if (find(listener->path) == NULL)
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
