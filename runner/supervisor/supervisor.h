/* supervisor: one detached process per run that follows the agents' journals, writes the store
 * and decides. What commands call to reach it is here.
 *
 * Errors  DT_ERR_IO when it cannot be started or does not answer
 */
#ifndef DT_RUNNER_SUPERVISOR_H
#define DT_RUNNER_SUPERVISOR_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/policy/straggler.h"
#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A person launches or resumes the run: what its supervisors are to have of this process's
 * environment is kept with it (folder/launch_env.h). text: of the recipe, that may refer to secrets. Comes
 * before the row says that the run is active: whoever sees that may start one. */
dt_status dt_supervisor_keep_environment(const char *run, const char *text, dt_error *err);

/* Starts `dtrun supervise ID`, detached, with all of this process's environment; returns when it
 * answers on its control socket. */
dt_status dt_supervisor_start(const char *run, dt_error *err);

/* The same with the environment that was kept, for a run that is active and has none. deliberate: a
 * person acts on the run (folder/launch_env.h). DT_ERR_UNSUPPORTED where the run is another user's, DT_ERR_IO
 * where it was stopped on a full disk that still is (folder/stop_mark.h), or its supervisors end at once
 * (channel/starts.h). */
dt_status dt_supervisor_revive(const char *run, bool deliberate, dt_error *err);

/* Whether a supervisor that this process starts could keep the run history under the limits of this process. */
dt_status dt_supervisor_check_limits(dt_error *err);

/* Whether the run's supervisors end at once, so that none is started any more (channel/starts.h): nobody supervises it.
 * The message of dt_supervisor_ensure then says why. */
bool dt_supervisor_is_broken(const char *run);

/* For a command that only looks: starts one where the run is active and has none (its lock is free);
 * else does nothing. What fails here is no evidence about the run, and changes nothing of it. */
dt_status dt_supervisor_ensure(const dt_run *run, dt_error *err);

/* Writes down, for whoever supervises the run from now on, that a person wants it stopped; on the disk when it returns.
 * Comes before anything that is reported of a stop. */
dt_status dt_supervisor_mark_stop(const char *run, bool now, dt_error *err);

/* Asks for a stop (now: no checkpoint, SIGKILL at once); starts a supervisor where there is none.
 * Returns when it is accepted, not when the run has ended. DT_ERR_TIMEOUT: it is asked, and has not answered. */
dt_status dt_supervisor_stop(const char *run, bool now, dt_error *err);

/* The same of a supervisor that is there; none is started. DT_ERR_NOT_FOUND: there is none. */
dt_status dt_supervisor_stop_running(const char *run, bool now, dt_error *err);

/* Whether somebody supervises the run at this moment. */
bool dt_supervisor_is_running(const char *run);
/* The process that supervises the run and was stopped by a signal (SIGSTOP): it does nothing until SIGCONT. 0: none,
 * or it cannot be seen from here. */
int64_t dt_supervisor_paused(const char *run);
/* Appends one sentence if the run's supervisor is paused, does not answer, or cannot write the run history, or if an agent,
 * a rank or a bridge of the run is paused on this machine, and returns whether it did. Waits for dt_times()->ask_paused_seconds at most. */
bool dt_supervisor_trouble(dt_strbuf *out, const char *run);
/* For a stop that nobody can write down: no supervisor is left, and the one that follows the run once it can be
 * written continues with the stop (folder/stop_mark.h). *lock: keeps others from it, the caller's to close. An error:
 * all is as it was. */
dt_status dt_supervisor_end(int *lock, const char *run, dt_error *err);

/* In the environment of what a supervisor starts on this machine: the run's folder. */
#define DT_SUPERVISOR_MARK "DTRUN_SUPERVISOR_OF"

/* Kills what supervisors of the run have started on this machine, agents and ranks of an earlier start among it: for a run
 * without a supervisor. paused_only: what is stopped by a signal, which a supervisor that has ended leaves behind. Returns
 * how many processes are left. */
int64_t dt_supervisor_end_helpers(const char *run, bool paused_only);

/* The main of `dtrun supervise ID`. */
dt_status dt_supervisor_main(const char *run, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
