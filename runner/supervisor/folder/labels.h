/* labels: reads and writes runs/ID/labels.json, a copy of the labels that users gave a run.
 *
 * A change updates the row, and the file before the transaction commits; a lost history is restored with it
 * (rebuild.h). Older runs have no such file until they get a label.
 */
#ifndef DT_FOLDER_LABELS_H
#define DT_FOLDER_LABELS_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_LABELS_FILE "labels.json"

/* Changes the row and the file, in the caller's transaction. DT_ERR_UNSUPPORTED: the run belongs
 * to another user. */
dt_status dt_labels_change(dt_store *store, const char *run, const dt_labels *labels,
                           dt_arena *arena, dt_error *err);
/* The same in its own transaction. */
dt_status dt_labels_set(dt_store *store, const char *run, const dt_labels *labels, dt_arena *arena,
                        dt_error *err);
/* Writes only the file, with the labels that the run has. */
dt_status dt_labels_write(const dt_run *run, const char *folder, dt_error *err);
/* Reads name, tags, note, group, parent and parent_step into *out; fields that cannot be read
 * are unchanged. */
void dt_labels_read(dt_run *out, const char *folder, dt_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
