/* api_notes: answers with the versions of a run's note. */
#include "store/note.h"
#include "web/web_int.h"

dt_status dt_web_notes(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    char version[DT_NOTE_VERSION_BYTES];
    json_t *list = json_array();
    dt_status st = DT_OK;
    dt_note *notes;
    int64_t count;
    dt_run run;

    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_store_note_list(request->store, &notes, &count, run.id, request->arena, err));
    dt_note_version(version, run.note);
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{ss so so}", "version", notes[i].version, "time_ms",
                                              dt_web_time_json(notes[i].time_ms), "note",
                                              dt_web_string_json(notes[i].text)));
    DT_TRY(dt_web_reply_json(reply, 200,
                             json_pack("{so so ss sO}", "run", dt_web_string_json(run.id), "note",
                                       dt_web_string_json(run.note), "version", version, "notes",
                                       list),
                             err));
out:
    json_decref(list);
    return st;
}
