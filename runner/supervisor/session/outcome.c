/* outcome: ends an attempt once nothing more can come from its nodes, writes its end to the store, and
 * notifies the webhook. policy/restart.h decides whether another attempt follows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/workdir/workdir.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/supervisor/policy/restart.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"
#include "runner/transport/transport.h"
#include "store/activity.h"
#include "store/event.h"

#define OUTPUT_MOST ((size_t)4 << 30)

/* --- the rows */

/* Ends the attempt. A resumed attempt of a finished run that failed before its first step leaves
 * the run finished, unless processes may be left, which the run must report. */
static dt_status end_attempt(dt_session *session, dt_run_state state, int code, const char *reason,
                             dt_error *err)
{
    bool restored = false, begun = false;
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    DT_TRY(dt_store_sync(session->store, err));
    dt_session_keep_end(session, state, code, reason);
    DT_TRY(dt_store_begin(session->store, err));
    begun = true;
    DT_TRY(dt_store_run_set_state(session->store, session->run, state, code, reason,
                                  dt_clock_wall_ms(), err));
    if (code != DT_EXIT_LEFT)
        DT_TRY(dt_store_run_restore(session->store, &restored, session->run, err));
    DT_TRY(dt_store_commit(session->store, err));
    begun = false;
    if (dt_run_amend_end(session->store, session->run, &session->arena, &problem) != DT_OK)
        dt_log_warn("%s",
                    problem.message); /* nodes of earlier attempts: the next proof tries again */
    if (restored)
        dt_log_info("attempt %lld made no step: the run is finished, as it was before",
                    (long long)session->attempt);
out:
    if (begun)
        dt_store_rollback(session->store);
    return st;
}

static void notify(dt_session *session, const char *event, int64_t attempt, const char *reason)
{
    char when[DT_CLOCK_ISO_SIZE];
    dt_run row;

    if (session->settings.webhook[0] == '\0' ||
        dt_store_run_find(session->store, &row, session->run, &session->arena, NULL) != DT_OK)
        return;
    dt_notifier_send(
        session->notifier, session->settings.webhook,
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:b, s:o, s:s}", "event", event, "run",
                  session->run, "name", row.name, "attempt", (json_int_t)attempt, "step",
                  (json_int_t)row.step, "loss", dt_json_number(row.loss), "valid_loss",
                  dt_json_number(row.valid_loss), "diverged", (int)dt_run_has_diverged(&row),
                  "reason", dt_json_text(reason), "time", dt_clock_iso(when, dt_clock_wall_ms())));
}

/* --- what follows */

static bool was_started(const dt_session *session)
{
    bool started = session->restart.count > 0 || session->grow.grown || session->has_run;

    for (int64_t i = 0; i < session->world_size; i++)
        started = started || dt_session_rank(session, i)->row.pid != 0;
    return started;
}

/* Only dtrun's engine knows how many steps a run has: a program that was stopped ends at any. */
static dt_completion completion_of(const dt_session *session)
{
    if (session->settings.is_command)
        return (dt_completion){.epochs = 1};
    return (dt_completion){.told_total = dt_collector_steps_total(session->collector),
                           .steps = session->settings.steps,
                           .epochs = session->settings.epochs};
}

/* True if the attempt is being stopped, or was, to continue on more nodes (grow.c). */
static bool is_growing(dt_session *session)
{
    return dt_grows_reason(session->folder, session->attempt, &session->arena) != NULL;
}

/* Whether a run of somebody else has a GPU that the queue gave this one. */
static bool lost_its_place(const dt_session *session)
{
    return session->verdict.claimed && !session->verdict.stop_asked && session->queue != NULL &&
           session->queue->has(session->run);
}

static dt_restart_facts facts_of(dt_session *session)
{
    dt_verdict verdict = session->verdict;

    if (verdict.stop_asked && is_growing(session))
        verdict.stop_asked = false; /* nobody wants the run to end */
    return (dt_restart_facts){
        .may_restart =
            dt_verdict_may_restart(&verdict, session->restart.count > 0 || session->grow.grown) &&
            (session->grow.grown || !lost_its_place(session)),
        .started = was_started(session),
        .planned = session->plan_problem == NULL,
        .done = completion_of(session),
        .max_restarts = session->settings.max_restarts,
        .restarts = session->restart.count,
        .start_step = session->start_step,
        .nodes = session->node_count,
        .nodes_lost = dt_session_count_lost(session),
        .nodes_min = session->settings.nodes_min};
}

static bool has_stepped(const dt_session *session)
{
    return dt_collector_progress(session->collector)->step > session->start_step;
}

/* Returns true if this attempt of a command and the one before failed at once, with the same error. */
static bool is_same_error(dt_session *session)
{
    int64_t count, most_ms = dt_times_ms(dt_times()->at_once_seconds);
    const dt_attempt *before = NULL;
    dt_attempt *attempts_list;
    const char *reason;
    dt_run_state state;
    int code;

    if (!session->settings.is_command || session->restart.count == 0 ||
        session->restart.previous_stepped || has_stepped(session) ||
        dt_clock_wall_ms() - session->record.run.started_ms > most_ms ||
        dt_store_attempt_list(session->store, &attempts_list, &count, session->run, &session->arena,
                              NULL) != DT_OK)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (attempts_list[i].attempt == session->attempt - 1)
            before = &attempts_list[i];
    dt_verdict_give(&session->verdict, &state, &code, &reason);
    return before != NULL && before->start_step == session->start_step && before->elapsed_ms >= 0 &&
           before->elapsed_ms <= most_ms && dt_restart_same_reason(before->reason, reason);
}

/* Decides what follows; fills in `next` if that is another attempt. */
static dt_restart_act decide(dt_next_attempt *next, dt_session *session, const char **why_not)
{
    dt_restart_facts facts = facts_of(session);
    dt_error problem = DT_ERROR_INIT;
    dt_restart_decision decision;

    *why_not = "";
    *next = (dt_next_attempt){.attempt = session->attempt + 1, .kind = "restart"};
    if (!dt_restart_is_possible(&facts))
        return DT_RESTART_END;
    if (dt_next_attempt_find(next, session, &problem) != DT_OK) {
        dt_log_error("%s", problem.message);
        *why_not = "its checkpoints cannot be read";
        return DT_RESTART_END;
    }
    facts.same_error = is_same_error(session);
    next->stepped = has_stepped(session);
    facts.done.saved_step = next->start_step;
    facts.done.saved_total = next->steps_total;
    decision = dt_restart_decide(&facts);
    next->restarts = decision.restarts;
    next->nodes_lost = decision.nodes_left_out;
    if (session->grow.grown && session->verdict.claimed) { /* a GPU of a node that came back */
        next->as_attempt = session->attempt - 1;
        next->nodes_lost = 1;
        next->restarts = session->restart.count;
    }
    if (decision.act == DT_RESTART_SAME)
        *why_not = "not tried again: the attempt before had the same error at once too";
    if (decision.act == DT_RESTART_SPENT)
        *why_not = dt_arena_printf(&session->arena,
                                   "given up after %lld restart%s without a new"
                                   " checkpoint",
                                   (long long)session->settings.max_restarts,
                                   session->settings.max_restarts == 1 ? "" : "s");
    return decision.act;
}

bool dt_restart_is_due(dt_session *session)
{
    const char *why_not;
    dt_next_attempt next;

    return decide(&next, session, &why_not) == DT_RESTART_AGAIN;
}

/* Stores the metrics of an evaluation with its own run and with the run whose checkpoint it used: both or none. */
static dt_status add_results(dt_session *session, const dt_evaluation_results *results,
                             int64_t step, dt_error *err)
{
    const char *of = session->task_plan->task.run;
    dt_run own = {.id = session->run, .attempt = session->attempt}, parent;
    dt_status st = DT_OK;
    bool begun = false;

    DT_TRY(dt_store_begin(session->store, err));
    begun = true;
    DT_TRY(dt_task_results_store(session->store, &own, step, results, err));
    if (dt_store_run_find(session->store, &parent, of, &session->arena, NULL) == DT_OK)
        DT_TRY(dt_task_results_store(session->store, &parent, step, results, err));
    DT_TRY(dt_store_commit(session->store, err));
    begun = false;
out:
    if (begun)
        dt_store_rollback(session->store);
    return st;
}

/* Stores the metrics of a finished evaluation, once: a supervisor that continues after a crash finds them. */
static dt_status store_results(dt_session *session, dt_error *err)
{
    const dt_plan *plan = session->task_plan;
    dt_store_evaluation *stored;
    dt_evaluation_results results;
    dt_checkpoint *checkpoint = NULL;
    dt_strbuf lines;
    dt_status st = DT_OK;
    int64_t count, step;

    dt_strbuf_init(&lines);
    DT_TRY(dt_store_evaluation_list(session->store, &stored, &count, session->run, &session->arena,
                                    err));
    if (count > 0)
        goto out;
    DT_TRY(dt_file_read(&lines, plan->task.output, OUTPUT_MOST, err));
    DT_TRY(dt_evaluation_totals(&results, lines.data, lines.length, &session->arena, err));
    if (plan->resume_from[0] != '\0')
        DT_TRY(dt_checkpoint_open(&checkpoint, plan->resume_from, err));
    step = checkpoint != NULL ? dt_checkpoint_get_info(checkpoint)->step : 0;
    DT_TRY(add_results(session, &results, step, err));
out:
    dt_checkpoint_close(checkpoint);
    dt_strbuf_release(&lines);
    return st;
}

/* Writes the output file of a finished task; if that fails, the run has failed. */
static void finish_task(dt_session *session, dt_run_state *state, int *code, const char **reason)
{
    dt_error problem = DT_ERROR_INIT;
    double loss;

    if (session->task_plan == NULL || *state != DT_RUN_FINISHED)
        return;
    if (dt_task_folder_finish(&loss, session->task_plan, session->folder, &problem) == DT_OK) {
        (void)dt_store_run_set_progress(session->store, session->run,
                                        session->task_plan->task.lines, loss, NAN, NAN,
                                        dt_clock_wall_ms(), NULL);
        if (session->task_plan->recipe.task != DT_TASK_EVALUATE ||
            store_results(session, &problem) == DT_OK)
            return;
    }
    *state = DT_RUN_FAILED;
    *code = DT_EXIT_SYSTEM;
    *reason = dt_arena_printf(&session->arena, "%s", problem.message);
}

/* Files that could not be brought here fail the run. */
static void add_collection(dt_session *session, dt_run_state *state, int *code, const char **reason)
{
    const char *problem = dt_collection_problem(session->collection);

    if (problem == NULL)
        return;
    *reason = dt_arena_printf(&session->arena, "%s%s%s", *reason, (*reason)[0] != '\0' ? "; " : "",
                              problem);
    if (*code == DT_EXIT_GOOD)
        *code = DT_EXIT_SYSTEM;
    if (*state == DT_RUN_FINISHED)
        *state = DT_RUN_FAILED;
}

/* Why the run waits after this attempt, which the queue stopped; NULL: it does not. Processes that may be left use what
 * the run was stopped for. */
static const char *preempted_reason(dt_session *session, dt_run_state state, int code)
{
    return state == DT_RUN_STOPPED && code != DT_EXIT_LEFT
               ? dt_preempted_reason(session->folder, session->attempt, &session->arena)
               : NULL;
}

/* Ends the attempt, after which the run waits in the queue. */
static dt_status wait_again(dt_session *session, dt_next_attempt *next, const char *kind,
                            const char *reason, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_next_attempt_find(next, session, err));
    next->waits = true;
    next->kind = kind;
    dt_transports_remove(session->folder, false);
    DT_TRY(dt_next_attempt_add(session, next, DT_RUN_STOPPED, DT_EXIT_STOPPED, reason, err));
    dt_log_info("%s: it continues from step %lld", reason, (long long)next->start_step);
out:
    return st;
}

/* Ends an attempt that was stopped to continue on more nodes; if one was lost meanwhile, on those that are left. */
static dt_status grow(dt_session *session, dt_next_attempt *next, const char *reason, dt_error *err)
{
    int64_t lost = dt_session_count_lost(session);
    dt_status st;

    DT_TRY(dt_next_attempt_find(next, session, err));
    next->restarts = session->restart.count;
    if (lost == 0) {
        next->kind = DT_EVENT_KIND_GROWN;
        next->as_attempt = session->grow.whole;
        reason = dt_grows_reason(session->folder, session->attempt, &session->arena);
    } else if (session->node_count - lost >= session->settings.nodes_min) {
        next->nodes_lost = lost;
    }
    DT_TRY(dt_next_attempt_add(session, next, DT_RUN_STOPPED, DT_EXIT_STOPPED, reason, err));
    dt_log_info("%s: attempt %lld continues from step %lld", reason, (long long)next->attempt,
                (long long)next->start_step);
out:
    return st;
}

/* Writes the end of the attempt to the store, together with the next attempt if there is one;
 * *again says whether there is. */
static dt_status restart_or_end(bool *again, dt_session *session, dt_error *err)
{
    const char *reason, *why_not, *preempted;
    dt_run_state state;
    dt_next_attempt next;
    dt_status st = DT_OK;
    dt_restart_act act;
    int code;

    dt_verdict_give(&session->verdict, &state, &code, &reason);
    act = decide(&next, session, &why_not);
    *again = act == DT_RESTART_AGAIN;
    if (act == DT_RESTART_DONE) {
        reason =
            dt_arena_printf(&session->arena, "all steps were completed and saved; then %s", reason);
        state = DT_RUN_FINISHED;
        code = DT_EXIT_GOOD;
    }
    if (*again) {
        DT_TRY(dt_next_attempt_add(session, &next, DT_RUN_FAILED, code, reason, err));
        dt_log_warn("%s: attempt %lld continues from step %lld", reason, (long long)next.attempt,
                    (long long)next.start_step);
        notify(session, "restarted", next.attempt, reason);
    } else if ((preempted = preempted_reason(session, state, code)) != NULL) {
        DT_TRY(wait_again(session, &next, "preempted", preempted, err));
        state = DT_RUN_STOPPED;
    } else if (state == DT_RUN_STOPPED && session->verdict.left.length == 0 &&
               is_growing(session)) {
        *again = true;
        DT_TRY(grow(session, &next, reason, err));
    } else if (lost_its_place(session) && code != DT_EXIT_LEFT) {
        session->queue->refused(session->run, reason);
        DT_TRY(wait_again(session, &next, "refused", reason, err));
        state = DT_RUN_STOPPED;
    } else {
        const char *hint = dt_workdir_left_hint(session->folder, reason, &session->arena);

        if (hint != NULL)
            reason = dt_arena_printf(&session->arena, "%s; %s", reason, hint);
        if (why_not != NULL && why_not[0] != '\0')
            reason = dt_arena_printf(&session->arena, "%s; %s", reason, why_not);
        finish_task(session, &state, &code, &reason);
        add_collection(session, &state, &code, &reason);
        dt_transports_remove(session->folder, state == DT_RUN_FINISHED);
        DT_TRY(end_attempt(session, state, code, reason, err));
        dt_log_info("%s%s%s", dt_run_state_name(state), reason[0] != '\0' ? ": " : "", reason);
        if (session->task_plan != NULL && state == DT_RUN_FINISHED)
            dt_task_folder_clear(session->task_plan, session->folder);
        if (state != DT_RUN_STOPPED)
            notify(session, dt_run_state_name(state), session->attempt, reason);
    }
    session->state = state;
out:
    if (st != DT_OK)
        *again = false;
    return st;
}

/* conclude: ends an attempt once nothing more can come from its nodes.
 *
 * dt_action_conclude returns early while something is still running; whatever it waits for calls
 * `settled` when done, which dispatches RELEASED again.
 */

#define END_PATIENCE_MS 30000

/* --- unknown ends */

/* Returns a rank that was started and whose end was never reported; -1 if there is none. */
static int64_t find_unknown(const dt_session *session)
{
    for (int64_t i = 0; i < session->world_size; i++)
        if (dt_session_rank(session, i)->row.pid != 0 && !dt_session_rank(session, i)->exited)
            return i;
    return -1;
}

/* Marks the attempt as failed if the events do not explain how the ranks ended. */
static dt_status settle(dt_session *session, dt_error *err)
{
    int64_t rank = find_unknown(session);
    dt_status st = DT_OK;
    char text[400];

    if (dt_verdict_is_explained(&session->verdict))
        return DT_OK;
    if (dt_verdict_has_lost_cause(&session->verdict))
        snprintf(text, sizeof(text),
                 "the ranks were stopped after a failure whose cause is missing from the history");
    else if (rank >= 0)
        snprintf(text, sizeof(text),
                 "cannot tell how rank %lld on %s ended: the record is missing from its journal",
                 (long long)rank, session->nodes[dt_session_rank(session, rank)->row.node].name);
    else if (!dt_collector_has_gaps(session->collector))
        return DT_OK;
    else
        snprintf(text, sizeof(text),
                 "cannot tell whether the ranks finished: journal events were lost");
    dt_verdict_system_failed(&session->verdict, text, dt_clock_wall_ms()); /* once */
    DT_TRY(dt_session_note(session, "lost", text, err));
out:
    return st;
}

/* --- nodes that cannot be asked */

static void add_unreached(void *context, const char *text)
{
    dt_session *session = context;

    dt_verdict_unreached(&session->verdict, text);
}

/* Adds each node that this attempt lost and where ranks may still be running to the verdict. */
static void add_lost_nodes(dt_session *session)
{
    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_supervised_node *node = &session->nodes[i];
        dt_node_loss_facts facts = {.started = dt_node_may_have_started(node),
                                    .preempted = dt_node_link_is_preempted(node->link),
                                    .rebooted = node->rebooted};
        char text[320];

        if (!dt_node_is_lost(node) || !dt_node_loss_leaves_ranks(&facts))
            continue;
        snprintf(text, sizeof(text), "node %.250s cannot be asked about its ranks", node->name);
        dt_verdict_unreached(&session->verdict, text);
    }
}

/* True if the reason must name nodes where processes may still run: after a stop, and after a
 * failure that no restart follows. */
static bool names_left_nodes(dt_session *session)
{
    if (session->verdict.stop_asked && is_growing(session))
        return false;
    return session->verdict.stop_asked ||
           (dt_verdict_has_failed(&session->verdict) && !dt_restart_is_due(session));
}

/* Processes that are left still use the run's files, so nothing is removed in that case. */
static bool is_cleaned_up(dt_session *session)
{
    return session->verdict.left.length > 0 || dt_cleanup_is_done(session->cleanup);
}

/* --- the end */

/* Brings the files of a command here, at the first call; returns whether that is done. */
static bool is_collected(dt_session *session)
{
    dt_node_layout *places = dt_calloc((size_t)session->node_count, sizeof(places[0]));
    bool done;

    for (int64_t i = 0; i < session->node_count; i++)
        if (dt_node_link_place(session->nodes[i].link) != NULL &&
            !dt_node_is_lost(&session->nodes[i]))
            places[i] = *dt_node_link_place(session->nodes[i].link);
    done = dt_collection_is_done(session->collection, places);
    free(places);
    return done;
}

/* Ends the attempt. The agents must leave before the end is stored, because no supervisor would
 * come back to check on them. */
dt_status dt_action_conclude(dt_session *session, dt_supervised_node *unused, dt_error *err)
{
    dt_run_rows_setup rows = {
        .store = session->store, .run = session->run, .attempt = session->attempt};
    bool alone = true;
    dt_status st = DT_OK;

    if (!dt_collector_is_idle(session->collector))
        return DT_OK; /* it dispatches RELEASED again */
    for (int64_t i = 0; i < session->node_count; i++)
        alone = alone && dt_node_link_is_away(session->nodes[i].link);
    for (int64_t i = 0; i < session->node_count; i++)
        if (dt_node_link_is_preparing(session->nodes[i].link))
            return DT_OK; /* the preparation must end first; it dispatches RELEASED again */
    if (dt_session_count_lost(session) > 0)
        dt_checkpoint_fetcher_cancel(session->fetcher);
    if (!dt_checkpoint_fetcher_is_idle(session->fetcher))
        return DT_OK; /* it dispatches RELEASED again */
    if (names_left_nodes(session) && !dt_reaper_is_done(session->reaper))
        return DT_OK; /* the same */
    DT_TRY(settle(session, err));
    if (!alone && session->leave != DT_LEAVE_OVER) {
        session->leave = DT_LEAVE_WAITS;
        return DT_OK;
    }
    if (!dt_restart_is_due(session) && !is_growing(session) &&
        !(is_collected(session) && is_cleaned_up(session)))
        return DT_OK; /* the same */
    if (names_left_nodes(session)) {
        if (!session->verdict.stop_asked) /* after a stop, each lost node was reported at once */
            add_lost_nodes(session);
        dt_reaper_list_unreached(session->reaper, add_unreached, session);
    }
    if (!dt_store_is_current(session->store)) {
        DT_TRY(dt_collector_move(&rows, session->store, err));
        DT_THROW(err, DT_ERR_PEER, "the file of the run store was removed or replaced");
    }
    dt_store_set_patience(session->store, END_PATIENCE_MS); /* nobody waits for the loop any more */
    DT_TRY(restart_or_end(&session->restart.follows, session, err));
    uv_stop(&session->loop);
out:
    return st;
}
