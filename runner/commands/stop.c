/* dtrun stop: saves a checkpoint, stops a run, and verifies that none of its processes are left. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/queue/queue.h"
#include "runner/stop/stop.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/sweep/sweep.h"
#include "runner/term/screen.h"
#include "runner/times.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"
#include "store/activity.h"

#define STOPPED_WAITING "stopped while it waited"
#define LOOK_SECONDS    0.2
/* Time after the recipe's grace period: for the kill, the verification and the last rows. */
#define PATIENCE_SECONDS 60.0
#define TELL_SECONDS     10.0 /* between two lines of progress */
#define TROUBLES_MOST    30   /* checks, two seconds apart, that find the supervisor in trouble */

/* The recipe's grace period; a day if the stored recipe cannot be read, so that waiting still ends. */
static double grace_seconds(const dt_run *run, dt_arena *arena)
{
    double grace = 24 * 3600;
    json_t *json = NULL;
    dt_recipe recipe;

    if (dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "recipe", NULL) == DT_OK &&
        dt_recipe_from_json(&recipe, json, arena, NULL) == DT_OK)
        grace = recipe.grace_seconds;
    json_decref(json);
    return grace;
}

static void draw(dt_live *live, const dt_run *run, double seconds)
{
    char text[DT_CLOCK_ISO_SIZE];
    dt_strbuf block;

    if (!live->term->live)
        return;
    dt_strbuf_init(&block);
    dt_term_add(&block, live->term, dt_runs_run_style(run), "%s", dt_run_state_word(run));
    dt_term_add(&block, live->term, DT_STYLE_DIM, " %s, step %lld, %s\n", run->id,
                (long long)run->step, dt_clock_duration(text, sizeof(text), seconds));
    dt_live_draw(live, "", block.data);
    dt_strbuf_release(&block);
}

/* Waits until the run has ended. *left: Ctrl-C ended the wait. DT_ERR_TIMEOUT if the run does not end. */
static dt_status await_end(dt_run *run, bool *left, dt_store *store, const dt_call *call,
                           dt_error *err)
{
    double start = dt_clock_monotonic_seconds(), now = start, checked = start, reported = start;
    double patience = grace_seconds(run, call->arena) + PATIENCE_SECONDS;
    const char *id = run->id;
    dt_status st = DT_OK;
    dt_upkeep upkeep = {0};
    const char *news;
    dt_arena arena;
    dt_live live;
    dt_term term;
    dt_run seen;

    dt_arena_init(&arena, 0);
    dt_term_init(&term, STDERR_FILENO);
    term.live = term.live && !call->json;
    dt_live_open(&live, &term);
    dt_interrupt_catch();
    *left = false;
    for (;;) {
        dt_arena_reset(&arena);
        if (!dt_store_is_current(store) && !dt_store_renew(store, id))
            DT_THROW(err, DT_ERR_NOT_FOUND,
                     "the run history was removed or replaced while waiting");
        DT_TRY(dt_store_run_find(store, &seen, id, &arena, err));
        if (seen.state == DT_RUN_WAITING) { /* it was preempted just before the stop */
            (void)dt_queue_drop(store, id, STOPPED_WAITING, NULL);
            continue;
        }
        if (dt_run_state_is_terminal(seen.state))
            break;
        *left = dt_interrupt_seen();
        if (*left)
            break;
        now = dt_clock_monotonic_seconds();
        draw(&live, &seen, now - start);
        if (now - start > patience)
            DT_THROW(err, DT_ERR_TIMEOUT,
                     "run '%s' is still %s after %.0f s: see 'dtrun logs %s', or kill it"
                     " with 'dtrun stop %s --now'",
                     id, dt_run_state_name(seen.state), now - start, id, id);
        DT_TRY(dt_upkeep_look(&news, &upkeep, &seen, err));
        if (now - checked > dt_times()->stop_check_seconds) {
            checked = now;
            DT_TRY(
                dt_run_check_room(call->arena, err)); /* on a full disk the end cannot be written */
        }
        if (upkeep.troubles > TROUBLES_MOST || (news != NULL && dt_supervisor_paused(id) != 0))
            DT_THROW(err, DT_ERR_TIMEOUT, "%s",
                     upkeep.message); /* continue without the supervisor */
        if (news != NULL)
            dt_report_say("dtrun stop: %s", news);
        if (!term.live && now - reported > TELL_SECONDS) {
            reported = now;
            dt_report_say("dtrun stop: run %s is %s at step %lld, after %.0f s", id,
                          dt_run_state_name(seen.state), (long long)seen.step, now - start);
        }
        (void)dt_store_wait(store, LOOK_SECONDS);
    }
    DT_TRY(dt_store_run_find(store, run, id, call->arena, err));
out:
    dt_live_close(&live);
    dt_arena_release(&arena);
    return st;
}

/* Finds the checkpoint that resume will start from; NULL if none. */
static dt_status saved(const char **path, int64_t *step, dt_store *store, const dt_run *run,
                       dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *all;
    int64_t count;
    dt_status st = DT_OK;

    *path = NULL;
    DT_TRY(dt_store_checkpoint_list(store, &all, &count, run->id, arena, err));
    for (int64_t i = 0; i < count && *path == NULL; i++) {
        if (dt_store_checkpoint_exists(&all[i])) {
            *path = all[i].path;
            *step = all[i].step;
        }
    }
out:
    return st;
}

static dt_status report_end(dt_store *store, const dt_run *run, bool already, const dt_call *call,
                            dt_error *err)
{
    dt_status st = DT_OK;
    const char *path;
    json_t *object;
    dt_strbuf text;
    int64_t step = 0;

    dt_strbuf_init(&text);
    DT_TRY(saved(&path, &step, store, run, call->arena, err));
    if (call->json) {
        object = dt_runs_to_json(run);
        json_object_set_new(object, "already_ended", json_boolean(already));
        json_object_set_new(object, "checkpoint", path != NULL ? dt_json_text(path) : json_null());
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    dt_strbuf_add_fmt(&text, "run %s %s %s at step %lld", run->id,
                      already ? "has already ended:" : "has", dt_run_state_name(run->state),
                      (long long)run->step);
    dt_strbuf_add_str(&text, !already && run->exit_code != DT_EXIT_LEFT
                                 ? ", none of its processes are left\n"
                                 : "\n");
    if (run->reason[0] != '\0')
        dt_strbuf_add_fmt(&text, "%s\n", run->reason);
    if (path != NULL)
        dt_strbuf_add_fmt(&text, "checkpoint of step %lld: %s\n", (long long)step, path);
    if (path != NULL && run->state != DT_RUN_FINISHED)
        dt_strbuf_add_fmt(&text, "continue with 'dtrun resume %s'\n", run->id);
    if (dt_task_of_lines(run) && run->state != DT_RUN_FINISHED)
        dt_strbuf_add_fmt(&text, "compute the missing lines with 'dtrun resume %s'\n", run->id);
    else if (path == NULL && dt_task_of(run) == NULL)
        dt_strbuf_add_str(&text, "no checkpoint was saved\n");
    DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Asks the nodes of an ended run that could not be reached when it ended. */
static dt_status ask_again(const dt_run *run, dt_store *store, dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf left;
    int64_t asked;

    dt_strbuf_init(&left);
    DT_TRY(dt_orphans_end(&asked, &left, store, run, dt_arguments_get(call->args, "forgive-node"),
                          call->arena, err));
    if (left.length > 0) {
        dt_report_note(call, "processes may still be left: %s", left.data);
        call->exit_code = DT_EXIT_LEFT;
    } else if (asked > 0) {
        dt_report_note(call, "no processes are left on the nodes that could not be reached before");
    }
out:
    dt_strbuf_release(&left);
    return st;
}

static dt_status stop(dt_call *call, dt_error *err)
{
    bool now = dt_arguments_flag(call->args, "now"), already, left = false;
    const char *ref = call->args->operands_count > 0 ? call->args->operands[0] : NULL;
    const char *node = dt_arguments_get(call->args, "node")->text;
    dt_error problem = DT_ERROR_INIT;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_sweep_group group;
    dt_run run;

    if (node != NULL)
        return dt_stop_on_node(node, ref, call, err);
    if (ref == NULL)
        DT_THROW(err, DT_ERR_USAGE, "RUN is missing ('dtrun list' shows all runs)");
    if (dt_arguments_flag(call->args, "all"))
        DT_THROW(err, DT_ERR_USAGE, "--all needs --node HOST");
    if (dt_group_is_meant(&group, ref, call))
        return dt_group_stop(&group, now, call, err);
    st = dt_runs_open(&store, &run, ref, call, &problem);
    if (st != DT_OK && st != DT_ERR_USAGE)
        return dt_stop_without_history(ref, now, &problem, call, err);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    already = dt_run_state_is_terminal(run.state);
    if (already) {
        DT_TRY(ask_again(&run, store, call, err));
        DT_TRY(dt_store_run_find(store, &run, run.id, call->arena,
                                 err)); /* its reason may have changed */
    } else if (run.state == DT_RUN_WAITING &&
               dt_queue_drop(store, run.id, STOPPED_WAITING, NULL) == DT_OK) {
        DT_TRY(dt_store_run_find(store, &run, run.id, call->arena, err));
    } else { /* also one that has just started */
        st = dt_supervisor_stop(run.id, now, &problem);
        if (st == DT_ERR_USAGE) { /* it has ended or waits by now */
            dt_error_clear(&problem);
            st = DT_OK;
        }
        if (st == DT_OK)
            st = await_end(&run, &left, store, call, &problem);
        if (st != DT_OK) {
            DT_TRY(dt_stop_without_history(run.id, now, &problem, call, err));
            goto out;
        }
    }
    if (!left)
        (void)dt_supervisor_end_helpers(run.id, true);
    if (left) {
        dt_report_note(call, "detached; run %s is being stopped (see 'dtrun status %s')", run.id,
                       run.id);
        call->exit_code = DT_EXIT_INTERRUPTED;
    } else if (!already) {
        call->exit_code = run.exit_code == DT_EXIT_LEFT ? DT_EXIT_LEFT
                          : run.state == DT_RUN_FAILED  ? DT_EXIT_FAILED
                                                        : DT_EXIT_GOOD;
    }
    if (!left || call->json)
        DT_TRY(report_end(store, &run, already, call, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "now",
     .kind = DT_OPTION_FLAG,
     .help = "kill every process of the run at once, without a checkpoint"},
    {.name = "node",
     .kind = DT_OPTION_TEXT,
     .value = "HOST",
     .help = "list the runs on this node, by asking it; with RUN or --all, stop them there"},
    {.name = "all", .kind = DT_OPTION_FLAG, .help = "with --node: stop every run on the node"},
    {.name = "forgive-node",
     .kind = DT_OPTION_LIST,
     .value = "HOST",
     .help = "treat this node as clean without asking it (only for a run that has ended)"},
    {0},
};

const dt_command dt_command_stop = {
    .name = "stop",
    .summary = "save a checkpoint, stop a run and verify that it is gone",
    .operands = "[RUN|GROUP]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 0,
    .operands_max = 1,
    .options = options,
    .notes =

        "Asks every rank to stop, gives it the recipe's grace_seconds to save a checkpoint, then\n"
        "kills what still runs, and waits for the end. Exit codes: 0 the run has ended and all\n"
        "its processes are gone, 5 some could not be removed or a node could not be reached. For\n"
        "a run that has already ended, stop only ends what is left on nodes that could not be\n"
        "reached then (--forgive-node treats such a node as clean).\n"
        "GROUP is a sweep: all its runs are stopped, and no other point starts.\n"
        "Works without the run history and the supervisor: if they cannot be used, stop asks the\n"
        "agents named in the folder of the run directly, and verifies the end with them. If the\n"
        "end cannot be written (a full disk), supervisor and agents wait for free space, and stop\n"
        "exits with 5; --now ends them too, with the rows they have not written. The next command\n"
        "that can write the history then marks the run as stopped.\n",
    .run = stop,
};
