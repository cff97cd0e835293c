/* program: runs the programs of a machine, and lets one start another; replaces channel/detach.c
 * and dt_agent_run_in_child of the agent's process.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/wait.h>

#include "base/file.h"
#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"
#include "runner/channel/detach.h"
#include "runner/supervisor/supervisor.h"
#include "tests/sim/sim.h"

/* --- programs */

static int report(sim_proc *proc, dt_status st, const dt_error *err)
{
    if (st == DT_OK)
        return 0;
    sim_trace("%s", err->message);
    (void)dt_file_write_all(STDERR_FILENO, err->message, strlen(err->message), NULL);
    (void)dt_file_write_all(STDERR_FILENO, "\n", 1, NULL);
    return 3;
}

int sim_program_supervise(sim_proc *proc)
{
    dt_error err = DT_ERROR_INIT;

    return report(proc, dt_supervisor_main(proc->argv[2], &err), &err);
}

/* As in runner/agent/main.c. */
int sim_program_agent(sim_proc *proc)
{
    const char *const *argv = proc->argv;
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    if (strcmp(argv[1], "serve") == 0)
        st = dt_agent_serve(argv[2], &err);
    else if (strcmp(argv[1], "end") == 0)
        st = dt_agent_end(argv[2], false, &err);
    else if (strcmp(argv[1], "connect") == 0)
        st = dt_agent_connect(argv[2], argv[3] != NULL, argv[3] != NULL && argv[4] != NULL, &err);
    else
        st = DT_FAIL(&err, DT_ERR_USAGE, "unknown words");
    return report(proc, st, &err);
}

/* --- detach.h */

static const char *const *copy(const char *const *argv)
{
    const char **words = sim_alloc(8 * sizeof(words[0]));

    for (int i = 0; argv[i] != NULL; i++) {
        DT_ASSERT(i < 7);
        words[i] = sim_print("%s", argv[i]);
    }
    return words;
}

int dt_detach_claim(void)
{
    return sim_self()->ready_fd;
}

void dt_detach_last_words(dt_strbuf *out, const char *log_path, int64_t from)
{
    (void)out, (void)log_path, (void)from;
}

void dt_detach_ready(int *ready, dt_status st, const dt_error *err)
{
    char text[1024];

    if (*ready < 0)
        return;
    snprintf(text, sizeof(text), "%d %.900s", (int)st, st == DT_OK ? "" : err->message);
    (void)dt_file_write_all(*ready, text, strlen(text), NULL);
    close(*ready);
    *ready = -1;
}

/* Waits until the process has reported its status, or has ended. */
static dt_status wait_for_report(sim_end *end, const char *what, double seconds, dt_error *err)
{
    int64_t until = sim_now_ns + (int64_t)(seconds * 1e9);
    char text[1024], *rest;
    long code;

    end->reader = sim_running;
    while (!end->eof && sim_now_ns < until)
        sim_wait(until);
    end->reader = NULL;
    if (!end->eof)
        return DT_FAIL(err, DT_ERR_TIMEOUT, "'%s' was not ready within %.0f s", what, seconds);
    text[sim_end_read(end, text, sizeof(text) - 1)] = '\0';
    code = strtol(text, &rest, 10);
    if (rest == text)
        return DT_FAIL(err, DT_ERR_IO, "'%s' ended before it was ready", what);
    return code == DT_OK ? DT_OK : DT_FAIL(err, (dt_status)code, "%s", rest + (*rest == ' '));
}

dt_status dt_detach_start(const char *const *argv, const char *log_path,
                          const dt_detach_place *place, double timeout_seconds, dt_error *err)
{
    bool agent = strcmp(argv[0], "dtrun-agent") == 0;
    sim_proc *self = sim_self(), *started;
    sim_end *ends[2];
    dt_status st;

    sim_pair(ends);
    started = sim_proc_start(self->machine, NULL, agent ? "agent" : "supervisor",
                             agent ? sim_program_agent : sim_program_supervise, copy(argv));
    memcpy(started->cwd, self->cwd, sizeof(self->cwd));
    started->ready_fd = sim_fd_new(started, SIM_FD_END);
    started->fds[started->ready_fd].end = ends[1];
    st = wait_for_report(ends[0], argv[1], timeout_seconds, err);
    sim_end_release(ends[0]);
    return st;
}

/* --- dt_agent_run_in_child */

typedef struct errand {
    dt_child_fn *work;
    const char *folder;
} errand;

static int run_errand(sim_proc *proc)
{
    const errand *one = (const errand *)(const void *)proc->argv;

    one->work(one->folder);
    return 0;
}

bool dt_agent_run_in_child(dt_child_fn *work, const char *folder)
{
    errand *one = sim_alloc(sizeof(*one));
    sim_proc *child;

    one->work = work;
    one->folder = sim_print("%s", folder);
    child = sim_proc_start(sim_self()->machine, sim_self(), "apart", run_errand,
                           (const char *const *)(const void *)one);
    while (!child->over)
        sim_wait(sim_now_ns + 10 * SIM_MS);
    child->buried = true;
    return WIFEXITED(child->wait_status);
}
