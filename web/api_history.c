/* api_history: serves the checkpoints and the events of a run. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "web/request.h"
#include "web/run_json.h"

#define EVENTS_DEFAULT 200
#define EVENTS_MOST    1000
#define EVENTS_READ    32 /* per query: an event may have some kilobytes */

/* Returns true if the checkpoint's directory still exists. Relative paths are below the run's folder. */
static bool checkpoint_present(const dt_web_request *request, const char *run,
                               const dt_store_checkpoint *checkpoint)
{
    dt_store_checkpoint absolute = *checkpoint;

    if (checkpoint->path[0] != '/')
        absolute.path = dt_arena_printf(request->arena, "%s/runs/%s/checkpoints/%s",
                                        request->folder, run, checkpoint->path);
    return dt_store_checkpoint_exists(&absolute);
}

dt_status dt_web_checkpoints(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_store_checkpoint *checkpoints;
    json_t *list = json_array();
    dt_status st = DT_OK;
    int64_t count;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_store_checkpoint_list(request->store, &checkpoints, &count, run.id, request->arena,
                                    err));
    for (int64_t i = 0; i < count; i++) {
        const dt_store_checkpoint *c = &checkpoints[i];

        json_array_append_new(
            list,
            json_pack("{sI sI so so sI so so so so sb}", "attempt", (json_int_t)c->attempt, "step",
                      (json_int_t)c->step, "path", dt_web_string_json(c->path), "digest",
                      dt_web_string_json(c->digest), "bytes", (json_int_t)c->bytes, "time_ms",
                      dt_web_time_json(c->time_ms), "valid_loss", dt_json_number(c->valid_loss),
                      "score", dt_json_number(c->score), "seconds", dt_json_number(c->seconds),
                      "present", (int)checkpoint_present(request, run.id, c)));
    }
    st = dt_web_reply_json(
        reply, 200, json_pack("{so sO}", "run", dt_web_string_json(run.id), "checkpoints", list),
        err);
out:
    json_decref(list);
    return st;
}

typedef struct events {
    dt_arena arena; /* of the current read */
    char *run;
    int64_t next, left; /* id of the last event that was read; number of events left to read */
    bool begun, any;
} events;

static dt_status events_read(events *e, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    int64_t count, wanted = e->left < EVENTS_READ ? e->left : EVENTS_READ;
    dt_store_event *list;
    dt_status st;

    dt_arena_reset(&e->arena);
    st = dt_store_event_list(store, &list, &count, e->run, e->next, wanted, &e->arena, err);
    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++) {
        json_t *event;

        e->next = list[i].id;
        if (!dt_web_event_is_shown(list[i].kind))
            continue;
        event = dt_web_event_json(&list[i]);
        dt_strbuf_add_str(out, e->any ? "," : "");
        dt_json_write(out, event);
        json_decref(event);
        e->any = true;
    }
    e->left -= count;
    *more = count == wanted && e->left > 0;
    if (!*more) /* a full page may be followed by more events */
        dt_strbuf_add_fmt(out, "],\"next\":%lld,\"more\":%s,\"api\":%d}\n", (long long)e->next,
                          count == wanted ? "true" : "false", DT_WEB_API_VERSION);
    return DT_OK;
}

static dt_status events_next(void *state, dt_store *store, dt_strbuf *out, bool *more,
                             dt_error *err)
{
    dt_status st = DT_OK;
    events *e = state;

    if (!e->begun) {
        json_t *run = dt_web_string_json(e->run);

        dt_strbuf_add_str(out, "{\"run\":");
        dt_json_write(out, run);
        dt_strbuf_add_str(out, ",\"events\":[");
        json_decref(run);
        e->begun = true;
    }
    do
        st = events_read(e, store, out, more, err);
    while (st == DT_OK && *more && out->length < DT_WEB_PART_BYTES);
    return st;
}

static void events_free(void *state)
{
    events *e = state;

    dt_arena_release(&e->arena);
    free(e->run);
    free(e);
}

dt_status dt_web_events(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    events *e = dt_calloc(1, sizeof(*e));
    dt_status st = DT_OK;
    dt_run run;

    dt_web_reply_stream(reply, events_next, events_free, e);
    dt_arena_init(&e->arena, 0);
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&e->next, request, "after", 0, 0, INT64_MAX, err));
    DT_TRY(dt_web_argument_int(&e->left, request, "limit", EVENTS_DEFAULT, 1, EVENTS_MOST, err));
    e->run = dt_strdup(run.id);
out:
    return st;
}
