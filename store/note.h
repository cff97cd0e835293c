/* note: records changes of the labels that people give a run, and lists the versions of its note.
 *
 * Each change of a label is an event of the run, of no node:
 *   {"event": "renamed", "name", "was"}
 *   {"event": "tagged", "tags", "was"}
 *   {"event": "noted", "note"}            a version of the note
 * A note that was written without an event, by `dtrun launch --note`, gets its event before the first change.
 */
#ifndef DT_STORE_NOTE_H
#define DT_STORE_NOTE_H

#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_STORE_NOTED        "noted"
#define DT_NOTE_VERSION_BYTES 17

typedef struct dt_note {
    int64_t time_ms; /* when it was written; 0: not known */
    const char *text;
    bool recorded; /* has an event */
    char version[DT_NOTE_VERSION_BYTES];
} dt_note;

/* Writes the version of a text, 16 hexadecimal digits: equal texts have equal versions. */
void dt_note_version(char out[DT_NOTE_VERSION_BYTES], const char *text);

/* Lists the versions of a run's note, the oldest first; the last is its present note. Empty if it never had one. */
dt_status dt_store_note_list(dt_store *store, dt_note **out, int64_t *count, const char *run,
                             dt_arena *arena, dt_error *err);
/* Adds a version to the history; the note of the run itself does not change. */
dt_status dt_store_note_add(dt_store *store, const char *run, int64_t attempt, int64_t time_ms,
                            const char *text, dt_error *err);

/* Records the labels that differ from those of the run; called before they change, in the same transaction. */
dt_status dt_labels_record(dt_store *store, const char *run, const dt_labels *labels,
                           dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
