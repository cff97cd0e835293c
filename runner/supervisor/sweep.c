/* sweep: nodes that earlier attempts lost, and that this one does without.
 *
 * Such a node may come back with the ranks it had: they hold its memory and nobody asks for them.
 * Until the run ends, `dtrun-agent end` is tried there again and again; where it came to a good end
 * the node's row says "released". A run that is stopped waits for one more try of each, and what
 * still could not be asked is told: exit code 5. (A node that this attempt uses is swept by its own
 * agent, before ranks are started: agent/fence.c.)
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "runner/supervisor/changes.h"
#include "runner/supervisor/connection/node_process.h"
#include "runner/supervisor/copies.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

#define FIRST_MS 5000
#define AGAIN_MS 15000
#define LAST_MS  12000 /* that the end of the run waits; and what one try may take */

struct dt_sweep {
    dt_session *session;
    int64_t attempt;
    dt_node row;
    dt_node_layout place;
    dt_node_process *process; /* that ends it; NULL: none runs */
    bool done;
    bool last; /* this try is one that the end waits for */
};

static int64_t count_to_do(const dt_session *session)
{
    int64_t count = 0;

    for (int64_t i = 0; i < session->sweep_count; i++)
        count += session->sweeps[i].done ? 0 : 1;
    return count;
}

static void note_done(dt_sweep *sweep)
{
    dt_session *session = sweep->session;
    dt_error err = DT_ERROR_INIT;

    sweep->done = true;
    sweep->row.state = "released";
    dt_log_info("%s: nothing of attempt %lld is left there", sweep->row.name,
                (long long)sweep->attempt);
    if (dt_change_node(session, sweep->attempt, &sweep->row, &err) != DT_OK ||
        dt_follow_commit(session, &err) != DT_OK)
        dt_log_warn("%s", err.message); /* it is only done once more */
}

static void on_ended(void *context, int64_t code, int number)
{
    dt_sweep *sweep = context;

    sweep->process = NULL;
    if (code == 0 && number == 0)
        note_done(sweep);
    if (sweep->last && sweep->session->trouble == DT_OK)
        dt_state_take(sweep->session, DT_EVENT_RELEASED, NULL); /* which looks whether it was all */
}

static void try_one(dt_sweep *sweep)
{
    if (sweep->process == NULL && !sweep->done)
        sweep->process =
            dt_node_process_end_agent(&sweep->session->loop, sweep->row.name, sweep->place.agent,
                                      sweep->place.folder, on_ended, sweep);
}

static void kill_running(dt_session *session)
{
    for (int64_t i = 0; i < session->sweep_count; i++)
        dt_node_process_kill(session->sweeps[i].process);
}

static void on_time(uv_timer_t *timer)
{
    dt_session *session = timer->data;

    kill_running(session); /* it had its time */
    for (int64_t i = 0; i < session->sweep_count && session->sweep_end == DT_SWEEP_ON; i++)
        try_one(&session->sweeps[i]);
    if (session->sweep_end == DT_SWEEP_LAST) {
        session->sweep_end = DT_SWEEP_OVER;
        dt_state_take(session, DT_EVENT_RELEASED, NULL);
    }
}

/* --- what there is to do */

static dt_status add(dt_session *session, int64_t attempt, const dt_node *node, dt_error *err)
{
    dt_sweep *sweep = &session->sweeps[session->sweep_count];
    const char *here = dt_arena_printf(&session->arena, "%s/attempt-%lld/node-%lld",
                                       session->folder, (long long)attempt, (long long)node->node);
    dt_error problem = DT_ERROR_INIT;
    bool restored;
    dt_status st;

    if (here == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    *sweep = (dt_sweep){.session = session, .attempt = attempt, .row = *node};
    st = dt_copies_place(&sweep->place, &restored, session->store, session->run, attempt,
                         node->node, here, &session->arena, &problem);
    if (st == DT_OK)
        session->sweep_count++;
    else if (st != DT_ERR_NOT_FOUND) /* where nothing was placed nothing is left */
        dt_log_warn("%s", problem.message);
    return DT_OK;
}

dt_status dt_sweep_load(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_node *rows;

    for (int64_t attempt = 1; attempt < session->attempt; attempt++) {
        dt_sweep *grown;

        DT_TRY(dt_store_node_list(session->store, &rows, &count, session->run, attempt,
                                  &session->arena, err));
        grown = realloc(session->sweeps,
                        (size_t)(session->sweep_count + count + 1) * sizeof(session->sweeps[0]));
        if (grown == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        session->sweeps = grown;
        for (int64_t i = 0; i < count; i++)
            if (strcmp(rows[i].state, "lost") == 0)
                DT_TRY(add(session, attempt, &rows[i], err));
    }
out:
    return st;
}

void dt_sweep_begin(dt_session *session)
{
    session->sweep_timer.data = session;
    if (session->sweep_count > 0)
        uv_timer_start(&session->sweep_timer, on_time, FIRST_MS, AGAIN_MS);
}

/* --- the end */

bool dt_sweep_is_over(dt_session *session)
{
    if (session->sweep_end == DT_SWEEP_OVER || count_to_do(session) == 0)
        return true;
    if (session->sweep_end == DT_SWEEP_ON) {
        session->sweep_end = DT_SWEEP_LAST;
        for (int64_t i = 0; i < session->sweep_count; i++) {
            session->sweeps[i].last = true;
            try_one(&session->sweeps[i]);
        }
        uv_timer_start(&session->sweep_timer, on_time, LAST_MS, 0);
    }
    for (int64_t i = 0; i < session->sweep_count; i++)
        if (session->sweeps[i].process != NULL)
            return false;
    return true; /* all were tried */
}

dt_status dt_sweep_tell(dt_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < session->sweep_count; i++) {
        const dt_sweep *sweep = &session->sweeps[i];
        const char *text;

        if (sweep->done)
            continue;
        text = dt_arena_printf(&session->arena,
                               "node %s, lost in attempt %lld, cannot be asked about its ranks",
                               sweep->row.name, (long long)sweep->attempt);
        if (text == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        dt_verdict_unreached(&session->verdict, text);
    }
out:
    return st;
}

void dt_sweep_cancel(dt_session *session)
{
    for (int64_t i = 0; i < session->sweep_count; i++) {
        dt_node_process_let_go(session->sweeps[i].process);
        session->sweeps[i].process = NULL;
    }
}

void dt_sweep_release(dt_session *session)
{
    for (int64_t i = 0; i < session->sweep_count; i++)
        json_decref(session->sweeps[i].place.paths);
    free(session->sweeps);
    session->sweeps = NULL;
    session->sweep_count = 0;
}
