/* run_folder: the folder of a run on the launch machine: paths, owner, secret, the user's labels, the mark
 * of a requested stop, and the removal of a run for good (remove.c).
 *
 *   recipe.yaml, labels.json, environment (launch_env.h), secret, logs/, checkpoints/,
 *   supervisor.{lock,log,starts}
 *   attempt-N/plan.json, history.json (attempt_record.h), node-K/place.json (attempt_record.h)
 *   attempt-N/why.json: the last judgement of why its steps take so long (policy/slow.h)
 */
#ifndef DT_RUNNER_SUPERVISOR_FOLDER_RUN_FOLDER_H
#define DT_RUNNER_SUPERVISOR_FOLDER_RUN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SUPERVISOR_STARTS "supervisor.starts" /* channel/detach.h */

/* Returns the path of the file or folder `below` the run's folder; NULL: the folder itself. */
dt_status dt_run_path(const char **out, const char *run, const char *below, dt_arena *arena,
                      dt_error *err);

/* DT_ERR_UNSUPPORTED if the run's folder belongs to another user, who alone can supervise it. */
dt_status dt_run_check_owner(const char *run, const char *folder, dt_error *err);
/* Returns the owner of claims of GPUs (node_setup/remote_helper/gpu_claims.h): this machine and its state folder; "" if
 * there is none. */
const char *dt_run_claim_owner(dt_arena *arena);

/* Checks that the state folder has room for what the end of a run writes: writes a file of that size and removes it.
 * DT_ERR_IO: the disk is full, or the folder cannot be written. */
dt_status dt_run_check_room(dt_arena *arena, dt_error *err);

/* Returns the secret of the run's ranks (run_folder.c): 32 random bytes in hexadecimal from
 * FOLDER/secret (0600); created if missing. */
dt_status dt_run_secret(const char **out, const char *folder, dt_arena *arena, dt_error *err);

/* labels: reads and writes runs/ID/labels.json, a copy of the labels that users gave a run, and of the versions of its
 * note (labels.c).
 *
 * A change updates the row, and the file before the transaction commits; a lost history is restored with it
 * (rebuild.h). Older runs have no such file until they get a label.
 */

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

/* Adds the versions of the note that the file has to the history. */
dt_status dt_labels_restore_notes(dt_store *store, const char *run, const char *folder,
                                  dt_arena *arena, dt_error *err);

/* stop_mark: records in supervisor.lock that a person requested a stop, or ended an attempt together with its
 * supervisor (`dtrun stop --now` if nothing else can be written). The next supervisor reads the mark first, and
 * does not continue a run that was to be stopped.
 *
 * The mark overwrites bytes that the supervisor reserves when it takes the lock, so it needs no space on a full
 * disk. It applies to the attempt that it names and earlier ones, until the run has ended.
 *
 * Threads  the holder of supervisor.lock; dt_stop_mark_ask: any process
 */

/* Reserves room for the mark if there is none; an existing mark is kept. */
dt_status dt_stop_mark_reserve(int lock, dt_error *err);
/* Writes the mark into the reserved room, and syncs it. DT_ERR_IO: nothing is reserved, and the
 * disk is full. */
dt_status dt_stop_mark_set(int lock, int64_t attempt, dt_error *err);
dt_status dt_stop_mark_clear(int lock, dt_error *err);
/* Records a stop request before it is sent, whether there is a supervisor or not; in the
 * reserved room, else in a new one. A mark of dt_stop_mark_set is kept. folder: runs/ID, also
 * below. */
dt_status dt_stop_mark_ask(const char *folder, int64_t attempt, bool now, dt_error *err);

typedef enum dt_stop_mark {
    DT_STOP_MARK_NONE,
    DT_STOP_MARK_ASKED,     /* stop with a grace period */
    DT_STOP_MARK_ASKED_NOW, /* stop at once */
    DT_STOP_MARK_STOPPED,   /* its processes and its supervisor were killed */
} dt_stop_mark;
dt_stop_mark dt_stop_mark_read(const char *folder, int64_t attempt);
/* True if the mark is DT_STOP_MARK_STOPPED. */
bool dt_stop_mark_covers(const char *folder, int64_t attempt);

/* preempted: runs/ID/preempted, by which the queue (runner/queue/queue.h) says before a stop that the attempt waits
 * afterwards instead of ending. It applies to the attempt that it names. A stop by a person counts for more: its mark is
 * above.
 */

dt_status dt_preempted_ask(const char *folder, int64_t attempt, const char *reason, dt_error *err);
bool dt_preempted_is_asked(const char *folder, int64_t attempt);
/* Returns the reason, in the arena, if the attempt is to wait; NULL: it is not. */
const char *dt_preempted_reason(const char *folder, int64_t attempt, dt_arena *arena);
/* The same for a stop after which the run continues at once on nodes that it had lost. */
dt_status dt_grows_ask(const char *folder, int64_t attempt, const char *reason, dt_error *err);
const char *dt_grows_reason(const char *folder, int64_t attempt, dt_arena *arena);

/* remove: removes a run for good: its folder and its rows in the history.
 *
 * Order      one transaction removes the rows and, before it commits, renames runs/ID to runs/.removed-ID,
 *            which lists and rebuilds ignore; the files are deleted after the commit. If the rows cannot be
 *            removed (a damaged store), nothing has changed. A process that dies before the commit leaves a
 *            run that is listed without a folder; after the commit, a folder .removed-ID. Calling again, or
 *            dt_removal_finish, completes both.
 * Errors     DT_ERR_BUSY: the run is being supervised or resumed; DT_ERR_USAGE: it has not ended
 */

#define DT_REMOVED_PREFIX ".removed-"

dt_status dt_run_remove(dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Removes what a command of the run left on other machines; force: reports what cannot be removed with
 * `problem`, and goes on. Does not remove the run itself. */
dt_status dt_run_wipe_nodes(const dt_run *run, bool force, void (*problem)(const char *message),
                            dt_arena *arena, dt_error *err);
/* Finds an interrupted removal, whose rows are gone and whose files are not, by the run's id or
 * name. *id is NULL if there is none. */
dt_status dt_removal_find(const char **id, const char **aside, const char *ref, dt_arena *arena,
                          dt_error *err);
/* Removes the files of such a folder; after a failure, call again to remove the rest. */
dt_status dt_removal_finish(const char *aside, dt_error *err);
/* Locks the run: while the two descriptors are open, nobody supervises, resumes or removes it,
 * and it has ended. The caller closes them. */
dt_status dt_run_hold(int fds[2], dt_store *store, const char *run, dt_arena *arena, dt_error *err);
/* Returns the bytes of all files below a path; a file with several hard links counts several
 * times. */
int64_t dt_tree_bytes(const char *path);

#ifdef __cplusplus
}
#endif

#endif
