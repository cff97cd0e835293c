/* rendezvous: collects a value from each rank, and gives every rank the values of all.
 *
 * The agent only stores and forwards; the supervisor, which sees all nodes, combines the values. Both
 * directions are kept while the agent runs, so a supervisor that reconnects receives all offers again, and a rank
 * that asks twice is answered twice.
 */
#include <stdio.h>
#include <string.h>

#include "runner/agent/agent_int.h"
#include "runner/agent/rank/text.h"

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

static void tell(dt_agent *agent, const char *name, const char *rank, json_t *value)
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
    tell(agent, name, key, json_object_get(values, key));
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

void dt_agent_rendezvous_tell_all(dt_agent *agent)
{
    const char *name, *rank;
    json_t *values, *value;

    json_object_foreach(agent->offers, name, values)
        json_object_foreach(values, rank, value)
            tell(agent, name, rank, value);
}
