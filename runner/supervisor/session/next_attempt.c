/* next_attempt: creates the attempt that follows a failed or preempted one.
 *
 * The new plan is written first; then one transaction ends the failed attempt and adds the new one. If
 * the supervisor dies in between, the next supervisor finds the failed attempt with all nodes released,
 * and writes the same plan and the same rows.
 */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "recipes/plan/plan.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/session/session_int.h"

/* Finds the checkpoint to resume from: the newest of this attempt, else the one that this
 * attempt started from. */
dt_status dt_next_attempt_find(dt_next_attempt *next, dt_session *session, dt_error *err)
{
    dt_resume_point found;
    const char *before = json_string_value(json_object_get(session->plan, "resume_from"));
    dt_status st;

    next->checkpoint = next->program_checkpoint = "";
    next->start_step = next->steps_total = 0;
    if (session->settings.is_command) {
        DT_TRY(dt_run_program_checkpoint(&found, session->store, session->run, -1,
                                         session->node_count > 1, &session->arena, err));
        next->program_checkpoint = found.path != NULL ? found.path : "";
        next->start_step = found.step;
        return DT_OK;
    }
    DT_TRY(dt_run_newest_checkpoint(&found, session->store, session->run,
                                    session->settings.checkpoints, &session->arena, err));
    if (found.path != NULL) {
        next->checkpoint = found.path;
        next->start_step = found.step;
        next->steps_total = found.attempt == session->attempt ? found.steps_total : 0;
    } else if (before != NULL && before[0] != '\0' && dt_file_exists(before)) {
        next->checkpoint = before;
        next->start_step = session->start_step;
    }
    if (session->task_plan != NULL) /* a task resumes from its finished parts */
        next->start_step = dt_collector_lines_done(session->collector);
out:
    return st;
}

/* --- the plan */

/* Removes the lost nodes and their ranks; the others keep their order and are renumbered. */
static void leave_out_lost(dt_plan *plan, const dt_session *session)
{
    int64_t nodes = 0, ranks = 0;

    for (int64_t i = 0; i < session->node_count; i++) {
        if (dt_node_is_lost(&session->nodes[i]))
            continue;
        for (int64_t r = 0; r < session->world_size; r++) {
            if (plan->ranks[r].node != i || r < ranks)
                continue;
            plan->ranks[ranks] = plan->ranks[r];
            plan->ranks[ranks++].node = nodes;
        }
        plan->node_names[nodes++] = plan->node_names[i];
    }
    plan->node_count = nodes;
    plan->world_size = ranks;
}

/* Leaves out lost nodes and appends the new number of sequences per step to the reason. */
static void leave_out(dt_plan *plan, dt_session *session, const char **reason)
{
    int64_t before = dt_plan_replicas(plan) * plan->recipe.batch.accumulate, now;
    dt_error problem = DT_ERROR_INIT;

    leave_out_lost(plan, session);
    if (dt_plan_divide_batch(plan, &problem) != DT_OK)
        dt_log_warn("%s", problem.message); /* uses the nearest number of micro-steps */
    now = dt_plan_replicas(plan) * plan->recipe.batch.accumulate;
    if (now == before || plan->recipe.task != DT_TASK_TRAIN)
        return;
    *reason = dt_arena_printf(
        &session->arena, "%s; without the lost nodes a step has %lld sequences instead of %lld",
        *reason, (long long)(now * plan->recipe.batch.sequences),
        (long long)(before * plan->recipe.batch.sequences));
}

/* *reason: why there is another attempt; a change of the batch size is appended. */
static dt_status write_plan(dt_session *session, const dt_next_attempt *next, const char **reason,
                            dt_error *err)
{
    const char *folder = dt_arena_printf(&session->arena, "%s/attempt-%lld", session->folder,
                                         (long long)next->attempt);
    json_t *json = NULL;
    dt_strbuf text, path;
    dt_status st = DT_OK;
    dt_plan plan;

    dt_strbuf_init(&text);
    dt_strbuf_init(&path);
    if (next->as_attempt > 0)
        DT_TRY(dt_plan_read(&plan,
                            dt_arena_printf(&session->arena, "%s/attempt-%lld/plan.json",
                                            session->folder, (long long)next->as_attempt),
                            &session->arena, err));
    else
        DT_TRY(dt_plan_from_json(&plan, session->plan, &session->arena, err));
    plan.attempt = next->attempt;
    plan.resume_from = next->checkpoint;
    plan.program_checkpoint = next->program_checkpoint;
    plan.program_step = next->start_step;
    if (session->task_plan != NULL)
        DT_TRY(dt_task_folder_look(&plan.task, session->folder, &session->arena, err));
    if (next->nodes_lost > 0 && next->as_attempt == 0)
        leave_out(&plan, session, reason);
    json = dt_plan_to_json(&plan);
    dt_json_write_pretty(&text, json);
    dt_strbuf_add_fmt(&path, "%s/plan.json", folder);
    DT_TRY(dt_file_remove_tree(folder, err)); /* left by a supervisor that died here */
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
    return st;
}

/* --- the rows */

static dt_status add_event(dt_session *session, const dt_next_attempt *next, const char *reason,
                           dt_error *err)
{
    const char *kind = next->kind;
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:b}", "event", kind, "attempt",
                  (json_int_t)next->attempt, "step", (json_int_t)next->start_step, "count",
                  (json_int_t)next->restarts, "nodes_lost", (json_int_t)next->nodes_lost, "reason",
                  dt_json_text(reason), "stepped", (int)next->stepped);
    dt_store_event event = {.attempt = next->attempt,
                            .node = -1,
                            .sequence = -1,
                            .rank = -1,
                            .time_ms = dt_clock_wall_ms(),
                            .kind = kind};
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    event.json = text.data;
    st = dt_store_event_add(session->store, session->run, &event, err);
    dt_strbuf_release(&text);
    json_decref(json);
    return st;
}

/* --- the attempts' records (attempt_record.h). Order: the record of an attempt may say that it
 * has ended only after the next attempt exists; the record of the last attempt says so before
 * its row does. Then no crash loses anything. */

static void keep_next(const dt_session *session, const dt_next_attempt *next)
{
    dt_error problem = DT_ERROR_INIT;
    dt_attempt_record record = session->record;

    record.run.attempt = next->attempt;
    record.run.state = next->waits ? DT_RUN_WAITING : DT_RUN_QUEUED;
    record.run.started_ms = record.run.first_step_ms = 0;
    record.run.step = record.start_step = next->start_step;
    record.created_ms = dt_clock_wall_ms();
    record.changes_json = "[]";
    record.provenance_json = "{}";
    record.node_count = 0;
    record.stop_asked = false; /* a preemption is a stop of the attempt before only */
    if (dt_attempt_record_write(&record, session->folder, &problem) != DT_OK)
        dt_log_warn("%s", problem.message); /* the next supervisor writes the record */
}

/* Writes both records, after syncing the store: otherwise a power loss could leave a store that
 * looks like an older copy (rebuild/rebuild.c). */
static void keep_both(dt_session *session, const dt_next_attempt *next, dt_run_state state,
                      int code, const char *reason)
{
    dt_error problem = DT_ERROR_INIT;

    if (dt_store_sync(session->store, &problem) != DT_OK) {
        dt_log_warn("%s: the record of attempt %lld is not written yet", problem.message,
                    (long long)next->attempt);
        return;
    }
    keep_next(session, next);
    dt_session_keep_end(session, state, code, reason);
}

static dt_status add_attempt(dt_session *session, const dt_next_attempt *next, dt_run_state state,
                             int code, const char *reason, dt_error *err)
{
    int64_t now_ms = dt_clock_wall_ms(), added;
    bool begun = false;
    dt_status st;
    dt_run row;

    DT_TRY(dt_store_begin(session->store, err));
    begun = true;
    DT_TRY(dt_store_run_find(session->store, &row, session->run, &session->arena, err));
    DT_TRY(dt_store_run_set_state(session->store, session->run, state, code, reason, now_ms, err));
    DT_TRY(dt_store_attempt_add(session->store, session->run, next->start_step, row.steps_total,
                                row.recipe_json, row.recipe_hash, now_ms, &added, err));
    DT_ASSERT(added == next->attempt);
    if (next->waits)
        DT_TRY(dt_store_run_set_state(session->store, session->run, DT_RUN_WAITING, -1, "", now_ms,
                                      err));
    DT_TRY(add_event(session, next, reason, err));
    DT_TRY(dt_store_commit(session->store, err));
    begun = false;
    keep_both(session, next, state, code, reason);
out:
    if (begun)
        dt_store_rollback(session->store);
    return st;
}

dt_status dt_next_attempt_add(dt_session *session, const dt_next_attempt *next, dt_run_state state,
                              int code, const char *reason, dt_error *err)
{
    dt_status st = write_plan(session, next, &reason, err);

    return st == DT_OK ? add_attempt(session, next, state, code, reason, err) : st;
}
