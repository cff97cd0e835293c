#include "runner/agent/command.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>

#include "runner/channel/protocol.h"

#define GRACE_MAX_SECONDS 86400.0
#define LEASE_MAX_SECONDS 1e9

static dt_status check_range(int64_t value, int64_t low, int64_t high, const char *key,
                             const char *where, dt_error *err)
{
    if (value >= low && value <= high)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s': %lld is not between %lld and %lld", where, key,
                   (long long)value, (long long)low, (long long)high);
}

static dt_status get_int(int64_t *out, const json_t *json, const char *key, int64_t low,
                         int64_t high, const char *where, dt_error *err)
{
    dt_status st = dt_json_get_int(out, json, key, where, err);

    return st == DT_OK ? check_range(*out, low, high, key, where, err) : st;
}

static dt_status parse_attach(dt_agent_command *out, dt_error *err)
{
    dt_status st;

    DT_TRY(get_int(&out->protocol, out->json, "protocol", 0, INT32_MAX, "attach", err));
    DT_TRY(dt_json_get_string(&out->run, out->json, "run", "attach", err));
    DT_TRY(get_int(&out->attempt, out->json, "attempt", 1, INT32_MAX, "attach", err));
    DT_TRY(get_int(&out->from, out->json, "from", 0, INT64_MAX, "attach", err));
out:
    return st;
}

static bool is_variable_name(const char *name)
{
    if (name[0] == '\0' || isdigit((unsigned char)name[0]))
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static dt_status parse_start(dt_agent_command *out, dt_error *err)
{
    const char *name;
    json_t *value;
    dt_status st;

    DT_TRY(dt_json_get_string(&out->engine, out->json, "engine", "start", err));
    if (out->engine[0] != '/' && out->engine[0] != '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "start: 'engine': '%s' is not an absolute path", out->engine);
    DT_TRY(dt_json_get_string_or(&out->owner, out->json, "owner", "", "start", err));
    DT_TRY(dt_json_get_object(&out->plan, out->json, "plan", "start", err));
    DT_TRY(get_int(&out->node, out->json, "node", 0, DT_PROTOCOL_MAX_RANKS, "start", err));
    DT_TRY(dt_json_get_object(&out->environment, out->json, "environment", "start", err));
    if (json_object_get(out->json, "launcher_lost_seconds") != NULL)
        DT_TRY(dt_json_get_number(&out->launcher_lost_seconds, out->json, "launcher_lost_seconds",
                                  "start", err));
    if (!(out->launcher_lost_seconds >= 0 && out->launcher_lost_seconds <= LEASE_MAX_SECONDS))
        DT_THROW(err, DT_ERR_CORRUPT, "start: 'launcher_lost_seconds' is not between 0 and %.0f",
                 LEASE_MAX_SECONDS);
    json_object_foreach(out->environment, name, value)
        if (!is_variable_name(name) || !json_is_string(value))
            DT_THROW(err, DT_ERR_CORRUPT, "start: 'environment': '%s' is not NAME: \"text\"", name);
out:
    return st;
}

static dt_status parse_rendezvous(dt_agent_command *out, dt_error *err)
{
    dt_status st;
    json_t *value;
    size_t rank;

    DT_TRY(dt_json_get_string(&out->name, out->json, "name", "rendezvous", err));
    DT_TRY(dt_json_get_array(&out->values, out->json, "values", "rendezvous", err));
    json_array_foreach(out->values, rank, value)
        if (!json_is_string(value))
            DT_THROW(err, DT_ERR_CORRUPT,
                     "rendezvous: 'values': the value of rank %zu is not a string", rank);
out:
    return st;
}

static dt_status parse_signal(dt_agent_command *out, dt_error *err)
{
    dt_status st;

    DT_TRY(get_int(&out->rank, out->json, "rank", -1, DT_PROTOCOL_MAX_RANKS, "signal", err));
    DT_TRY(get_int(&out->signal, out->json, "signal", 1, SIGRTMAX, "signal", err));
out:
    return st;
}

static dt_status parse_diagnose(dt_agent_command *out, dt_error *err)
{
    return get_int(&out->rank, out->json, "rank", -1, DT_PROTOCOL_MAX_RANKS, "diagnose", err);
}

static dt_status parse_stop(dt_agent_command *out, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_json_get_number(&out->grace_seconds, out->json, "grace_seconds", "stop", err));
    if (!(out->grace_seconds >= 0 && out->grace_seconds <= GRACE_MAX_SECONDS))
        DT_THROW(err, DT_ERR_CORRUPT, "stop: 'grace_seconds' is not between 0 and %.0f",
                 GRACE_MAX_SECONDS);
    out->person = json_is_true(json_object_get(out->json, "person"));
out:
    return st;
}

static dt_status parse_ack(dt_agent_command *out, dt_error *err)
{
    return get_int(&out->sequence, out->json, "sequence", 0, INT64_MAX, "ack", err);
}

static dt_status parse_nothing(dt_agent_command *out, dt_error *err)
{
    return DT_OK;
}

static const struct {
    const char *name;
    dt_status (*parse)(dt_agent_command *out, dt_error *err);
} kinds[DT_AGENT_COMMAND_KIND_COUNT] = {
    [DT_AGENT_COMMAND_ATTACH] = {"attach", parse_attach},
    [DT_AGENT_COMMAND_START] = {"start", parse_start},
    [DT_AGENT_COMMAND_RENDEZVOUS] = {"rendezvous", parse_rendezvous},
    [DT_AGENT_COMMAND_SIGNAL] = {"signal", parse_signal},
    [DT_AGENT_COMMAND_DIAGNOSE] = {"diagnose", parse_diagnose},
    [DT_AGENT_COMMAND_STOP] = {"stop", parse_stop},
    [DT_AGENT_COMMAND_ACK] = {"ack", parse_ack},
    [DT_AGENT_COMMAND_ALIVE] = {"alive", parse_nothing},
    [DT_AGENT_COMMAND_BYE] = {"bye", parse_nothing},
};

dt_status dt_agent_command_parse(dt_agent_command *out, const char *text, size_t length,
                                 dt_error *err)
{
    const char *name;
    dt_status st;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_json_parse(&out->json, text, length, "command", err));
    DT_TRY(dt_json_get_string(&name, out->json, "command", "command", err));
    for (int kind = 0; kind < DT_AGENT_COMMAND_KIND_COUNT; kind++) {
        if (strcmp(name, kinds[kind].name) != 0)
            continue;
        out->kind = (dt_agent_command_kind)kind;
        DT_TRY(kinds[kind].parse(out, err));
        return DT_OK;
    }
    DT_THROW(err, DT_ERR_CORRUPT, "unknown command '%.64s'", name);
out:
    dt_agent_command_release(out);
    return st;
}

void dt_agent_command_release(dt_agent_command *command)
{
    json_decref(command->json);
    memset(command, 0, sizeof(*command));
}
