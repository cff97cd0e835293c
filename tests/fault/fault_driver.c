/* fault_driver: launches runs and asks about them through the libraries only, for the tests of
 * agent and supervisor. The recipe trains nothing: DTRUN_ENGINE is set to fake_engine.
 *
 *   fault_driver launch ID RANKS [NODES]   makes the run and starts its supervisor; nodes are
 *                                          this machine, several times
 *                                          FAULT_RESTARTS, FAULT_HANG_SECONDS, FAULT_WEBHOOK,
 *                                          FAULT_GRACE_MS are of its recipe
 *   fault_driver supervise ID      is that supervisor
 *   fault_driver ensure|stop|kill ID
 *   fault_driver get ID state|exit_code|reason|step|attempt|points|pids|checkpoints
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "recipes/fields/fields.h"
#include "recipes/plan/plan.h"
#include "runner/supervisor/supervisor.h"
#include "store/curve.h"

static int64_t variable(const char *name, int64_t fallback)
{
    const char *text = getenv(name);

    return text != NULL ? strtoll(text, NULL, 10) : fallback;
}

static dt_status name_nodes(dt_string_list *out, int64_t count, dt_arena *arena, dt_error *err)
{
    out->count = count;
    out->items = dt_arena_alloc_array(arena, (size_t)count, sizeof(out->items[0]));
    for (int64_t i = 0; out->items != NULL && i < count; i++)
        out->items[i] =
            i == 0 ? "localhost" : dt_arena_printf(arena, "localhost#%lld", (long long)i + 1);
    return out->items != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

static dt_status make_plan(dt_plan *plan, const char *run, int64_t ranks, int64_t nodes,
                           dt_arena *arena, dt_error *err)
{
    static const char *files[] = {"/nowhere.txt"};
    const char *folder;
    dt_recipe recipe;
    dt_status st;

    dt_recipe_init(&recipe);
    recipe.name = run;
    DT_TRY(name_nodes(&recipe.nodes, nodes, arena, err));
    recipe.data.train = (dt_string_list){files, 1};
    recipe.ranks = ranks;
    recipe.grace_seconds = (double)variable("FAULT_GRACE_MS", 1500) / 1e3;
    recipe.failure.max_restarts = variable("FAULT_RESTARTS", 0);
    recipe.failure.hang_seconds = (double)variable("FAULT_HANG_SECONDS", 30);
    recipe.notify.webhook = getenv("FAULT_WEBHOOK") != NULL ? getenv("FAULT_WEBHOOK") : "";
    recipe.schedule.steps = 100;
    recipe.schedule.period_steps = 100;
    recipe.model.layers = recipe.model.heads = 1;
    recipe.model.embed = 8;
    DT_TRY(dt_plan_make(plan, &recipe, 1, arena, err));
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    plan->run = run;
    plan->attempt = 1;
    plan->resume_from = "";
    plan->directory = dt_arena_printf(arena, "%s/checkpoints", folder);
out:
    return st;
}

static dt_status write_plan(const dt_plan *plan, dt_arena *arena, dt_error *err)
{
    json_t *json = dt_plan_to_json(plan);
    const char *folder, *path;
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    DT_TRY(dt_run_path(&folder, plan->run, "attempt-1", arena, err));
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    dt_json_write(&text, json);
    path = dt_arena_printf(arena, "%s/plan.json", folder);
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

static dt_status launch(dt_store *store, const char *run, int64_t ranks, int64_t nodes,
                        dt_arena *arena, dt_error *err)
{
    dt_plan plan;
    dt_status st;
    dt_run row = {.id = run,
                  .name = run,
                  .created_ms = dt_clock_wall_ms(),
                  .steps_total = 100,
                  .loss = NAN,
                  .valid_loss = NAN,
                  .tokens_per_second = NAN,
                  .recipe_path = "",
                  .recipe_text = "",
                  .recipe_json = "{}",
                  .recipe_hash = "",
                  .exit_code = -1,
                  .reason = ""};

    DT_TRY(make_plan(&plan, run, ranks, nodes, arena, err));
    DT_TRY(write_plan(&plan, arena, err));
    DT_TRY(dt_supervisor_keep_environment(
        run, "", err)); /* first: another process may start one as soon as it sees the row */
    DT_TRY(dt_store_run_add(store, &row, err));
    DT_TRY(dt_supervisor_start(run, err));
out:
    return st;
}

static dt_status print_pids(dt_store *store, const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_rank *ranks;
    int64_t count;
    dt_status st = dt_store_rank_list(store, &ranks, &count, run->id, run->attempt, arena, err);

    for (int64_t i = 0; st == DT_OK && i < count; i++)
        printf("%lld\n", (long long)ranks[i].pid);
    return st;
}

static dt_status get(dt_store *store, const dt_run *run, const char *what, dt_arena *arena,
                     dt_error *err)
{
    dt_store_checkpoint *checkpoints;
    dt_metric *points;
    int64_t count = 0;
    dt_status st = DT_OK;

    if (strcmp(what, "state") == 0) {
        printf("%s\n", dt_run_state_name(run->state));
    } else if (strcmp(what, "exit_code") == 0) {
        printf("%d\n", run->exit_code);
    } else if (strcmp(what, "reason") == 0) {
        printf("%s\n", run->reason);
    } else if (strcmp(what, "step") == 0) {
        printf("%lld\n", (long long)run->step);
    } else if (strcmp(what, "attempt") == 0) {
        printf("%lld\n", (long long)run->attempt);
    } else if (strcmp(what, "points") == 0) {
        DT_TRY(dt_store_metric_list(store, &points, &count, run->id, "loss", -1, 0, arena, err));
        printf("%lld\n", (long long)count);
    } else if (strcmp(what, "checkpoints") == 0) {
        DT_TRY(dt_store_checkpoint_list(store, &checkpoints, &count, run->id, arena, err));
        printf("%lld\n", (long long)count);
    } else if (strcmp(what, "pids") == 0) {
        DT_TRY(print_pids(store, run, arena, err));
    } else {
        st = DT_FAIL(err, DT_ERR_USAGE, "unknown field '%s'", what);
    }
out:
    return st;
}

static dt_status act(int argc, char **argv, dt_arena *arena, dt_error *err)
{
    const char *verb = argc > 2 ? argv[1] : "", *id = argc > 2 ? argv[2] : "";
    dt_store *store = NULL;
    dt_status st;
    dt_run run;

    if (strcmp(verb, "supervise") == 0)
        return dt_supervisor_main(id, err);
    DT_TRY(dt_store_open(&store, NULL, err));
    if (strcmp(verb, "launch") == 0 && argc >= 4) {
        DT_TRY(launch(store, id, strtoll(argv[3], NULL, 10),
                      argc > 4 ? strtoll(argv[4], NULL, 10) : 1, arena, err));
        goto out;
    }
    DT_TRY(dt_store_run_find(store, &run, id, arena, err));
    if (strcmp(verb, "ensure") == 0)
        DT_TRY(dt_supervisor_ensure(&run, err));
    else if (strcmp(verb, "stop") == 0)
        DT_TRY(dt_supervisor_stop(run.id, false, err));
    else if (strcmp(verb, "kill") == 0)
        DT_TRY(dt_supervisor_stop(run.id, true, err));
    else if (strcmp(verb, "get") == 0 && argc == 4)
        DT_TRY(get(store, &run, argv[3], arena, err));
    else
        st = DT_FAIL(err, DT_ERR_USAGE, "see the head of fault_driver.c");
out:
    dt_store_close(store);
    return st;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = act(argc, argv, &arena, &err);
    if (st != DT_OK)
        fprintf(stderr, "fault_driver: %s\n", err.message);
    dt_arena_release(&arena);
    return st == DT_OK ? 0 : 1;
}
