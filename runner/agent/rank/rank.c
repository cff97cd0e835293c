/* rank: turns the lines, the output and the death of a rank into events, and does what a program needs from
 * time to time. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/rank/output.h"
#include "runner/channel/protocol.h"

#define DRAIN_BYTES  ((size_t)4 << 20)
#define BEFORE_BYTES ((size_t)256 << 10) /* of stdout that are read before stderr */
#define SHOW_MS      1000 /* between two states of a progress bar; and for an incomplete line */

/* --- a look at the files of a program, in a thread, since a file system can hang */

static void on_thread(uv_work_t *work)
{
    dt_agent_rank *rank = work->data;

    dt_program_look(rank->program);
}

static void on_looked(uv_work_t *work, int unused)
{
    dt_agent_rank *rank = work->data;

    rank->look.running = false;
    if (rank->look_given_up)
        return;
    dt_program_looked(rank->program);
    rank->look.next_seconds =
        dt_clock_monotonic_seconds() + 1e-3 * (double)dt_program_look_ms(rank->program);
    rank->look.done(rank);
    dt_agent_programs_plan(rank->agent);
}

void dt_agent_look(dt_agent_rank *rank, void (*done)(dt_agent_rank *rank))
{
    rank->look.done = done;
    rank->look.work.data = rank;
    rank->look.running =
        uv_queue_work(&rank->agent->loop, &rank->look.work, on_thread, on_looked) == 0;
}

static void on_usual_look(dt_agent_rank *rank) {}

/* --- the timer of programs: their time limits, and when a look is due */

/* Returns the milliseconds until a look is due; -1: none is. */
static int64_t look_in_ms(const dt_agent_rank *rank)
{
    double left = rank->look.next_seconds - dt_clock_monotonic_seconds();

    if (rank->look.running || rank->look.next_seconds == 0 ||
        dt_program_look_ms(rank->program) == 0)
        return -1;
    return left > 0 ? (int64_t)(1e3 * left) + 1 : 0;
}

static void on_timer(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (rank->program == NULL || !rank->running)
            continue;
        dt_program_tick(rank->program);
        if (look_in_ms(rank) == 0)
            dt_agent_look(rank, on_usual_look);
    }
    dt_agent_programs_plan(agent);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

void dt_agent_programs_plan(dt_agent *agent)
{
    int64_t next_ms = -1;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (rank->program != NULL && rank->running)
            next_ms = sooner(sooner(next_ms, dt_program_tick_ms(rank->program)), look_in_ms(rank));
    }
    if (next_ms < 0)
        uv_timer_stop(&agent->program_timer);
    else
        uv_timer_start(&agent->program_timer, on_timer, (uint64_t)next_ms, 0);
}

/* --- output */

static void on_output_line(void *context, const char *text, size_t length, bool cut)
{
    dt_agent_output *output = context;
    dt_strbuf clean;

    dt_strbuf_init(&clean);
    dt_text_clean(&clean, text, length, cut);
    dt_agent_rank_log(output->rank, output->name, clean.data);
    dt_strbuf_release(&clean);
}

static void on_output_end(void *context, const char *why)
{
    dt_agent_output *output = context;

    dt_stream_close(output->stream);
    output->stream = NULL;
}

/* Delivers incomplete lines that nothing has followed, such as a prompt, or the last words before a hang. */
static void on_output_timer(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    bool left = false;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        left = (rank->out.stream != NULL && dt_stream_show(rank->out.stream)) || left;
        left = (rank->err.stream != NULL && dt_stream_show(rank->err.stream)) || left;
    }
    if (!left)
        uv_timer_stop(timer);
}

static void on_output(void *context)
{
    dt_agent_output *output = context;
    uv_timer_t *timer = &output->rank->agent->output_timer;

    output->rank->heartbeat.output++;
    if (!uv_is_active((uv_handle_t *)timer))
        uv_timer_start(timer, on_output_timer, SHOW_MS, SHOW_MS / 4);
}

/* --- a program */

static void on_program_output(void *context, const char *bytes, size_t length)
{
    dt_agent_output *output = context;
    dt_agent_rank *rank = output->rank;

    if (rank->program == NULL)
        return;
    if (output == &rank->err && rank->out.stream != NULL)
        dt_stream_drain(rank->out.stream, BEFORE_BYTES); /* was written before */
    if (output == &rank->err)
        dt_program_read_errors(rank->program, bytes, length);
    else
        dt_program_read(rank->program, bytes, length);
    dt_agent_programs_plan(rank->agent);
}

static void on_child_line(void *context, const char *text, size_t length, bool cut)
{
    dt_agent_rank *rank = context;
    dt_strbuf line;

    dt_strbuf_init(&line);
    dt_strbuf_add(&line, text, length);
    dt_program_take_line(rank->program, line.data);
    dt_strbuf_release(&line);
}

static void on_child_end(void *context, const char *why)
{
    dt_agent_rank *rank = context;

    dt_stream_close(rank->child);
    rank->child = NULL;
    dt_program_executed(rank->program);
    dt_agent_programs_plan(rank->agent);
}

/* --- the channel of an engine */

/* False for a failure that a peer's death caused: that is not the first cause. */
static bool is_own_failure(const json_t *failed)
{
    const char *status = json_string_value(json_object_get(failed, "status"));

    return strcmp(status, "peer") != 0 && strcmp(status, "comm") != 0;
}

static void refuse_line(dt_agent_rank *rank, const char *text, size_t length, const char *why)
{
    dt_strbuf note;

    dt_strbuf_init(&note);
    dt_strbuf_add_fmt(&note, "warning: cannot parse a line on the event channel (%s): ", why);
    dt_text_clean(&note, text, length < 200 ? length : 200, length > 200);
    dt_agent_rank_log(rank, "agent", note.data);
    dt_strbuf_release(&note);
}

static void on_channel_line(void *context, const char *text, size_t length, bool cut)
{
    dt_agent_rank *rank = context;
    dt_error err = DT_ERROR_INIT;
    const char *kind;
    json_t *event;

    if (cut) {
        refuse_line(rank, text, length, "longer than 1 MiB");
        return;
    }
    if (dt_agent_event_parse(&event, &kind, text, length, &err) != DT_OK) {
        refuse_line(rank, text, length, err.message);
        return;
    }
    if (strcmp(kind, "rendezvous") == 0) {
        dt_agent_rendezvous_offer(rank, json_string_value(json_object_get(event, "name")),
                                  json_string_value(json_object_get(event, "value")));
        json_decref(event);
        return;
    }
    if (strcmp(kind, "where") == 0) {
        dt_agent_heartbeat_answer(rank, event);
        dt_agent_diagnosis_where(rank, event);
        json_decref(event);
        return;
    }
    if (strcmp(kind, "failed") == 0)
        rank->failed_first = is_own_failure(event);
    json_object_set_new(event, "rank", json_integer(rank->rank));
    dt_journal_add(&rank->agent->journal, event);
}

static void on_channel_end(void *context, const char *why)
{
    dt_agent_rank *rank = context;

    dt_stream_close(rank->channel);
    rank->channel = NULL;
}

static dt_status follow_output(dt_agent_rank *rank, int out, int err_fd, dt_error *err)
{
    static const dt_stream_calls calls = {.line = on_output_line,
                                          .bytes = on_program_output,
                                          .batch = on_output,
                                          .ended = on_output_end};
    uv_loop_t *loop = &rank->agent->loop;
    dt_status st, first;

    rank->out = (dt_agent_output){rank, NULL, "stdout"};
    rank->err = (dt_agent_output){rank, NULL, "stderr"};
    first = dt_stream_open(&rank->out.stream, loop, out, DT_AGENT_LOG_LINE_BYTES, &calls,
                           &rank->out, err);
    if (first == DT_OK)
        dt_stream_display(rank->out.stream, SHOW_MS);
    st = dt_stream_open(&rank->err.stream, loop, err_fd, DT_AGENT_LOG_LINE_BYTES, &calls,
                        &rank->err, err);
    if (st == DT_OK)
        dt_stream_display(rank->err.stream, SHOW_MS);
    return first != DT_OK ? first : st;
}

dt_status dt_agent_rank_follow(dt_agent_rank *rank, int channel, int out, int err_fd, dt_error *err)
{
    static const dt_stream_calls channel_calls = {.line = on_channel_line, .ended = on_channel_end};
    uv_loop_t *loop = &rank->agent->loop;
    /* Each call takes its descriptors, even if one before it failed. */
    dt_status first = dt_stream_open(&rank->channel, loop, channel, DT_PROTOCOL_MAX_LINE_BYTES,
                                     &channel_calls, rank, err);
    dt_status st = follow_output(rank, out, err_fd, err);

    return first != DT_OK ? first : st;
}

dt_status dt_agent_rank_follow_program(dt_agent_rank *rank, int child, int out, int err_fd,
                                       dt_error *err)
{
    static const dt_stream_calls child_calls = {.line = on_child_line, .ended = on_child_end};
    dt_status first = dt_stream_open(&rank->child, &rank->agent->loop, child,
                                     DT_AGENT_LOG_LINE_BYTES, &child_calls, rank, err);
    dt_status st = follow_output(rank, out, err_fd, err);

    return first != DT_OK ? first : st;
}
static void drain(dt_stream *const *stream)
{
    if (*stream != NULL)
        dt_stream_drain(*stream, DRAIN_BYTES);
    if (*stream != NULL)
        dt_stream_finish(*stream);
}

/* Returns "" only for a rank that ended well without having been asked to. */
static const char *reason_of(const dt_agent_rank *rank, bool good)
{
    if (rank->agent->ending != DT_ENDING_NO)
        return rank->agent->ending_reason;
    if (good)
        return "";
    return dt_exit_code(rank->wait_status) < 0 ? "killed" : "failed";
}

/* Returns why the kernel killed the rank, from its log; also from the cgroup's counter, which
 * needs no rights. */
static json_t *kernel_lines(dt_agent_rank *rank)
{
    dt_agent *agent = rank->agent;
    json_t *lines;
    int64_t count;
    char text[128];
    int code = dt_exit_code(rank->wait_status);

    if (code >= 0 || agent->ending != DT_ENDING_NO)
        return json_array(); /* ended on its own, or killed by the agent */
    lines = dt_kernel_log_lines(rank->kernel_log, rank->pid);
    count = dt_cgroup_oom_kills(&agent->cgroup);
    if (code == -SIGKILL && count > agent->oom_kills) {
        snprintf(text, sizeof(text),
                 "the count oom_kill of the memory cgroup went from %lld to %lld (out of memory)",
                 (long long)agent->oom_kills, (long long)count);
        json_array_append_new(lines, json_string(text));
        agent->oom_kills = count;
    }
    return lines;
}

static bool any_is_oom(const json_t *lines)
{
    json_t *line;
    size_t i;

    json_array_foreach(lines, i, line)
        if (dt_kernel_line_is_oom(json_string_value(line)))
            return true;
    return false;
}

/* Reports the death of a rank; returns whether it ended well. */
static bool report_death(dt_agent_rank *rank)
{
    int code = dt_exit_code(rank->wait_status), number = code < 0 ? -code : 0;
    bool good = code == 0;
    json_t *event, *lines = kernel_lines(rank);
    const char *name = sigabbrev_np(number);
    char signal_name[32] = "";
    dt_strbuf words;

    dt_strbuf_init(&words);
    if (number != 0)
        snprintf(signal_name, sizeof(signal_name), name != NULL ? "SIG%s" : "signal %s",
                 name != NULL ? name : "unknown");
    dt_kernel_death_words(&words, rank->wait_status);
    if (any_is_oom(lines))
        dt_strbuf_add_str(&words, ": the node is out of memory");
    event = json_pack("{s:s, s:I, s:o, s:o, s:s, s:s, s:s, s:o, s:o}", "event", "exited", "rank",
                      (json_int_t)rank->rank, "code", code >= 0 ? json_integer(code) : json_null(),
                      "signal", number != 0 ? json_integer(number) : json_null(), "signal_name",
                      signal_name, "reason", reason_of(rank, good), "words", words.data,
                      "kernel_lines", lines, "lines", dt_tail_to_json(&rank->tail));
    dt_strbuf_release(&words);
    if (rank->before != NULL)
        json_object_set(event, "before", rank->before);
    dt_agent_diagnosis_end(rank);
    dt_journal_add(&rank->agent->journal, event);
    return good;
}

void dt_agent_rank_not_started(dt_agent_rank *rank, const char *message)
{
    if (rank->running) { /* it runs, but its channel could not be opened */
        dt_agent_rank_log(rank, "agent", message);
    } else {
        dt_journal_add(&rank->agent->journal,
                       json_pack("{s:s, s:I, s:n, s:n, s:s, s:s, s:s, s:[]}", "event", "exited",
                                 "rank", (json_int_t)rank->rank, "code", "signal", "signal_name",
                                 "", "reason", "not_started", "message", message, "lines"));
    }
}

void dt_agent_rank_refused(dt_agent_rank *rank, int64_t gpu, const char *who)
{
    dt_journal_add(&rank->agent->journal,
                   json_pack("{s:s, s:I, s:n, s:n, s:s, s:s, s:I, s:o, s:[]}", "event", "exited",
                             "rank", (json_int_t)rank->rank, "code", "signal", "signal_name", "",
                             "reason", "claimed", "gpu", (json_int_t)gpu, "message",
                             dt_json_text(who), "lines"));
}

static dt_agent_rank *rank_by_pid(dt_agent *agent, pid_t pid)
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].running && agent->ranks[i].pid == pid)
            return &agent->ranks[i];
    return NULL;
}

/* Sorts the more likely cause of the other deaths first. */
static int by_cause(const void *a, const void *b)
{
    const dt_agent_rank *const *left = a, *const *right = b;
    int left_key = dt_exit_code((*left)->wait_status) < 0 ? 0 : (*left)->failed_first ? 1 : 2;
    int right_key = dt_exit_code((*right)->wait_status) < 0 ? 0 : (*right)->failed_first ? 1 : 2;

    return left_key - right_key;
}

static void on_last_look(dt_agent_rank *rank)
{
    rank->last_look = true;
    rank->agent->ranks_changed(rank->agent);
}

/* A program has died, and no look at its files runs. */
static void begin_last_look(dt_agent_rank *rank)
{
    dt_program_last_look(rank->program);
    if (dt_program_look_ms(rank->program) > 0)
        dt_agent_look(rank, on_last_look);
    else
        rank->last_look = true;
}

static void on_death(dt_agent_rank *rank, int status)
{
    rank->wait_status = status;
    rank->running = false; /* its pid may be reused from here on */
    rank->dying = true;
    drain(&rank->channel);
    drain(&rank->child);
    if (rank->child != NULL)
        on_child_end(rank, "");
    drain(&rank->out.stream);
    drain(&rank->err.stream);
    rank->last_look = rank->program == NULL;
    if (rank->program == NULL)
        return;
    dt_program_ended(rank->program, status);
    if (!rank->look.running)
        begin_last_look(rank);
    else
        rank->look.done = begin_last_look; /* after the one that runs */
}

/* Takes the ranks that have died and can be reported. Returns their number. */
static size_t take_dead(dt_agent_rank **dead, dt_agent *agent)
{
    size_t count = 0;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (!rank->refused && !(rank->dying && rank->last_look))
            continue;
        if (rank->program != NULL)
            rank->wait_status = dt_program_finish(rank->program, rank->look_given_up);
        rank->dying = rank->refused = false;
        dead[count++] = rank;
    }
    return count;
}

void dt_agent_ranks_reap(dt_agent *agent, void (*failed)(dt_agent *agent))
{
    dt_agent_rank **dead = NULL;
    size_t count;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        dt_agent_rank *rank = rank_by_pid(agent, pid);

        if (rank != NULL) /* else a reparented descendant */
            on_death(rank, status);
    }
    if (agent->rank_count == 0)
        return;
    dead = dt_calloc((size_t)agent->rank_count, sizeof(dead[0]));
    count = take_dead(dead, agent);
    if (count > 1)
        qsort(dead, count, sizeof(dead[0]), by_cause);
    for (size_t i = 0; i < count; i++)
        if (!report_death(dead[i]))
            failed(agent);
    free(dead);
}

void dt_agent_looks_give_up(dt_agent *agent, void (*failed)(dt_agent *agent))
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].dying && !agent->ranks[i].last_look)
            agent->ranks[i].last_look = agent->ranks[i].look_given_up = true;
    dt_agent_ranks_reap(agent, failed);
}

bool dt_agent_ranks_running(const dt_agent *agent)
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].running || agent->ranks[i].dying)
            return true;
    return false;
}

void dt_agent_rank_release(dt_agent_rank *rank)
{
    dt_agent_diagnosis_end(rank);
    dt_stream_close(rank->channel);
    dt_stream_close(rank->child);
    dt_stream_close(rank->out.stream);
    dt_stream_close(rank->err.stream);
    rank->channel = rank->child = rank->out.stream = rank->err.stream = NULL;
    if (!rank->look.running) {
        dt_program_close(rank->program);
        rank->program = NULL;
    }
    if (rank->kernel_log >= 0)
        close(rank->kernel_log);
    rank->kernel_log = -1;
    dt_tail_release(&rank->tail);
    json_decref(rank->before);
    json_decref(rank->heartbeat.times);
    json_decref(rank->heartbeat.samples);
    rank->before = rank->heartbeat.times = rank->heartbeat.samples = NULL;
}
