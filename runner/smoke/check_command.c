/* check_command: checks the program of a recipe with a command: that it starts, its metrics and
 * checkpoints, and how it ends. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "recipes/fields/nodes.h"
#include "runner/smoke/smoke_int.h"
#include "runner/term/term.h"
#include "store/event.h"

/* A program that shows neither a metric nor a checkpoint counts as started after this time. */
#define STEADY_SECONDS 5.0

static bool has_metrics(const dt_recipe *recipe)
{
    return recipe->metrics.kind != DT_OUTPUT_METRICS_NONE || recipe->metrics.pattern[0] != '\0' ||
           recipe->metrics.file[0] != '\0';
}

/* Returns the least step of the attempt's points, and their number; INT64_MAX if it has none. */
static int64_t smoke_first_step(int64_t *points, dt_smoke_place *place, const char *run,
                                int64_t attempt, dt_arena *arena)
{
    int64_t count, least = INT64_MAX;
    dt_metric *all;

    *points = 0;
    if (dt_store_metric_list(place->store, &all, &count, run, NULL, -1, false, arena, NULL) !=
        DT_OK)
        return least;
    for (int64_t i = 0; i < count; i++)
        if (all[i].attempt == attempt) {
            least = all[i].step < least ? all[i].step : least;
            *points += 1;
        }
    return least;
}

/* Returns whether the first run has shown a metric, so that a later one will too. */
static bool smoke_shows_metrics(const dt_smoke *smoke)
{
    dt_metric *all;
    int64_t count;

    return has_metrics(&smoke->recipe) &&
           dt_store_metric_list(smoke->place.store, &all, &count, smoke->trained.row.id, NULL, -1,
                                true, smoke->arena, NULL) == DT_OK &&
           count > 0;
}

static bool all_started(dt_smoke_place *place, const dt_run *row, dt_arena *arena)
{
    int64_t count;
    dt_rank *ranks;

    if (dt_store_rank_list(place->store, &ranks, &count, row->id, row->attempt, arena, NULL) !=
            DT_OK ||
        count == 0)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (strcmp(ranks[i].state, "waiting") == 0 || strcmp(ranks[i].state, "started") == 0)
            return false;
    return true;
}

bool dt_smoke_is_there(dt_smoke_place *place, const dt_run *row, void *context, dt_arena *arena)
{
    dt_smoke_awaited *what = context;
    dt_store_checkpoint *saved;
    int64_t count;

    if (row->attempt > what->attempt)
        return true;
    if (row->attempt < what->attempt || !all_started(place, row, arena))
        return false;
    if (what->up_seconds == 0)
        what->up_seconds = dt_clock_monotonic_seconds();
    if (what->metric && smoke_first_step(&count, place, row->id, row->attempt, arena) == INT64_MAX)
        return false;
    if (what->checkpoint &&
        (dt_store_checkpoint_list(place->store, &saved, &count, row->id, arena, NULL) != DT_OK ||
         count == 0))
        return false;
    return what->metric || what->checkpoint ||
           dt_clock_monotonic_seconds() - what->up_seconds >= STEADY_SECONDS;
}

/* Starts a run in a copy of the folder, and waits until dt_smoke_is_there, or it has ended. DT_ERR_TIMEOUT. */
static dt_status smoke_begin_command(dt_smoke_run *out, dt_smoke_awaited *what, dt_smoke *smoke,
                                     const char *name, dt_error *err)
{
    dt_recipe recipe = smoke->recipe;
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_place_copy(&recipe, &smoke->place, name, err));
    DT_TRY(dt_smoke_launch(out, &smoke->place, name, &recipe, err));
    DT_TRY(dt_smoke_await(out, &smoke->place, dt_smoke_is_there, what, err));
out:
    return st;
}

/* Returns whether the run has ended otherwise than by itself. */
static bool smoke_has_failed(const dt_run *row)
{
    return dt_run_state_is_terminal(row->state) && row->state != DT_RUN_FINISHED;
}

dt_status dt_smoke_starts(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_smoke_awaited what = {.attempt = 1,
                             .metric = has_metrics(&smoke->recipe),
                             .checkpoint = smoke->recipe.checkpoints.path[0] != '\0'};
    double start = dt_clock_monotonic_seconds();
    dt_smoke_run run = {0};
    dt_status st = DT_OK;
    dt_attempt *attempts;
    dt_rank *ranks;
    int64_t count;

    st = smoke_begin_command(&run, &what, smoke, "starts", err);
    if (st == DT_ERR_TIMEOUT && what.up_seconds > 0) { /* the next checks say what is missing */
        dt_error_clear(err);
        st = DT_OK;
    }
    DT_TRY(st);
    DT_TRY(dt_store_rank_list(smoke->place.store, &ranks, &smoke->ranks, run.row.id, 1,
                              smoke->arena, err));
    DT_TRY(dt_store_attempt_list(smoke->place.store, &attempts, &count, run.row.id, smoke->arena,
                                 err));
    if (count > 1 || smoke_has_failed(&run.row)) { /* a restart would hide the failure */
        dt_smoke_fail(out, smoke, "%s", attempts[0].reason);
        goto out;
    }
    smoke->trained = run;
    dt_smoke_figure(out, smoke, "%lld %s, %s %.1f s", (long long)smoke->ranks,
                    smoke->ranks == 1 ? "process" : "processes",
                    run.row.state == DT_RUN_FINISHED ? "finished after" : "running after",
                    dt_clock_monotonic_seconds() - start);
out:
    return st;
}

dt_status dt_smoke_measures(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const char *run = smoke->trained.row.id;
    int64_t count;
    dt_metric *all;
    dt_status st = DT_OK;

    if (!has_metrics(&smoke->recipe)) {
        dt_smoke_skip(out, smoke, "the recipe has no 'metrics'");
        return DT_OK;
    }
    DT_TRY(dt_store_metric_list(smoke->place.store, &all, &count, run, NULL, -1, true, smoke->arena,
                                err));
    if (count == 0)
        dt_smoke_fail(
            out, smoke, "no metric was read (%s; 'metrics' of the recipe says where they are)",
            dt_run_state_is_terminal(smoke->trained.row.state) ? "the program has ended"
                                                               : "the time limit is --limit");
    else
        dt_smoke_figure(out, smoke, "%lld %s, such as %s %.6g at step %lld", (long long)count,
                        count == 1 ? "metric" : "metrics", all[0].name, all[0].value,
                        (long long)all[0].step);
out:
    return st;
}

dt_status dt_smoke_saves(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    const dt_run *run = &smoke->trained.row;
    dt_store_checkpoint *all;
    char size[DT_FORMAT_SIZE];
    dt_status st = DT_OK;
    int64_t count;

    if (smoke->recipe.checkpoints.path[0] == '\0') {
        dt_smoke_skip(out, smoke, "the recipe has no 'checkpoints'");
        return DT_OK;
    }
    DT_TRY(dt_store_checkpoint_list(smoke->place.store, &all, &count, run->id, smoke->arena, err));
    if (count == 0)
        dt_smoke_fail(out, smoke, "no complete checkpoint '%s' appeared (%s)",
                      smoke->recipe.checkpoints.path,
                      dt_run_state_is_terminal(run->state) ? "the program has ended"
                                                           : "the time limit is --limit");
    else
        dt_smoke_figure(out, smoke, "step %lld, %s", (long long)all[0].step,
                        dt_format_bytes(size, sizeof(size), (double)all[0].bytes));
out:
    return st;
}

/* check_command_ends: checks how the program of a recipe with a command ends: when a rank is killed, and when it is
 * asked to stop.
 *
 * The run of dt_smoke_starts is killed and stopped if it still runs by then. If it has ended, each check starts a run of
 * its own.
 */

#define ENDED_BEFORE "the program ended before"
#define LONGER       " (--set args.* can make it longer)"

/* --- a killed rank */

enum { RANK_NONE = -1, RANK_ENDED = -2 };

/* Kills the program of the last rank that runs on this machine. Returns the rank; RANK_NONE: every rank is elsewhere;
 * RANK_ENDED: those here have ended. */
static int64_t kill_one(const dt_smoke *smoke, const dt_run *row)
{
    dt_node *nodes;
    dt_rank *ranks;
    int64_t count, nodes_count, killed = RANK_NONE;

    if (dt_store_rank_list(smoke->place.store, &ranks, &count, row->id, row->attempt, smoke->arena,
                           NULL) != DT_OK ||
        dt_store_node_list(smoke->place.store, &nodes, &nodes_count, row->id, row->attempt,
                           smoke->arena, NULL) != DT_OK)
        return RANK_NONE;
    for (int64_t i = count - 1; i >= 0; i--) {
        if (ranks[i].node >= nodes_count || !dt_node_is_here(nodes[ranks[i].node].name))
            continue;
        killed = RANK_ENDED;
        if (ranks[i].pid > 0 && strcmp(ranks[i].state, "ready") == 0 &&
            kill((pid_t)ranks[i].pid, SIGKILL) == 0)
            return ranks[i].rank;
    }
    return killed;
}

/* Returns whether the run ended before a check could do its part; then `out` says so. */
static bool is_over(dt_smoke_result *out, const dt_smoke *smoke, const dt_run *row,
                    const char *what)
{
    if (smoke_has_failed(row))
        dt_smoke_fail(out, smoke, "the run is %s: %s", dt_run_state_name(row->state), row->reason);
    else if (row->state == DT_RUN_FINISHED)
        dt_smoke_skip(out, smoke, ENDED_BEFORE " %s" LONGER, what);
    return dt_run_state_is_terminal(row->state);
}

/* Checks the attempt after the one in which a rank was killed. */
static dt_status judge_restart(dt_smoke_result *out, dt_smoke *smoke, const dt_run *row,
                               int64_t rank, dt_error *err)
{
    bool counted = smoke->recipe.metrics.pattern[0] != '\0' &&
                   strstr(smoke->recipe.metrics.pattern, "<step>") == NULL;
    int64_t count, points, first;
    dt_attempt *attempts;
    dt_status st = DT_OK;

    DT_TRY(
        dt_store_attempt_list(smoke->place.store, &attempts, &count, row->id, smoke->arena, err));
    first = smoke_first_step(&points, &smoke->place, row->id, 2, smoke->arena);
    if (count < 2 && row->state == DT_RUN_FINISHED)
        dt_smoke_skip(out, smoke, ENDED_BEFORE " a rank could be killed" LONGER);
    else if (count < 2)
        dt_smoke_fail(out, smoke, "rank %lld was killed, and the run did not restart: it is %s%s%s",
                      (long long)rank, dt_run_state_name(row->state),
                      row->reason[0] != '\0' ? ": " : "", row->reason);
    else if (count > 2 || smoke_has_failed(row))
        dt_smoke_fail(out, smoke, "rank %lld was killed, and the restart failed: %s",
                      (long long)rank, attempts[1].reason);
    else if (smoke->recipe.checkpoints.path[0] == '\0')
        dt_smoke_figure(out, smoke, "rank %lld killed, restarted (the recipe has no 'checkpoints')",
                        (long long)rank);
    else if (attempts[1].start_step <= 0)
        dt_smoke_fail(out, smoke, "rank %lld was killed, and no checkpoint was complete",
                      (long long)rank);
    else if (counted || !smoke_shows_metrics(smoke))
        dt_smoke_figure(out, smoke,
                        "rank %lld killed, restarted with the checkpoint of step %lld (without "
                        "steps in 'metrics', whether it continues is not known)",
                        (long long)rank, (long long)attempts[1].start_step);
    else if (points == 0 && row->state == DT_RUN_FINISHED)
        dt_smoke_skip(out, smoke,
                      "rank %lld killed, and after the restart from step %lld the program ended "
                      "without a metric (--set args.* can make it longer)",
                      (long long)rank, (long long)attempts[1].start_step);
    else if (points == 0)
        dt_smoke_fail(out, smoke, "no metric was read after the restart from step %lld (--limit)",
                      (long long)attempts[1].start_step);
    else if (first <= attempts[1].start_step)
        dt_smoke_fail(out, smoke,
                      "the restart did not continue from the checkpoint of step %lld: its first "
                      "metric has step %lld (see 'resume' of the recipe, or DTRUN_RESUME_FROM)",
                      (long long)attempts[1].start_step, (long long)first);
    else
        dt_smoke_figure(out, smoke, "rank %lld killed, continued from step %lld with step %lld",
                        (long long)rank, (long long)attempts[1].start_step, (long long)first);
out:
    return st;
}

dt_status dt_smoke_continues(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    bool saves = smoke->recipe.checkpoints.path[0] != '\0';
    dt_smoke_awaited what = {
        .attempt = 1, .metric = smoke_shows_metrics(smoke), .checkpoint = saves};
    dt_status st = DT_OK;
    dt_smoke_run run = smoke->trained;
    dt_store_checkpoint *saved;
    int64_t count, rank;

    DT_TRY(dt_store_checkpoint_list(smoke->place.store, &saved, &count, run.row.id, smoke->arena,
                                    err));
    DT_TRY(dt_store_run_find(smoke->place.store, &run.row, run.row.id, smoke->arena, err));
    if (smoke->recipe.failure.max_restarts == 0)
        dt_smoke_skip(out, smoke, "restarts are off ('failure.max_restarts' is 0)");
    else if (saves && count == 0)
        dt_smoke_skip(out, smoke, "no checkpoint appeared");
    if (out->verdict == DT_SMOKE_SKIPPED)
        goto out;
    if (dt_run_state_is_terminal(run.row.state))
        DT_TRY(smoke_begin_command(&run, &what, smoke, "resumes", err));
    if (is_over(out, smoke, &run.row, "a rank could be killed"))
        goto out;
    rank = kill_one(smoke, &run.row);
    if (rank < 0) {
        dt_smoke_skip(out, smoke,
                      rank == RANK_NONE ? "no rank runs on this machine, where it could be killed"
                                        : ENDED_BEFORE " a rank could be killed" LONGER);
        goto out;
    }
    what = (dt_smoke_awaited){.attempt = 2, .metric = what.metric};
    st = dt_smoke_await(&run, &smoke->place, dt_smoke_is_there, &what, err);
    if (st == DT_ERR_TIMEOUT && what.up_seconds > 0) {
        dt_error_clear(err); /* it restarted, and judge_restart says what is missing */
        st = DT_OK;
    }
    DT_TRY(st);
    DT_TRY(judge_restart(out, smoke, &run.row, rank, err));
    smoke->trained = run;
out:
    return st;
}

/* --- stop */

/* Calls `each` with the id of every process of this machine. */
static void each_process(void (*each)(pid_t pid, void *context), void *context)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;

    if (processes == NULL)
        return;
    while ((entry = readdir(processes)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            each((pid_t)strtol(entry->d_name, NULL, 10), context);
    closedir(processes);
}

typedef struct leftover {
    const char *folder;
    int64_t count;
} leftover;

static void look_for_leftover(pid_t pid, void *context)
{
    leftover *left = context;
    char path[32], folder[4096];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)pid);
    length = readlink(path, folder, sizeof(folder) - 1);
    if (length <= 0)
        return;
    folder[length] = '\0';
    left->count += strncmp(folder, left->folder, strlen(left->folder)) == 0;
}

/* Counts the ranks of the stopped run that ended by SIGKILL. */
static dt_status count_killed(int64_t *out, const dt_smoke *smoke, const dt_run *row, dt_error *err)
{
    int64_t count;
    dt_rank *ranks;
    dt_status st = DT_OK;

    *out = 0;
    DT_TRY(dt_store_rank_list(smoke->place.store, &ranks, &count, row->id, row->attempt,
                              smoke->arena, err));
    for (int64_t i = 0; i < count; i++)
        *out += ranks[i].exit_signal == SIGKILL;
out:
    return st;
}

dt_status dt_smoke_ends_command(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    dt_smoke_awaited what = {.attempt = 1, .metric = smoke_shows_metrics(smoke)};
    dt_smoke_run run = smoke->trained;
    leftover left = {.folder = NULL};
    int64_t killed;
    dt_status st = DT_OK;

    DT_TRY(dt_store_run_find(smoke->place.store, &run.row, run.row.id, smoke->arena, err));
    if (dt_run_state_is_terminal(run.row.state)) {
        st = smoke_begin_command(&run, &what, smoke, "stops", err);
        if (st == DT_ERR_TIMEOUT && what.up_seconds > 0) {
            dt_error_clear(err);
            st = DT_OK;
        }
        DT_TRY(st);
    }
    if (is_over(out, smoke, &run.row, "it could be stopped"))
        goto out;
    DT_TRY(dt_smoke_stop_run(out, smoke, &run, err));
    if (run.row.state == DT_RUN_FINISHED) {
        dt_smoke_skip(out, smoke, ENDED_BEFORE " it could be stopped" LONGER);
        goto out;
    }
    if (out->verdict == DT_SMOKE_FAILED)
        goto out;
    left.folder = run.recipe.workdir.folder;
    each_process(look_for_leftover, &left);
    DT_TRY(count_killed(&killed, smoke, &run.row, err));
    if (left.count > 0)
        dt_smoke_fail(out, smoke, "%lld %s of the program still there", (long long)left.count,
                      left.count == 1 ? "process is" : "processes are");
    else if (killed > 0)
        dt_smoke_fail(out, smoke,
                      "%lld of %lld ranks did not end by themselves within %g s and were killed: "
                      "what they had not saved is lost (see 'stop_signal' and 'grace_seconds')",
                      (long long)killed, (long long)smoke->ranks, smoke->recipe.grace_seconds);
    else if (strstr(run.row.reason, "exit cleanly") != NULL)
        dt_smoke_figure(out, smoke, "no process left; %s", run.row.reason);
out:
    return st;
}
