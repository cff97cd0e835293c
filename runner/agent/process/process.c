#include "runner/agent/process/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/agent/process/cgroup.h"

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
    size_t capacity = 0;
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    *out = NULL;
    *count = 0;
    if (dir == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc: %s", strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (*count == capacity) {
            capacity = capacity != 0 ? 2 * capacity : 256;
            *out = dt_realloc(*out, capacity, sizeof(**out));
        }
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
