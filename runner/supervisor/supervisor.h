/* supervisor: the detached process that follows a run: how commands reach it, and the webhook that it
 * reports to.
 *
 * Errors  DT_ERR_IO if it cannot be started or does not answer
 */
#ifndef DT_RUNNER_SUPERVISOR_SUPERVISOR_H
#define DT_RUNNER_SUPERVISOR_SUPERVISOR_H

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/plan/plan.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/policy/watchdog.h"
#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Saves this process's environment for the run's supervisors (folder/launch_env.h). text: the
 * recipe, which may reference secrets. Call before the row says that the run is active: from
 * then on any command may start a supervisor. */
dt_status dt_supervisor_keep_environment(const char *run, const char *text, dt_error *err);

/* Starts `dtrun supervise ID`, detached, with this process's environment; returns when it
 * answers on its control socket. */
dt_status dt_supervisor_start(const char *run, dt_error *err);

/* The same with the saved environment, for an active run without a supervisor. deliberate: a
 * person acts on the run (folder/launch_env.h). DT_ERR_UNSUPPORTED: the run belongs to another
 * user; DT_ERR_IO: it was stopped on a full disk that is still full (folder/run_folder.h), or its
 * supervisors end at once (channel/detach.h). */
dt_status dt_supervisor_revive(const char *run, bool deliberate, dt_error *err);

/* Checks that a supervisor started by this process could write the run history under this
 * process's limits. */
dt_status dt_supervisor_check_limits(dt_error *err);

/* True if the run's supervisors end at once, so that no more are started (channel/detach.h). The
 * message of dt_supervisor_ensure says why. */
bool dt_supervisor_is_broken(const char *run);

/* Starts a supervisor if the run is active and has none (its lock is free). For commands that
 * only read; a failure says nothing about the run and changes nothing. */
dt_status dt_supervisor_ensure(const dt_run *run, dt_error *err);

/* Records for the next supervisor that a person wants the run stopped; synced to disk. Call
 * before a stop is reported. */
dt_status dt_supervisor_mark_stop(const char *run, bool now, dt_error *err);

/* Requests a stop (now: no checkpoint, SIGKILL at once); starts a supervisor if there is none.
 * Returns when the request is accepted, not when the run has ended. DT_ERR_TIMEOUT: the
 * supervisor has not answered. */
dt_status dt_supervisor_stop(const char *run, bool now, dt_error *err);

/* The same, but does not start a supervisor. DT_ERR_NOT_FOUND: there is none. */
dt_status dt_supervisor_stop_running(const char *run, bool now, dt_error *err);

/* Asks for a stop after which the run waits (dt_preempted_ask came before); otherwise as dt_supervisor_stop. */
dt_status dt_supervisor_preempt(const char *run, dt_error *err);

/* True if the run has a supervisor at this moment. */
bool dt_supervisor_is_running(const char *run);
/* Returns the supervisor process if it is stopped by a signal (SIGSTOP) and does nothing until
 * SIGCONT; 0 if it is not, or is not visible from here. */
int64_t dt_supervisor_paused(const char *run);
/* Appends one sentence if the run's supervisor is paused, does not answer, or cannot write the
 * run history, or if an agent, a rank or a bridge of the run is paused on this machine; returns
 * whether it did. Waits for dt_times()->ask_paused_seconds at most. */
bool dt_supervisor_trouble(dt_strbuf *out, const char *run);
/* Kills the run's supervisor, for a stop that cannot be recorded in the store; the next
 * supervisor continues with the stop (folder/run_folder.h). *lock: keeps others out; the caller
 * closes it. On failure nothing has changed. */
dt_status dt_supervisor_end(int *lock, const char *run, dt_error *err);

/* Environment variable of the processes that a supervisor starts on this machine: the run's
 * folder. */
#define DT_SUPERVISOR_MARK "DTRUN_SUPERVISOR_OF"

/* Kills the processes that supervisors of the run started on this machine, including agents and
 * ranks of an earlier start; for a run without a supervisor. paused_only: only processes stopped
 * by a signal, which a supervisor leaves behind when it ends. Returns how many processes are
 * left. */
int64_t dt_supervisor_end_helpers(const char *run, bool paused_only);

/* What a supervisor asks the queue (runner/queue/), which knows more than its run. */
typedef struct dt_supervisor_queue {
    /* Whether the run is of the queue: then it waits again if its place is not free after all. */
    bool (*has)(const char *run);
    /* Notes why the run, which waits again, was not started. */
    void (*refused)(const char *run, const char *why);
    /* Whether the run may have the slots of this plan too, by the order of the queue. Then *lock keeps others from getting
     * a place until the caller closes it. */
    bool (*has_room)(int *lock, const char *run, const dt_plan *more);
} dt_supervisor_queue;

/* Of this process; NULL: there is no queue. Call before dt_supervisor_main. */
void dt_supervisor_use_queue(const dt_supervisor_queue *queue);

/* Runs `dtrun supervise ID`. */
dt_status dt_supervisor_main(const char *run, dt_error *err);

/* notify: reports the end or the restart of a run to a webhook.
 *
 * Sends a POST with one JSON object: {"event": "finished" | "failed" | "restarted", "run", "name",
 * "attempt", "step", "loss", "valid_loss", "reason", "time"}. Up to six tries in about a minute, with
 * growing pauses; a message that cannot be delivered is logged and dropped, so a webhook never holds
 * up a run. Messages that were not sent are lost if the supervisor is killed.
 *
 * Secrets    "${env:NAME}" and "${env:NAME:-default}" in the URL are expanded for each try. The
 *            expanded URL exists only during the try and is not in any log, message or file.
 * Threads    one of its own; call the functions from one other thread
 */

typedef struct dt_notifier dt_notifier;

dt_status dt_notifier_open(dt_notifier **out, dt_error *err);
/* Queues a message. Takes `message`; copies the URL, which may hold references. Does nothing if
 * the URL is "". */
void dt_notifier_send(dt_notifier *notifier, const char *url, json_t *message);
/* Waits until all messages are delivered, at most `seconds`. Accepts NULL. */
void dt_notifier_close(dt_notifier *notifier, double seconds);

/* Appends the text with its references expanded. DT_ERR_RECIPE if a variable is not set (named
 * in the message) or a reference has no end. */
dt_status dt_notify_expand(dt_strbuf *out, const char *text, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
