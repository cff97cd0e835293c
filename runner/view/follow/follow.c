/* follow: shows a run until it ends or the user detaches, keeps its supervisor running, and prints the
 * output of generate and score at the end. */
#include "runner/view/follow/follow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"
#include "runner/view/runs/runs.h"

dt_status dt_upkeep_look(const char **news, dt_upkeep *upkeep, const dt_run *run, dt_error *err)
{
    double now = dt_clock_monotonic_seconds();
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf text;
    dt_status st;

    *news = NULL;
    if (upkeep->looked_seconds == 0) /* the caller has just checked the run */
        upkeep->looked_seconds = now;
    if (dt_run_state_is_terminal(run->state) ||
        now < upkeep->looked_seconds + dt_times()->stop_check_seconds)
        return DT_OK;
    upkeep->looked_seconds = now;
    st = dt_supervisor_ensure(run, &problem);
    if (st != DT_OK && dt_supervisor_is_broken(run->id))
        return DT_FAIL(err, st, "%s", problem.message);
    dt_strbuf_init(&text);
    if (st != DT_OK)
        dt_strbuf_add_fmt(&text, "the run has no supervisor right now: %s", problem.message);
    else
        (void)dt_supervisor_trouble(&text, run->id);
    upkeep->troubles = text.length > 0 ? upkeep->troubles + 1 : 0;
    if (text.length == 0)
        upkeep->message[0] = '\0';
    else if (upkeep->troubles > 1 && /* a busy machine delays one answer */
             strncmp(text.data, upkeep->message, sizeof(upkeep->message) - 1) != 0) {
        snprintf(upkeep->message, sizeof(upkeep->message), "%s", text.data);
        *news = upkeep->message;
    }
    dt_strbuf_release(&text);
    return DT_OK;
}

#define FRAME_SECONDS 0.2
#define OUTPUT_BEFORE 6 /* lines of a command that was started before */

/* The newest data that the view has shown. */
typedef struct cursors {
    int64_t attempt, loss_step, valid_step, checkpoint_step, event_id;
} cursors;

typedef struct follower {
    dt_store *store;
    const dt_call *call;
    const char *run;
    dt_arena arena; /* reset every frame */
    cursors at;
    dt_frame frame;
    dt_run row;            /* lives in `arena` */
    dt_log_tail output;    /* of rank 0 of a command */
    dt_arena output_arena; /* of `output` */
    bool has_output;
    char output_since[DT_CLOCK_ISO_SIZE]; /* lines before that are of earlier attempts */
} follower;

/* Finds the first step of the newest attempt. */
static dt_status start_step(int64_t *out, follower *f, dt_error *err)
{
    dt_attempt *attempts;
    int64_t count;
    dt_status st = DT_OK;

    *out = 0;
    DT_TRY(dt_store_attempt_list(f->store, &attempts, &count, f->run, &f->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (attempts[i].attempt == f->row.attempt)
            *out = attempts[i].start_step;
out:
    return st;
}

/* Reads the run with the state of the followed attempt. If that attempt failed before its first step, the
 * run itself may have returned to its previous attempt and state. */
static dt_status look(dt_run *out, const follower *f, dt_arena *arena, dt_error *err)
{
    dt_attempt *attempts;
    int64_t count;
    dt_status st = DT_OK;

    DT_TRY(dt_store_run_find(f->store, out, f->run, arena, err));
    if (out->attempt >= f->at.attempt)
        return DT_OK;
    DT_TRY(dt_store_attempt_list(f->store, &attempts, &count, f->run, arena, err));
    for (int64_t i = 0; i < count; i++) {
        if (attempts[i].attempt != f->at.attempt)
            continue;
        out->reason = dt_arena_printf(arena, "%s; the run is still %s", attempts[i].reason,
                                      dt_run_state_name(out->state));
        out->attempt = attempts[i].attempt;
        out->state = attempts[i].state;
        out->exit_code = attempts[i].exit_code;
    }
out:
    return st;
}

static dt_status place_cursors(follower *f, dt_follow_from from, dt_error *err)
{
    dt_store_event *events;
    int64_t step = f->row.step, count;
    dt_status st = DT_OK;

    if (from == DT_FOLLOW_FROM_START)
        DT_TRY(start_step(&step, f, err));
    f->at.attempt = f->row.attempt;
    f->at.loss_step = f->at.valid_step = f->at.checkpoint_step = step;
    DT_TRY(
        dt_store_event_list(f->store, &events, &count, f->run, f->at.event_id, 0, &f->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (from == DT_FOLLOW_FROM_NOW || events[i].attempt < f->row.attempt)
            f->at.event_id = events[i].id;
out:
    return st;
}

static dt_status new_points(follower *f, dt_error *err)
{
    dt_frame *frame = &f->frame;
    dt_evaluation *evaluations;
    dt_metric *losses;
    dt_status st = DT_OK;

    DT_TRY(dt_store_metric_list(f->store, &losses, &frame->losses_count, f->run,
                                frame->timing.curve, f->at.loss_step, 0, &f->arena, err));
    frame->losses = losses;
    if (frame->losses_count > 0)
        f->at.loss_step = losses[frame->losses_count - 1].step;
    DT_TRY(dt_evaluations_read(&evaluations, &frame->evaluations_count, &f->at.valid_step, f->store,
                               f->run, &f->arena, err));
    frame->evaluations = evaluations;
out:
    return st;
}

/* Collects new checkpoints, oldest first (the store lists the newest first). */
static dt_status new_checkpoints(follower *f, dt_error *err)
{
    const dt_store_checkpoint **fresh;
    dt_store_checkpoint *all;
    int64_t count, taken = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_store_checkpoint_list(f->store, &all, &count, f->run, &f->arena, err));
    fresh = dt_arena_alloc_array(&f->arena, (size_t)count + 1, sizeof(fresh[0]));
    for (int64_t i = count - 1; i >= 0; i--)
        if (all[i].attempt == f->row.attempt && all[i].step > f->at.checkpoint_step)
            fresh[taken++] = &all[i];
    if (taken > 0)
        f->at.checkpoint_step = fresh[taken - 1]->step;
    f->frame.checkpoints = fresh;
    f->frame.checkpoints_count = taken;
out:
    return st;
}

static dt_status new_troubles(follower *f, dt_error *err)
{
    dt_store_event *events;
    const char **sentences;
    int64_t count, taken = 0;
    dt_status st = DT_OK;

    DT_TRY(
        dt_store_event_list(f->store, &events, &count, f->run, f->at.event_id, 0, &f->arena, err));
    sentences = dt_arena_alloc_array(&f->arena, (size_t)count + 1, sizeof(sentences[0]));
    for (int64_t i = 0; i < count; i++) {
        const char *sentence = dt_incident_sentence(&events[i], &f->arena);
        f->at.event_id = events[i].id;
        if (sentence != NULL)
            sentences[taken++] = sentence;
    }
    f->frame.troubles = sentences;
    f->frame.troubles_count = taken;
out:
    return st;
}

/* Shows output from the start of the attempt, or the newest lines of a run that was started before. */
static dt_status open_output(follower *f, dt_follow_from from, dt_error *err)
{
    int64_t since_ms = 0, count;
    dt_log_line *seen;
    dt_attempt *attempts;
    dt_status st = DT_OK;

    if (!dt_runs_is_command(&f->row))
        return DT_OK;
    DT_TRY(dt_store_attempt_list(f->store, &attempts, &count, f->run, &f->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (attempts[i].attempt == f->row.attempt && from == DT_FOLLOW_FROM_START)
            since_ms = attempts[i].created_ms;
    dt_clock_iso(f->output_since, since_ms);
    DT_TRY(dt_log_tail_init(&f->output, f->store, &f->row, -1, &f->output_arena, err));
    f->output.rank = 0;
    f->has_output = true;
    if (from == DT_FOLLOW_FROM_NOW) {
        DT_TRY(dt_log_tail_read(&f->output, &seen, &count, DT_LOG_LAST, OUTPUT_BEFORE, f->store,
                                &f->row, &f->output_arena, err));
        if (count > 0)
            snprintf(f->output_since, sizeof(f->output_since), "%.*s", (int)strlen(f->output_since),
                     seen[0].text);
        for (int64_t i = 0; i < f->output.count; i++)
            f->output.readers[i].offset = 0;
    }
out:
    return st;
}

static dt_status new_output(follower *f, dt_error *err)
{
    bool ended = dt_run_state_is_terminal(f->row.state);
    dt_log_line *lines;
    dt_status st = DT_OK;
    int64_t count, taken = 0;

    if (!f->has_output)
        return DT_OK;
    DT_TRY(dt_log_tail_read(&f->output, &lines, &count, ended ? DT_LOG_REST : DT_LOG_LIVE, 0,
                            f->store, &f->row, &f->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (lines[i].rank == 0 && strncmp(lines[i].text, f->output_since, DT_CLOCK_ISO_SIZE) >= 0)
            lines[taken++] = lines[i];
    f->frame.output = lines;
    f->frame.output_count = taken;
out:
    return st;
}

/* Reads the next frame. The run is read first: everything after it is newer, so nothing is missed
 * at the end. */
static dt_status next_frame(follower *f, dt_error *err)
{
    dt_status st = DT_OK;

    dt_arena_reset(&f->arena);
    f->frame = (dt_frame){.run = &f->row, .now_seconds = dt_clock_monotonic_seconds()};
    if (dt_store_renew(f->store, f->run))
        DT_TRY(place_cursors(f, DT_FOLLOW_FROM_NOW, err));
    DT_TRY(look(&f->row, f, &f->arena, err));
    if (f->row.attempt != f->at.attempt)
        DT_TRY(place_cursors(f, DT_FOLLOW_FROM_START, err));
    DT_TRY(dt_timing_read(&f->frame.timing, f->store, &f->row, dt_clock_wall_ms(), &f->arena, err));
    DT_TRY(dt_node_lines_read(&f->frame.nodes, f->store, &f->row, &f->frame.timing.activity,
                              &f->arena, err));
    DT_TRY(dt_curve_sketch(&f->frame.curve, f->store, f->row.id, f->frame.timing.curve,
                           DT_CURVE_SPARK_MOST, &f->arena, err));
    DT_TRY(new_points(f, err));
    DT_TRY(new_checkpoints(f, err));
    DT_TRY(new_troubles(f, err));
    DT_TRY(new_output(f, err));
out:
    return st;
}

/* Adds a problem of the supervisor after the events of the history. */
static dt_status add_news(follower *f, dt_upkeep *upkeep, dt_error *err)
{
    const char *news, **sentences;
    dt_status st = DT_OK;

    DT_TRY(dt_upkeep_look(&news, upkeep, &f->row, err));
    if (news == NULL)
        return DT_OK;
    sentences =
        dt_arena_alloc_array(&f->arena, (size_t)f->frame.troubles_count + 1, sizeof(sentences[0]));
    for (int64_t i = 0; i < f->frame.troubles_count; i++)
        sentences[i] = f->frame.troubles[i];
    sentences[f->frame.troubles_count++] = news;
    f->frame.troubles = sentences;
out:
    return st;
}

/* Waits until the next frame is due, or the run's state changes. */
static dt_status rest(const follower *f, dt_error *err)
{
    double due = dt_clock_monotonic_seconds() + FRAME_SECONDS, left;
    dt_run_state state = f->row.state;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_run row;

    dt_arena_init(&arena, 0);
    while ((left = due - dt_clock_monotonic_seconds()) > 0 && dt_store_wait(f->store, left) &&
           dt_store_is_current(f->store) && !dt_interrupt_seen()) {
        DT_TRY(dt_store_run_find(f->store, &row, f->run, &arena, err));
        if (row.state != state)
            break;
        dt_arena_reset(&arena);
    }
out:
    dt_arena_release(&arena);
    return st;
}

static void make_view(dt_view **out, dt_follow_view kind, const follower *f)
{
    dt_term term;

    *out = NULL;
    if (kind == DT_FOLLOW_QUIET)
        return;
    dt_term_init(&term, STDERR_FILENO);
    if (kind == DT_FOLLOW_STEPS)
        *out = dt_view_steps_new(f->store, f->call->json);
    else
        *out = term.live && kind == DT_FOLLOW_AUTO ? dt_view_live_new(&term)
                                                   : dt_view_lines_new(&term);
}

/* *out: the run as last seen (arena of the call). *left: the user detached before the end. attempt: at least this one. */
static dt_status dt_follow(dt_run *out, bool *left, dt_store *store, const char *run,
                           int64_t attempt, dt_follow_view kind, dt_follow_from from,
                           const dt_call *call, dt_error *err)
{
    follower f = {.store = store, .call = call, .run = run};
    dt_upkeep upkeep = {0};
    dt_view *view = NULL;
    dt_status st = DT_OK;

    *left = false;
    dt_arena_init(&f.arena, 0);
    dt_arena_init(&f.output_arena, 0);
    dt_interrupt_catch();
    f.at.attempt = attempt;
    DT_TRY(look(&f.row, &f, &f.arena, err));
    DT_TRY(place_cursors(&f, from, err));
    if (kind == DT_FOLLOW_AUTO || kind == DT_FOLLOW_LINES)
        DT_TRY(open_output(&f, from, err));
    make_view(&view, kind, &f);
    for (;;) {
        DT_TRY(next_frame(&f, err));
        DT_TRY(add_news(&f, &upkeep, err));
        if (view != NULL)
            view->show(view, &f.frame);
        if (dt_run_state_is_terminal(f.row.state))
            break;
        *left = dt_interrupt_seen();
        if (*left)
            break;
        DT_TRY(rest(&f, err));
    }
    DT_TRY(look(out, &f, call->arena, err));
out:
    if (view != NULL)
        view->close(view);
    dt_arena_release(&f.output_arena);
    dt_arena_release(&f.arena);
    return st;
}

/* Prints to stderr how to follow the run again. */
static void follow_report_left(const dt_run *run)
{
    const char *dtrun = program_invocation_name;

    dt_report_say("detached; run %s continues\n"
                  "  %s status --watch %s   follow it again\n"
                  "  %s logs -f %s          follow its log\n"
                  "  %s stop %s             save a checkpoint and stop",
                  run->id, dtrun, run->id, dtrun, run->id, dtrun, run->id);
}

int dt_follow_exit_code(const dt_run *run)
{
    if (run->exit_code >= 0)
        return run->exit_code;
    return run->state == DT_RUN_FINISHED ? DT_EXIT_GOOD : DT_EXIT_FAILED;
}

static dt_status follow_to_end(dt_store *store, const char *run, int64_t attempt,
                               dt_follow_view view, dt_follow_from from, dt_call *call,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_run last;
    bool left;

    DT_TRY(dt_follow(&last, &left, store, run, attempt, view, from, call, err));
    if (left)
        follow_report_left(&last);
    if (call->json)
        DT_TRY(dt_summary_json(store, &last, call->arena, err));
    else if (!left)
        DT_TRY(dt_summary_text(store, &last, call->arena, err));
    call->exit_code = left ? DT_EXIT_INTERRUPTED : dt_follow_exit_code(&last);
out:
    return st;
}

dt_status dt_follow_to_end(dt_store *store, const char *run, dt_follow_view view,
                           dt_follow_from from, dt_call *call, dt_error *err)
{
    return follow_to_end(store, run, 0, view, from, call, err);
}

dt_status dt_follow_options_check(const dt_call *call, dt_error *err)
{
    if (dt_arguments_flag(call->args, "wait") && dt_arguments_flag(call->args, "detach"))
        return DT_FAIL(err, DT_ERR_USAGE, "--wait and --detach cannot be combined");
    if (dt_arguments_flag(call->args, "log-steps") && dt_arguments_flag(call->args, "detach"))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--log-steps and --detach cannot be combined; use 'dtrun logs "
                       "--steps -f RUN'");
    return DT_OK;
}

/* Prints the id of the run, or its object with --json. */
static dt_status follow_started(dt_store *store, const char *id, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(dt_store_run_find(store, &run, id, call->arena, err));
    if (call->json) {
        DT_TRY(dt_report_json(dt_runs_to_json(&run), err));
    } else {
        dt_strbuf_add_fmt(&text, "%s\n", id);
        DT_TRY(dt_report_text(&text, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_follow_as_asked(dt_store *store, const char *run, int64_t attempt, dt_call *call,
                             dt_error *err)
{
    bool wait = dt_arguments_flag(call->args, "wait");
    dt_follow_view view = DT_FOLLOW_AUTO;

    if (dt_arguments_flag(call->args, "detach"))
        return follow_started(store, run, call, err);
    if (dt_arguments_flag(call->args, "log-steps"))
        view = DT_FOLLOW_STEPS;
    else if (wait)
        view = call->json ? DT_FOLLOW_QUIET : DT_FOLLOW_LINES;
    return follow_to_end(store, run, attempt, view, DT_FOLLOW_FROM_START, call, err);
}

#define OUTPUT_MOST ((size_t)4 << 30)

/* Prints the output unless a file was named for it. */
static dt_status show(dt_strbuf *text, const dt_run *run, const dt_plan_task *task,
                      const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    const char *own;

    DT_TRY(dt_file_read(text, task->output, OUTPUT_MOST, err));
    if (call->json)
        return DT_OK;
    DT_TRY(dt_run_path(&own, run->id, DT_TASK_OUTPUT, call->arena, err));
    if (strcmp(own, task->output) != 0)
        dt_report_note(call, "run %s: %lld lines in '%s'", run->id, (long long)task->lines,
                       task->output);
    else
        st = dt_report_data(text, err);
out:
    return st;
}

static dt_status end(dt_strbuf *text, json_t **object, dt_store *store, const dt_run *run,
                     dt_call *call, dt_error *err)
{
    bool good = run->state == DT_RUN_FINISHED;
    dt_status st = DT_OK;
    dt_plan plan;

    DT_TRY(dt_task_plan(&plan, run, call->arena, err));
    if (good && plan.recipe.task != DT_TASK_EVALUATE) /* its caller prints metrics */
        DT_TRY(show(text, run, &plan.task, call, err));
    if (call->json) {
        DT_TRY(dt_summary_object(object, store, run, call->arena, err));
        json_object_set_new(*object, "output", dt_json_text(plan.task.output));
    } else if (!good) {
        DT_TRY(dt_summary_text(store, run, call->arena, err));
    }
    call->exit_code = dt_follow_exit_code(run);
out:
    return st;
}

dt_status dt_task_follow(dt_strbuf *text, json_t **object, dt_store *store, const char *run,
                         dt_call *call, dt_error *err)
{
    dt_follow_view view = dt_arguments_flag(call->args, "wait") ? DT_FOLLOW_LINES : DT_FOLLOW_AUTO;
    dt_status st = DT_OK;
    dt_run last;
    bool left;

    *object = NULL;
    if (dt_arguments_flag(call->args, "detach"))
        return follow_started(store, run, call, err);
    DT_TRY(dt_follow(&last, &left, store, run, 0, call->json ? DT_FOLLOW_QUIET : view,
                     DT_FOLLOW_FROM_START, call, err));
    if (left) {
        follow_report_left(&last);
        call->exit_code = DT_EXIT_INTERRUPTED;
        goto out;
    }
    DT_TRY(end(text, object, store, &last, call, err));
out:
    return st;
}
