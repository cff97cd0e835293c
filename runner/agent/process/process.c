/* process: reads /proc and the cgroup file system for the processes of a run. */
#include "runner/agent/process/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/resources.h"

#define ENVIRONMENT_MAX_BYTES ((size_t)4 << 20)
#define EXEC_TRIES            10
#define EXEC_SECONDS          0.001

bool dt_process_read(dt_process *out, pid_t pid)
{
    dt_proc_stat stat;

    memset(out, 0, sizeof(*out));
    if (!dt_proc_stat_read(&stat, pid))
        return false;
    memcpy(out->command, stat.command, sizeof(out->command) - 1);
    out->pid = pid;
    out->parent = (pid_t)stat.parent;
    out->state = stat.state;
    out->start_ticks = (int64_t)stat.start_ticks;
    out->cpu_ticks = stat.cpu_ticks;
    out->major_faults = stat.major_faults;
    return true;
}

/* Returns true if the process runs a program, unlike a kernel thread. */
static bool has_program(pid_t pid)
{
    char path[64], target[16];

    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return readlink(path, target, sizeof(target)) > 0;
}

/* Reads the environment of a process. Linux shows an empty one for a moment while the process
 * executes another program: then it is read again. Returns false if it cannot be read. */
static bool read_environment(dt_strbuf *out, pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    for (int i = 0; i < EXEC_TRIES; i++) {
        if (dt_file_read(out, path, ENVIRONMENT_MAX_BYTES, NULL) != DT_OK)
            return false;
        if (out->length > 0 || !has_program(pid))
            return true;
        dt_clock_sleep_seconds(EXEC_SECONDS);
    }
    return true;
}

static bool has_mark(pid_t pid, const char *mark, dt_strbuf *scratch)
{
    size_t length = strlen(mark);
    const char *at, *end;

    if (!read_environment(scratch, pid))
        return false;
    end = scratch->data + scratch->length;
    for (at = scratch->data; at < end; at += strnlen(at, (size_t)(end - at)) + 1)
        if ((size_t)(end - at) >= length && memcmp(at, mark, length) == 0 && at[length] == '\0')
            return true;
    return false;
}

/* Lists all processes, unsorted. */
static dt_status list(dt_process **out, size_t *count, dt_error *err)
{
    int64_t capacity = 0;
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    *out = NULL;
    *count = 0;
    if (dir == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc: %s", strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        *out = dt_array_room(*out, *count + 1, &capacity, sizeof(**out));
        if (dt_process_read(&(*out)[*count], (pid_t)strtol(entry->d_name, NULL, 10)))
            ++*count;
    }
    closedir(dir);
    return DT_OK;
}

static bool is_ours(const dt_process *all, size_t count, pid_t pid)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].pid == pid)
            return all[i].ours;
    return false;
}

dt_status dt_process_find(dt_process **out, size_t *count, pid_t ancestor, const char *mark,
                          const char *cgroup, dt_error *err)
{
    size_t total, kept = 0;
    dt_strbuf scratch;
    dt_process *all;
    dt_status st;
    bool grew = true;

    *out = NULL;
    *count = 0;
    st = list(&all, &total, err);
    if (st != DT_OK)
        return st;
    dt_strbuf_init(&scratch);
    for (size_t i = 0; i < total; i++)
        all[i].ours =
            all[i].pid != ancestor && ((cgroup != NULL && dt_cgroup_holds(cgroup, all[i].pid)) ||
                                       has_mark(all[i].pid, mark, &scratch));
    dt_strbuf_release(&scratch);
    while (grew) { /* once per level of the tree of descendants */
        grew = false;
        for (size_t i = 0; i < total; i++)
            if (!all[i].ours && all[i].pid != ancestor &&
                (all[i].parent == ancestor || is_ours(all, total, all[i].parent)))
                grew = all[i].ours = true;
    }
    for (size_t i = 0; i < total; i++)
        if (all[i].ours && all[i].state != 'Z' && all[i].state != 'X')
            all[kept++] = all[i];
    *out = all;
    *count = kept;
    return DT_OK;
}

bool dt_process_signal(pid_t pid, int64_t start_ticks, int number)
{
    dt_process process;
    bool sent = false;
    int handle;

    /* Open the pidfd first: then it names the process whose start time is checked. */
    handle = (int)syscall(SYS_pidfd_open, pid, 0);
    if (handle < 0 && errno != ENOSYS)
        return false;
    if (dt_process_read(&process, pid) && process.start_ticks == start_ticks)
        sent = handle >= 0 ? syscall(SYS_pidfd_send_signal, handle, number, NULL, 0) == 0
                           : kill(pid, number) == 0;
    if (handle >= 0)
        close(handle);
    return sent;
}

#define PREFIX    "dtrun-"
#define MAX_BYTES ((size_t)4 << 20) /* largest file of /proc or of a cgroup */

void dt_cgroup_init(dt_cgroup *cgroup)
{
    memset(cgroup, 0, sizeof(*cgroup));
    cgroup->procs = -1;
}

void dt_cgroup_release(dt_cgroup *cgroup)
{
    if (cgroup->procs >= 0)
        close(cgroup->procs);
    free(cgroup->folder);
    free(cgroup->inside);
    free(cgroup->parents);
    dt_cgroup_init(cgroup);
}

static char *join(const char *first, const char *second)
{
    char *out = NULL;

    if (asprintf(&out, "%s%s", first, second) < 0)
        out = NULL;
    DT_ASSERT(out != NULL);
    return out;
}

/* --- this process's cgroup */

/* Finds the mount point of cgroup version 2, and the part of the tree that is mounted. */
static dt_status find_mount(dt_cgroup_mount *out, dt_error *err)
{
    return dt_cgroups_mount(out, "", NULL) && strncmp(out->part, "/..", 3) != 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_UNSUPPORTED, "no cgroup file system of version 2 is mounted");
}

/* Finds the folder of this process's own cgroup, and where the tree's paths start in the file
 * system. */
static dt_status find_own(char **folder, dt_strbuf *inside, size_t *root_bytes, char **mount_point,
                          dt_error *err)
{
    dt_cgroup_mount mount;
    dt_status st = DT_OK;

    *folder = *mount_point = NULL;
    if (!dt_cgroups_path(inside, "", 0, NULL))
        DT_THROW(err, DT_ERR_UNSUPPORTED, "this system has no cgroups of version 2");
    DT_TRY(find_mount(&mount, err));
    *root_bytes = strcmp(mount.part, "/") == 0 ? 0 : strlen(mount.part);
    if (strncmp(inside->data, mount.part, *root_bytes) != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the mounted cgroups do not contain this process's cgroup '%s'", inside->data);
    if (strcmp(inside->data, "/") == 0)
        dt_strbuf_reset(inside);
    *folder = join(mount.point, inside->data + (inside->length > 0 ? *root_bytes : 0));
    *mount_point = join(mount.point, "");
out:
    return st;
}

/* --- create, find, remove */

static void clean_name(char *name)
{
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && strchr("-_.", *name) == NULL)
            *name = '_';
}

static dt_status open_procs(dt_cgroup *cgroup, dt_error *err)
{
    char *path = join(cgroup->folder, "/cgroup.procs");
    char *ours = join(cgroup->parents, "/cgroup.procs");
    dt_status st = DT_OK;

    /* Moving a process needs write permission on both the old cgroup (or one above it) and the
     * new one. */
    if (faccessat(AT_FDCWD, ours, W_OK, AT_EACCESS) != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "no permission to write '%s': %s", ours, strerror(errno));
    cgroup->procs = open(path, O_WRONLY | O_CLOEXEC);
    if (cgroup->procs < 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cannot open '%s': %s", path, strerror(errno));
out:
    free(path);
    free(ours);
    return st;
}

dt_status dt_cgroup_make(dt_cgroup *out, const char *name, dt_error *err)
{
    char *leaf = join("/" PREFIX, name), *mount = NULL;
    dt_status st = DT_OK;
    size_t root_bytes;
    dt_strbuf inside;
    int made;

    dt_cgroup_init(out);
    dt_strbuf_init(&inside);
    clean_name(leaf + 1);
    DT_TRY(find_own(&out->parents, &inside, &root_bytes, &mount, err));
    out->folder = join(out->parents, leaf);
    made = mkdir(out->folder, 0755);
    /* left by an earlier process with our pid */
    if (made != 0 && errno == EEXIST && rmdir(out->folder) == 0)
        made = mkdir(out->folder, 0755);
    if (made != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "cannot create '%s': %s", out->folder, strerror(errno));
    out->inside = join(inside.data, leaf);
    st = open_procs(out, err);
    if (st != DT_OK)
        rmdir(out->folder);
out:
    if (st != DT_OK)
        dt_cgroup_release(out);
    dt_strbuf_release(&inside);
    free(leaf);
    free(mount);
    return st;
}

dt_status dt_cgroup_adopt(dt_cgroup *out, const char *folder, dt_error *err)
{
    const char *leaf = strrchr(folder, '/');
    dt_cgroup_mount mount;
    dt_status st = DT_OK;

    dt_cgroup_init(out);
    DT_TRY(find_mount(&mount, err));
    /* The name comes from a file: accept only names that dtrun makes. */
    if (strncmp(folder, mount.point, strlen(mount.point)) != 0 || strstr(folder, "/../") != NULL ||
        leaf == NULL || strncmp(leaf + 1, PREFIX, strlen(PREFIX)) != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s' is not a cgroup of dtrun", folder);
    if (!dt_file_exists(folder))
        DT_THROW(err, DT_ERR_NOT_FOUND, "the cgroup '%s' is gone", folder);
    out->folder = join(folder, "");
    out->parents = join(folder, "");
    out->parents[leaf - folder] = '\0';
    out->inside =
        join(strcmp(mount.part, "/") == 0 ? "" : mount.part, folder + strlen(mount.point));
out:
    return st;
}

static int remove_below(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    return kind == FTW_DP ? rmdir(path) : 0; /* the files of a cgroup go with it */
}

bool dt_cgroup_remove(const dt_cgroup *cgroup)
{
    return cgroup->inside == NULL ||
           nftw(cgroup->folder, remove_below, 16, FTW_DEPTH | FTW_PHYS) == 0 ||
           !dt_file_exists(cgroup->folder);
}

/* --- processes */

bool dt_cgroup_holds(const char *inside, pid_t pid)
{
    size_t length = strlen(inside);
    dt_strbuf path;
    bool holds;

    dt_strbuf_init(&path);
    holds = dt_cgroups_path(&path, "", pid, NULL) && strncmp(path.data, inside, length) == 0 &&
            (path.data[length] == '\0' || path.data[length] == '/');
    dt_strbuf_release(&path);
    return holds;
}

void dt_cgroup_kill(const dt_cgroup *cgroup)
{
    char *path;
    int fd;

    if (cgroup->inside == NULL)
        return;
    path = join(cgroup->folder, "/cgroup.kill");
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        dt_file_write_all(fd, "1", 1, NULL);
        close(fd);
    }
    free(path);
}

static int64_t oom_kills_in(const char *folder)
{
    char *path = join(folder, "/memory.events"), *at;
    long long count = -1;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_file_read(&text, path, MAX_BYTES, NULL) == DT_OK &&
        (at = strstr(text.data, "oom_kill ")) != NULL)
        count = strtoll(at + strlen("oom_kill "), NULL, 10);
    dt_strbuf_release(&text);
    free(path);
    return count;
}

int64_t dt_cgroup_oom_kills(const dt_cgroup *cgroup)
{
    int64_t count = cgroup->inside != NULL ? oom_kills_in(cgroup->folder) : -1;

    return count >= 0 ? count : dt_cgroups_oom_kills("");
}

bool dt_agent_run_in_child(dt_child_fn *work, const char *folder)
{
    pid_t child = fork();
    int status = 0;

    if (child < 0)
        return false;
    if (child == 0) {
        work(folder);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return dt_exit_code(status) >= 0;
}
