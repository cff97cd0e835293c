/* note: records changes of labels as events, and lists the versions of a note. */
#include "store/note.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "store/event.h"

void dt_note_version(char out[DT_NOTE_VERSION_BYTES], const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    snprintf(out, DT_NOTE_VERSION_BYTES, "%016llx", (unsigned long long)hash);
}

/* --- events */

/* Adds an event of no node; steals `json`. */
static dt_status add_event(dt_store *store, const char *run, int64_t attempt, int64_t time_ms,
                           const char *kind, json_t *json, dt_error *err)
{
    dt_store_event event = {
        .attempt = attempt, .node = -1, .rank = -1, .time_ms = time_ms, .kind = kind};
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    event.json = text.data;
    st = dt_store_event_add(store, run, &event, err);
    dt_strbuf_release(&text);
    json_decref(json);
    return st;
}

dt_status dt_store_note_add(dt_store *store, const char *run, int64_t attempt, int64_t time_ms,
                            const char *text, dt_error *err)
{
    return add_event(store, run, attempt, time_ms, DT_STORE_NOTED,
                     json_pack("{s:s, s:o}", "event", DT_STORE_NOTED, "note", dt_json_text(text)),
                     err);
}

static dt_status record_change(dt_store *store, const dt_run *run, int64_t now_ms, const char *kind,
                               const char *key, const char *was, const char *value, dt_error *err)
{
    if (value == NULL || strcmp(value, was) == 0)
        return DT_OK;
    return add_event(store, run->id, run->attempt, now_ms, kind,
                     json_pack("{s:s, s:o, s:o}", "event", kind, key, dt_json_text(value), "was",
                               dt_json_text(was)),
                     err);
}

dt_status dt_labels_record(dt_store *store, const char *run, const dt_labels *labels, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t now_ms = labels->now_ms, count;
    dt_note *notes;
    dt_arena arena;
    dt_run now;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_run_find(store, &now, run, &arena, err));
    DT_TRY(record_change(store, &now, now_ms, "renamed", "name", now.name, labels->name, err));
    DT_TRY(record_change(store, &now, now_ms, "tagged", "tags", now.tags, labels->tags, err));
    if (labels->note == NULL || strcmp(labels->note, now.note) == 0)
        goto out;
    DT_TRY(dt_store_note_list(store, &notes, &count, now.id, &arena, err));
    if (count > 0 && !notes[count - 1].recorded)
        DT_TRY(dt_store_note_add(store, now.id, now.attempt, count > 1 ? now_ms : notes[0].time_ms,
                                 now.note, err));
    DT_TRY(dt_store_note_add(store, now.id, now.attempt, now_ms, labels->note, err));
out:
    dt_arena_release(&arena);
    return st;
}

/* --- the versions of a note */

static const char *text_of(const dt_store_event *event, dt_arena *arena)
{
    const char *text = "";
    json_t *json = NULL;

    if (dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) == DT_OK &&
        dt_json_get_string(&text, json, "note", "event", NULL) == DT_OK)
        text = dt_arena_strdup(arena, text);
    json_decref(json);
    return text;
}

dt_status dt_store_note_list(dt_store *store, dt_note **out, int64_t *count, const char *run,
                             dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_store_event *events;
    int64_t events_count;
    dt_run now;

    *count = 0;
    DT_TRY(dt_store_run_find(store, &now, run, arena, err));
    DT_TRY(dt_store_event_list_of_kind(store, &events, &events_count, now.id, DT_STORE_NOTED, arena,
                                       err));
    *out = dt_arena_alloc_array(arena, (size_t)events_count + 1, sizeof(**out));
    for (int64_t i = 0; i < events_count; i++)
        (*out)[(*count)++] = (dt_note){
            .time_ms = events[i].time_ms, .text = text_of(&events[i], arena), .recorded = true};
    /* a note of the launch, or one that a program without this history has written */
    if (*count == 0 ? now.note[0] != '\0' : strcmp((*out)[*count - 1].text, now.note) != 0)
        (*out)[(*count)++] =
            (dt_note){.time_ms = events_count == 0 ? now.created_ms : 0, .text = now.note};
    for (int64_t i = 0; i < *count; i++)
        dt_note_version((*out)[i].version, (*out)[i].text);
out:
    return st;
}
