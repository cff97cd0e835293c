/* lifecycle: the Slurm job of a run with nodes such as "slurm:4", from its submission to its end, and the step
 * of its own that an agent needs there.
 *
 * runs/ID/slurm.json, {"job": 12}, exists from the submission to the end of the run, so that later
 * attempts use the same job, and a later supervisor finds it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/process.h"
#include "runner/transport/remote.h"
#include "runner/transport/slurm/slurm.h"
#include "runner/transport/transport.h"

#define JOB_FILE      "slurm.json"
#define LOCK_FILE     "slurm.lock"
#define LOOK_SECONDS  1.0 /* between two queries of a pending job, to spare the controller */
#define FIRST_SECONDS 5.0 /* within this time, a quarter of LOOK_SECONDS */
#define LOCK_SECONDS  60.0
#define NAP_SECONDS   0.1

static dt_status check_cancelled(const atomic_bool *cancelled, dt_error *err)
{
    if (cancelled != NULL && atomic_load(cancelled))
        return DT_FAIL(err, DT_ERR_BUSY, "cancelled");
    return DT_OK;
}

static const char *below(const char *folder, const char *name, dt_arena *arena)
{
    return dt_arena_printf(arena, "%s/%s", folder, name);
}

static dt_status lock(int *fd, const char *folder, dt_arena *arena, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + LOCK_SECONDS;
    dt_error problem = DT_ERROR_INIT;
    const char *path;
    dt_status st;

    path = below(folder, LOCK_FILE, arena);
    while ((st = dt_file_lock(fd, path, &problem)) == DT_ERR_BUSY &&
           dt_clock_monotonic_seconds() < deadline) {
        dt_clock_sleep_seconds(NAP_SECONDS);
        dt_error_clear(&problem);
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    return st;
}

/* Reads slurm.json. *job 0: no job was submitted. */
static dt_status read_job(int64_t *job, const char *folder, dt_arena *arena, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *json = NULL;
    const char *path;
    dt_status st;

    *job = 0;
    path = below(folder, JOB_FILE, arena);
    st = dt_json_read(&json, path, 4096, &problem);
    if (st == DT_OK)
        st = dt_json_get_int(job, json, "job", path, &problem);
    json_decref(json);
    if (st != DT_OK && st != DT_ERR_NOT_FOUND)
        DT_THROW(err, st, "%s", problem.message);
    st = DT_OK;
out:
    return st;
}

static dt_status write_job(int64_t job, const char *folder, dt_arena *arena, dt_error *err)
{
    const char *path;
    dt_status st;
    char text[64];

    path = below(folder, JOB_FILE, arena);
    snprintf(text, sizeof(text), "{\"job\": %lld}\n", (long long)job);
    DT_TRY(dt_file_write_atomic(path, text, strlen(text), 0600, err));
out:
    return st;
}

/* Returns the run's job, and submits it if there is none yet. */
static dt_status have_job(int64_t *job, int64_t nodes, const dt_place_request *request,
                          dt_arena *arena, dt_error *err)
{
    const char *folder = request->run_folder;
    dt_place_wish wish = *request->wish;
    dt_status st;
    int fd = -1;

    DT_TRY(lock(&fd, folder, arena, err));
    DT_TRY(check_cancelled(request->cancelled, err)); /* the run may have ended */
    DT_TRY(read_job(job, folder, arena, err));
    if (*job != 0)
        goto out;
    wish.nodes = nodes;
    DT_TRY(dt_slurm_job_submit(job, &wish, false, err));
    st = write_job(*job, folder, arena, err);
    if (st != DT_OK)
        (void)dt_slurm_job_end(*job, false,
                               NULL); /* without the record the job could not be found again */
out:
    if (fd >= 0)
        close(fd);
    return st;
}

/* Waits until the job runs. Repeats the query if the controller does not answer: it could be restarting. */
static dt_status await_job(dt_slurm_job *out, int64_t job, bool tells,
                           const dt_place_request *request, dt_error *err)
{
    double start = dt_clock_monotonic_seconds(), next;
    char told[512] = "";
    dt_status st = DT_OK;
    dt_strbuf words;

    dt_strbuf_init(&words);
    for (;;) {
        dt_error problem = DT_ERROR_INIT;

        st = dt_slurm_job_look(out, job, &problem);
        if (st == DT_ERR_UNSUPPORTED)
            DT_THROW(err, st, "%s", problem.message);
        dt_strbuf_reset(&words);
        if (st == DT_OK && out->phase == DT_SLURM_RUNS)
            break;
        if (st == DT_OK)
            dt_slurm_job_words(&words, out);
        else
            dt_strbuf_add_str(&words, problem.message);
        if (st == DT_OK && out->phase == DT_SLURM_ENDED)
            DT_THROW(err, DT_ERR_UNSUPPORTED, "%s: 'dtrun resume %s' submits another", words.data,
                     request->run);
        if (tells && request->progress != NULL && strcmp(told, words.data) != 0) {
            snprintf(told, sizeof(told), "%s", words.data);
            request->progress(request->context, told);
        }
        next = dt_clock_monotonic_seconds();
        next += next - start < FIRST_SECONDS ? LOOK_SECONDS / 4 : LOOK_SECONDS;
        while (dt_clock_monotonic_seconds() < next) {
            DT_TRY(check_cancelled(request->cancelled, err));
            dt_clock_sleep_seconds(NAP_SECONDS);
        }
    }
out:
    dt_strbuf_release(&words);
    return st;
}

dt_status dt_slurm_place(const char **node, const dt_place_request *request, dt_arena *arena,
                         dt_error *err)
{
    int64_t count, index, job, hosts_count;
    dt_slurm_job now;
    const char **hosts;
    dt_status st;

    *node = request->node;
    if (!dt_slurm_name_is_place(request->node, &count, &index))
        return DT_OK;
    DT_TRY(have_job(&job, count, request, arena, err));
    DT_TRY(await_job(&now, job, index == 0, request, err));
    DT_TRY(dt_slurm_hosts(&hosts, &hosts_count, now.nodes, arena, err));
    if (index >= hosts_count)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "Slurm job %lld has %lld nodes, but %lld were requested",
                 (long long)job, (long long)hosts_count, (long long)count);
    *node = dt_arena_printf(arena, "slurm:%lld/%s", (long long)job, hosts[index]);
out:
    return st;
}

void dt_slurm_remove(const char *folder, bool good)
{
    dt_error err = DT_ERROR_INIT;
    const char *path;
    dt_arena arena;
    int64_t job = 0;
    dt_status st = DT_OK;
    int fd = -1;

    dt_arena_init(&arena, 1024);
    path = below(folder, LOCK_FILE, &arena);
    if (!dt_file_exists(path))
        goto out; /* not a node of a Slurm job */
    DT_TRY(lock(&fd, folder, &arena, &err));
    DT_TRY(read_job(&job, folder, &arena, &err));
    if (job == 0)
        goto out;
    DT_TRY(dt_slurm_job_end(job, good, &err));
    path = below(folder, JOB_FILE, &arena);
    unlink(path);
out:
    if (st != DT_OK)
        dt_log_error("Slurm job %lld may still hold its nodes ('scancel %lld' ends it): %s",
                     (long long)job, (long long)job, err.message);
    if (fd >= 0)
        close(fd);
    dt_arena_release(&arena);
}

/* --- the start of an agent that outlives the connection to its node. Slurm ends the processes that a step
 * leaves running, so the agent gets a step of its own, whose srun is detached from the supervisor. */

#define START_SECONDS 10.0 /* for setsid to start the step */
#define READY_SECONDS 30.0
#define LOG_BYTES     ((size_t)65536)

/* Waits up to 15 s for the agent's socket in its folder $1. */
static const char await_script[] = "i=0\n"
                                   "until [ -S \"$1/agent.sock\" ]; do\n"
                                   "    [ $((i += 1)) -le 150 ] || exit 1\n"
                                   "    sleep 0.1\n"
                                   "done";

/* Starts the step detached: setsid --fork exits at once, so that srun has no parent that could end
 * it. */
static dt_status start_apart(const char *const *argv, const char *log, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    dt_child child = {0};
    dt_status st = DT_OK;
    int code = 0, fd;

    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open '%s': %s", log, strerror(errno));
    DT_TRY(dt_child_start(&child, &(dt_child_spec){.argv = argv, .out = fd, .errors = fd}, err));
    if (!dt_child_wait(&child, &code, START_SECONDS))
        DT_THROW(err, DT_ERR_TIMEOUT, "'%s' did not end within %.0f s", argv[0], START_SECONDS);
    if (code != 0)
        DT_THROW(err, DT_ERR_IO, "'%s' %s", argv[0], dt_exit_words(end, code));
out:
    if (st != DT_OK) /* else the step is still in the group, for a moment */
        dt_child_end(&child);
    close(fd);
    return st;
}

/* Returns the argv of the step, with `setsid --fork` in front. */
static dt_status step_argv(const char ***argv, const dt_start_request *request, dt_arena *arena,
                           dt_error *err)
{
    const char *const words[] = {request->agent, "serve", request->folder, NULL};
    dt_status st = DT_OK;
    const char **inner;
    size_t count = 0;

    DT_TRY(dt_transport_slurm.command(&inner, request->node, words, arena, err));
    while (inner[count] != NULL)
        count++;
    *argv = dt_arena_alloc_array(arena, count + 3, sizeof((*argv)[0]));
    (*argv)[0] = "setsid";
    (*argv)[1] = "--fork";
    memcpy(*argv + 2, inner, (count + 1) * sizeof(inner[0]));
out:
    return st;
}

/* Appends what a step that failed to start has written to its log, as one line. */
static void add_log(dt_strbuf *out, const char *log)
{
    if (dt_file_read(out, log, LOG_BYTES, NULL) != DT_OK)
        return;
    while (out->length > 0 && (unsigned char)out->data[out->length - 1] <= ' ')
        out->data[--out->length] = '\0';
    for (size_t i = 0; i < out->length; i++)
        if ((unsigned char)out->data[i] < ' ')
            out->data[i] = ' ';
}

dt_status dt_slurm_start(const dt_start_request *request, dt_arena *arena, dt_error *err)
{
    const char *const await[] = {"/bin/sh", "-c", await_script, "sh", request->folder, NULL};
    const char *log = dt_arena_printf(arena, "%s/step.log", request->here), **argv;
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf answer;
    dt_status st;
    int code = 0;

    dt_strbuf_init(&answer);
    DT_TRY(dt_file_make_dirs(request->here, 0700, err));
    DT_TRY(step_argv(&argv, request, arena, err));
    DT_TRY(start_apart(argv, log, err));
    DT_TRY(dt_remote_ask(&answer, request->node, await, NULL, 0, LOG_BYTES, READY_SECONDS, &code,
                         &problem, request->cancelled, err));
    if (code == 0)
        goto out;
    dt_strbuf_reset(&answer);
    add_log(&answer, log);
    DT_THROW(err, DT_ERR_PEER, "node '%s': cannot start its agent: %.600s", request->node,
             answer.length > 0 ? answer.data : problem.message);
out:
    dt_strbuf_release(&answer);
    return st;
}
