/* attempt_record: what exists twice of an attempt, in the run's folder and in the store: history.json, and
 * plan.json and place.json with their copies.
 *
 * The supervisor writes it when it starts to follow the attempt, when a stop is requested, and when the
 * attempt has ended. It holds no points and events: those are in the agents' journals. If the store was
 * deleted or replaced by an older copy, the rows of the run are restored from it (rebuild.h). The acknowledged
 * numbers in it show whether the store is an older copy, or lacks only the end (rebuild/rebuild.c).
 *
 * File       mode 0600, replaced atomically and synced
 * Ownership  strings that are read live in the arena
 */
#ifndef DT_RUNNER_SUPERVISOR_FOLDER_ATTEMPT_RECORD_H
#define DT_RUNNER_SUPERVISOR_FOLDER_ATTEMPT_RECORD_H

#include "base/memory.h"
#include "recipes/plan/plan.h"
#include "runner/node_setup/node_setup.h"
#include "store/event.h"
#include "store/run.h"

typedef struct dt_attempt_record {
    dt_run run; /* the run while this is its newest attempt, without recipe_text and boot_id */
    int64_t created_ms, start_step; /* when the attempt was created, and its first step */
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
/* Returns whether the record may say that the attempt has ended: false if its first lines, which alone are read, name a
 * state before the end. */
bool dt_attempt_record_may_have_ended(const char *folder, int64_t attempt);
/* Returns the newest attempt that has a record, 0 if there is none. Numbers have no gaps, except
 * for attempts that no supervisor ever followed. */
int64_t dt_attempt_record_newest(const char *folder);

/* copies: reads plan.json and place.json, which exist twice: as a file in the run's folder and as a text in
 * the store.
 *
 * The store's copy is made when the file is first read, and neither changes afterwards. If they differ, or if
 * the file is damaged or missing, the copy is used and the file is restored from it. If neither can be read,
 * the run fails only after its nodes were asked (missing_plan.c).
 *
 * Errors  DT_ERR_NOT_FOUND: neither exists; DT_ERR_CORRUPT: neither is valid;
 *         DT_ERR_UNSUPPORTED: another version of dtrun wrote the plan and must supervise the run
 */

/* json: new reference. *restored: the file was restored from the copy. */
dt_status dt_copies_plan(dt_plan *plan, json_t **json, bool *restored, dt_store *store,
                         const char *run, int64_t attempt, const char *folder, dt_arena *arena,
                         dt_error *err);
/* here: attempt-N/node-K on this machine. place->paths: new reference. store NULL: use only the
 * file. */
dt_status dt_copies_place(dt_node_layout *place, bool *restored, dt_store *store, const char *run,
                          int64_t attempt, int64_t node, const char *here, dt_arena *arena,
                          dt_error *err);

#endif
