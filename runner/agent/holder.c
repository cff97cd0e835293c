/* holder: finds the process that holds an agent's lock, so that a hanging agent can be killed.
 *
 * The ranks die with it (spawn.h), and the next agent recovers.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/process.h"

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
