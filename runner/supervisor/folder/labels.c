/* labels: reads and writes labels.json in the folder of a run. */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "runner/supervisor/folder/run_folder.h"
#include "store/note.h"

#define MAX_BYTES ((size_t)1 << 20)
#define NOTES_BYTES \
    ((size_t)400 << 10) /* of the versions of a note that the file holds; older ones are left out */
#define VERSION 1

static json_t *text_of(const char *text)
{
    return dt_json_text(text != NULL ? text : "");
}

/* Returns the newest versions of the note, the oldest first: [{"time_ms", "note"}]. */
static json_t *notes_of(const dt_note *notes, int64_t count)
{
    json_t *list = json_array();
    size_t bytes = 0;

    for (int64_t i = count - 1; i >= 0 && bytes < NOTES_BYTES; i--) {
        bytes += strlen(notes[i].text);
        json_array_insert_new(list, 0,
                              json_pack("{s:I, s:o}", "time_ms", (json_int_t)notes[i].time_ms,
                                        "note", text_of(notes[i].text)));
    }
    return list;
}

static dt_status write_file(const dt_run *run, const dt_note *notes, int64_t notes_count,
                            const char *folder, dt_error *err)
{
    json_t *json = json_object();
    dt_strbuf path, text;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/" DT_LABELS_FILE, folder);
    json_object_set_new(json, "version", json_integer(VERSION));
    json_object_set_new(json, "name", text_of(run->name));
    json_object_set_new(json, "tags", text_of(run->tags));
    json_object_set_new(json, "note", text_of(run->note));
    json_object_set_new(json, "group", text_of(run->group));
    json_object_set_new(json, "parent", text_of(run->parent));
    json_object_set_new(json, "parent_step", json_integer(run->parent_step));
    if (notes_count > 0)
        json_object_set_new(json, "notes", notes_of(notes, notes_count));
    dt_json_write_pretty(&text, json);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
    json_decref(json);
    return st;
}

dt_status dt_labels_write(const dt_run *run, const char *folder, dt_error *err)
{
    return write_file(run, NULL, 0, folder, err);
}

dt_status dt_labels_change(dt_store *store, const char *run, const dt_labels *labels,
                           dt_arena *arena, dt_error *err)
{
    dt_labels change = *labels;
    const char *folder;
    int64_t count = 0;
    dt_note *notes;
    dt_status st;
    dt_run now;

    change.now_ms = dt_clock_wall_ms();
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    if (dt_file_exists(folder))
        DT_TRY(dt_run_check_owner(run, folder, err));
    DT_TRY(dt_store_run_label(store, run, &change, err));
    DT_TRY(dt_store_run_find(store, &now, run, arena, err));
    DT_TRY(dt_store_note_list(store, &notes, &count, now.id, arena, err));
    if (dt_file_exists(folder))
        DT_TRY(write_file(&now, notes, count, folder, err));
out:
    return st;
}

dt_status dt_labels_set(dt_store *store, const char *run, const dt_labels *labels, dt_arena *arena,
                        dt_error *err)
{
    bool begun = false;
    dt_status st;

    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_labels_change(store, run, labels, arena, err));
    DT_TRY(dt_store_commit(store, err));
    begun = false;
out:
    if (begun)
        dt_store_rollback(store);
    return st;
}

static void read_text(const char **out, const json_t *json, const char *key, dt_arena *arena)
{
    const char *text = json_string_value(json_object_get(json, key));
    const char *copy = text != NULL ? dt_arena_strdup(arena, text) : NULL;

    if (copy != NULL)
        *out = copy;
}

void dt_labels_read(dt_run *out, const char *folder, dt_arena *arena)
{
    json_t *json = NULL;
    const char *path = dt_arena_printf(arena, "%s/" DT_LABELS_FILE, folder);

    if (dt_json_read(&json, path, MAX_BYTES, NULL) != DT_OK)
        return;
    read_text(&out->name, json, "name", arena);
    read_text(&out->tags, json, "tags", arena);
    read_text(&out->note, json, "note", arena);
    read_text(&out->group, json, "group", arena);
    read_text(&out->parent, json, "parent", arena);
    out->parent_step = json_integer_value(json_object_get(json, "parent_step"));
    json_decref(json);
}

dt_status dt_labels_restore_notes(dt_store *store, const char *run, const char *folder,
                                  dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/" DT_LABELS_FILE, folder), *note;
    json_t *json = NULL, *notes, *one;
    dt_status st = DT_OK;
    int64_t time_ms;
    size_t i;

    if (dt_json_read(&json, path, MAX_BYTES, NULL) != DT_OK)
        return DT_OK;
    notes = json_object_get(json, "notes");
    json_array_foreach(notes, i, one)
        if (dt_json_get_string(&note, one, "note", "note", NULL) == DT_OK &&
            dt_json_get_int(&time_ms, one, "time_ms", "note", NULL) == DT_OK)
            DT_TRY(dt_store_note_add(store, run, 1, time_ms, note, err));
out:
    json_decref(json);
    return st;
}
