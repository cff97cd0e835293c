/* launch: creates a group from a recipe with a sweep, resumes the unfinished points of a group, and starts
 * drivers. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"
#include "base/names.h"
#include "base/resources.h"
#include "recipes/fields/fields.h"
#include "runner/channel/detach.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/launch/preflight.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/sweep/sweep.h"
#include "store/run.h"
#include "store/store.h"

/* start: starts a driver for a group that has none. */

#define READY_SECONDS 30.0

static const char *starts_path(const char *folder, dt_arena *arena)
{
    return dt_arena_printf(arena, "%s/" DT_DRIVE_STARTS, folder);
}

static dt_status start(const char *name, const char *folder, const dt_detach_place *place,
                       dt_arena *arena, dt_error *err)
{
    const char *const argv[] = {"dtrun", "drive", name, NULL};
    const char *log = dt_arena_printf(arena, "%s/driver.log", folder);
    dt_error problem = DT_ERROR_INIT;
    const char *starts;
    bool crashed;
    dt_status st;

    starts = starts_path(folder, arena);
    crashed = dt_starts_follow_crash(log);
    st = dt_detach_start(argv, log, place, READY_SECONDS, &problem);
    if (st == DT_ERR_BUSY)
        return DT_OK; /* another process was faster */
    dt_starts_add(starts, st != DT_OK || crashed);
    if (st != DT_OK)
        DT_FAIL(err, st, "%s", problem.message);
    return st;
}

/* Starts a driver, detached, with the environment of this process, which is saved. */
static dt_status drive_start(const dt_sweep_group *group, const char *text, dt_error *err)
{
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_launch_env_save(group->folder, text, err));
    DT_TRY(start(group->name, group->folder, NULL, &arena, err));
out:
    dt_arena_release(&arena);
    return st;
}

static bool is_driven(const char *folder, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/driver.lock", folder);
    int lock = -1;
    dt_status st = dt_file_lock(&lock, path, NULL);

    if (lock >= 0)
        close(lock);
    return st != DT_OK; /* a group that cannot be locked cannot be driven either */
}

/* Starts a driver if needed. An error without a message is ignored: the next command tries
 * again. */
static dt_status ensure(const char *name, dt_arena *arena, dt_error *err)
{
    const char *folder, *state, *starts;
    char who[128];
    dt_launch_env env;
    dt_status st;

    DT_TRY(dt_group_folder(&folder, name, arena, NULL));
    if (is_driven(folder, arena))
        return DT_OK;
    starts = starts_path(folder, arena);
    snprintf(who, sizeof(who), "the driver of sweep '%.64s'", name);
    DT_TRY(dt_starts_check(starts, DT_STARTS_MOST, who,
                           dt_arena_printf(arena, "%s/driver.log", folder), err));
    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, NULL));
    state = dt_arena_printf(arena, "%.*s", (int)(strrchr(state, '/') - state), state);
    DT_TRY(dt_launch_env_for_revival(&env, folder, state, false, arena, NULL));
    DT_TRY(
        start(name, folder, &(dt_detach_place){env.items, env.directory, env.umask}, arena, NULL));
out:
    return st;
}

dt_status dt_drive_ensure(const char *name, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = ensure(name, &arena, &problem);
    dt_arena_release(&arena);
    return st == DT_OK || problem.code == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}

void dt_drive_ensure_all(void)
{
    dt_error problem = DT_ERROR_INIT;
    const char **names;
    int64_t count;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_group_list(&names, &count, false, &arena, NULL) == DT_OK)
        for (int64_t i = 0; i < count; i++) {
            if (dt_drive_ensure(names[i], &problem) != DT_OK)
                dt_report_say("dtrun: %s", problem.message);
            dt_error_clear(&problem);
        }
    dt_arena_release(&arena);
}

enum { AT_ONCE_MOST = 64 };

/* "optimizer.lr=1e-4 seed=2" */
static const char *values_of(const dt_sweep *sweep, dt_arena *arena)
{
    const char *text;
    dt_strbuf values;

    dt_strbuf_init(&values);
    for (size_t i = 0; i < sweep->axes; i++)
        dt_strbuf_add_fmt(&values, "%s%s=%s", i > 0 ? " " : "", sweep->paths[i], sweep->values[i]);
    text = dt_arena_strdup(arena, values.data);
    dt_strbuf_release(&values);
    return text;
}

/* Removes the sweep from a point's recipe: its hash is then the same as for a run launched
 * alone. */
static void forget_sweep(dt_recipe *recipe)
{
    dt_recipe defaults;

    dt_recipe_init(&defaults);
    recipe->search = defaults.search;
    recipe->early_stop = defaults.early_stop;
}

static dt_status read_point(dt_sweep_point *out, dt_recipe *recipe, dt_recipe_source *source,
                            int64_t index, dt_call *call, dt_error *err)
{
    dt_status st;

    *out = (dt_sweep_point){.run = "", .problem = ""};
    source->sweep->point = index;
    st = dt_recipe_read_all(recipe, source, call->problems, call->arena, err);
    if (st == DT_OK && dt_arguments_flag(call->args, "strict")) {
        dt_problems_be_strict(call->problems);
        if (call->problems->errors > 0)
            st = DT_FAIL(err, DT_ERR_RECIPE, "%s", dt_problems_first(call->problems)->message);
    }
    DT_TRY(st);
    out->values = values_of(source->sweep, call->arena);
    forget_sweep(recipe);
    out->origins = source->origins != NULL ? dt_origins_document(source->origins, NULL) : NULL;
out:
    return st;
}

static dt_sweep_group group_of(const dt_recipe *recipe, const dt_labels *labels, int64_t count)
{
    return (dt_sweep_group){
        .at_once = recipe->search.at_once,
        .nodes = recipe->search.nodes,
        .metric = recipe->early_stop.metric,
        .after = recipe->early_stop.after,
        .keep = recipe->early_stop.keep,
        .tags = labels->tags != NULL ? labels->tags : "",
        .count = count,
    };
}

/* Returns how many points run at once: as many as this machine's processors allow; one if they
 * train on CPUs elsewhere; without limit (sweep_int.h) if they have GPUs or nodes of their own. */
static int64_t count_side_by_side(const dt_plan *plan, int64_t nodes)
{
    int64_t threads = 0, count;

    if (nodes > 0 && nodes < plan->node_count)
        return AT_ONCE_MOST;
    for (int64_t i = 0; i < plan->world_size; i++)
        if (dt_device_gpu(plan->ranks[i].device) >= 0)
            return AT_ONCE_MOST;
    for (int64_t i = 0; i < plan->world_size; i++) {
        const dt_plan_rank *rank = &plan->ranks[i];

        if (strncmp(plan->node_names[rank->node], "localhost", strlen("localhost")) != 0)
            return 1;
        threads += rank->replicas * rank->threads;
    }
    count = threads > 0 ? dt_resources_cores() / threads : 1;
    return count < 1 ? 1 : count < AT_ONCE_MOST ? count : AT_ONCE_MOST;
}

dt_status dt_sweep_launch(const char **name, const dt_recipe_source *source,
                          const dt_labels *labels, const dt_queue_wish *wish, dt_call *call,
                          dt_error *err)
{
    int64_t count = source->sweep->points;
    dt_recipe *recipes = dt_arena_alloc_array(call->arena, (size_t)count, sizeof(*recipes));
    dt_recipe_source of = *source;
    dt_preflight flight;
    dt_recipe first;
    dt_sweep_group group = {0};
    dt_status st = DT_OK;

    of.sweep->point = 0;
    DT_TRY(dt_recipe_read_all(&first, &of, call->problems, call->arena, err));
    group = group_of(&first, labels, count);
    group.queues = wish->queues;
    group.priority = wish->priority;
    group.after_runs = wish->after;
    if (wish->queues && group.nodes > 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "'search.nodes' does not apply to --queue: leave 'nodes' out, and each run gets a "
                 "place on the machines of 'dtrun queue nodes add'");
    if (wish->queues && (wish->not_before_ms > 0 || wish->lasts_ms > 0))
        DT_THROW(err, DT_ERR_USAGE, "--not-before and --lasts do not apply to a sweep");
    group.points = dt_arena_alloc_array(call->arena, (size_t)count, sizeof(group.points[0]));
    *name = labels->group != NULL && labels->group[0] != '\0' ? labels->group : first.name;
    for (int64_t i = 0; i < count; i++)
        DT_TRY(read_point(&group.points[i], &recipes[i], &of, i, call, err));
    /* Only the first point is checked: problems with data or memory of another point are its
     * own. */
    DT_TRY(dt_preflight_check(&flight, &recipes[0], source, call->arena, err));
    if (group.at_once == 0)
        group.at_once = wish->queues ? AT_ONCE_MOST : count_side_by_side(&flight.plan, group.nodes);
    DT_TRY(dt_group_make(&group, *name, recipes, source->text, call->arena, err));
    *name = group.name;
    DT_TRY(drive_start(&group, source->text, err));
out:
    for (int64_t i = 0; group.points != NULL && i < count; i++)
        json_decref(group.points[i].origins);
    return st;
}

enum { RECIPE_MAX_BYTES = 4 << 20 };

/* Marks what must be done for the point; *marked: there is something to do. */
static dt_status mark(bool *marked, dt_sweep_point *point, dt_store *store, dt_arena *arena,
                      dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st;
    dt_run run;

    *marked = point->run[0] == '\0';
    point->again = false;
    if (*marked || point->cut > 0) {
        point->problem = "";
        return DT_OK;
    }
    st = dt_store_run_find(store, &run, point->run, arena, &problem);
    if (st == DT_ERR_NOT_FOUND)
        return DT_OK; /* the run was removed */
    if (st != DT_OK)
        return DT_FAIL(err, st, "%s", problem.message);
    *marked = run.state != DT_RUN_FINISHED;
    point->again = *marked && dt_run_state_is_terminal(run.state);
    if (*marked)
        point->problem = "";
    return DT_OK;
}

/* Marks all points under the driver's lock, so that no driver runs meanwhile. */
static dt_status mark_all(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err)
{
    const char *name = group->name;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    int lock = -1;

    DT_TRY(dt_group_hold(&lock, group, call->arena, err));
    DT_TRY(dt_group_read(group, name, call->arena, err));
    DT_TRY(dt_store_open(&store, NULL, err));
    for (int64_t i = 0; i < group->count; i++) {
        bool marked;

        DT_TRY(mark(&marked, &group->points[i], store, call->arena, err));
        *count += marked;
    }
    if (*count == 0)
        goto out;
    DT_TRY(dt_group_forget_stop(group, err));
    group->ended = false;
    DT_TRY(dt_group_write_progress(group, err));
out:
    dt_store_close(store);
    if (lock >= 0)
        close(lock);
    return st;
}

dt_status dt_group_resume(int64_t *count, dt_sweep_group *group, dt_call *call, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf text;

    *count = 0;
    dt_strbuf_init(&text);
    st = group->ended ? mark_all(count, group, call, &problem) : DT_ERR_BUSY;
    if (st == DT_ERR_BUSY)
        DT_THROW(
            err, DT_ERR_USAGE,
            "sweep '%s' continues: it can be resumed once it has ended ('dtrun stop %s' ends it)",
            group->name, group->name);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    if (*count == 0)
        goto out;
    DT_TRY(dt_group_read_recipe(&text, group, RECIPE_MAX_BYTES, err));
    DT_TRY(drive_start(group, text.data, err));
out:
    dt_strbuf_release(&text);
    return st;
}
