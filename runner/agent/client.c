/* client: sends messages and journal lines to the supervisor over its connection. */
#include "base/log.h"
#include "runner/agent/agent_int.h"
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
