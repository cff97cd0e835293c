/* step_log_rare: reads evaluations, checkpoints and failures. */
#include <math.h>
#include <string.h>

#include "runner/term/format.h"
#include "runner/view/follow/step_log_int.h"
#include "runner/view/runs/incidents.h"

dt_status dt_step_log_read_evaluations(dt_step_reading *r, dt_error *err)
{
    dt_evaluation *all;
    dt_status st = DT_OK;
    dt_strbuf text;
    int64_t count;

    DT_TRY(dt_evaluations_read(&all, &count, &r->log->valid_step, r->store, r->run->id, r->arena,
                               err));
    for (int64_t i = 0; i < count; i++) {
        const dt_evaluation *e = &all[i];

        if (r->log->json) {
            json_t *object = dt_step_log_object(r, "evaluation", e->time_ms, e->attempt, e->step);

            json_object_set_new(object, DT_VALID_LOSS, dt_json_number(e->loss));
            if (!isnan(e->bleu))
                json_object_set_new(object, DT_VALID_BLEU, dt_json_number(e->bleu));
            DT_TRY(dt_step_log_add_json(r, e->time_ms, object, err));
            continue;
        }
        dt_strbuf_init(&text);
        dt_step_log_add_place(&text, r, e->step);
        dt_strbuf_add_str(&text, "  ");
        dt_evaluation_add(&text, e);
        dt_step_log_add_text(r, e->time_ms, &text);
    }
out:
    return st;
}

static dt_status add_checkpoint(dt_step_reading *r, const dt_store_checkpoint *c, dt_error *err)
{
    const char *slash = strrchr(c->path, '/');
    char size[DT_FORMAT_SIZE];
    json_t *object;
    dt_strbuf text;

    if (r->log->json) {
        object = dt_step_log_object(r, "checkpoint", c->time_ms, c->attempt, c->step);
        json_object_set_new(object, "checkpoint",
                            dt_json_text(slash != NULL ? slash + 1 : c->path));
        json_object_set_new(object, "bytes", json_integer(c->bytes));
        json_object_set_new(object, DT_VALID_LOSS, dt_json_number(c->valid_loss));
        json_object_set_new(object, "seconds", dt_json_number(c->seconds));
        return dt_step_log_add_json(r, c->time_ms, object, err);
    }
    dt_strbuf_init(&text);
    dt_step_log_add_place(&text, r, c->step);
    dt_strbuf_add_fmt(&text, "  checkpoint saved, %s",
                      dt_format_bytes(size, sizeof(size), (double)c->bytes));
    dt_step_log_add_text(r, c->time_ms, &text);
    return DT_OK;
}

dt_status dt_step_log_read_checkpoints(dt_step_reading *r, dt_error *err)
{
    int64_t *after = &r->log->checkpoint_step, before = *after, count;
    dt_store_checkpoint *all;
    dt_status st = DT_OK;

    DT_TRY(dt_store_checkpoint_list(r->store, &all, &count, r->run->id, r->arena, err));
    for (int64_t i = count - 1; i >= 0; i--) {
        if (all[i].step <= before)
            continue;
        *after = all[i].step > *after ? all[i].step : *after;
        DT_TRY(add_checkpoint(r, &all[i], err));
    }
out:
    return st;
}

dt_status dt_step_log_read_incidents(dt_step_reading *r, int64_t since_ms, dt_error *err)
{
    dt_store_event *events;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(dt_store_event_list(r->store, &events, &count, r->run->id, r->log->event_id, 0, r->arena,
                               err));
    for (int64_t i = 0; i < count; i++) {
        const char *sentence = dt_incident_sentence(&events[i], r->arena);
        json_t *object;

        r->log->event_id = events[i].id;
        if (sentence == NULL || events[i].time_ms < since_ms ||
            (r->log->without_restarts && strcmp(events[i].kind, "restart") == 0))
            continue;
        if (!r->log->json) {
            dt_step_log_add_line(r, events[i].time_ms, sentence);
            r->out->items[r->out->count - 1].incident = true;
            continue;
        }
        object = dt_step_log_object(r, events[i].kind, events[i].time_ms, events[i].attempt,
                                    r->run->step);
        json_object_set_new(object, "message", dt_json_text(sentence));
        DT_TRY(dt_step_log_add_json(r, events[i].time_ms, object, err));
    }
out:
    return st;
}
