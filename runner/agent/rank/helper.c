/* helper: runs another program and takes its answer; asks nvidia-smi for the GPUs' memory before the ranks
 * start and after they have ended. */
#include "base/names.h"
#include "runner/agent/agent_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/agent/process/process.h"
#include "runner/agent/process/spawn.h"
#include "runner/agent/rank/output.h"
#include "runner/times.h"

#define ANSWER_BYTES ((size_t)128 << 10)
#define USUAL_PATH   "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

struct dt_helper {
    uv_timer_t deadline;
    dt_stream *out, *err;
    pid_t pid;
    int64_t start_ticks;
    double timeout_seconds;
    dt_strbuf text;
    dt_helper_line_fn *line; /* NULL: the whole text is the answer */
    dt_helper_fn *done;
    void *context;
};

static bool find_program(dt_strbuf *out, const char *name)
{
    const char *path = getenv("PATH");

    path = path != NULL && path[0] != '\0' ? path : USUAL_PATH;
    for (const char *at = path, *end; *at != '\0'; at = *end != '\0' ? end + 1 : end) {
        end = strchrnul(at, ':');
        dt_strbuf_reset(out);
        dt_strbuf_add(out, at, (size_t)(end - at));
        dt_strbuf_add_fmt(out, "/%s", name);
        if (at[0] == '/' && access(out->data, X_OK) == 0)
            return true;
    }
    return false;
}

static void on_closed(uv_handle_t *handle)
{
    dt_helper *helper = handle->data;

    dt_strbuf_release(&helper->text);
    free(helper);
}

/* The agent reaps all its children, so the process may be gone and its pid reused. */
void dt_helper_cancel(dt_helper *helper)
{
    if (helper == NULL)
        return;
    dt_process_signal(helper->pid, helper->start_ticks, SIGKILL);
    dt_stream_close(helper->out);
    dt_stream_close(helper->err);
    uv_close((uv_handle_t *)&helper->deadline, on_closed);
}

static void finish(dt_helper *helper, const char *problem)
{
    helper->done(helper->context, helper->text.data, problem);
    dt_helper_cancel(helper);
}

static void on_deadline(uv_timer_t *timer)
{
    dt_helper *helper = timer->data;
    char problem[64];

    snprintf(problem, sizeof(problem), "it took longer than %g s", helper->timeout_seconds);
    finish(helper, problem);
}

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    dt_helper *helper = context;

    if (helper->text.length + length > ANSWER_BYTES)
        return;
    dt_text_clean(&helper->text, text, length, cut);
    if (helper->line == NULL) {
        dt_strbuf_add_char(&helper->text, '\n');
        return;
    }
    helper->line(helper->context, helper->text.data);
    dt_strbuf_reset(&helper->text);
}

static void on_out_end(void *context, const char *why)
{
    finish(context, NULL);
}

static void on_err_end(void *context, const char *why)
{
    dt_helper *helper = context;

    dt_stream_close(helper->err);
    helper->err = NULL;
}

static dt_status follow(dt_helper *helper, dt_agent *agent, const dt_spawned *spawned,
                        dt_error *err)
{
    static const dt_stream_calls out_calls = {.line = on_line, .ended = on_out_end};
    static const dt_stream_calls err_calls = {.line = on_line, .ended = on_err_end};
    dt_status first, st;

    close(spawned->channel);
    /* Each call takes its descriptor, even if the one before failed. */
    first = dt_stream_open(&helper->err, &agent->loop, spawned->err, DT_AGENT_LOG_LINE_BYTES,
                           &err_calls, helper, err);
    st = dt_stream_open(&helper->out, &agent->loop, spawned->out, DT_AGENT_LOG_LINE_BYTES,
                        &out_calls, helper, err);
    return first != DT_OK ? first : st;
}

static dt_status helper_start(dt_helper **out, dt_agent *agent, const char *const *argv,
                              double timeout_seconds, dt_helper_line_fn *line, dt_helper_fn *done,
                              void *context, dt_error *err)
{
    const char *words[16] = {NULL};
    dt_environment environment = {0};
    dt_helper *helper = NULL;
    dt_status st = DT_OK;
    dt_process process;
    dt_spawned spawned;
    dt_strbuf program;

    *out = NULL;
    dt_strbuf_init(&program);
    if (!find_program(&program, argv[0]))
        DT_THROW(err, DT_ERR_NOT_FOUND, "this node has no %s", argv[0]);
    words[0] = program.data;
    for (size_t i = 1; argv[i] != NULL; i++) {
        DT_ASSERT(i + 1 < sizeof(words) / sizeof(words[0]));
        words[i] = argv[i];
    }
    helper = dt_calloc(1, sizeof(*helper));
    dt_environment_init(&environment);
    dt_environment_set(&environment, "LC_ALL", "C");
    dt_environment_set(&environment, "DEBUGINFOD_URLS",
                       ""); /* a stack trace must not wait for a debug info server */
    DT_TRY(dt_spawn(&spawned, (char *const *)words, environment.items,
                    &(dt_spawn_place){.cgroup_procs = -1, .mask = agent->ranks_mask}, err));
    helper->pid = spawned.pid;
    helper->start_ticks = dt_process_read(&process, spawned.pid) ? process.start_ticks : 0;
    helper->timeout_seconds = timeout_seconds;
    helper->line = line;
    helper->done = done;
    helper->context = context;
    dt_strbuf_init(&helper->text);
    uv_timer_init(&agent->loop, &helper->deadline);
    helper->deadline.data = helper;
    if (line == NULL)
        uv_timer_start(&helper->deadline, on_deadline, (uint64_t)(timeout_seconds * 1e3), 0);
    st = follow(helper, agent, &spawned, err);
    if (st == DT_OK)
        *out = helper;
    else
        dt_helper_cancel(helper);
    helper = NULL;
out:
    free(helper);
    dt_environment_release(&environment);
    dt_strbuf_release(&program);
    return st;
}

dt_status dt_helper_start(dt_helper **out, dt_agent *agent, const char *const *argv,
                          double timeout_seconds, dt_helper_fn *done, void *context, dt_error *err)
{
    return helper_start(out, agent, argv, timeout_seconds, NULL, done, context, err);
}

dt_status dt_helper_follow(dt_helper **out, dt_agent *agent, const char *const *argv,
                           dt_helper_line_fn *line, dt_helper_fn *done, void *context,
                           dt_error *err)
{
    return helper_start(out, agent, argv, 0, line, done, context, err);
}

/* memory: queries the GPUs' memory use before the ranks start, and delays `released` until they use no more than
 * that. devices.c parses the output.
 *
 * A query takes at most 10 s, the check after the end at most 20 s. If there is no nvidia-smi, or it does not
 * answer, the run continues, and `released` says why the memory was not verified.
 */

#define QUESTION_SECONDS 10.0
#define AGAIN_MS         250

static bool uses_devices(const dt_agent *agent)
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (dt_device_gpu(agent->ranks[i].device) >= 0)
            return true;
    return false;
}

/* Keeps only the GPUs that the ranks use: another run may use other GPUs at the same time. */
static void keep_used(dt_agent *agent)
{
    bool used[DT_DEVICES_MAX] = {false};

    for (int64_t i = 0; i < agent->rank_count; i++) {
        const dt_agent_rank *rank = &agent->ranks[i];
        int first = dt_device_gpu(rank->device);

        for (int64_t j = 0; j < rank->replicas && first >= 0 && first + j < DT_DEVICES_MAX; j++)
            used[first + j] = true;
    }
    dt_devices_keep_used(&agent->devices, used);
}

static void give_up(dt_agent *agent, const char *why)
{
    agent->devices.count = 0;
    free(agent->devices_note);
    agent->devices_note = dt_strdup(why);
}

/* --- before */

static void on_baseline(void *context, const char *text, const char *problem)
{
    dt_agent *agent = context;
    dt_error err = DT_ERROR_INIT;

    agent->question = NULL;
    if (problem != NULL)
        DT_FAIL(&err, DT_ERR_TIMEOUT, "nvidia-smi: %s", problem);
    else
        dt_devices_parse(&agent->devices, text, &err);
    if (err.code != DT_OK)
        give_up(agent, err.message);
    dt_devices_keep_visible(&agent->devices, agent->devices_visible);
    dt_agent_claims_name(agent);
    keep_used(agent);
    agent->memory_known(agent);
}

void dt_agent_memory_before(dt_agent *agent, void (*known)(dt_agent *agent))
{
    dt_error err = DT_ERROR_INIT;

    agent->memory_known = known;
    if (!uses_devices(agent)) {
        give_up(agent, "no rank of this node uses a GPU");
        agent->memory_known(agent);
    } else if (dt_helper_start(&agent->question, agent, dt_devices_question, QUESTION_SECONDS,
                               on_baseline, agent, &err) != DT_OK) {
        give_up(agent, err.message);
        agent->memory_known(agent);
    }
}

/* --- after */

static void ask_again(uv_timer_t *timer);

static void on_used(void *context, const char *text, const char *problem)
{
    dt_agent *agent = context;
    dt_error err = DT_ERROR_INIT;
    dt_devices now;

    agent->question = NULL;
    if (problem != NULL)
        DT_FAIL(&err, DT_ERR_TIMEOUT, "nvidia-smi: %s", problem);
    else if (dt_devices_parse(&now, text, &err) == DT_OK)
        dt_devices_update(&agent->devices, &now);
    if (err.code != DT_OK)
        give_up(agent, err.message);
    if (dt_devices_are_free(&agent->devices) ||
        dt_clock_monotonic_seconds() >= agent->proof_deadline_seconds)
        agent->memory_known(agent);
    else
        uv_timer_start(&agent->proof_timer, ask_again, AGAIN_MS, 0);
}

static void ask_again(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    dt_error err = DT_ERROR_INIT;

    if (dt_helper_start(&agent->question, agent, dt_devices_question, QUESTION_SECONDS, on_used,
                        agent, &err) == DT_OK)
        return;
    give_up(agent, err.message);
    agent->memory_known(agent);
}

void dt_agent_memory_after(dt_agent *agent, void (*known)(dt_agent *agent))
{
    agent->memory_known = known;
    if (agent->devices.count == 0) {
        agent->memory_known(agent);
        return;
    }
    agent->proof_deadline_seconds = dt_clock_monotonic_seconds() + dt_times()->gpu_proof_seconds;
    ask_again(&agent->proof_timer);
}
