/* output: clean text, the last lines, and the check of events. */
#include "runner/agent/rank/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/display.h"

void dt_text_clean(dt_strbuf *out, const char *text, size_t length, bool cut)
{
    const unsigned char *at = (const unsigned char *)text;

    if (length > 0 && text[length - 1] == '\r')
        length--;
    for (size_t i = 0, good; i < length; i += good != 0 ? good : 1) {
        uint32_t code = 0;

        good = dt_utf8_decode(&code, at + i, length - i);
        if (good != 0 && code != 0)
            dt_strbuf_add(out, text + i, good);
        else
            dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
    }
    if (cut)
        dt_strbuf_add_str(out, DT_TEXT_CUT_MARK);
}

#define LINE_BYTES 1000 /* fifty lines stay far below the largest event */

void dt_tail_add(dt_tail *tail, const char *text)
{
    size_t length = strlen(text);
    dt_strbuf kept;

    dt_strbuf_init(&kept); /* cleaning again repairs a character that was cut */
    dt_text_clean(&kept, text, length < LINE_BYTES ? length : LINE_BYTES, length > LINE_BYTES);
    free(tail->lines[tail->next]);
    tail->lines[tail->next] = dt_strbuf_detach(&kept);
    tail->next = (tail->next + 1) % DT_TAIL_LINES;
}

void dt_tail_release(dt_tail *tail)
{
    for (size_t i = 0; i < DT_TAIL_LINES; i++)
        free(tail->lines[i]);
    memset(tail, 0, sizeof(*tail));
}

json_t *dt_tail_to_json(const dt_tail *tail)
{
    json_t *lines = json_array();

    for (size_t i = 0; i < DT_TAIL_LINES; i++) {
        const char *line = tail->lines[(tail->next + i) % DT_TAIL_LINES];
        if (line != NULL)
            json_array_append_new(lines, json_string(line));
    }
    return lines;
}

#define FIELDS_MAX 4

/* Required fields: "i step" an integer, "f seconds" a number, "s text" a string, "o values" an
 * object, "a counts" an array. */
static const struct {
    const char *kind, *fields[FIELDS_MAX];
} kinds[] = {
    {"ready", {"i pid"}},
    {"memory", {NULL}},
    {"metrics", {"i step", "o values"}},
    {"pace", {"i step", "f step_seconds", "f waited_seconds"}},
    {"record", {"i offset", "s text"}},
    {"phase", {"s phase"}},
    {"checkpoint", {"i step", "s directory", "i bytes", "s digest"}},
    {"checkpoint_failed", {"i step", "s message"}},
    {"evaluation", {"i step", "o tasks"}},
    {"samples", {"i step", "a samples"}},
    {"confusion", {"i step", "a counts"}},
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
    case 'a':
        return dt_json_get_array(&object, event, key, kind, err);
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
