/* read_recipe: reads and checks the RECIPE, --layer and --set of a command line, and finds the checkpoint
 * that model.from names. */
#include "runner/cli/read_recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "recipes/fields/fields.h"
#include "runner/cli/report.h"
#include "store/event.h"
#include "store/run.h"
#include "store/store.h"

/* The part after @: "best", "last", or a step. */
typedef struct choice {
    bool best, last;
    long long step;
} choice;

static dt_status read_choice(choice *out, const char *which, dt_error *err)
{
    char *end = NULL;

    *out = (choice){.best = strcmp(which, "best") == 0, .last = strcmp(which, "last") == 0};
    if (out->best || out->last)
        return DT_OK;
    out->step = strtoll(which, &end, 10);
    if (end == which || *end != '\0' || out->step < 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "unsupported checkpoint '%s' (expected a step, 'best' or 'last')", which);
    return DT_OK;
}

/* Returns the path of the wanted checkpoint, or NULL. "last" is the newest step of the newest attempt.
 * rows: newest step first. */
static const char *choose(const dt_store_checkpoint *rows, int64_t count, const choice *wanted)
{
    const dt_store_checkpoint *chosen = NULL;

    for (int64_t i = 0; i < count; i++) {
        const dt_store_checkpoint *row = &rows[i];
        bool fits;

        if (wanted->best)
            fits = !isnan(row->score) && (chosen == NULL || row->score < chosen->score);
        else if (wanted->last)
            fits = chosen == NULL || row->attempt > chosen->attempt;
        else
            fits = chosen == NULL && row->step == wanted->step;
        if (fits && dt_file_exists(row->path))
            chosen = row;
    }
    return chosen != NULL ? chosen->path : NULL;
}

static dt_status find_run(dt_run *out, dt_store *store, const char *ref, dt_arena *arena,
                          dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_store_run_find(store, out, ref, arena, &problem);

    if (st == DT_OK)
        return DT_OK;
    return DT_FAIL(err, st == DT_ERR_NOT_FOUND || st == DT_ERR_USAGE ? DT_ERR_RECIPE : st, "%s",
                   problem.message);
}

dt_status dt_find_weights(const char **path, const char *name, dt_arena *arena, dt_error *err)
{
    const char *ref = name + strlen(DT_WEIGHTS_RUN), *at = strrchr(ref, '@');
    dt_store_checkpoint *rows;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    choice wanted;
    int64_t count;
    dt_run run;

    DT_TRY(read_choice(&wanted, at != NULL ? at + 1 : "last", err));
    if (at != NULL)
        ref = dt_arena_strndup(arena, ref, (size_t)(at - ref));
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(find_run(&run, store, ref, arena, err));
    DT_TRY(dt_store_checkpoint_list(store, &rows, &count, run.id, arena, err));
    *path = choose(rows, count, &wanted);
    if (*path == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "run '%s' has no checkpoint '%s' (see 'dtrun checkpoints %s')",
                 run.id, at != NULL ? at + 1 : "last", run.id);
out:
    dt_store_close(store);
    return st;
}

dt_status dt_judge_problems(dt_status st, const dt_call *call, dt_error *err)
{
    dt_problems *problems = call->problems;

    if (dt_arguments_flag(call->args, "strict"))
        dt_problems_be_strict(problems);
    if (st == DT_OK && problems->errors > 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "%s", dt_problems_first(problems)->message);
    if (st == DT_OK && !call->json)
        dt_report_problems(call->args->command, problems);
    return st;
}

/* Reads the files of --layer, in the order of the command line. */
static dt_status read_layers(dt_recipe_source *out, const dt_call *call, dt_error *err)
{
    const dt_value *paths = dt_arguments_get(call->args, "layer");
    dt_problem_source *layers =
        dt_arena_alloc_array(call->arena, paths->items_count + 1, sizeof(*layers));
    dt_status st = DT_OK;
    dt_recipe_source layer;

    out->origins = dt_arena_alloc(call->arena, sizeof(*out->origins));
    out->sweep = dt_arena_alloc(call->arena, sizeof(*out->sweep));
    *out->sweep = (dt_sweep){0};
    for (size_t i = 0; i < paths->items_count; i++) {
        DT_TRY(dt_recipe_source_read(&layer, paths->items[i], call->arena, err));
        layers[i] = (dt_problem_source){layer.path, layer.text};
    }
    out->layers = layers;
    out->layers_count = paths->items_count;
out:
    return st;
}

/* Checks the recipes of the other points of a sweep, so that errors are found before the first launch. */
static dt_status check_points(const dt_recipe_source *source, const dt_call *call, dt_error *err)
{
    int64_t points = source->sweep->points;
    dt_recipe_source matrix = *source;
    dt_origins origins;
    dt_status st = DT_OK;
    dt_recipe recipe;

    matrix.origins = &origins;
    for (int64_t i = 1; i < points; i++) {
        dt_sweep sweep = {.point = i};
        dt_arena arena;

        matrix.sweep = &sweep;
        dt_arena_init(&arena, 0);
        st = dt_recipe_read(&recipe, &matrix, &arena, err);
        dt_arena_release(&arena);
        DT_TRY(st);
    }
out:
    if (st == DT_ERR_RECIPE)
        dt_problems_add(call->problems, err, "sweep", false, source->origins->sources,
                        source->origins->sources_count);
    return st;
}

dt_status dt_read_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                         const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    *source = (dt_recipe_source){0};
    DT_TRY(dt_recipe_source_read(source, path, call->arena, err));
    DT_TRY(dt_read_recipe_text(out, source, call, err));
out:
    return st;
}

dt_status dt_read_recipe_text(dt_recipe *out, dt_recipe_source *source, const dt_call *call,
                              dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    dt_status st = DT_OK;

    DT_TRY(read_layers(source, call, err));
    source->sets = sets->items;
    source->sets_count = sets->items_count;
    source->find_run = dt_find_weights;
    st = dt_recipe_read_all(out, source, call->problems, call->arena, err);
    DT_TRY(dt_judge_problems(st, call, err));
    DT_TRY(check_points(source, call, err));
out:
    return st;
}

dt_status dt_read_training_recipe(dt_recipe *out, dt_recipe_source *source, const char *path,
                                  const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_read_recipe(out, source, path, call, err));
    if (out->task != DT_TASK_TRAIN)
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: 'dtrun %s' takes only recipes that train, and this one has 'task: %s'", path,
                 call->args->command->name, dt_task_name(out->task));
out:
    return st;
}

void dt_add_set(dt_call *call, const char *assignment)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    size_t count = sets->items_count;
    const char **items = dt_arena_alloc_array(call->arena, count + 1, sizeof(items[0]));

    for (size_t i = 0; i < count; i++)
        items[i] = sets->items[i];
    items[count] = assignment;
    ((dt_value *)sets)->items = items;
    ((dt_value *)sets)->items_count = count + 1;
}
