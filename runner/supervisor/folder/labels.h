/* labels: what people say of a run, a second time: runs/ID/labels.json.
 *
 * Who changes a label changes the row, and the file before that is final; a history that was lost is
 * written anew with it (rebuild.h). Older runs have no such file until they get a label.
 */
#ifndef DT_FOLDER_LABELS_H
#define DT_FOLDER_LABELS_H

#include "base/arena.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_LABELS_FILE "labels.json"

/* The row and the file; in the caller's transaction. DT_ERR_UNSUPPORTED: another user's run. */
dt_status dt_labels_change(dt_store *store, const char *run, const dt_labels *labels,
                           dt_arena *arena, dt_error *err);
/* The same as a transaction of its own. */
dt_status dt_labels_set(dt_store *store, const char *run, const dt_labels *labels, dt_arena *arena,
                        dt_error *err);
/* The file alone, of a run as it is. */
dt_status dt_labels_write(const dt_run *run, const char *folder, dt_error *err);
/* name, tags, note, group, parent and parent_step into *out; what cannot be read stays as it is. */
void dt_labels_read(dt_run *out, const char *folder, dt_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
