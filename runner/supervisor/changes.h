/* changes: what the supervisor writes into the run store while the loop turns.
 *
 * Each is added to the batch that is open, which dt_follow_commit ends (store_writer.h). Before the
 * session has its writer (while it is loaded) it is done at once, in the caller's transaction.
 */
#ifndef DT_SUPERVISOR_CHANGES_H
#define DT_SUPERVISOR_CHANGES_H

#include "runner/supervisor/supervisor_int.h"

dt_status dt_change_metric(dt_session *session, int64_t step, const char *name, double value,
                           int64_t time_ms, dt_error *err);
dt_status dt_change_event(dt_session *session, const dt_store_event *event, dt_error *err);
dt_status dt_change_checkpoint(dt_session *session, const dt_store_checkpoint *checkpoint,
                               dt_error *err);
dt_status dt_change_node(dt_session *session, int64_t attempt, const dt_node *node, dt_error *err);
/* Its log_bytes are those that the log then has. */
dt_status dt_change_rank(dt_session *session, dt_supervised_rank *rank, dt_error *err);
dt_status dt_change_progress(dt_session *session, dt_error *err);
dt_status dt_change_steps_total(dt_session *session, int64_t steps, dt_error *err);
dt_status dt_change_state(dt_session *session, dt_run_state state, dt_error *err);
/* The attempt as it is now, in its folder (kept.h). What is wrong with that is no error of the history. */
dt_status dt_change_kept(dt_session *session, dt_error *err);
/* The same at once, on this thread: at the end, when nothing more goes through the writer. */
void dt_change_kept_now(dt_session *session);
/* A line at the end of the rank's log, with its newline. */
dt_status dt_change_log(dt_session *session, dt_supervised_rank *rank, const char *line,
                        size_t length, dt_error *err);

#endif
