/* libc_file: answers the calls for files and descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runner/supervisor/connection/node_link.h"
#include "tests/sim/wrap.h"

static sim_inode *find(const char *path)
{
    char full[SIM_PATH_BYTES];

    return sim_fs_find(sim_machine_self(), sim_fs_resolve(full, sizeof(full), path));
}

static int open_at(const char *path, int flags)
{
    sim_machine *machine = sim_machine_self();
    char full[SIM_PATH_BYTES];
    sim_inode *inode = sim_fs_find(machine, sim_fs_resolve(full, sizeof(full), path));
    sim_fd *entry;
    int fd;

    if (strcmp(full, "/dev/null") == 0)
        return sim_fd_new(sim_self(), SIM_FD_NULL);
    if (inode == NULL && (flags & O_CREAT) == 0)
        return sim_errno(ENOENT);
    if (inode == NULL) {
        char *slash = strrchr(full, '/');

        *slash = '\0';
        if (slash != full && sim_fs_find(machine, full) == NULL)
            return sim_errno(ENOENT);
        *slash = '/';
        if (machine->full_until_ns > sim_now_ns)
            return sim_errno(ENOSPC);
        inode = sim_fs_make(machine, full, false);
    }
    if (inode->folder != ((flags & O_DIRECTORY) != 0) && (flags & O_DIRECTORY) != 0)
        return sim_errno(ENOTDIR);
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
    char path[SIM_PATH_BYTES];

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

/* Waits until there are bytes, the end of file, or the descriptor's timeout. */
static int wait_to_read(sim_fd *entry)
{
    int64_t until = entry->patience_ns > 0 ? sim_now_ns + entry->patience_ns : SIM_NEVER;
    sim_end *end = entry->end;

    while (sim_end_waiting(end) == 0 && !end->eof) {
        if (entry->nonblocking || sim_now_ns >= until)
            return sim_errno(EAGAIN);
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
        return sim_errno(ENOSPC);
    if (entry->inode->path != NULL && strstr(entry->inode->path, "/logs/rank-") != NULL)
        sim_fault_moment(SIM_A_LOG_GROWS);
    return (ssize_t)length;
}

static void trace_log(const char *bytes, size_t length)
{
    const char *said = memmem(bytes, length, ": ", 2);
    size_t skip = said != NULL && bytes[0] == '2' ? (size_t)(said - bytes) + 2 : 0;

    if (length > skip)
        sim_trace("%.*s", (int)(length - skip - (bytes[length - 1] == '\n')), bytes + skip);
}

/* No event comes in a state whose table calls it impossible. */
static void check_log(const char *bytes, size_t length)
{
    if (memmem(bytes, length, DT_IMPOSSIBLE, sizeof(DT_IMPOSSIBLE) - 1) != NULL)
        sim_fail("%.*s", (int)length, bytes);
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t length)
{
    sim_fd *entry;
    ssize_t put;

    if (sim_self() == NULL)
        return __real_write(fd, bytes, length);
    if ((entry = sim_fd_get(fd)) == NULL)
        return -1;
    if (fd == STDERR_FILENO)
        check_log(bytes, length);
    if (fd == STDERR_FILENO && sim.trace)
        trace_log(bytes, length);
    if (entry->kind == SIM_FD_END)
        return sim_end_write(entry->end, bytes, length) ? (ssize_t)length : sim_errno(EPIPE);
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
        return sim_errno(EBADF);
    if (whence == SEEK_DATA && offset >= entry->inode->length)
        return sim_errno(ENXIO);
    if (whence == SEEK_SET || whence == SEEK_DATA) /* files have no holes */
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
        return sim_errno(EWOULDBLOCK);
    entry->inode->lock_proc = sim_self();
    entry->locks = true;
    return 0;
}

static int describe(const sim_inode *inode, struct stat *out)
{
    if (inode == NULL)
        return sim_errno(ENOENT);
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
    out->f_type = 0x01021994; /* a local file system */
    return 0;
}

WRAP(int, access, const char *path, int mode)
{
    if (sim_self() == NULL)
        return __real_access(path, mode);
    return find(path) != NULL ? 0 : sim_errno(ENOENT);
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
    sim_machine *machine = sim_machine_self();
    char full[SIM_PATH_BYTES];

    if (sim_fs_find(machine, sim_fs_resolve(full, sizeof(full), path)) != NULL)
        return sim_errno(EEXIST);
    if (machine->full_until_ns > sim_now_ns)
        return sim_errno(ENOSPC);
    sim_fs_make(machine, full, true);
    return 0;
}

static int remove_entry(const char *path, bool folder)
{
    sim_machine *machine = sim_machine_self();
    sim_inode *inode = find(path);

    if (inode == NULL)
        return sim_errno(ENOENT);
    if (inode->folder != folder)
        return sim_errno(folder ? ENOTDIR : EISDIR);
    for (int i = 0; folder && i < machine->file_count; i++)
        if (sim_fs_is_below(machine->files[i]->path, inode->path))
            return sim_errno(ENOTEMPTY);
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
    char path[SIM_PATH_BYTES];

    return remove_entry(join(path, sizeof(path), parent, name), (flags & AT_REMOVEDIR) != 0);
}

WRAP(int, rename, const char *from, const char *to)
{
    sim_machine *machine = sim_machine_self();
    sim_inode *moved = find(from), *there = find(to);
    char full[SIM_PATH_BYTES];
    uint64_t number;

    if (moved == NULL)
        return sim_errno(ENOENT);
    if (there != NULL)
        sim_fs_remove(machine, there);
    sim_fs_resolve(full, sizeof(full), to);
    number = moved->number;
    sim_fs_remove(machine, moved);
    /* renames the same file */
    there = sim_fs_make(machine, full, moved->folder);
    moved->path = there->path;
    moved->hash = there->hash;
    moved->number = number;
    machine->files[machine->file_count - 1] = moved;
    return 0;
}

WRAP(char *, realpath, const char *path, char *out)
{
    char full[SIM_PATH_BYTES];

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
    char full[SIM_PATH_BYTES];

    if (find(path) == NULL)
        return sim_errno(ENOENT);
    snprintf(sim_self()->cwd, sizeof(sim_self()->cwd), "%s",
             sim_fs_resolve(full, sizeof(full), path));
    return 0;
}

WRAP(ssize_t, readlink, const char *path, char *out, size_t size)
{
    size_t length = strlen(path);

    /* All processes of a machine have the same namespace. */
    if (length > 7 && strcmp(path + length - 7, "/ns/mnt") == 0)
        return snprintf(out, size, "mnt:[%d]", sim_machine_self()->number);
    return sim_errno(ENOENT);
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
        return sim_errno(ENOENT);
    inode->mode = mode;
    return 0;
}
