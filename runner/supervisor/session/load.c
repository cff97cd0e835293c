/* load: reads the state of a session from the plan and the store. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "recipes/fields/durations.h"
#include "recipes/fields/task_fields.h"
#include "recipes/plan/plan.h"
#include "runner/supervisor/folder/copies.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/folder/stop_mark.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/rebuild/restore_runs.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/supervisor/session/state.h"
#include "runner/supervisor/supervisor.h"

static dt_status read_run(dt_session *session, const char *run, dt_error *err)
{
    bool rebuilt;
    dt_status st;
    dt_run row;

    dt_restore_parents(session->store, run);
    DT_TRY(dt_rebuild_run(&rebuilt, session->store, run, err));
    DT_TRY(dt_store_run_find(session->store, &row, run, &session->arena, err));
    if (strcmp(row.id, run) != 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run has the id '%s'", run);
    if (dt_run_state_is_terminal(row.state))
        DT_THROW(err, DT_ERR_USAGE, "run '%s' has ended (%s): 'dtrun resume %s' continues with it",
                 run, dt_run_state_name(row.state), run);
    session->record.run = row;
    session->run = row.id;
    session->attempt = row.attempt;
    session->state = row.state;
    session->has_run = row.state == DT_RUN_RUNNING;
    DT_TRY(dt_run_path(&session->folder, row.id, NULL, &session->arena, err));
out:
    return st;
}

static void take_recipe(dt_session *session, const dt_plan *plan)
{
    session->checkpoints = plan->directory;
    session->grace_seconds = plan->recipe.grace_seconds;
    session->webhook = plan->recipe.notify.webhook;
    session->nodes_min = plan->recipe.nodes_min;
    session->max_restarts = plan->recipe.failure.max_restarts;
    session->of_command = plan->recipe.task == DT_TASK_COMMAND;
    session->hang_seconds = plan->recipe.failure.hang_seconds;
    dt_launch_env_references(&session->variables,
                             dt_launch_env_text("", &plan->recipe.env, &session->arena),
                             &session->arena);
    session->steps = plan->recipe.schedule.steps;
    session->epochs = plan->recipe.schedule.epochs;
    dt_launcher_lost_seconds(&session->launcher_lost_seconds, plan->recipe.failure.launcher_lost);
}

/* Keeps the plan if the task has lines. A substitute plan (missing_plan.c) has no task:
 * the run only has to end. */
static void take_task(dt_session *session, const dt_plan *plan)
{
    dt_plan *copy;

    if (!dt_task_has_lines(plan->recipe.task) || session->plan_problem != NULL)
        return;
    copy = dt_arena_alloc(&session->arena, sizeof(*copy));
    *copy = *plan;
    session->task_plan = copy;
}

static void plan_ranks(dt_session *session, const dt_plan *plan)
{
    for (int64_t i = 0; i < plan->world_size; i++)
        dt_collector_set_rank(session->collector,
                              &(dt_rank){.rank = i,
                                         .node = plan->ranks[i].node,
                                         .local_rank = plan->ranks[i].local_rank,
                                         .device = plan->ranks[i].device,
                                         .state = "waiting",
                                         .exit_code = -1,
                                         .exit_signal = -1});
}

static void plan_nodes(dt_session *session, const dt_plan *plan)
{
    session->nodes =
        dt_arena_alloc_array(&session->arena, (size_t)plan->node_count, sizeof(session->nodes[0]));
    session->node_count = plan->node_count;
    for (int64_t i = 0; i < plan->node_count; i++) {
        const char *here =
            dt_arena_printf(&session->arena, "%s/attempt-%lld/node-%lld", session->folder,
                            (long long)session->attempt, (long long)i);

        session->nodes[i] = (dt_supervised_node){
            .session = session, .index = i, .name = plan->node_names[i], .here = here};
    }
}

static dt_status lay_out(dt_session *session, const dt_plan *plan, dt_error *err)
{
    const dt_run *row = &session->record.run;
    dt_status st;

    take_recipe(session, plan);
    take_task(session, plan);
    session->world_size = plan->world_size;
    plan_nodes(session, plan);
    DT_TRY(dt_parts_open_collector(session, err));
    dt_collector_set_step(session->collector, row->first_step_ms != 0 ? row->step : 0);
    plan_ranks(session, plan);
    for (int64_t i = 0; i < plan->node_count; i++)
        dt_collector_set_node(
            session->collector, i,
            &(dt_node){.node = i, .name = session->nodes[i].name, .state = "connecting"});
    dt_verdict_init(&session->verdict, session->world_size);
out:
    return st;
}

/* Records that a damaged file was restored from its copy in the store. */
static dt_status note_restored(dt_session *session, const char *file, dt_error *err)
{
    return dt_collector_note(session->collector,
                             json_pack("{s:s, s:s}", "event", "restored", "file", file), err);
}

static dt_status read_plan(dt_session *session, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    bool restored;
    dt_status st;
    dt_plan plan;

    st = dt_copies_plan(&plan, &session->plan, &restored, session->store, session->run,
                        session->attempt, session->folder, &session->arena, &problem);
    if (st == DT_ERR_NOT_FOUND || st == DT_ERR_CORRUPT)
        DT_TRY(dt_missing_plan_substitute(&plan, session, problem.message, err));
    else if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    DT_TRY(lay_out(session, &plan, err));
    if (restored)
        DT_TRY(note_restored(session, "plan.json", err));
out:
    return st;
}

static dt_status read_attempt(dt_session *session, dt_error *err)
{
    dt_attempt *attempts;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_attempt_list(session->store, &attempts, &count, session->run, &session->arena,
                                 err));
    for (int64_t i = 0; i < count; i++)
        if (attempts[i].attempt == session->attempt) {
            session->start_step = session->record.start_step = attempts[i].start_step;
            session->record.created_ms = attempts[i].created_ms;
            session->record.changes_json = attempts[i].changes_json;
            session->record.provenance_json = attempts[i].provenance_json;
        }
out:
    return st;
}

/* Writes the attempt's record once the store is synced. In the other order a power loss could
 * leave a store that looks like an older copy (rebuild_int.h). */
static dt_status keep_first(dt_session *session, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;

    if (dt_store_sync(session->store, &problem) == DT_OK)
        return dt_session_keep(session, err);
    dt_log_warn("%s: the attempt's record is not written yet", problem.message);
    return DT_OK;
}

/* Applies the stop mark of supervisor.lock: a stop that the previous supervisor may not have
 * seen, or one that killed it and the agents. Ranks that died with them count as stopped. */
static dt_status obey_mark(dt_session *session, dt_error *err)
{
    dt_stop_mark mark = dt_stop_mark_read(session->folder, session->attempt);
    bool known = session->verdict.stop_asked;
    dt_status st = DT_OK;

    if (mark == DT_STOP_MARK_NONE)
        goto out;
    session->verdict.stop_asked = true;
    session->verdict.stop_now = session->verdict.stop_now || mark != DT_STOP_MARK_ASKED;
    session->verdict.asked_there = session->verdict.asked_there || mark == DT_STOP_MARK_STOPPED;
    if (!known) {
        DT_TRY(dt_collector_note(
            session->collector,
            json_pack("{s:s, s:b}", "event", "stop", "now", (int)session->verdict.stop_now), err));
        DT_TRY(dt_collector_commit(session->collector, err));
    }
out:
    return st;
}

dt_status dt_session_load(dt_session *session, const char *run, dt_error *err)
{
    dt_status st;

    memset(session, 0, sizeof(*session));
    dt_arena_init(&session->arena, 0);
    session->offers = json_object();
    session->diagnoses = json_array();
    uv_loop_init(&session->loop);
    dt_poll_clock_open(&session->clock, &session->loop);
    uv_timer_init(&session->loop, &session->leave_timer);
    uv_timer_init(&session->loop, &session->answer_timer);
    uv_timer_init(&session->loop, &session->cut_timer);
    uv_timer_init(&session->loop, &session->pause_timer);
    session->pause_timer.data = session;
    session->on_pause_over = dt_state_pause_over;
    session->leave_timer.data = session->answer_timer.data = session->cut_timer.data = session;
    DT_TRY(dt_store_open(&session->store, NULL, err));
    DT_TRY(read_run(session, run, err));
    DT_TRY(read_plan(session, err));
    DT_TRY(dt_recall_rows(session, err));
    DT_TRY(read_attempt(session, err));
    DT_TRY(dt_run_secret(&session->secret, session->folder, &session->arena, err));
    DT_TRY(dt_parts_open(session, err));
    DT_TRY(dt_nodes_open(session, err));
    dt_cut_open(session);
    if (session->plan_problem != NULL)
        DT_TRY(dt_missing_plan_stop(session, err));
    DT_TRY(dt_collector_commit(session->collector, err)); /* events recorded while loading */
    dt_watch_open(session);
    DT_TRY(dt_recall_events(session, err));
    DT_TRY(obey_mark(session, err));
    session->record.stop_asked = session->verdict.stop_asked;
    DT_TRY(keep_first(session, err));
    session->begun_seconds = dt_session_now(session);
out:
    return st;
}

void dt_session_unload(dt_session *session)
{
    if (session->collector != NULL)
        dt_collector_end(session->collector);
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_close(session->nodes[i].link);
    dt_control_close_all(session);
    dt_listener_close(session->listener);
    dt_parts_close(session);
    dt_poll_clock_close(&session->clock);
    dt_cut_close(session);
    uv_close((uv_handle_t *)&session->leave_timer, NULL);
    uv_close((uv_handle_t *)&session->pause_timer, NULL);
    uv_close((uv_handle_t *)&session->answer_timer, NULL);
    while (uv_run(&session->loop, UV_RUN_DEFAULT) != 0)
        ; /* until the bridge processes are reaped */
    uv_loop_close(&session->loop);
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_free(session->nodes[i].link);
    dt_parts_free(session);
    dt_store_close(session->store);
    dt_verdict_release(&session->verdict);
    json_decref(session->plan);
    json_decref(session->offers);
    json_decref(session->diagnoses);
    dt_arena_release(&session->arena);
}
