/* attempt_record: reads and writes runs/ID/attempt-N/history.json, a copy of what the store says of an attempt.
 *
 * The supervisor writes it when it starts to follow the attempt, when a stop is requested, and when the
 * attempt has ended. It holds no points and events: those are in the agents' journals. If the store was
 * deleted or replaced by an older copy, the rows of the run are restored from it (rebuild.h). The acknowledged
 * numbers in it show whether the store is an older copy, or lacks only the end (rebuild_int.h).
 *
 * File       mode 0600, replaced atomically and synced
 * Ownership  strings that are read live in the arena
 */
#ifndef DT_FOLDER_ATTEMPT_RECORD_H
#define DT_FOLDER_ATTEMPT_RECORD_H

#include "base/arena.h"
#include "store/store.h"

typedef struct dt_attempt_record {
    dt_run run; /* the run while this is its newest attempt, without recipe_text and boot_id */
    int64_t created_ms, start_step; /* of the attempt */
    const char *changes_json;       /* what --set changed */
    const char *provenance_json;    /* provenance of the attempt */
    const dt_node *nodes;           /* name, state, acknowledged */
    int64_t node_count;
    bool stop_asked;
} dt_attempt_record;

/* Writes the record. folder: runs/ID; the folder of attempt run.attempt must exist. */
dt_status dt_attempt_record_write(const dt_attempt_record *record, const char *folder,
                                  dt_error *err);
/* DT_ERR_NOT_FOUND, DT_ERR_CORRUPT; DT_ERR_UNSUPPORTED: written by another version of dtrun. */
dt_status dt_attempt_record_read(dt_attempt_record *out, const char *folder, int64_t attempt,
                                 dt_arena *arena, dt_error *err);
/* Returns the newest attempt that has a record, 0 if there is none. Numbers have no gaps, except
 * for attempts that no supervisor ever followed. */
int64_t dt_attempt_record_newest(const char *folder);
bool dt_attempt_record_exists(const char *folder, int64_t attempt);

#endif
