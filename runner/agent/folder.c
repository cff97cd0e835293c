/* folder: the agent's folder: who may use it, which process holds its lock, and commands that a supervisor
 * left on it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/process.h"

dt_status dt_agent_folder_check(const char *folder, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    int fd;

    fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return DT_FAIL(err, errno == ENOENT ? DT_ERR_NOT_FOUND : DT_ERR_IO,
                       "cannot use the folder '%s': %s", folder,
                       errno == ELOOP || errno == ENOTDIR ? "it is a link or not a folder"
                                                          : strerror(errno));
    if (fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot use the folder '%s': %s", folder, strerror(errno));
    if (info.st_uid != geteuid())
        DT_THROW(err, DT_ERR_IO, "the folder '%s' belongs to user %ld, and this is user %ld",
                 folder, (long)info.st_uid, (long)geteuid());
    if ((info.st_mode & 07777) != 0700 && fchmod(fd, 0700) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the folder '%s' private: %s", folder,
                 strerror(errno));
out:
    close(fd);
    return st;
}

dt_status dt_agent_folder_make(const char *folder, dt_error *err)
{
    dt_status st = dt_file_make_dirs(folder, 0700, err);

    return st == DT_OK ? dt_agent_folder_check(folder, err) : st;
}

/* holder: finds the process that holds an agent's lock, so that a hanging agent can be killed.
 *
 * The ranks die with it (spawn.h), and the next agent recovers.
 */

#define GONE_SECONDS 5.0

dt_status dt_agent_holder_write(int lock, dt_error *err)
{
    dt_process self;
    char text[64];

    if (!dt_process_read(&self, getpid()))
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/%d/stat", (int)getpid());
    snprintf(text, sizeof(text), "%d %lld\n", (int)self.pid, (long long)self.start_ticks);
    if (ftruncate(lock, 0) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write the lock: %s", strerror(errno));
    return dt_file_write_all(lock, text, strlen(text), err);
}

static bool is_free(const char *path)
{
    int lock = -1;
    dt_status st = dt_file_lock(&lock, path, NULL);

    if (lock >= 0)
        close(lock);
    return st != DT_ERR_BUSY;
}

/* Reads the holder from the file of a lock that is held. */
static dt_status read_holder(int *pid, long long *ticks, const char *path, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, 4096, err));
    if (sscanf(text.data, "%d %lld", pid, ticks) != 2)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' does not name its holder", path);
out:
    dt_strbuf_release(&text);
    return st;
}

/* Finds the process that holds the lock, if it runs on this machine. */
static bool find_holder(dt_process *out, const char *folder)
{
    dt_strbuf path;
    long long ticks;
    bool here;
    int pid;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/agent.lock", folder);
    here = dt_file_exists(path.data) && !is_free(path.data) &&
           read_holder(&pid, &ticks, path.data, NULL) == DT_OK &&
           dt_process_read(out, (pid_t)pid) && out->start_ticks == ticks;
    dt_strbuf_release(&path);
    return here;
}

bool dt_agent_holder_is_here(const char *folder)
{
    dt_process process;

    return find_holder(&process, folder);
}

bool dt_agent_holder_is_paused(const char *folder)
{
    dt_process process;

    return find_holder(&process, folder) && dt_proc_is_paused(process.state);
}

bool dt_agent_holder_ask(const char *folder, int number)
{
    dt_process process;

    return find_holder(&process, folder) &&
           dt_process_signal(process.pid, process.start_ticks, number);
}

dt_status dt_agent_holder_kill(const char *folder, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + GONE_SECONDS;
    dt_status st = DT_OK;
    long long ticks;
    dt_strbuf path;
    int pid;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/agent.lock", folder);
    if (!dt_file_exists(path.data) || is_free(path.data))
        goto out;
    DT_TRY(read_holder(&pid, &ticks, path.data, err));
    dt_process_signal(pid, ticks, SIGKILL);
    while (!is_free(path.data)) {
        if (dt_clock_monotonic_seconds() > deadline)
            DT_THROW(err, DT_ERR_TIMEOUT, "the agent %d holds its lock and cannot be killed", pid);
        dt_clock_sleep_seconds(0.01);
    }
out:
    dt_strbuf_release(&path);
    return st;
}

/* end_commands: kills commands that a supervisor started on this node and left running. */

#define COMMANDS_SECONDS 5.0

typedef struct commands {
    const char *folder; /* absolute: .../RUN/attempt-1/node-0 */
    size_t run;         /* length of ".../RUN/" in `folder` */
    bool paused_only;
} commands;

/* True for the shell by which a transport runs a command: "/bin/sh -c '... dtrun-agent connect
 * FOLDER ...'". Quoting may change characters of the path, but not those from the run's id on. */
static bool is_shell_of(const commands *of, const char *text, size_t length, bool paused)
{
    const char *run = of->folder + of->run;
    size_t id = 0;

    while (run > of->folder && (run[-1] != '/' || id++ == 0))
        run--; /* back to "RUN/attempt-1/node-0" */
    id = strcspn(run, "/") + 1;
    return (memmem(text, length, " connect ", 9) != NULL &&
            memmem(text, length, run, strlen(run)) != NULL) ||
           (paused && memmem(text, length, " node ", 6) != NULL &&
            memmem(text, length, run, id) != NULL);
}

/* True for "dtrun-agent connect FOLDER ...", whatever the program is called, and for
 * "dtrun-agent node OPERATION PATH ..." of the run if it is paused. Others end with their
 * connection, and may belong to a running supervisor of another node. */
static bool is_command(const void *context, char state, const char *words, size_t length)
{
    const commands *of = context;
    const char *word = words, *end = words + length;
    size_t count = 0;
    bool connects = false, works = false, paused = dt_proc_is_paused(state);

    if (of->paused_only && !paused)
        return false;
    if (length > strlen(words) + 4 && strcmp(words + strlen(words) + 1, "-c") == 0)
        return is_shell_of(of, words, length, paused);
    for (; word < end; word += strnlen(word, (size_t)(end - word)) + 1, count++) {
        if (count == 1) {
            connects = strcmp(word, "connect") == 0;
            works = strcmp(word, "node") == 0 && paused;
        }
        if (count > 1 && ((connects && strcmp(word, of->folder) == 0) ||
                          (works && strncmp(word, of->folder, of->run) == 0)))
            return true;
    }
    return false;
}

void dt_agent_end_commands(const char *folder, bool paused_only)
{
    char absolute[PATH_MAX];
    const char *end;

    /* the folder is gone: commands name it as the caller does */
    if (realpath(folder, absolute) == NULL)
        snprintf(absolute, sizeof(absolute), "%s", folder);
    end = absolute + strlen(absolute);
    for (int i = 0; i < 2 && end != NULL; i++)
        end = memrchr(absolute, '/', (size_t)(end - absolute));
    if (end == NULL || end == absolute)
        return;
    (void)dt_proc_end_all("cmdline", is_command,
                          &(commands){absolute, (size_t)(end - absolute) + 1, paused_only},
                          COMMANDS_SECONDS);
}
