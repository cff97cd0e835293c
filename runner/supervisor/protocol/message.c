#include "runner/supervisor/protocol/message.h"

#include <math.h>
#include <string.h>

#define FIELDS_MAX 6
#define NAME_MOST  64 /* longest name of an event */

/* Required fields: "i" integer, "f" number, "s" string, "o" object, "a" array; "rank" is checked
 * for all. Keep in sync with runner/PROTOCOL.md. */
static const struct {
    const char *name;
    bool numbered, of_rank;
    const char *fields[FIELDS_MAX];
} kinds[DT_MESSAGE_KIND_COUNT] = {
    [DT_MESSAGE_STARTED] = {"started", true, true, {"i pid", "i local_rank", "s device"}},
    [DT_MESSAGE_READY] = {"ready", true, true, {NULL}},
    [DT_MESSAGE_MEMORY] = {"memory", true, true, {NULL}},
    [DT_MESSAGE_METRICS] = {"metrics", true, true, {"i step", "o values"}},
    [DT_MESSAGE_PACE] = {"pace", true, true, {"i step", "f step_seconds", "f waited_seconds"}},
    [DT_MESSAGE_RECORD] = {"record", true, true, {"i offset", "s text"}},
    [DT_MESSAGE_PHASE] = {"phase", true, true, {"s phase"}},
    [DT_MESSAGE_CHECKPOINT] = {"checkpoint",
                               true,
                               true,
                               {"i step", "s directory", "i bytes", "s digest"}},
    [DT_MESSAGE_CHECKPOINT_FAILED] = {"checkpoint_failed", true, true, {"i step", "s message"}},
    [DT_MESSAGE_EVALUATION] = {"evaluation", true, true, {"i step", "o tasks"}},
    [DT_MESSAGE_SAMPLES] = {"samples", true, true, {"i step", "a samples"}},
    [DT_MESSAGE_CONFUSION] = {"confusion", true, true, {"i step", "a counts"}},
    [DT_MESSAGE_PART] = {"part", true, true, {"i part", "i offset"}},
    [DT_MESSAGE_FAILED] = {"failed", true, true, {"s status", "s message"}},
    [DT_MESSAGE_FINISHED] = {"finished", true, true, {"i step", "s reason"}},
    [DT_MESSAGE_DIAGNOSIS] = {"diagnosis", true, true, {"i pid", "s state", "s state_words"}},
    [DT_MESSAGE_LOG] = {"log", true, false, {"i rank", "s stream", "s text"}},
    [DT_MESSAGE_EXITED] = {"exited", true, true, {"s reason", "s signal_name", "a lines"}},
    [DT_MESSAGE_STOPPING] = {"stopping", true, false, {NULL}},
    [DT_MESSAGE_RELEASED] = {"released", true, false, {"a left"}},
    [DT_MESSAGE_SYSTEM] = {"system", true, false, {"o values"}},
    [DT_MESSAGE_UNKNOWN] = {"", true, false, {NULL}},
    [DT_MESSAGE_HELLO] = {"hello",
                          false,
                          false,
                          {"i protocol", "s version", "i next_sequence", "s state"}},
    [DT_MESSAGE_RENDEZVOUS] = {"rendezvous", false, true, {"s name", "s value"}},
    [DT_MESSAGE_ALIVE] = {"alive", false, false, {NULL}},
    [DT_MESSAGE_ERROR] = {"error", false, false, {"s message"}},
};

static dt_status check_field(const dt_message *message, const char *field, dt_error *err)
{
    const char *key = field + 2, *text;
    int64_t number;
    json_t *value;
    double real;

    switch (field[0]) {
    case 'i':
        return dt_json_get_int(&number, message->json, key, message->name, err);
    case 'f':
        return dt_json_get_number(&real, message->json, key, message->name, err);
    case 's':
        return dt_json_get_string(&text, message->json, key, message->name, err);
    case 'a':
        return dt_json_get_array(&value, message->json, key, message->name, err);
    default:
        return dt_json_get_object(&value, message->json, key, message->name, err);
    }
}

static dt_status check(dt_message *out, int64_t world_size, dt_error *err)
{
    dt_status st;

    out->rank = -1;
    DT_TRY(dt_json_get_int_or(&out->rank, out->json, "rank", -1, out->name, err));
    if (out->rank < (kinds[out->kind].of_rank ? 0 : -1) || out->rank >= world_size)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: 'rank': rank %lld is not below the world size %lld",
                 out->name, (long long)out->rank, (long long)world_size);
    out->numbered = kinds[out->kind].numbered;
    if (out->numbered) {
        DT_TRY(dt_json_get_int(&out->sequence, out->json, "sequence", out->name, err));
        DT_TRY(dt_json_get_int(&out->time_ms, out->json, "time_ms", out->name, err));
        DT_TRY(dt_json_get_int_or(&out->after, out->json, "after", -1, out->name, err));
        json_object_del(out->json, "sum"); /* checksum of the journal line, checked by its agent */
        json_object_del(out->json, "after");
        json_object_del(out->json, "journal");
    }
    for (size_t i = 0; i < FIELDS_MAX && kinds[out->kind].fields[i] != NULL; i++)
        DT_TRY(check_field(out, kinds[out->kind].fields[i], err));
out:
    return st;
}

/* Accepts an event of an unknown kind: another dtrun with the same protocol version may have
 * written it to the journal. */
static dt_status take_unknown(dt_message *out, const char *name, int64_t world_size, dt_error *err)
{
    if (name[0] == '\0' || strlen(name) > NAME_MOST)
        return DT_FAIL(err, DT_ERR_CORRUPT, "agent: unknown event '%.64s'", name);
    out->kind = DT_MESSAGE_UNKNOWN;
    out->name = name;
    if (json_object_get(out->json, "sequence") != NULL)
        return check(out, world_size, err);
    out->rank = -1;
    return DT_OK;
}

dt_status dt_message_parse(dt_message *out, const char *text, size_t length, int64_t world_size,
                           dt_error *err)
{
    const char *name;
    dt_status st;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_json_parse(&out->json, text, length, "agent", err));
    DT_TRY(dt_json_get_string(&name, out->json, "event", "agent", err));
    for (int kind = 0; kind < DT_MESSAGE_KIND_COUNT; kind++) {
        if (strcmp(name, kinds[kind].name) != 0)
            continue;
        out->kind = (dt_message_kind)kind;
        out->name = kinds[kind].name;
        DT_TRY(check(out, world_size, err));
        return DT_OK;
    }
    DT_TRY(take_unknown(out, name, world_size, err));
    return DT_OK;
out:
    dt_message_release(out);
    return st;
}

void dt_message_release(dt_message *message)
{
    json_decref(message->json);
    memset(message, 0, sizeof(*message));
}

const char *dt_message_string(const dt_message *message, const char *key)
{
    const char *text = json_string_value(json_object_get(message->json, key));

    return text != NULL ? text : "";
}

bool dt_message_is_program_checkpoint(const dt_message *message)
{
    return dt_message_string(message, "directory")[0] == '/';
}

int64_t dt_message_int(const dt_message *message, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(message->json, key);

    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

double dt_message_number(const dt_message *message, const char *key)
{
    const json_t *value = json_object_get(message->json, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}
