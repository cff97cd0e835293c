/* command: does what people and a timer do, with the programs' own functions: launches, stops
 * and resumes a run, and starts a new supervisor if there is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reader.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "runner/supervisor/supervisor.h"
#include "store/event.h"
#include "store/run.h"
#include "store/store.h"
#include "tests/sim/sim.h"

#define FOLDER SIM_STATE "/dtrun/runs/" SIM_RUN

sim_schedule schedule;

void sim_fail(const char *fmt, ...)
{
    va_list args;

    if (schedule.failure[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(schedule.failure, sizeof(schedule.failure), fmt, args);
    va_end(args);
    sim_trace("BROKEN: %s", schedule.failure);
}

static sim_proc *run(const char *name, int (*program)(sim_proc *))
{
    return sim_proc_start(&sim.machines[0], NULL, name, program, NULL);
}

/* Finds the run as a command does: a run that is missing in the store is restored from its folder. */
static dt_status find_run(dt_run *row, dt_store *store, dt_arena *arena, dt_error *err)
{
    if (schedule.damaged)
        dt_restore_run(store, SIM_RUN);
    return dt_store_run_find(store, row, SIM_RUN, arena, err);
}

/* --- launch and resume */

/* A valid recipe; the simulated ranks do not read it. */
static const char recipe_text[] = "name: sim\n"
                                  "model: {layers: 1, heads: 1, embed: 8}\n"
                                  "data: {train: /data.txt}\n"
                                  "batch: {sequences: 1, tokens: 8}\n"
                                  "schedule: {steps: 10}\n"
                                  "optimizer: {lr: 0.001}\n";

static void plan_fill(dt_plan *plan, int64_t attempt, const char *resume_from, dt_arena *arena)
{
    const dt_recipe_source source = {.path = "/sim.yaml", .text = recipe_text};
    dt_error err = DT_ERROR_INIT;

    if (dt_recipe_read(&plan->recipe, &source, arena, &err) != DT_OK)
        sim_fail("the recipe: %s", err.message);
    plan->recipe.schedule.steps = schedule.steps;
    plan->recipe.grace_seconds = schedule.grace_seconds;
    plan->recipe.nodes_min = schedule.nodes_min;
    plan->recipe.log.system = sim.seed % 8 == 0; /* the events of nodes cost time */
    plan->recipe.failure.max_restarts = schedule.max_restarts;
    plan->recipe.failure.hang_seconds = schedule.hang_seconds;
    plan->recipe.failure.launcher_lost = schedule.launcher_lost;
    plan->run = SIM_RUN;
    plan->attempt = attempt;
    plan->directory = FOLDER "/checkpoints";
    plan->shared = schedule.nodes == 1 && schedule.first_here;
    plan->resume_from = resume_from;
    plan->new_data = plan->new_model = false;
    plan->node_count = schedule.nodes;
    plan->world_size = schedule.nodes * schedule.ranks_per_node;
    plan->node_names = dt_arena_alloc_array(arena, (size_t)plan->node_count, sizeof(char *));
    plan->ranks = dt_arena_alloc_array(arena, (size_t)plan->world_size, sizeof(plan->ranks[0]));
    for (int64_t i = 0; i < plan->node_count; i++)
        plan->node_names[i] = sim.machines[i + (schedule.first_here ? 0 : 1)].name;
    for (int64_t i = 0; i < plan->world_size; i++)
        plan->ranks[i] = (dt_plan_rank){.node = i / schedule.ranks_per_node,
                                        .local_rank = i % schedule.ranks_per_node,
                                        .device = "cpu",
                                        .replicas = 1,
                                        .threads = 1};
}

static dt_status plan_write(json_t **recipe, int64_t attempt, const char *resume_from,
                            dt_arena *arena, dt_error *err)
{
    json_t *json = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    char path[256];
    dt_plan plan = {0};

    dt_strbuf_init(&text);
    plan_fill(&plan, attempt, resume_from, arena);
    json = dt_plan_to_json(&plan);
    dt_json_write_pretty(&text, json);
    *recipe = json_incref(json_object_get(json, "recipe"));
    snprintf(path, sizeof(path), FOLDER "/attempt-%lld", (long long)attempt);
    DT_TRY(dt_file_make_dirs(path, 0700, err));
    snprintf(path, sizeof(path), FOLDER "/attempt-%lld/plan.json", (long long)attempt);
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

static int launch(sim_proc *proc)
{
    dt_error err = DT_ERROR_INIT;
    dt_store *store = NULL;
    json_t *recipe = NULL;
    dt_arena arena;
    dt_strbuf text;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    DT_TRY(dt_store_open(&store, NULL, &err));
    DT_TRY(plan_write(&recipe, 1, "", &arena, &err));
    dt_json_write(&text, recipe);
    DT_TRY(dt_store_run_add(store,
                            &(dt_run){.id = SIM_RUN,
                                      .name = "sim",
                                      .state = DT_RUN_QUEUED,
                                      .attempt = 1,
                                      .created_ms = dt_clock_wall_ms(),
                                      .steps_total = schedule.steps,
                                      .recipe_path = "/sim.yaml",
                                      .recipe_text = "",
                                      .recipe_json = text.data,
                                      .recipe_hash = "0",
                                      .exit_code = -1,
                                      .reason = "",
                                      .boot_id = ""},
                            &err));
    DT_TRY(dt_supervisor_keep_environment(SIM_RUN, "", &err));
    DT_TRY(dt_supervisor_start(SIM_RUN, &err));
out:
    if (st != DT_OK)
        sim_trace("launch: %s", err.message);
    json_decref(recipe);
    dt_strbuf_release(&text);
    dt_store_close(store);
    dt_arena_release(&arena);
    return (int)st;
}

void sim_command_launch(void)
{
    run("launch", launch);
}

/* Finds the earliest complete checkpoint on this machine, for `resume --from STEP`. */
static dt_status find_earliest(dt_resume_point *from, dt_store *store, dt_arena *arena,
                               dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_store_checkpoint *rows;
    int64_t count;
    dt_status st = dt_store_checkpoint_list(store, &rows, &count, SIM_RUN, arena, err);

    for (int64_t i = 0; st == DT_OK && i < count; i++) {
        if (rows[i].step >= from->step || !dt_file_exists(rows[i].path) ||
            dt_checkpoint_open(&checkpoint, rows[i].path, NULL) != DT_OK)
            continue;
        from->path = rows[i].path;
        from->step = rows[i].step;
        dt_checkpoint_close(checkpoint);
    }
    return st;
}

static int resume(sim_proc *proc)
{
    dt_error err = DT_ERROR_INIT;
    dt_resume_point from = {0};
    dt_store *store = NULL;
    json_t *recipe = NULL;
    int64_t attempt;
    dt_arena arena;
    dt_status st;
    dt_run row;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_open(&store, NULL, &err));
    DT_TRY(find_run(&row, store, &arena, &err));
    if (!dt_run_state_is_terminal(row.state) || row.state == DT_RUN_FINISHED)
        goto out;
    DT_TRY(dt_run_newest_checkpoint(&from, store, SIM_RUN, FOLDER "/checkpoints", &arena, &err));
    /* Chosen by the seed without a draw, so that the schedules of other seeds stay the same. */
    if (sim.seed % 4 == 1 && from.path != NULL)
        DT_TRY(find_earliest(&from, store, &arena, &err));
    sim_trace("it continues from step %lld", (long long)from.step);
    DT_TRY(plan_write(&recipe, row.attempt + 1, from.path != NULL ? from.path : "", &arena, &err));
    DT_TRY(dt_store_attempt_add(store, SIM_RUN, from.step, schedule.steps, row.recipe_json, "0",
                                dt_clock_wall_ms(), &attempt, &err));
    schedule.resumes++;
    schedule.stop_asked = schedule.ended = false;
    schedule.attempt_at_stop = 0;
    DT_TRY(dt_supervisor_start(SIM_RUN, &err));
out:
    if (st != DT_OK)
        sim_trace("resume: %s", err.message);
    json_decref(recipe);
    dt_store_close(store);
    dt_arena_release(&arena);
    return (int)st;
}

void sim_command_resume(void)
{
    run("resume", resume);
}

/* --- stop */

static dt_status newest_attempt(int64_t *out, dt_error *err)
{
    dt_store *store = NULL;
    dt_arena arena;
    dt_status st;
    dt_run row;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(find_run(&row, store, &arena, err));
    *out = row.attempt;
out:
    dt_store_close(store);
    dt_arena_release(&arena);
    return st;
}

/* A stop that takes longer is obeyed, but a power loss may undo it: the disk was full, or the
 * store was locked (runner/supervisor/session/control.c). */
#define STORED_NS (5 * 1000000000LL)

static int stop(sim_proc *proc)
{
    dt_error err = DT_ERROR_INIT;
    int64_t resumes = schedule.resumes, asked_ns = sim_now_ns;
    dt_status st;

    schedule.stop_asked = true;
    DT_TRY(dt_supervisor_stop(SIM_RUN, proc->argv != NULL, &err));
    if (resumes == schedule.resumes && sim_now_ns - asked_ns < STORED_NS)
        DT_TRY(newest_attempt(&schedule.attempt_at_stop, &err));
    schedule.stop_ns = sim_now_ns;
    sim_fault_moment(SIM_A_STOP_IS_ACCEPTED);
out:
    if (st != DT_OK)
        sim_trace("stop: %s", err.message);
    return (int)st;
}

void sim_command_stop(bool now)
{
    static const char *const words[] = {"now", NULL};

    run("stop", stop)->argv = now ? words : NULL;
}

/* --- a timer like that of systemd (docs/install.md): starts a missing supervisor */

static bool is_supervised(void)
{
    for (const sim_proc *each = sim.machines[0].procs; each != NULL; each = each->next)
        if (!each->over && each->engine == NULL &&
            (strcmp(each->name, "supervisor") == 0 || strcmp(each->name, "watch") == 0 ||
             strcmp(each->name, "launch") == 0 || strcmp(each->name, "resume") == 0))
            return true;
    return false;
}

static int watch(sim_proc *proc)
{
    dt_error err = DT_ERROR_INIT;
    dt_store *store = NULL;
    dt_arena arena;
    dt_status st;
    dt_run row;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_store_open(&store, NULL, &err));
    DT_TRY(find_run(&row, store, &arena, &err));
    schedule.ended = dt_run_state_is_terminal(row.state);
    schedule.state = (int)row.state;
    schedule.exit_code = row.exit_code;
    schedule.attempt = row.attempt;
    snprintf(schedule.reason, sizeof(schedule.reason), "%s", row.reason);
    if (!schedule.ended)
        DT_TRY(dt_supervisor_ensure(&row, &err));
out:
    if (st != DT_OK)
        sim_trace("watch: %s", err.message);
    dt_store_close(store);
    dt_arena_release(&arena);
    return (int)st;
}

/* Returns true while a node cannot be used: a person would wait with a resume. */
static bool is_troubled(void)
{
    bool troubled = false;

    for (int i = 0; i < sim.machine_count; i++)
        troubled = troubled || !sim_net_open(&sim.machines[i]) || sim.machines[i].down ||
                   sim.machines[i].full_until_ns > sim_now_ns ||
                   sim.machines[i].closed_until_ns > sim_now_ns;
    return troubled;
}

/* Other commands may look after the run at the same moment. */
static void start_watches(void)
{
    run("watch", watch);
    if (sim_chance(0.3))
        run("watch", watch);
}

static void on_watch_time(void *context)
{
    sim_check_now();
    if (!sim.machines[0].down && !schedule.ended && (!is_supervised() || sim_chance(0.03)))
        start_watches();
    if (schedule.ended && schedule.resume_wanted && !is_troubled()) {
        schedule.resume_wanted = false;
        sim_command_resume();
    }
    sim_command_watch();
}

void sim_command_watch(void)
{
    sim_at(sim_now_ns + sim_between(2 * SIM_SECOND, 8 * SIM_SECOND), on_watch_time, NULL);
}
