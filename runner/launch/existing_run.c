/* existing_run: reads and checks what resume and fork start from, and starts the next attempt of a run of a
 * command. */
#include "runner/launch/existing_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/launch/attempt.h"
#include "runner/launch/nodes.h"
#include "runner/supervisor/folder/resume_point.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"

static dt_status refuse_without_checkpoint(const dt_run *run, dt_error *err)
{
    int64_t below = run->step > 0 ? run->step : run->steps_total;
    char limit[64] = "";

    if (below > 0)
        snprintf(limit, sizeof(limit), " below %lld", (long long)below);
    return DT_FAIL(err, DT_ERR_NOT_FOUND,
                   "run '%s' has no complete checkpoint to continue from: launch it again, with "
                   "checkpoint.every%s",
                   run->id, limit);
}

/* Opens the newest complete checkpoint that the history knows or, if there is none, one that was
 * put into the folder. */
static dt_status open_newest(dt_checkpoint **out, const char **path, dt_store *store,
                             const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_resume_point known;
    const char *parent;
    dt_status st = DT_OK;

    DT_TRY(dt_run_path(&parent, run->id, "checkpoints", arena, err));
    DT_TRY(dt_run_newest_checkpoint(&known, store, run->id, parent, arena, err));
    *path = known.path;
    if (*path == NULL)
        DT_TRY(dt_checkpoint_find_newest(path, parent, arena, err));
    if (*path == NULL)
        DT_TRY(refuse_without_checkpoint(run, err));
    DT_TRY(dt_checkpoint_open(out, *path, err));
out:
    return st;
}

/* Finds the recipe to continue with: an attempt that failed before its first step leaves it
 * unchanged. */
static dt_status find_recipe(dt_store *store, dt_run *run, const dt_call *call, dt_error *err)
{
    dt_standing standing;
    dt_status st = DT_OK;

    DT_TRY(dt_store_run_standing(store, &standing, run->id, call->arena, err));
    if (strcmp(standing.recipe_hash, run->recipe_hash) != 0)
        dt_report_note(call,
                       "attempt %lld failed before its first step: the run continues with the "
                       "recipe of attempt %lld",
                       (long long)run->attempt, (long long)standing.attempt);
    run->recipe_json = standing.recipe_json;
    run->recipe_hash = standing.recipe_hash;
out:
    return st;
}

/* Applies --set to that recipe. */
static dt_status change_recipe(dt_recipe *out, dt_origins *origins, const dt_run *run,
                               const dt_call *call, dt_error *err)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    dt_status st = DT_OK;
    json_t *json = NULL;
    dt_recipe before;

    DT_TRY(dt_json_parse(&json, run->recipe_json, strlen(run->recipe_json), "stored recipe", err));
    DT_TRY(dt_recipe_from_json(&before, json, call->arena, err));
    st = dt_recipe_change_all(out, &before, sets->items, sets->items_count, call->problems, origins,
                              call->arena, err);
    DT_TRY(dt_judge_problems(st, call, err));
out:
    json_decref(json);
    return st;
}

dt_status dt_existing_run_recipe(dt_recipe *out, dt_origins *origins, dt_store *store, dt_run *run,
                                 const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    if (strcmp(run->recipe_json, "{}") == 0) /* runner/import */
        DT_THROW(err, DT_ERR_USAGE, "run '%s' was imported: it has no recipe and no checkpoint",
                 run->id);
    DT_TRY(find_recipe(store, run, call, err));
    DT_TRY(change_recipe(out, origins, run, call, err));
out:
    return st;
}

/* --- a requested checkpoint */

/* Reports an unknown checkpoint, with the existing ones ("it has 200, 400"). */
static dt_status refuse_unknown(const dt_run *run, const char *which,
                                const dt_store_checkpoint *rows, int64_t count, dt_error *err)
{
    dt_strbuf steps;
    dt_status st;

    dt_strbuf_init(&steps);
    for (int64_t i = count - 1; i >= 0; i--)
        if (dt_file_exists(rows[i].path))
            dt_strbuf_add_fmt(&steps, "%s%lld", steps.length > 0 ? ", " : "",
                              (long long)rows[i].step);
    if (strcmp(which, "best") == 0)
        st = DT_FAIL(err, DT_ERR_NOT_FOUND, "no checkpoint of run '%s' was evaluated (it has %s)",
                     run->id, steps.length > 0 ? steps.data : "none");
    else
        st = DT_FAIL(err, DT_ERR_NOT_FOUND, "run '%s' has no checkpoint of step %s (it has %s)",
                     run->id, which, steps.length > 0 ? steps.data : "none");
    dt_strbuf_release(&steps);
    return st;
}

/* The attempts that decide whether a checkpoint is on the current branch; count 0: accept any. */
typedef struct ways {
    dt_attempt *attempts;
    int64_t count;
} ways;

/* Chooses the matching checkpoint; the list has those of newer attempts first. */
static const dt_store_checkpoint *choose(const dt_store_checkpoint *rows, int64_t count,
                                         const ways *against, bool best, int64_t step)
{
    const dt_store_checkpoint *chosen = NULL;

    for (int64_t i = 0; i < count; i++) {
        bool fits = best
                        ? !isnan(rows[i].score) && (chosen == NULL || rows[i].score < chosen->score)
                        : chosen == NULL && rows[i].step == step;

        if (fits && dt_resume_point_left(against->attempts, against->count, &rows[i]) == NULL &&
            dt_file_exists(rows[i].path))
            chosen = &rows[i];
    }
    return chosen;
}

/* Refuses a checkpoint from before a restart at an earlier step. */
static dt_status refuse_left(const dt_run *run, const dt_store_checkpoint *row,
                             const dt_attempt *again, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_USAGE,
                   "the checkpoint of step %lld is from before run '%s' went back (attempt %lld "
                   "restarted at step %lld), so the run cannot resume from it: a new run can start "
                   "from its weights ('model.from: run:%s@%lld')",
                   (long long)row->step, run->id, (long long)again->attempt,
                   (long long)again->start_step, run->id, (long long)row->step);
}

/* Opens the requested checkpoint. to_continue: it must be on the run's current branch. */
static dt_status open_asked(dt_checkpoint **out, const char **path, dt_store *store,
                            const dt_run *run, const char *which, bool to_continue, dt_arena *arena,
                            dt_error *err)
{
    bool best = strcmp(which, "best") == 0;
    const ways any = {NULL, 0};
    const dt_store_checkpoint *chosen, *left;
    dt_store_checkpoint *rows;
    dt_status st = DT_OK;
    char *end;
    long long step = strtoll(which, &end, 10);
    ways attempts = {NULL, 0};
    int64_t count;

    if (!best && (end == which || *end != '\0' || step < 0))
        DT_THROW(err, DT_ERR_USAGE, "'%s' is neither a step nor 'best'", which);
    DT_TRY(dt_store_checkpoint_list(store, &rows, &count, run->id, arena, err));
    if (to_continue)
        DT_TRY(
            dt_store_attempt_list(store, &attempts.attempts, &attempts.count, run->id, arena, err));
    chosen = choose(rows, count, &attempts, best, step);
    left = chosen == NULL ? choose(rows, count, &any, best, step) : NULL;
    if (left != NULL)
        DT_TRY(refuse_left(run, left, dt_resume_point_left(attempts.attempts, attempts.count, left),
                           err));
    if (chosen == NULL)
        DT_TRY(refuse_unknown(run, which, rows, count, err));
    *path = chosen->path;
    DT_TRY(dt_checkpoint_open(out, *path, err));
out:
    return st;
}

dt_status dt_existing_run_checkpoint(dt_checkpoint **out, const char **path, dt_store *store,
                                     const dt_run *run, const char *which, dt_arena *arena,
                                     dt_error *err)
{
    return which == NULL ? open_newest(out, path, store, run, arena, err)
                         : open_asked(out, path, store, run, which, true, arena, err);
}

dt_status dt_existing_run_checkpoint_path(const char **path, dt_store *store, const dt_run *run,
                                          const char *which, dt_arena *arena, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_task_refuse(run, "give a checkpoint", arena, err));
    if (which != NULL && strcmp(which, "last") == 0)
        which = NULL;
    if (which != NULL && strchr(which, '/') != NULL) {
        *path = which;
        DT_TRY(dt_checkpoint_open(&checkpoint, which, err));
    } else if (which != NULL) {
        DT_TRY(open_asked(&checkpoint, path, store, run, which, false, arena, err));
    } else {
        DT_TRY(open_newest(&checkpoint, path, store, run, arena, err));
    }
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

/* --- the tokenizer */

static bool was_set(const dt_call *call, const char *key)
{
    const dt_value *sets = dt_arguments_get(call->args, "set");
    size_t length = strlen(key);

    for (size_t i = 0; i < sets->items_count; i++)
        if (strncmp(sets->items[i], key, length) == 0 && sets->items[i][length] == '=')
            return true;
    return false;
}

/* Copies the checkpoint's tokenizer into the run's folder, because checkpoints may be removed. */
static dt_status keep_tokenizer(const char **path, const dt_run *run, const dt_tokenizer *tokenizer,
                                dt_arena *arena, dt_error *err)
{
    const char *folder, *name, *bytes;
    dt_status st = DT_OK;
    size_t length;

    DT_TRY(dt_run_path(&folder, run->id, "tokenizer", arena, err));
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    (void)dt_tokenizer_get_file(tokenizer, &name, &bytes, &length);
    *path = dt_arena_printf(arena, "%s/%s", folder, name);
    DT_TRY(dt_file_write_atomic(*path, bytes, length, 0600, err));
out:
    return st;
}

static dt_status find_tokenizer(dt_recipe *recipe, const dt_run *run,
                                const dt_checkpoint *checkpoint, const char *path,
                                const dt_call *call, dt_error *err)
{
    const char *name, *bytes, *gone = recipe->data.tokenizer;
    dt_tokenizer *tokenizer = NULL;
    dt_status st = DT_OK;
    size_t length;

    if (!dt_tokenizer_is_file(recipe) || dt_file_exists(gone) || was_set(call, "data.tokenizer"))
        goto out;
    DT_TRY(dt_tokenizer_from_json(&tokenizer, dt_checkpoint_get_info(checkpoint)->tokenizer, err));
    if (!dt_tokenizer_get_file(tokenizer, &name, &bytes, &length))
        goto out;
    DT_TRY(dt_tokenizer_load(tokenizer, path, err));
    DT_TRY(keep_tokenizer(&recipe->data.tokenizer, run, tokenizer, call->arena, err));
    dt_report_note(call, "the tokenizer is no longer at '%s': taken from the checkpoint", gone);
out:
    dt_tokenizer_free(tokenizer);
    return st;
}

/* Keeps the token that ends documents: a checkpoint has the one that was used, and that of an older dtrun follows from
 * the tokenizer's file alone. */
static dt_status keep_end_of_text(dt_recipe *recipe, const dt_checkpoint *checkpoint,
                                  const char *path, const dt_call *call, dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    dt_tokenizer *tokenizer = NULL;
    dt_recipe theirs;
    dt_status st = DT_OK;

    if (!dt_tokenizer_is_file(recipe) || recipe->data.end_of_text >= 0 ||
        was_set(call, "data.tokenizer"))
        goto out;
    DT_TRY(dt_recipe_from_json(&theirs, info->recipe, call->arena, err));
    recipe->data.end_of_text = theirs.data.end_of_text;
    if (recipe->data.end_of_text >= 0)
        goto out;
    DT_TRY(dt_tokenizer_from_json(&tokenizer, info->tokenizer, err));
    DT_TRY(dt_tokenizer_load(tokenizer, path, err));
    recipe->data.end_of_text = dt_tokenizer_end_of_text(tokenizer);
out:
    dt_tokenizer_free(tokenizer);
    return st;
}

/* --- before the attempt */

dt_status dt_existing_run_preflight(dt_preflight *flight, dt_budget_place *resume_place,
                                    dt_recipe *recipe, const dt_origins *origins, const dt_run *run,
                                    const dt_checkpoint *checkpoint, const char *path,
                                    const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(find_tokenizer(recipe, run, checkpoint, path, call, err));
    DT_TRY(keep_end_of_text(recipe, checkpoint, path, call, err));
    DT_TRY(dt_preflight_check(flight, recipe, NULL, call->arena, err));
    flight->origins = origins;
    flight->plan.new_data = dt_arguments_flag(call->args, "new-data");
    flight->plan.new_model = dt_arguments_flag(call->args, "new-model");
    DT_TRY(dt_resume_check(resume_place, flight, checkpoint, run, call, err));
    DT_TRY(dt_nodes_check(flight, run->recipe_path, call, err));
    dt_resume_note_batch(flight, checkpoint, call);
out:
    return st;
}

/* The next attempt of an ended run of a command, with the same command or as --set changes it. */

static dt_status check(const dt_run *run, const dt_call *call, dt_error *err)
{
    static const char *const of_training[] = {"new-data", "new-model", NULL};

    for (size_t i = 0; of_training[i] != NULL; i++)
        if (dt_arguments_get(call->args, of_training[i])->given)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--%s is only for training runs, and '%s' is a run of a command",
                           of_training[i], run->id);
    if (run->state == DT_RUN_FINISHED)
        return DT_FAIL(err, DT_ERR_USAGE, "run '%s' is finished: launch it again", run->id);
    return DT_OK;
}

/* Checks the first reference in the text, "NAME}..." or "NAME:-default}...". */
static dt_status check_reference(const char *item, const char *reference, dt_arena *arena,
                                 dt_error *err)
{
    size_t length = strcspn(reference, ":}");
    const char *name = dt_arena_strndup(arena, reference, length), *value = getenv(name);

    if (reference[length] == ':' || (value != NULL && value[0] != '\0'))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE, "'env.%.*s': the environment lacks '%s': set it",
                   (int)strcspn(item, "="), item, name);
}

/* Checks the variables that `env` references: a launch checks them when it reads the recipe. */
static dt_status check_env(const dt_string_list *env, dt_arena *arena, dt_error *err)
{
    static const char opening[] = "${env:";
    dt_status st = DT_OK;

    for (int64_t i = 0; i < env->count; i++)
        for (const char *at = env->items[i]; (at = strstr(at, opening)) != NULL;) {
            at += strlen(opening);
            DT_TRY(check_reference(env->items[i], at, arena, err));
        }
out:
    return st;
}

/* Chooses the checkpoint to continue from: the newest, or that of --from. Without one, and without --from, the
 * command starts again. */
static dt_status choose_checkpoint(dt_resume_point *out, dt_store *store, const dt_run *run,
                                   bool many, const dt_call *call, dt_error *err)
{
    const char *which = dt_arguments_get(call->args, "from")->text;
    long long step = -1;
    dt_status st = DT_OK;
    char *end;

    if (which != NULL) {
        step = strtoll(which, &end, 10);
        if (end == which || *end != '\0' || step < 0)
            DT_THROW(err, DT_ERR_USAGE, "--from: '%s' is not a step", which);
    }
    DT_TRY(dt_run_program_checkpoint(out, store, run->id, step, many, call->arena, err));
    if (which != NULL && out->path == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no checkpoint of step %lld to continue from (see 'dtrun checkpoints "
                 "%s'; 'checkpoints' of its recipe says where they are)",
                 run->id, step, run->id);
out:
    return st;
}

dt_status dt_program_preflight(dt_preflight *flight, dt_budget_place *resume_place,
                               dt_origins *origins, dt_store *store, dt_run *run,
                               const dt_call *call, dt_error *err)
{
    dt_resume_point from;
    dt_status st = DT_OK;
    dt_recipe recipe;

    *resume_place =
        (dt_budget_place){0}; /* without a checkpoint, only the program knows where it continues */
    DT_TRY(check(run, call, err));
    DT_TRY(dt_existing_run_recipe(&recipe, origins, store, run, call, err));
    DT_TRY(check_env(&recipe.env, call->arena, err));
    DT_TRY(dt_preflight_check(flight, &recipe, NULL, call->arena, err));
    flight->origins = origins;
    DT_TRY(choose_checkpoint(&from, store, run, flight->plan.node_count > 1, call, err));
    if (from.path != NULL) {
        flight->plan.program_checkpoint = from.path;
        flight->plan.program_step = resume_place->step = from.step;
    }
    DT_TRY(dt_nodes_check(flight, run->recipe_path, call, err));
    DT_TRY(dt_launch_workdir_check(flight, run, call, err));
    dt_launch_workdir_compare(flight, run, call);
out:
    return st;
}
