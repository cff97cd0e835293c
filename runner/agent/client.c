/* client: what the agent sends to the supervisor: lines of the journal, answers, lines of the run's log,
 * and values that ranks exchange. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/rank/output.h"
#include "runner/channel/protocol.h"
#include "runner/times.h"

#define QUEUE_BYTES ((size_t)256 << 10) /* most bytes queued to send */

void dt_agent_client_send(dt_agent *agent, json_t *message)
{
    dt_strbuf line;

    if (agent->client != NULL && agent->attached) {
        dt_strbuf_init(&line);
        dt_json_write(&line, message);
        dt_strbuf_add_char(&line, '\n');
        dt_stream_send(agent->client, line.data, line.length);
        dt_strbuf_release(&line);
    }
    json_decref(message);
}

/* Sends the reason, also to a supervisor that is not attached, for example after a wrong
 * protocol version. */
void dt_agent_client_refuse(dt_agent *agent, bool for_good, const char *why)
{
    bool attached = agent->attached;

    dt_log_warn("a command was refused: %s", why);
    agent->attached = true; /* for dt_agent_client_send */
    dt_agent_client_send(agent,
                         json_pack("{s:s, s:s, s:b, s:i}", "event", "error", "message", why,
                                   "refused", (int)for_good, "protocol", DT_PROTOCOL_VERSION));
    agent->attached = attached;
}

void dt_agent_client_pump(dt_agent *agent)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf lines;

    if (agent->client == NULL || !agent->attached)
        return;
    dt_strbuf_init(&lines);
    while (agent->client_offset < agent->journal.whole_bytes &&
           dt_stream_queued_bytes(agent->client) < QUEUE_BYTES) {
        int64_t before = agent->client_offset;

        if (dt_journal_read(&agent->journal, &agent->client_offset, QUEUE_BYTES / 4, &lines,
                            &err) != DT_OK ||
            agent->client_offset == before) {
            dt_agent_client_refuse(agent, false, err.message);
            dt_agent_client_close(agent);
            break;
        }
        dt_stream_send(agent->client, lines.data, lines.length);
    }
    dt_strbuf_release(&lines);
}

/* Closes a connection that is silent for too long. A cut connection may look open from here for
 * hours, and an agent with a client does not exit. A supervisor that was only paused connects
 * again. */
void dt_agent_client_check(dt_agent *agent)
{
    double silent = agent->clock.seconds - agent->client_seconds;

    if (agent->client == NULL || silent <= dt_times()->client_silent_seconds)
        return;
    dt_log_warn("no message on the connection for %.0f s: closing it", silent);
    dt_agent_client_close(agent);
}

void dt_agent_client_close(dt_agent *agent)
{
    dt_stream_close(agent->client);
    agent->client = NULL;
    agent->attached = false;
}

/* log: adds lines to the run's log, as events. */

void dt_agent_rank_log(dt_agent_rank *rank, const char *stream, const char *text)
{
    dt_tail_add(&rank->tail, text);
    dt_journal_add(&rank->agent->journal,
                   json_pack("{s:s, s:I, s:s, s:s}", "event", "log", "rank", (json_int_t)rank->rank,
                             "stream", stream, "text", text));
}

void dt_agent_log(dt_agent *agent, const char *text)
{
    dt_log_info("%s", text);
    dt_journal_add(&agent->journal, json_pack("{s:s, s:i, s:s, s:s}", "event", "log", "rank", -1,
                                              "stream", "agent", "text", text));
}

/* rendezvous: collects a value from each rank, and gives every rank the values of all.
 *
 * The agent only stores and forwards; the supervisor, which sees all nodes, combines the values. Both
 * directions are kept while the agent runs, so a supervisor that reconnects receives all offers again, and a rank
 * that asks twice is answered twice.
 */

#define NAMES_MAX 1024

static void answer_rank(dt_agent_rank *rank, const char *name, json_t *values)
{
    json_t *answer =
        json_pack("{s:s, s:s, s:O}", "command", "rendezvous", "name", name, "values", values);
    dt_strbuf line;

    if (rank->channel != NULL) {
        dt_strbuf_init(&line);
        dt_json_write(&line, answer);
        dt_strbuf_add_char(&line, '\n');
        dt_stream_send(rank->channel, line.data, line.length);
        dt_strbuf_release(&line);
    }
    json_decref(answer);
}

static void send_offer(dt_agent *agent, const char *name, const char *rank, json_t *value)
{
    long long number = -1;

    if (sscanf(rank, "%lld", &number) == 1)
        dt_agent_client_send(agent, json_pack("{s:s, s:s, s:I, s:O}", "event", "rendezvous", "name",
                                              name, "rank", (json_int_t)number, "value", value));
}

void dt_agent_rendezvous_offer(dt_agent_rank *rank, const char *name, const char *value)
{
    dt_agent *agent = rank->agent;
    json_t *answer = json_object_get(agent->answers, name);
    json_t *values = json_object_get(agent->offers, name);
    char key[24];

    if (answer != NULL) {
        answer_rank(rank, name, answer);
        return;
    }
    if (values == NULL) {
        if (json_object_size(agent->offers) >= NAMES_MAX) {
            dt_agent_rank_log(rank, "agent", "warning: too many rendezvous names, one was ignored");
            return;
        }
        values = json_object();
        json_object_set_new(agent->offers, name, values);
    }
    snprintf(key, sizeof(key), "%lld", (long long)rank->rank);
    json_object_set_new(values, key, json_string(value));
    send_offer(agent, name, key, json_object_get(values, key));
}

dt_status dt_agent_rendezvous_answer(dt_agent *agent, const char *name, json_t *values,
                                     dt_error *err)
{
    json_t *offers = json_object_get(agent->offers, name);

    if (json_object_get(agent->answers, name) != NULL)
        return DT_OK;
    if (offers == NULL)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "rendezvous: no rank waits for '%.64s'", name);
    json_object_set(agent->answers, name, values);
    for (int64_t i = 0; i < agent->rank_count; i++) {
        char key[24];

        snprintf(key, sizeof(key), "%lld", (long long)agent->ranks[i].rank);
        if (json_object_get(offers, key) != NULL)
            answer_rank(&agent->ranks[i], name, values);
    }
    return DT_OK;
}

void dt_agent_rendezvous_send_all(dt_agent *agent)
{
    const char *name, *rank;
    json_t *values, *value;

    json_object_foreach(agent->offers, name, values)
        json_object_foreach(values, rank, value)
            send_offer(agent, name, rank, value);
}
