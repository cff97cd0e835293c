/* kept: what the run store says of an attempt, a second time: runs/ID/attempt-N/history.json.
 *
 * The supervisor writes it when it begins to follow the attempt, when a stop is asked for, and when the
 * attempt has ended. Of points and events it has none: those are in the agents' journals. From it the
 * rows of a run are written anew where the store was deleted or set back (rebuild.h). How far the journals
 * were stored says whether it was set back, or lacks the end alone (rebuild_int.h).
 *
 * File       mode 0600, replaced whole and synced
 * Ownership  strings of what is read live in the arena
 */
#ifndef DT_FOLDER_ATTEMPT_RECORD_H
#define DT_FOLDER_ATTEMPT_RECORD_H

#include "base/arena.h"
#include "store/store.h"

typedef struct dt_attempt_record {
    dt_run run; /* as it is while this is the newest attempt, but for recipe_text and boot_id */
    int64_t created_ms, start_step; /* of the attempt */
    const char *changes_json;       /* what --set changed */
    const char *provenance_json;    /* where it comes from */
    const dt_node *nodes;           /* name, state, acknowledged */
    int64_t node_count;
    bool stop_asked;
} dt_attempt_record;

/* folder: runs/ID. The folder of the attempt, run.attempt, is there. */
dt_status dt_attempt_record_write(const dt_attempt_record *record, const char *folder,
                                  dt_error *err);
/* DT_ERR_NOT_FOUND, DT_ERR_CORRUPT; DT_ERR_UNSUPPORTED: another dtrun's. */
dt_status dt_attempt_record_read(dt_attempt_record *out, const char *folder, int64_t attempt,
                                 dt_arena *arena, dt_error *err);
/* The newest attempt of which there is one, 0: none. Attempts have numbers without a hole but for those
 * that no supervisor ever followed. */
int64_t dt_attempt_record_newest(const char *folder);
bool dt_attempt_record_exists(const char *folder, int64_t attempt);

#endif
