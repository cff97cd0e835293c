/* step_log_lines: adds lines to the log, as text or JSON objects. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "runner/term/format.h"
#include "runner/view/follow/step_log_int.h"

void dt_step_log_add_line(dt_step_reading *r, int64_t time_ms, const char *text)
{
    dt_step_lines *out = r->out;

    if (out->count == out->capacity) {
        int64_t wider = out->capacity == 0 ? 64 : out->capacity * 2;
        dt_step_line *room = dt_arena_alloc_array(r->arena, (size_t)wider, sizeof(room[0]));

        if (out->count > 0)
            memcpy(room, out->items, (size_t)out->count * sizeof(room[0]));
        out->items = room;
        out->capacity = wider;
    }
    out->items[out->count] = (dt_step_line){time_ms, out->count, text, false};
    out->count++;
}

void dt_step_log_add_text(dt_step_reading *r, int64_t time_ms, dt_strbuf *text)
{
    dt_step_log_add_line(r, time_ms, dt_arena_strdup(r->arena, text->data));
    dt_strbuf_release(text);
}

json_t *dt_step_log_object(const dt_step_reading *r, const char *kind, int64_t time_ms,
                           int64_t attempt, int64_t step)
{
    char time[DT_CLOCK_ISO_SIZE];

    return json_pack("{ss ss sI sI so}", "time", dt_clock_iso(time, time_ms), "kind", kind,
                     "attempt", (json_int_t)attempt, "step", (json_int_t)step, "steps_total",
                     r->run->steps_total > 0 ? json_integer(r->run->steps_total) : json_null());
}

dt_status dt_step_log_add_json(dt_step_reading *r, int64_t time_ms, json_t *object, dt_error *err)
{
    dt_strbuf text;

    if (object == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    dt_strbuf_init(&text);
    dt_json_write(&text, object);
    json_decref(object);
    dt_step_log_add_text(r, time_ms, &text);
    return DT_OK;
}

void dt_step_log_add_place(dt_strbuf *text, const dt_step_reading *r, int64_t step)
{
    dt_strbuf_add_fmt(text, r->run->steps_total > 0 ? "step %lld/%lld" : "step %lld",
                      (long long)step, (long long)r->run->steps_total);
}

void dt_step_log_add_loss(dt_strbuf *text, double value)
{
    char number[DT_FORMAT_SIZE];

    dt_strbuf_add_str(text, isfinite(value) ? dt_format_loss(number, sizeof(number), value)
                                            : dt_format_exact(number, sizeof(number), value));
}
