/* supervise: implements `dtrun supervise ID`. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "runner/channel/detach.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"

#define NOTIFY_SECONDS 90.0 /* longest wait for the webhook at exit */

/* Warns at the start if the webhook's variables are not set, for example in a restarted
 * supervisor, instead of failing at the end of the run. */
static dt_status check_webhook(dt_session *session, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf url;

    dt_strbuf_init(&url);
    if (dt_notify_expand(&url, session->settings.webhook, &problem) != DT_OK) {
        dt_log_warn("%s", problem.message);
        DT_TRY(dt_collector_note(session->collector,
                                 json_pack("{s:s, s:o}", "event", "notify_impossible", "message",
                                           dt_json_text(problem.message)),
                                 err));
        DT_TRY(dt_collector_commit(session->collector, err));
    }
out:
    dt_strbuf_release(&url);
    return st;
}

static const dt_supervisor_queue *queue;

void dt_supervisor_use_queue(const dt_supervisor_queue *of_process)
{
    queue = of_process;
}

/* Runs one session. *again: the run has not ended, and another session may continue it.
 * *restarted: the next session is another attempt. */
static dt_status follow(const char *run, dt_notifier *notifier, int *ready, bool *again,
                        bool *restarted, dt_error *err)
{
    dt_session session;
    dt_status st;

    DT_TRY(dt_session_load(&session, run, err));
    session.notifier = notifier;
    session.queue = queue;
    DT_TRY(dt_collector_begin(session.collector, &session.loop, err));
    if (!*again)
        DT_TRY(check_webhook(&session, err));
    DT_TRY(dt_listener_open(&session.control.listener, &session.loop, session.folder,
                            "control.sock", dt_control_take, &session, err));
    dt_reaper_begin(session.reaper);
    dt_state_dispatch(&session, DT_EVENT_BEGIN, NULL);
    dt_detach_ready(ready, DT_OK, NULL);
    *again = true;
    if (session.failure == DT_OK)
        uv_run(&session.loop, UV_RUN_DEFAULT);
    if (session.failure != DT_OK)
        DT_THROW(err, session.failure, "%s", session.failure_error.message);
    *again = *restarted = session.restart.follows;
out:
    dt_session_unload(&session);
    return st;
}

/* False if another session would fail the same way. DT_ERR_UNSUPPORTED: store, plan or agent
 * belong to another dtrun version. */
static bool worth_another(dt_status st)
{
    return st != DT_OK && st != DT_ERR_USAGE && st != DT_ERR_NOT_FOUND && st != DT_ERR_UNSUPPORTED;
}

/* Runs sessions until the run has ended. If the first session cannot start, its error is
 * returned for the caller to report; but a locked store is retried, because the lock passes and
 * the next command may be hours away. */
static dt_status supervise(const char *run, dt_notifier *notifier, int *ready, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    bool again = false, restarted = false;
    dt_status st = follow(run, notifier, ready, &again, &restarted, &problem);

    while ((again || st == DT_ERR_BUSY) && (restarted || worth_another(st))) {
        if (!restarted) {
            dt_log_error("%s: trying again", problem.message);
            dt_clock_sleep_seconds(dt_times()->supervisor_retry_seconds);
        }
        dt_error_clear(&problem);
        restarted = false;
        st = follow(run, notifier, ready, &again, &restarted, &problem);
        again = again || st != DT_OK; /* a store that cannot be opened now may be later */
    }
    return st == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

static bool is_active(const char *run, dt_arena *arena)
{
    dt_store *store = NULL;
    dt_run row;
    bool active = dt_store_open(&store, NULL, NULL) == DT_OK &&
                  dt_store_run_find(store, &row, run, arena, NULL) == DT_OK &&
                  !dt_run_state_is_terminal(row.state) && row.state != DT_RUN_WAITING;

    dt_store_close(store);
    return active;
}

/* Holds the lock while supervising. A resume at the very end of a run finds the lock still held
 * and relies on this process, so the run is checked again after the lock is released. */
static dt_status hold_and_supervise(const char *run, const char *lock_path, dt_notifier *notifier,
                                    int *ready, dt_arena *arena, dt_error *err)
{
    dt_status st;
    int lock;

    for (bool resumed = false;; resumed = true) {
        st = dt_file_lock(&lock, lock_path, err);
        if (st == DT_ERR_BUSY && resumed) {
            dt_error_clear(err);
            return DT_OK; /* another supervisor has taken over */
        }
        if (st != DT_OK)
            return st;
        /* keeps room in the lock file for a stop mark on a full disk */
        (void)dt_stop_mark_reserve(lock, NULL);
        st = supervise(run, notifier, ready, err);
        /* the attempt has ended: the mark is no longer needed */
        if (st == DT_OK && !is_active(run, arena))
            (void)dt_stop_mark_clear(lock, NULL);
        close(lock);
        if ((st != DT_OK && st != DT_ERR_USAGE) || !is_active(run, arena))
            return st;
        dt_error_clear(err);
    }
}

dt_status dt_supervisor_main(const char *run, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_notifier *notifier = NULL;
    const char *path;
    dt_status st;
    dt_arena arena;
    static char who[128];
    int ready = dt_detach_claim();

    dt_arena_init(&arena, 0);
    snprintf(who, sizeof(who), "supervisor %.100s", run);
    dt_log_init(who);
    dt_crash_report(who);
    signal(SIGPIPE, SIG_IGN);
    setenv("UV_THREADPOOL_SIZE", "16", 0); /* nodes are prepared in parallel */
    setenv(
        "SSH_AUTH_SOCK", "",
        0); /* threads read the environment: with the variable set, control.c only replaces its value */
    DT_TRY(dt_run_path(&path, run, NULL, &arena, &problem));
    setenv(DT_SUPERVISOR_MARK, path, 1);
    DT_TRY(dt_run_path(&path, run, "supervisor.log", &arena, &problem));
    dt_log_bound(path, DT_LOG_BYTES_MOST);
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", &arena, &problem));
    DT_TRY(dt_notifier_open(&notifier, &problem));
    DT_TRY(hold_and_supervise(run, path, notifier, &ready, &arena, &problem));
out:
    dt_notifier_close(notifier,
                      NOTIFY_SECONDS); /* the lock is released, so the run may already be resumed */
    if (st != DT_OK)
        DT_FAIL(err, st, "%s", problem.message);
    dt_detach_ready(&ready, st, &problem);
    dt_arena_release(&arena);
    return st;
}
