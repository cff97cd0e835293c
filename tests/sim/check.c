/* check: the promises, held against what ranks did, what the store says, and what still runs. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "tests/sim/sim.h"

#include "base/banned.h"

double sim_loss(int64_t attempt, int64_t step)
{
    return 5.0 - 0.01 * (double)step + 0.0001 * (double)attempt;
}

void sim_check_begin(void) {}

void sim_check_point(int64_t attempt, int64_t step)
{
    schedule.points++;
}

/* --- one attempt at a time */

void sim_check_rank_begins(void *context, int64_t attempt, int64_t rank)
{
    sim_proc *proc = context;

    proc->attempt = attempt;
    proc->rank = rank;
    for (int i = 0; i < sim.machine_count; i++)
        for (const sim_proc *each = sim.machines[i].procs; each != NULL; each = each->next) {
            if (each->over || each->engine == NULL || each == proc)
                continue;
            if (each->attempt == attempt && each->rank == rank)
                sim_fail("rank %lld of attempt %lld runs twice", (long long)rank,
                         (long long)attempt);
            if (each->attempt != attempt &&
                (&sim.machines[i] == proc->machine || !sim.machines[i].troubled))
                sim_fail("a rank of attempt %lld begins on %s while one of attempt %lld lives on "
                         "%s",
                         (long long)attempt, proc->machine->name, (long long)each->attempt,
                         sim.machines[i].name);
        }
}

/* --- the history */

static void check_points(dt_store *store, dt_arena *arena)
{
    dt_metric *points;
    int64_t count, next = 1;

    if (dt_store_metric_list(store, &points, &count, SIM_RUN, "loss", 0, 0, arena, NULL) != DT_OK) {
        sim_fail("the history cannot be read");
        return;
    }
    for (int64_t i = 0; i < count; i++, next++) {
        if (points[i].step != next) {
            sim_fail("the history has step %lld where step %lld is due", (long long)points[i].step,
                     (long long)next);
            return;
        }
        if (fabs(points[i].value - sim_loss(points[i].attempt, points[i].step)) > 1e-9)
            sim_fail("step %lld has another loss than its rank told", (long long)points[i].step);
    }
    if (schedule.state == DT_RUN_FINISHED && next != schedule.steps + 1)
        sim_fail("the run has finished, and its history ends at step %lld of %lld",
                 (long long)next - 1, (long long)schedule.steps);
}

static void check_saved(dt_store *store, dt_arena *arena)
{
    dt_store_checkpoint *rows;
    int64_t count, newest = 0;

    if (schedule.state != DT_RUN_FINISHED ||
        dt_store_checkpoint_list(store, &rows, &count, SIM_RUN, arena, NULL) != DT_OK)
        return;
    for (int64_t i = 0; i < count; i++)
        newest = rows[i].step > newest ? rows[i].step : newest;
    if (newest != schedule.steps)
        sim_fail("the run has finished, and its last checkpoint is of step %lld",
                 (long long)newest);
}

/* --- the end */

static void check_ending(void)
{
    switch (schedule.state) {
    case DT_RUN_FINISHED:
        break;
    case DT_RUN_STOPPED:
        if (!schedule.stop_asked)
            sim_fail("the run was stopped, and nobody asked for it");
        break;
    case DT_RUN_FAILED:
        if (schedule.harms == 0)
            sim_fail("the run failed, and nothing had happened to it: %s", schedule.reason);
        if (schedule.reason[0] == '\0')
            sim_fail("the run failed without a reason");
        break;
    default:
        sim_fail("the run has not ended");
    }
    if (schedule.attempt > 1 + schedule.harms + schedule.resumes)
        sim_fail("%lld attempts, after %lld things that can end one: %s",
                 (long long)schedule.attempt, (long long)schedule.harms, schedule.reason);
}

static void check_nothing_lives(void)
{
    for (int i = 0; i < sim.machine_count; i++)
        for (const sim_proc *each = sim.machines[i].procs; each != NULL; each = each->next)
            if (!each->over)
                sim_fail("%s[%d] still lives on %s", each->name, each->pid, sim.machines[i].name);
}

static int look(sim_proc *proc)
{
    dt_store *store = NULL;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_store_open(&store, NULL, NULL) == DT_OK) {
        check_points(store, &arena);
        check_saved(store, &arena);
    } else {
        sim_fail("the history cannot be opened");
    }
    dt_store_close(store);
    dt_arena_release(&arena);
    return 0;
}

void sim_check_end(void)
{
    check_ending();
    check_nothing_lives();
    sim_proc_start(&sim.machines[0], NULL, "check", look, NULL);
    sim_run_until(sim_now_ns + 60 * SIM_SECOND, NULL);
}
