/* serve: runs the agent from taking its lock to its exit; also without a supervisor to serve.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "runner/agent/agent_int.h"
#include "runner/channel/detach.h"
#include "runner/channel/protocol.h"
#include "runner/times.h"

/* Explains in the run's log why the reader finds a gap in the numbers. */
static void report_damaged(dt_agent *agent)
{
    char text[160];

    snprintf(text, sizeof(text),
             "%lld lines of the journal are damaged: their readable part is in '%s.damaged' on "
             "this node",
             (long long)(agent->journal.damaged_lines - agent->damaged_reported),
             agent->journal.path);
    agent->damaged_reported = agent->journal.damaged_lines;
    dt_agent_log(agent, text);
    (void)dt_journal_flush(&agent->journal, NULL);
    dt_agent_client_pump(agent);
}

/* Before the loop sleeps: writes new events to the file, and sends them to the supervisor. */
static void on_before_wait(uv_prepare_t *prepare)
{
    dt_agent *agent = prepare->data;
    dt_error err = DT_ERROR_INIT;

    if (dt_journal_flush(&agent->journal, &err) == DT_OK) {
        agent->journal_full = false;
    } else if (!agent->journal_full) {
        agent->journal_full = true; /* retried on every turn of the loop, reported once */
        dt_log_error("%s", err.message);
        dt_agent_client_send(agent,
                             json_pack("{s:s, s:s}", "event", "error", "message", err.message));
    }
    dt_agent_client_pump(agent);
    if (agent->journal.damaged_lines > agent->damaged_reported)
        report_damaged(agent);
}

static void on_alive(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    double now = agent->clock.seconds;
    bool working = agent->started && agent->ending != DT_ENDING_DONE;

    if (agent->client != NULL && agent->attached) {
        on_before_wait(&agent->before_wait); /* earlier events are sent first */
        dt_agent_client_send(agent, dt_agent_heartbeat(agent));
    }
    dt_agent_lease_check(agent);
    dt_agent_client_check(agent);
    /* its events are stored nowhere else */
    if (agent->client != NULL || working || agent->journal_full)
        agent->quiet_since_seconds = now;
    if (now - agent->quiet_since_seconds > (agent->asked ? 0 : agent->quiet_max_seconds)) {
        dt_log_info("no request for a while: exiting");
        dt_agent_quit(agent);
    }
}

static void on_child(uv_signal_t *handle, int number)
{
    dt_agent_ending_reap(handle->data);
}

static void on_stop_signal(uv_signal_t *handle, int number)
{
    dt_agent *agent = handle->data;

    dt_log_warn("signal %d: stopping the ranks", number);
    dt_agent_ending_begin(
        agent, agent->started ? agent->lease_grace_seconds : dt_times()->shutdown_grace_seconds,
        "agent_stopped");
    dt_agent_ending_advance(agent);
}

/* Signal of direct.c, for a person whose supervisor cannot be asked. */
static void on_asked(uv_signal_t *handle, int number)
{
    dt_agent *agent = handle->data;

    dt_log_info("stop requested on this node");
    agent->asked = true;
    dt_agent_ending_begin(
        agent, agent->started && number == SIGUSR1 ? agent->lease_grace_seconds : 0, "stopped");
    dt_agent_ending_advance(agent);
}

static void loop_init(dt_agent *agent)
{
    static const int stops[] = {SIGTERM, SIGINT};
    uint64_t alive_ms = dt_times_ms(dt_times()->heartbeat_seconds);

    uv_prepare_init(&agent->loop, &agent->before_wait);
    uv_timer_init(&agent->loop, &agent->alive_timer);
    uv_timer_init(&agent->loop, &agent->ending_timer);
    uv_timer_init(&agent->loop, &agent->diagnosis_timer);
    uv_timer_init(&agent->loop, &agent->proof_timer);
    uv_timer_init(&agent->loop, &agent->cache_pin_timer);
    uv_timer_init(&agent->loop, &agent->output_timer);
    uv_timer_init(&agent->loop, &agent->program_timer);
    uv_timer_init(&agent->loop, &agent->sample_timer);
    uv_timer_init(&agent->loop, &agent->system_timer);
    agent->sample_timer.data = agent->system_timer.data = agent;
    agent->output_timer.data = agent->program_timer.data = agent;
    uv_signal_init(&agent->loop, &agent->child_signal);
    agent->before_wait.data = agent->alive_timer.data = agent->ending_timer.data = agent;
    agent->child_signal.data = agent->diagnosis_timer.data = agent->proof_timer.data = agent;
    uv_prepare_start(&agent->before_wait, on_before_wait);
    uv_timer_start(&agent->alive_timer, on_alive, alive_ms, alive_ms);
    uv_signal_start(&agent->child_signal, on_child, SIGCHLD);
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&agent->loop, &agent->asked_signals[i]);
        agent->asked_signals[i].data = agent;
        uv_signal_start(&agent->asked_signals[i], on_asked, i == 0 ? SIGUSR1 : SIGUSR2);
        uv_signal_init(&agent->loop, &agent->stop_signals[i]);
        agent->stop_signals[i].data = agent;
        uv_signal_start(&agent->stop_signals[i], on_stop_signal, stops[i]);
    }
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void loop_release(dt_agent *agent)
{
    dt_agent_client_close(agent);
    dt_helper_cancel(agent->question);
    dt_agent_system_end(agent);
    dt_agent_claims_release(agent);
    dt_listener_close(agent->listener);
    for (int64_t i = 0; i < agent->rank_count; i++)
        dt_agent_rank_release(&agent->ranks[i]);
    uv_walk(&agent->loop, close_handle, NULL);
    while (uv_run(&agent->loop, UV_RUN_DEFAULT) != 0)
        ;
    uv_loop_close(&agent->loop);
}

/* Returns whether a look at files has not returned. */
static bool has_look(const dt_agent *agent)
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].look.running)
            return true;
    return false;
}

static void agent_release(dt_agent *agent)
{
    dt_journal_close(&agent->journal);
    dt_cgroup_release(&agent->cgroup);
    json_decref(agent->offers);
    json_decref(agent->answers);
    free(agent->ranks);
    json_decref(agent->left);
    dt_program_plan_close(agent->programs);
    dt_environment_release(&agent->environment);
    free(agent->engine);
    free(agent->owner);
    free(agent->devices_visible);
    free(agent->devices_note);
    free(agent->run);
    free(agent->mark);
}

static dt_status journal_open(dt_agent *agent, dt_agent_past *past, dt_error *err)
{
    dt_status st =
        dt_journal_open(&agent->journal, "journal.jsonl", dt_agent_past_add_event, past, err);

    return st == DT_OK ? dt_agent_past_check(past, err) : st;
}

static dt_status serve(const char *folder, bool end_only, bool asked, dt_error *err)
{
    dt_status st = DT_OK;
    dt_agent_past *past = dt_agent_past_new();
    dt_agent agent;
    char absolute[PATH_MAX];
    int lock = -1, ready = dt_detach_claim();

    memset(&agent, 0, sizeof(agent));
    agent.journal.fd = agent.journal.note_fd = -1;
    agent.ranks_mask = umask(077);
    dt_boot_id(agent.boot_id);
    dt_cgroup_init(&agent.cgroup);
    dt_strbuf_init(&agent.journal.pending);
    agent.offers = json_object();
    agent.answers = json_object();
    agent.ending_reason = "";
    agent.ranks_changed = dt_agent_ending_reap;
    /* An agent with neither ranks nor a supervisor exits: `connect --start` starts the next one on the
     * journal. An agent that `connect` did not start (transport/slurm/lifecycle.c) stays, because what a
     * connection starts there would end with the connection. */
    agent.quiet_max_seconds =
        ready >= 0 ? dt_times()->agent_quiet_seconds : dt_times()->agent_held_seconds;
    uv_loop_init(&agent.loop);
    dt_poll_clock_open(&agent.clock, &agent.loop);
    agent.quiet_since_seconds = agent.clock.seconds;
    DT_TRY(dt_agent_folder_check(folder, err));
    if (realpath(folder, absolute) == NULL || chdir(absolute) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot use the folder '%s': %s", folder, strerror(errno));
    agent.folder = absolute;
    dt_log_bound("agent.log", DT_LOG_BYTES_MOST);
    dt_crash_report("agent");
    if (asprintf(&agent.mark, "DTRUN_NODE_DIR=%s", absolute) < 0) {
        agent.mark = NULL;
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    }
    DT_TRY(dt_file_lock(&lock, "agent.lock", err));
    DT_TRY(dt_agent_holder_write(lock, err));
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot become the reaper of the ranks: %s", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    loop_init(&agent);
    DT_TRY(journal_open(&agent, past, err));
    agent.acknowledged = agent.journal.kept_sequence;
    agent.end_only = end_only;
    agent.asked = asked;
    dt_agent_recover(&agent, past);
    if (!end_only)
        DT_TRY(dt_listener_open(&agent.listener, &agent.loop, ".", "agent.sock",
                                dt_agent_accept_client, &agent, err));
    dt_detach_ready(&ready, DT_OK, NULL);
    if (!end_only || (agent.ending != DT_ENDING_NO && agent.ending != DT_ENDING_DONE))
        uv_run(&agent.loop, UV_RUN_DEFAULT);
    dt_journal_flush(&agent.journal, NULL);
    unlink("agent.sock");
    dt_agent_end_commands(absolute, true);
out:
    if (st != DT_OK)
        dt_detach_ready(&ready, st, err);
    dt_agent_cache_pins_release(&agent);
    if (has_look(&agent)) {
        dt_log_warn("a file system does not answer: exiting without it");
        _exit(st == DT_OK ? 0 : 1); /* the loop would wait for the thread */
    }
    loop_release(&agent);
    agent_release(&agent);
    dt_agent_past_free(past);
    if (lock >= 0)
        close(lock);
    return st;
}

dt_status dt_agent_serve(const char *folder, dt_error *err)
{
    return serve(folder, false, false, err);
}

dt_status dt_agent_serve_end(const char *folder, bool asked, dt_error *err)
{
    return serve(folder, true, asked, err);
}
