/* execute: executes the supervisor's commands. One client is served at a time; a newer one takes
 * over. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "runner/agent/agent_int.h"
#include "runner/channel/protocol.h"

static const char *state_name(const dt_agent *agent)
{
    if (agent->ending == DT_ENDING_DONE)
        return "released";
    return agent->started || agent->ending != DT_ENDING_NO ? "running" : "idle";
}

static void send_hello(dt_agent *agent)
{
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    dt_agent_client_send(agent,
                         json_pack("{s:s, s:i, s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:s, s:I, s:s?,"
                                   " s:s}",
                                   "event", "hello", "protocol", DT_PROTOCOL_VERSION, "version",
                                   DT_VERSION, "host", host, "pid", (json_int_t)getpid(), "run",
                                   agent->run, "attempt", (json_int_t)agent->attempt,
                                   "next_sequence", (json_int_t)agent->journal.next_sequence,
                                   "acknowledged", (json_int_t)agent->acknowledged, "state",
                                   state_name(agent), "time_ms", (json_int_t)dt_clock_wall_ms(),
                                   "cgroup", agent->cgroup.folder, "boot_id", agent->boot_id));
}

static dt_status do_attach(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    dt_status st;

    if (command->protocol != DT_PROTOCOL_VERSION)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "this agent speaks protocol %d, not %lld: use the dtrun that started it",
                       DT_PROTOCOL_VERSION, (long long)command->protocol);
    if (agent->run != NULL &&
        (strcmp(agent->run, command->run) != 0 || agent->attempt != command->attempt))
        return DT_FAIL(err, DT_ERR_BUSY, "this agent serves run '%s', attempt %lld", agent->run,
                       (long long)agent->attempt);
    /* the journal may have lost its end, or everything */
    dt_journal_skip_to(&agent->journal, command->from);
    st = dt_journal_offset(&agent->journal, command->from, &agent->client_offset, err);
    if (st != DT_OK)
        return st;
    if (agent->run == NULL) {
        agent->run = dt_strdup(command->run);
        agent->attempt = command->attempt;
    }
    agent->attached = true;
    send_hello(agent);
    dt_agent_rendezvous_send_all(agent);
    dt_agent_client_pump(agent);
    return DT_OK;
}

static dt_status do_start(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    return dt_agent_start(agent, command, err);
}

static dt_status do_rendezvous(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    dt_status st = dt_agent_rendezvous_answer(agent, command->name, command->values, err);

    if (st == DT_OK && strcmp(command->name, DT_PROGRAM_RENDEZVOUS) == 0)
        dt_agent_start_programs(agent, command->values);
    return st;
}

static dt_status do_signal(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    bool found = false;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];
        if (!rank->running || (command->rank != -1 && command->rank != rank->rank))
            continue;
        found = true;
        if (rank->program != NULL && command->signal == SIGTERM)
            dt_program_stop(rank->program);
        else
            kill(rank->pid, (int)command->signal);
    }
    return found ? DT_OK
                 : DT_FAIL(err, DT_ERR_NOT_FOUND, "signal: no such rank is running on this node");
}

static dt_status do_diagnose(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    return dt_agent_diagnose(agent, command->rank, err);
}

static dt_status do_stop(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    agent->person = agent->person || command->person;
    dt_agent_ending_begin(agent, command->grace_seconds, "stopped");
    dt_agent_ending_advance(agent);
    return DT_OK;
}

/* Trims the journal. Once ranks have ended, the few further events are kept: a restarted agent
 * needs them. */
static void trim(dt_agent *agent)
{
    dt_error err = DT_ERROR_INIT;

    if (agent->ending != DT_ENDING_NO || agent->trim_refused ||
        dt_journal_trim(&agent->journal, agent->acknowledged, agent->client_offset, &err) == DT_OK)
        return;
    agent->trim_refused = true;
    dt_agent_log(agent, err.message);
}

static dt_status do_ack(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    if (command->sequence > agent->journal.next_sequence)
        return DT_FAIL(err, DT_ERR_CORRUPT, "ack: %lld is beyond the end of the journal",
                       (long long)command->sequence);
    if (command->sequence > agent->acknowledged)
        agent->acknowledged = command->sequence;
    trim(agent);
    return DT_OK;
}

/* Does nothing: every command renews the lease. */
static dt_status do_alive(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    return DT_OK;
}

static dt_status do_bye(dt_agent *agent, const dt_agent_command *command, dt_error *err)
{
    if (agent->ending != DT_ENDING_DONE && agent->started)
        return DT_FAIL(err, DT_ERR_BUSY, "cannot disconnect: ranks are still running");
    dt_agent_quit(agent);
    return DT_OK;
}

static dt_status (*const actions[DT_AGENT_COMMAND_KIND_COUNT])(dt_agent *, const dt_agent_command *,
                                                               dt_error *) = {
    [DT_AGENT_COMMAND_ATTACH] = do_attach,
    [DT_AGENT_COMMAND_START] = do_start,
    [DT_AGENT_COMMAND_RENDEZVOUS] = do_rendezvous,
    [DT_AGENT_COMMAND_SIGNAL] = do_signal,
    [DT_AGENT_COMMAND_DIAGNOSE] = do_diagnose,
    [DT_AGENT_COMMAND_STOP] = do_stop,
    [DT_AGENT_COMMAND_ACK] = do_ack,
    [DT_AGENT_COMMAND_ALIVE] = do_alive,
    [DT_AGENT_COMMAND_BYE] = do_bye,
};

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    dt_agent *agent = context;
    dt_error err = DT_ERROR_INIT;
    dt_agent_command command = {0};

    agent->client_seconds = agent->clock.seconds;
    if (cut) {
        dt_agent_client_refuse(agent, true, "the command is longer than 17 MiB");
        return;
    }
    if (dt_agent_command_parse(&command, text, length, &err) == DT_OK) {
        if (!agent->attached && command.kind != DT_AGENT_COMMAND_ATTACH)
            DT_FAIL(&err, DT_ERR_USAGE, "the first command must be 'attach'");
        else
            actions[command.kind](agent, &command, &err);
        if (agent->attached)
            agent->heard_seconds = agent->clock.seconds;
    }
    dt_agent_command_release(&command);
    if (err.code != DT_OK)
        dt_agent_client_refuse(agent, err.code != DT_ERR_BUSY, err.message);
}

static void on_drained(void *context)
{
    dt_agent_client_pump(context);
}

static void on_ended(void *context, const char *why)
{
    dt_agent_client_close(context);
}

void dt_agent_accept_client(void *context, int connection)
{
    static const dt_stream_calls calls = {
        .line = on_line, .drained = on_drained, .ended = on_ended};
    dt_agent *agent = context;
    dt_error err = DT_ERROR_INIT;

    dt_agent_client_close(agent);
    agent->client_seconds = agent->clock.seconds;
    if (dt_stream_open(&agent->client, &agent->loop, connection, DT_PROTOCOL_MAX_COMMAND_BYTES,
                       &calls, agent, &err) != DT_OK)
        dt_log_error("%s", err.message);
}
