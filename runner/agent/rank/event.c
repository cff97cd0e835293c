#include "runner/agent/rank/event.h"

#include <string.h>

#define FIELDS_MAX 4

/* Required fields: "i step" an integer, "f seconds" a number, "s text" a string, "o values" an
 * object. */
static const struct {
    const char *kind, *fields[FIELDS_MAX];
} kinds[] = {
    {"ready", {"i pid"}},
    {"memory", {NULL}},
    {"metrics", {"i step", "o values"}},
    {"pace", {"i step", "f step_seconds", "f waited_seconds"}},
    {"phase", {"s phase"}},
    {"checkpoint", {"i step", "s directory", "i bytes", "s digest"}},
    {"checkpoint_failed", {"i step", "s message"}},
    {"part", {"i part", "i offset"}},
    {"failed", {"s status", "s message"}},
    {"finished", {"i step", "s reason"}},
    {"rendezvous", {"s name", "s value"}},
    {"where", {NULL}}, /* answers the agent's query; diagnose.c takes the fields that it knows */
};

static dt_status check_field(const json_t *event, const char *kind, const char *field,
                             dt_error *err)
{
    const char *key = field + 2, *text;
    json_t *object;
    int64_t number;
    double real;

    switch (field[0]) {
    case 'i':
        return dt_json_get_int(&number, event, key, kind, err);
    case 's':
        return dt_json_get_string(&text, event, key, kind, err);
    case 'f':
        return dt_json_get_number(&real, event, key, kind, err);
    default:
        return dt_json_get_object(&object, event, key, kind, err);
    }
}

static dt_status check_values(const json_t *event, dt_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(event, "values"), name, value)
        if (!json_is_number(value) && !json_is_null(value))
            return DT_FAIL(err, DT_ERR_CORRUPT, "metrics: '%.64s': expected a number", name);
    return DT_OK;
}

dt_status dt_agent_event_parse(json_t **out, const char **kind, const char *text, size_t length,
                               dt_error *err)
{
    json_t *event = NULL;
    dt_status st;

    *out = NULL;
    *kind = NULL;
    DT_TRY(dt_json_parse(&event, text, length, "event", err));
    DT_TRY(dt_json_get_string(kind, event, "event", "event", err));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(*kind, kinds[i].kind) != 0)
            continue;
        for (size_t f = 0; f < FIELDS_MAX && kinds[i].fields[f] != NULL; f++)
            DT_TRY(check_field(event, *kind, kinds[i].fields[f], err));
        if (strcmp(*kind, "metrics") == 0)
            DT_TRY(check_values(event, err));
        *out = event;
        return DT_OK;
    }
    DT_THROW(err, DT_ERR_CORRUPT, "unknown event '%.64s'", *kind);
out:
    json_decref(event);
    *kind = NULL;
    return st;
}
