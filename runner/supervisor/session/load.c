/* load: reads the state of a session from the plan and the store, and its memory from stored events. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/metric_kinds.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "recipes/plan/plan.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/supervisor/supervisor.h"

/* recall: restores the session's memory of an attempt from the store.
 *
 * The rows say how far each journal is stored. Replaying the stored events in order gives back what the
 * previous supervisor knew.
 */

#define WATCH_STEPS 1000 /* number of last steps whose times give the usual step time */

/* Reads the rank rows of an attempt. A new attempt has none: then only the log positions of the
 * last attempt are used (logs_only). */
static dt_status read_ranks(dt_session *session, int64_t attempt, bool logs_only, dt_error *err)
{
    dt_rank *rows;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_rank_list(session->store, &rows, &count, session->run, attempt, &session->arena,
                              err));
    for (int64_t i = 0; i < count; i++) {
        int64_t rank = rows[i].rank;

        if (rank >= session->world_size)
            continue;
        if (!logs_only)
            dt_collector_set_rank(session->collector, &rows[i]);
        if (!logs_only || dt_session_rank(session, rank)->log.bytes == 0)
            dt_collector_set_log(session->collector, rank, rows[i].log_bytes);
    }
out:
    return st;
}

static dt_status recall_rows(dt_session *session, dt_error *err)
{
    dt_node *rows;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_node_list(session->store, &rows, &count, session->run, session->attempt,
                              &session->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (rows[i].node < session->node_count) {
            dt_collector_set_node(session->collector, rows[i].node, &rows[i]);
            session->nodes[rows[i].node].name = rows[i].name;
        }
    session->rows_lost =
        count == 0 && (session->state == DT_RUN_STARTING || session->state == DT_RUN_RUNNING);
    if (count > 0)
        return read_ranks(session, session->attempt, false, err);
    for (int64_t attempt = session->attempt; attempt >= 1; attempt--)
        DT_TRY(read_ranks(session, attempt, true, err));
    DT_TRY(dt_collector_add_rows(session->collector, err));
out:
    return st;
}

static void remember_own(dt_session *session, const dt_store_event *event)
{
    json_t *json = NULL;
    const char *text;
    int64_t node;

    if (dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) != DT_OK)
        return;
    if (strcmp(event->kind, "stop") == 0) {
        session->verdict.stop_asked = true;
        session->verdict.stop_now =
            session->verdict.stop_now || json_is_true(json_object_get(json, "now"));
    }
    if (strcmp(event->kind, "lost") == 0 &&
        dt_json_get_string(&text, json, "message", "event", NULL) == DT_OK)
        dt_verdict_system_failed(&session->verdict, text, event->time_ms);
    if (strcmp(event->kind, "unreached") == 0 &&
        dt_json_get_string(&text, json, "message", "event", NULL) == DT_OK)
        dt_verdict_unreached(&session->verdict, text);
    if (strcmp(event->kind, "hung") == 0 &&
        dt_json_get_string(&text, json, "message", "event", NULL) == DT_OK)
        dt_verdict_hung(&session->verdict, text, event->time_ms);
    if (strcmp(event->kind, "gap") == 0)
        dt_collector_remember_gap(session->collector);
    if (strcmp(event->kind, "ended") == 0 &&
        dt_json_get_int(&node, json, "node", "event", NULL) == DT_OK && node >= 0 &&
        node < session->node_count) {
        dt_collector_release_node(session->collector, node);
        dt_node_link_remember_release(session->nodes[node].link);
    }
    if (strcmp(event->kind, "restart") == 0) {
        (void)dt_json_get_int_or(&session->restart.count, json, "count", 0, "event", NULL);
        session->restart.previous_stepped = json_is_true(json_object_get(json, "stepped"));
    }
    json_decref(json);
}

/* Fetches a checkpoint that the previous supervisor had not fetched. */
static dt_status fetch_again(dt_session *session, const dt_message *message, dt_error *err)
{
    dt_store_checkpoint *rows;
    bool known = false;
    int64_t count;
    dt_status st = DT_OK;

    if (dt_message_is_program_checkpoint(message)) {
        if (dt_components_bring_saved(session))
            dt_components_fetch(session, message); /* nothing is brought twice */
        return DT_OK;
    }
    if (!dt_components_fetch_checkpoints(session))
        return DT_OK;
    DT_TRY(dt_store_checkpoint_list(session->store, &rows, &count, session->run, &session->arena,
                                    err));
    for (int64_t i = 0; i < count; i++)
        known = known || (rows[i].attempt == session->attempt &&
                          rows[i].step >= dt_message_int(message, "step", 0));
    if (!known)
        dt_components_fetch(session, message);
out:
    return st;
}

static dt_status read_events(dt_session *session, dt_error *err)
{
    dt_store_event *events;
    int64_t count;
    dt_status st;

    DT_TRY(dt_store_event_list(session->store, &events, &count, session->run, 0, 0, &session->arena,
                               err));
    for (int64_t i = 0; i < count; i++) {
        dt_message message;

        dt_grow_remember(session, &events[i]);
        if (events[i].attempt != session->attempt)
            continue;
        if (events[i].node < 0) {
            remember_own(session, &events[i]);
        } else if (events[i].node < session->node_count &&
                   dt_message_parse(&message, events[i].json, strlen(events[i].json),
                                    session->world_size, NULL) == DT_OK) {
            message.time_ms = events[i].time_ms; /* by this machine's clock */
            dt_collector_remember(session->collector, events[i].node, &message);
            st =
                message.kind == DT_MESSAGE_CHECKPOINT ? fetch_again(session, &message, err) : DT_OK;
            dt_message_release(&message);
            DT_TRY(st);
        }
    }
out:
    return st;
}

/* Restores the step times of this attempt. */
static dt_status read_steps(dt_session *session, dt_error *err)
{
    int64_t count, step = dt_collector_progress(session->collector)->step;
    dt_metric *points;
    dt_status st;

    DT_TRY(dt_store_metric_list(
        session->store, &points, &count, session->run, dt_metric_name(DT_METRIC_LOSS),
        step - WATCH_STEPS > session->start_step ? step - WATCH_STEPS : session->start_step, 0,
        &session->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (points[i].attempt == session->attempt)
            (void)dt_silence_step(&session->watch.silence, points[i].step, points[i].time_ms);
    dt_silence_recall(&session->watch.silence);
out:
    return st;
}

static dt_status recall_events(dt_session *session, dt_error *err)
{
    dt_status st = read_steps(session, err);

    return st == DT_OK ? read_events(session, err) : st;
}

/* --- plan and rows */

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
    if (row.state == DT_RUN_WAITING)
        DT_THROW(err, DT_ERR_USAGE, "run '%s' waits in the queue: the arbiter starts it", run);
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
    session->settings.checkpoints = plan->directory;
    session->settings.grace_seconds = plan->recipe.grace_seconds;
    session->settings.webhook = plan->recipe.notify.webhook;
    session->settings.nodes_min = plan->recipe.nodes_min;
    session->settings.max_restarts = plan->recipe.failure.max_restarts;
    session->settings.is_command = plan->recipe.task == DT_TASK_COMMAND;
    session->settings.hang_seconds = plan->recipe.failure.hang_seconds;
    dt_launch_env_references(&session->settings.variables,
                             dt_launch_env_text("", &plan->recipe.env, &session->arena),
                             &session->arena);
    session->settings.steps = plan->recipe.schedule.steps;
    session->settings.epochs = plan->recipe.schedule.epochs;
    dt_launcher_lost_seconds(&session->settings.launcher_lost_seconds,
                             plan->recipe.failure.launcher_lost);
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
    DT_TRY(dt_components_open_collector(session, err));
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
 * leave a store that looks like an older copy (rebuild/rebuild.c). */
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
static dt_status apply_stop_mark(dt_session *session, dt_error *err)
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
    session->grow.places_lock = -1;
    session->offers = json_object();
    session->watch.diagnoses = json_array();
    uv_loop_init(&session->loop);
    dt_poll_clock_open(&session->clock, &session->loop);
    uv_timer_init(&session->loop, &session->leave_timer);
    uv_timer_init(&session->loop, &session->control.answer_timer);
    uv_timer_init(&session->loop, &session->restart.pause_timer);
    session->restart.pause_timer.data = session;
    session->restart.on_pause_over = dt_state_pause_over;
    session->leave_timer.data = session->control.answer_timer.data = session;
    DT_TRY(dt_store_open(&session->store, NULL, err));
    DT_TRY(read_run(session, run, err));
    DT_TRY(read_plan(session, err));
    DT_TRY(recall_rows(session, err));
    DT_TRY(read_attempt(session, err));
    DT_TRY(dt_run_secret(&session->secret, session->folder, &session->arena, err));
    DT_TRY(dt_components_open(session, err));
    DT_TRY(dt_nodes_open(session, err));
    dt_session_fault_open(session);
    if (session->plan_problem != NULL)
        DT_TRY(dt_missing_plan_stop(session, err));
    DT_TRY(dt_collector_commit(session->collector, err)); /* events recorded while loading */
    dt_watch_open(session);
    DT_TRY(recall_events(session, err));
    dt_grow_load(session);
    DT_TRY(apply_stop_mark(session, err));
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
    dt_listener_close(session->control.listener);
    dt_components_close(session);
    dt_grow_close(session);
    dt_poll_clock_close(&session->clock);
    dt_session_fault_close(session);
    uv_close((uv_handle_t *)&session->leave_timer, NULL);
    uv_close((uv_handle_t *)&session->restart.pause_timer, NULL);
    uv_close((uv_handle_t *)&session->control.answer_timer, NULL);
    while (uv_run(&session->loop, UV_RUN_DEFAULT) != 0)
        ; /* until the bridge processes are reaped */
    uv_loop_close(&session->loop);
    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_free(session->nodes[i].link);
    dt_components_free(session);
    dt_store_close(session->store);
    dt_verdict_release(&session->verdict);
    json_decref(session->plan);
    json_decref(session->offers);
    json_decref(session->watch.diagnoses);
    dt_arena_release(&session->arena);
}
