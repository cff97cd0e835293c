/* direct: ends a run on this node without a supervisor.
 *
 *   stop      asks the agent in DIR by a signal; if the agent does not end its ranks in time, or there is none,
 *             does the same as `end`. Reports whether the agent itself stays: a supervisor uses it, or its journal
 *             cannot be written
 *   end       kills the agent and runs one that serves nobody; if DIR cannot be used (it is missing, or the disk
 *             is full or read-only), kills all processes with its mark
 *   running   lists the runs that have processes here
 *
 * Processes are found in /proc by their environment, DTRUN_NODE_DIR=DIR and DTRUN_RUN_ID, as far as this user may
 * read it; so the proof that nothing is left needs no file.
 */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/process.h"
#include "runner/channel/protocol.h"
#include "runner/times.h"

#define KILL_SECONDS      10.0
#define LOOK_SECONDS      0.05
#define PLAN_BYTES        ((size_t)16 << 20)
#define ENVIRONMENT_BYTES ((size_t)4 << 20)

static dt_status find(dt_process **found, size_t *count, const char *folder, dt_error *err)
{
    dt_strbuf mark;
    dt_status st;

    dt_strbuf_init(&mark);
    dt_strbuf_add_fmt(&mark, "DTRUN_NODE_DIR=%s", folder);
    st = dt_process_find(found, count, getpid(), mark.data, NULL, err);
    dt_strbuf_release(&mark);
    return st;
}

dt_status dt_agent_end_marked(const char *folder, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + KILL_SECONDS;
    dt_process *found = NULL;
    dt_status st = DT_OK;
    size_t count = 1;

    while (count > 0) {
        DT_TRY(find(&found, &count, folder, err));
        for (size_t i = 0; i < count; i++)
            dt_process_signal(found[i].pid, found[i].start_ticks, SIGKILL);
        if (count > 0 && dt_clock_monotonic_seconds() > deadline)
            DT_THROW(err, DT_ERR_TIMEOUT, "cannot kill %zu processes, among them %d (%s)", count,
                     (int)found[0].pid, found[0].command);
        free(found);
        found = NULL;
        if (count > 0)
            dt_clock_sleep_seconds(LOOK_SECONDS);
    }
out:
    free(found);
    return st;
}

dt_status dt_agent_end(const char *folder, bool asked, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_agent_folder_check(folder, &problem);

    dt_agent_end_commands(folder, false);
    if (st == DT_OK)
        st = dt_agent_holder_kill(folder, &problem);
    if (st == DT_OK)
        st = dt_agent_serve_end(folder, asked, &problem);
    if (st == DT_OK)
        return DT_OK;
    dt_log_warn("%s: ending its processes without the agent", problem.message);
    return dt_agent_end_marked(folder, err);
}

/* --- stop */

static double grace_of(const char *folder)
{
    const json_t *grace;
    json_t *plan = NULL;
    double seconds = dt_times()->default_grace_seconds;
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/plan.json", folder);
    if (dt_json_read(&plan, path.data, PLAN_BYTES, NULL) == DT_OK) {
        grace = json_object_get(json_object_get(plan, "recipe"), "grace_seconds");
        if (json_is_number(grace) && json_number_value(grace) >= 0)
            seconds = json_number_value(grace);
    }
    json_decref(plan);
    dt_strbuf_release(&path);
    return seconds;
}

dt_status dt_agent_stop(const char *folder, bool now, dt_error *err)
{
    double grace = now ? 0 : grace_of(folder);
    double deadline = dt_clock_monotonic_seconds() + grace + dt_times()->direct_stop_seconds;
    bool asked = !(now && dt_agent_holder_is_paused(folder)) &&
                 dt_agent_holder_ask(folder, now ? SIGUSR2 : SIGUSR1);
    dt_process *found = NULL;
    dt_status st = DT_OK;
    size_t count = 1;

    while (asked && count > 0 && dt_clock_monotonic_seconds() < deadline) {
        DT_TRY(find(&found, &count, folder, err));
        free(found);
        found = NULL;
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    /* an agent that ended its ranks keeps running: its journal is needed */
    if (!asked || count > 0) {
        DT_TRY(dt_agent_end(folder, true, err));
        goto out;
    }
    deadline = dt_clock_monotonic_seconds() + dt_times()->direct_leave_seconds;
    while (!now && dt_agent_holder_is_here(folder) && dt_clock_monotonic_seconds() < deadline)
        dt_clock_sleep_seconds(LOOK_SECONDS);
    /* with --now the caller uses `end` next if the agent must go */
    if (!now && dt_agent_holder_is_here(folder))
        st = dt_file_write_all(STDOUT_FILENO, DT_PROTOCOL_AGENT_STAYS,
                               strlen(DT_PROTOCOL_AGENT_STAYS), err);
out:
    free(found);
    return st;
}

/* --- running */

static const char *variable(const dt_strbuf *environment, const char *name)
{
    const char *at = environment->data, *end = environment->data + environment->length;
    size_t length = strlen(name);

    for (; at < end; at += strnlen(at, (size_t)(end - at)) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static void add(json_t *runs, const dt_strbuf *environment, pid_t pid)
{
    const char *folder = variable(environment, "DTRUN_NODE_DIR");
    const char *run = variable(environment, "DTRUN_RUN_ID");
    const char *attempt = variable(environment, "DTRUN_ATTEMPT");
    json_t *entry;

    if (folder == NULL || run == NULL)
        return;
    entry = json_object_get(runs, folder);
    if (entry == NULL) {
        entry = json_pack("{s:o, s:o, s:o, s:[]}", "run", dt_json_text(run), "attempt",
                          dt_json_text(attempt != NULL ? attempt : ""), "folder",
                          dt_json_text(folder), "pids");
        json_object_set_new(runs, folder, entry);
    }
    json_array_append_new(json_object_get(entry, "pids"), json_integer(pid));
}

dt_status dt_agent_list_running(json_t **runs, dt_error *err)
{
    DIR *dir = opendir("/proc");
    struct dirent *each;
    dt_strbuf text;

    *runs = json_object();
    if (dir == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc");
    dt_strbuf_init(&text);
    while ((each = readdir(dir)) != NULL) {
        char path[64];
        dt_process process;

        if (!isdigit((unsigned char)each->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%.20s/environ", each->d_name);
        if (dt_file_read(&text, path, ENVIRONMENT_BYTES, NULL) == DT_OK &&
            dt_process_read(&process, (pid_t)strtol(each->d_name, NULL, 10)) &&
            process.state != 'Z')
            add(*runs, &text, process.pid);
    }
    closedir(dir);
    dt_strbuf_release(&text);
    return DT_OK;
}

dt_status dt_agent_running(dt_error *err)
{
    json_t *runs, *entry;
    const char *folder;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    DT_TRY(dt_agent_list_running(&runs, err));
    json_object_foreach(runs, folder, entry) {
        dt_json_write(&line, entry);
        dt_strbuf_add_char(&line, '\n');
    }
    st = dt_file_write_all(STDOUT_FILENO, line.data, line.length, err);
out:
    json_decref(runs);
    dt_strbuf_release(&line);
    return st;
}
