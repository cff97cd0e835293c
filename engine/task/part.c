#include "engine/task/part.h"

#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

/* A byte takes at most six bytes of JSON, so an event stays far below DT_EVENT_MAX_BYTES. */
#define PIECE_BYTES ((size_t)64 << 10)

void dt_task_parts_open(dt_task_parts *out, dt_events *events, const dt_plan_task *task,
                        const dt_task_share *share, bool scores)
{
    *out = (dt_task_parts){.events = events,
                           .task = task,
                           .share = share,
                           .scores = scores,
                           .since_seconds = dt_clock_monotonic_seconds()};
    dt_strbuf_init(&out->text);
}

void dt_task_parts_close(dt_task_parts *parts)
{
    dt_strbuf_release(&parts->text);
}

/* Bytes of the next piece, which does not end inside a character. */
static size_t piece_of(const char *text, size_t left)
{
    size_t length = left < PIECE_BYTES ? left : PIECE_BYTES;

    while (length > 1 && length < left && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

/* Add the bytes as text if they are UTF-8, else as hex. */
static void add_bytes(json_t *event, const char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    dt_strbuf hex;

    if (dt_utf8_valid_length(bytes, length) == length && memchr(bytes, 0, length) == NULL) {
        json_object_set_new(event, "text", json_stringn(bytes, length));
        return;
    }
    dt_strbuf_init(&hex);
    for (size_t i = 0; i < length; i++) {
        dt_strbuf_add_char(&hex, digits[(unsigned char)bytes[i] >> 4]);
        dt_strbuf_add_char(&hex, digits[(unsigned char)bytes[i] & 15]);
    }
    json_object_set_new(event, "hex", json_stringn(hex.data, hex.length));
    dt_strbuf_release(&hex);
}

static dt_status send(dt_task_parts *parts, dt_error *err)
{
    double now = dt_clock_monotonic_seconds();
    const char *text = parts->text.data;
    size_t length = parts->text.length, at = 0;
    dt_status st = DT_OK;

    do {
        size_t piece = piece_of(text + at, length - at);
        bool last = at + piece == length;
        json_t *event =
            json_pack("{s:s, s:I, s:I, s:b}", "event", "part", "part", (json_int_t)parts->part,
                      "offset", (json_int_t)at, "last", (int)last);

        if (last) {
            json_object_set_new(event, "lines",
                                json_integer(parts->task->parts[parts->part].lines));
            json_object_set_new(event, "tokens", json_integer(parts->tokens));
            json_object_set_new(event, "seconds", json_real(now - parts->since_seconds));
        }
        if (last && parts->scores)
            json_object_set_new(event, "log_likelihood", dt_json_number(parts->log_likelihood));
        add_bytes(event, text + at, piece);
        DT_TRY(dt_events_send(parts->events, event, err));
        at += piece;
    } while (at < length);
    dt_strbuf_reset(&parts->text);
    parts->tokens = 0;
    parts->log_likelihood = 0;
    parts->since_seconds = now;
out:
    return st;
}

dt_status dt_task_parts_add(dt_task_parts *parts, const char *text, size_t length, int64_t tokens,
                            double log_likelihood, dt_error *err)
{
    int64_t line = parts->share->numbers[parts->given++];
    const dt_plan_part *all = parts->task->parts;

    dt_strbuf_add(&parts->text, text, length);
    parts->tokens += tokens;
    parts->log_likelihood += log_likelihood;
    while (line >= all[parts->part].first + all[parts->part].lines)
        parts->part++;
    if (line + 1 < all[parts->part].first + all[parts->part].lines)
        return DT_OK;
    return send(parts, err);
}
