/* supervise: the main of `dtrun supervise ID`. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/channel/detach.h"
#include "runner/supervisor/state.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

#define LEAVE_MS              3000 /* for the agents to hear `bye` */
#define TROUBLE_PAUSE_SECONDS 5.0

static void on_leave_time(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

void dt_session_trouble(dt_session *session, dt_status st, const dt_error *err)
{
    if (session->trouble != DT_OK)
        return;
    session->trouble = st;
    session->trouble_error = *err;
    uv_stop(&session->loop);
}

/* First says goodbye; called again whenever a connection ends, until none is left. */
void dt_session_leave(dt_session *session)
{
    bool alone = true;

    if (!session->leaving)
        for (int64_t i = 0; i < session->node_count; i++)
            dt_node_send(&session->nodes[i], json_pack("{s:s}", "command", "bye"));
    session->leaving = true;
    for (int64_t i = 0; i < session->node_count; i++)
        alone = alone && session->nodes[i].connection == NULL;
    if (alone)
        uv_stop(&session->loop);
    else if (!uv_is_active((uv_handle_t *)&session->leave))
        uv_timer_start(&session->leave, on_leave_time, LEAVE_MS, 0);
}

/* From load to unload. *again: the run has not ended, and another session may go on with it. */
static dt_status follow(const char *run, int *ready, bool *again, dt_error *err)
{
    dt_session session;
    dt_status st;

    DT_TRY(dt_session_load(&session, run, err));
    DT_TRY(dt_listener_open(&session.listener, &session.loop, session.folder, "control.sock",
                            dt_control_take, &session, err));
    dt_state_take(&session, DT_EVENT_BEGIN, NULL);
    dt_detach_ready(ready, DT_OK, NULL);
    *again = true;
    if (session.trouble == DT_OK)
        uv_run(&session.loop, UV_RUN_DEFAULT);
    if (session.trouble != DT_OK)
        DT_THROW(err, session.trouble, "%s", session.trouble_error.message);
    *again = false;
out:
    dt_session_unload(&session);
    return st;
}

static bool worth_another(dt_status st)
{
    return st != DT_OK && st != DT_ERR_USAGE && st != DT_ERR_NOT_FOUND;
}

static dt_status supervise(const char *run, int *ready, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    bool again = false;
    dt_status st = follow(run, ready, &again, &problem);

    while (again && worth_another(st)) {
        dt_log_error("%s: trying again", problem.message);
        dt_clock_sleep_seconds(TROUBLE_PAUSE_SECONDS);
        dt_error_clear(&problem);
        st = follow(run, ready, &again, &problem);
        again = true; /* a store that cannot be opened now may be there later */
    }
    return st == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

dt_status dt_supervisor_main(const char *run, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *path;
    dt_status st;
    dt_arena arena;
    char who[128];
    int lock = -1, ready = dt_detach_claim();

    dt_arena_init(&arena, 0);
    snprintf(who, sizeof(who), "supervisor %.100s", run);
    dt_log_init(who);
    signal(SIGPIPE, SIG_IGN);
    DT_TRY(dt_run_path(&path, run, "supervisor.lock", &arena, &problem));
    DT_TRY(dt_file_lock(&lock, path, &problem));
    DT_TRY(supervise(run, &ready, &problem));
out:
    if (lock >= 0)
        close(lock);
    if (st != DT_OK)
        DT_FAIL(err, st, "%s", problem.message);
    dt_detach_ready(&ready, st, &problem);
    dt_arena_release(&arena);
    return st;
}
