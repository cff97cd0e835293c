/* place: checks the file system of the store, and its permissions.
 *
 * WAL needs shared memory and locks that work across processes; network and cluster file systems provide both per
 * host only, which damages a store sooner or later.
 */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FUSE_TYPE 0x65735546UL

static const struct {
    unsigned long type; /* f_type of statfs, as in linux/magic.h and the sources of file systems */
    const char *name;
} refused[] = {
    {0x6969UL, "NFS"},        {0x517BUL, "SMB"},        {0xFF534D42UL, "CIFS"},
    {0xFE534D42UL, "SMB2"},   {0x0BD00BD0UL, "Lustre"}, {0x47504653UL, "GPFS"},
    {0x19830326UL, "BeeGFS"}, {0x00C36400UL, "Ceph"},   {0x5346414FUL, "AFS"},
    {0x73757245UL, "Coda"},   {0x01021997UL, "9P"},     {0x7461636FUL, "OCFS2"},
    {0x01161970UL, "GFS2"},   {0xAAD7AAEAUL, "PanFS"},  {0x786F4256UL, "VirtualBox"},
    {0xBACBACBCUL, "VMware"},
};

/* FUSE file systems that store data on a local disk; all others are refused. */
static const char *const local_fuse[] = {"fuse-overlayfs", "overlayfs", "bindfs",    "mergerfs",
                                         "ntfs-3g",        "fuseblk",   "gocryptfs", "encfs"};

const char *dt_store_file_system_refused(unsigned long type, const char *fuse_name)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i].type == type)
            return refused[i].name;
    if (type != FUSE_TYPE)
        return NULL;
    for (size_t i = 0; i < sizeof(local_fuse) / sizeof(local_fuse[0]); i++)
        if (strcmp(local_fuse[i], fuse_name) == 0)
            return NULL;
    return fuse_name[0] != '\0' ? fuse_name : "FUSE";
}

/* Returns the type of the mount that holds `device`, without "fuse."; "" if the mount table does not list it. */
static void mount_type(char *out, size_t size, dev_t device)
{
    char wanted[32], *line = NULL;
    size_t line_size = 0;
    FILE *table = fopen("/proc/self/mountinfo", "re");

    out[0] = '\0';
    if (table == NULL)
        return;
    snprintf(wanted, sizeof(wanted), " %u:%u ", major(device), minor(device));
    while (getline(&line, &line_size, table) > 0) {
        const char *type = strstr(line, " - ");
        if (type == NULL || strstr(line, wanted) == NULL)
            continue;
        type += strlen(" - ");
        if (strncmp(type, "fuse.", 5) == 0)
            type += 5;
        snprintf(out, size, "%.*s", (int)strcspn(type, " "), type);
    }
    free(line);
    fclose(table);
}

static dt_status folder_check(const char *path, dt_error *err)
{
    char folder[4096], fuse_name[64] = "";
    const char *slash = strrchr(path, '/'), *name;
    struct statfs system;
    struct stat info;

    if (slash == NULL)
        snprintf(folder, sizeof(folder), ".");
    else if (snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
                      path) >= (int)sizeof(folder))
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store: its path is too long");
    if (statfs(folder, &system) != 0 || stat(folder, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store in '%s': %s", folder,
                       strerror(errno));
    if ((unsigned long)system.f_type == FUSE_TYPE)
        mount_type(fuse_name, sizeof(fuse_name), info.st_dev);
    /* f_type is signed on some machines: compare its lower 32 bits */
    name = dt_store_file_system_refused((unsigned long)system.f_type & 0xFFFFFFFFUL, fuse_name);
    if (name != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "cannot keep the run store in '%s': it is on a network file system (%s), "
                       "where SQLite's locks do not hold (set XDG_STATE_HOME to a folder on a "
                       "local disk)",
                       folder, name);
    return DT_OK;
}

dt_status dt_store_file_prepare(const char *path, dt_error *err)
{
    dt_status st = folder_check(path, err);
    struct stat info;
    int fd;

    if (st != DT_OK)
        return st;
    /* The file is created here instead of by SQLite, for its mode; SQLite gives -wal and -shm the same mode. An
     * existing file is never opened and closed here: closing it would release the locks that another handle of this
     * process has on it. */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
        return DT_OK;
    }
    if (errno != EEXIST)
        return DT_FAIL(err, DT_ERR_IO, "cannot make the run store '%s': %s", path, strerror(errno));
    if (stat(path, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store '%s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store '%s': it is not a file", path);
    if (access(path, R_OK | W_OK) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store '%s': %s", path, strerror(errno));
    if ((info.st_mode & 0077) != 0 && chmod(path, 0600) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make the run store '%s' private (mode 0600): %s",
                       path, strerror(errno));
    return DT_OK;
}
