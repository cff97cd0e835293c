#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/supervisor/session/session_int.h"

void dt_session_fail(dt_session *session, dt_status st, const dt_error *err)
{
    if (session->failure != DT_OK)
        return;
    session->failure = st;
    session->failure_error = *err;
    uv_stop(&session->loop);
}

/* --- the attempt's record */

static double newer(double now, double before)
{
    return isnan(now) ? before : now;
}

/* Copies the node rows: the writer thread reads the copy. */
static void refresh_nodes(dt_session *session)
{
    dt_node *nodes =
        dt_arena_alloc_array(&session->arena, (size_t)session->node_count, sizeof(*nodes));

    for (int64_t i = 0; i < session->node_count; i++)
        nodes[i] = dt_collector_node(session->collector, i)->row;
    session->record.nodes = nodes;
    session->record.node_count = session->node_count;
}

static void refresh(dt_session *session)
{
    const dt_progress *progress = dt_collector_progress(session->collector);
    int64_t steps_total = dt_collector_steps_total(session->collector);
    dt_run *row = &session->record.run;

    row->step = progress->step > row->step ? progress->step : row->step;
    row->loss = newer(progress->loss, row->loss);
    row->valid_loss = newer(progress->valid_loss, row->valid_loss);
    row->tokens_per_second = newer(progress->tokens_per_second, row->tokens_per_second);
    if (row->first_step_ms == 0 && progress->step > 0)
        row->first_step_ms = dt_clock_wall_ms();
    if (steps_total > 0)
        row->steps_total = steps_total;
    refresh_nodes(session);
}

dt_status dt_session_keep(dt_session *session, dt_error *err)
{
    const dt_row row = {.kind = DT_ROW_RECORD, .record = &session->record};

    refresh(session);
    return dt_collector_put(session->collector, &row, err);
}

static void session_keep_now(dt_session *session)
{
    dt_error problem = DT_ERROR_INIT;

    refresh(session);
    if (dt_attempt_record_write(&session->record, session->folder, &problem) != DT_OK)
        dt_log_warn("cannot write the attempt's record: %s", problem.message);
}

void dt_session_keep_end(dt_session *session, dt_run_state state, int code, const char *reason)
{
    dt_run *run = &session->record.run;

    run->state = state;
    run->exit_code = code;
    run->ended_ms = dt_clock_wall_ms();
    run->reason = reason;
    session_keep_now(session);
}

dt_status dt_session_note(dt_session *session, const char *event, const char *message,
                          dt_error *err)
{
    dt_status st = dt_collector_note(
        session->collector,
        json_pack("{s:s, s:o}", "event", event, "message", dt_json_text(message)), err);

    return st == DT_OK ? dt_collector_commit(session->collector, err) : st;
}

/* --- its nodes */

bool dt_node_has_started(const dt_supervised_node *node)
{
    const dt_session *session = node->session;

    for (int64_t i = 0; i < session->world_size; i++)
        if (dt_session_rank(session, i)->row.node == node->index &&
            dt_session_rank(session, i)->row.pid != 0)
            return true;
    return false;
}

bool dt_node_may_have_started(const dt_supervised_node *node)
{
    const dt_session *session = node->session;

    return dt_node_has_started(node) || session->rows_lost ||
           dt_collector_progress(session->collector)->step > session->start_step;
}

int64_t dt_session_count_lost(const dt_session *session)
{
    int64_t lost = 0;

    for (int64_t i = 0; i < session->node_count; i++)
        lost += dt_node_is_lost(&session->nodes[i]) ? 1 : 0;
    return lost;
}
