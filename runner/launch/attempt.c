/* attempt: creates a run with a new id, or its next attempt, and starts its supervisor. */
#include "runner/launch/attempt.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/launch/preflight.h"
#include "runner/launch/provenance.h"
#include "runner/node_setup/workdir/workdir.h"
#include "runner/supervisor/folder/attempt_record.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"

static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789";
enum { LETTERS = sizeof(letters) - 1, TRIES = 100 };

static dt_status draw(char *out, dt_error *err)
{
    unsigned char byte;
    int filled = 0;

    while (filled < DT_RUN_ID_SIZE - 1) {
        if (getrandom(&byte, 1, 0) != 1)
            return DT_FAIL(err, DT_ERR_IO, "cannot generate a run id: %s", strerror(errno));
        if (byte < 256 / LETTERS * LETTERS) /* larger bytes would favour the first letters */
            out[filled++] = letters[byte % LETTERS];
    }
    out[filled] = '\0';
    return DT_OK;
}

dt_status dt_run_id_take(const char **run, const char **folder, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *state, *runs;
    char id[DT_RUN_ID_SIZE];

    *run = *folder = NULL;
    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    runs = dt_arena_printf(arena, "%s/runs", state);
    DT_TRY(dt_file_make_dirs(runs, 0700, err));
    for (int i = 0; i < TRIES; i++) {
        DT_TRY(draw(id, err));
        DT_TRY(dt_run_path(folder, id, NULL, arena, err));
        if (mkdir(*folder, 0700) == 0) {
            *run = dt_arena_strdup(arena, id);
            return DT_OK;
        }
        if (errno != EEXIST)
            DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", *folder, strerror(errno));
    }
    DT_THROW(err, DT_ERR_IO, "no free run id found below '%s'", runs);
out:
    *folder = NULL; /* nothing to remove */
    return st;
}

enum { HASH_SIZE = 33 };

/* Writes attempt-N/origins.json: this attempt's origins merged over those of the previous
 * attempt (or of the forked run). Best effort: a failure here does not fail the launch. */
static void write_origins(const dt_preflight *flight, int64_t attempt, const char *folder,
                          const char *recipe, const char *below, int64_t below_attempt,
                          dt_arena *arena)
{
    const char *path =
        dt_arena_printf(arena, "%s/attempt-%lld/origins.json", folder, (long long)attempt);
    json_t *earlier, *json;
    dt_strbuf text;

    if (flight->origins == NULL)
        return;
    earlier = below != NULL    ? dt_origins_read(below, below_attempt, arena)
              : recipe != NULL ? dt_origins_beside(recipe, arena)
                               : NULL;
    json = dt_origins_document(flight->origins, earlier);
    if (below == NULL && earlier != NULL)
        dt_origins_leave_out(json, recipe);
    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, json);
    (void)dt_file_write_atomic(path, text.data, text.length, 0600, NULL);
    dt_strbuf_release(&text);
    json_decref(json);
    json_decref(earlier);
}

/* Fills in the fields that dt_plan_make leaves to its caller, and writes attempt-N/plan.json. */
static dt_status write_plan(dt_preflight *flight, const char *run, int64_t attempt,
                            const char *resume_from, const char *folder, dt_arena *arena,
                            dt_error *err)
{
    const char *below, *path;
    json_t *json = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    flight->plan.run = run;
    flight->plan.attempt = attempt;
    flight->plan.resume_from = resume_from;
    flight->plan.directory = dt_arena_printf(arena, "%s/checkpoints", folder);
    below = dt_arena_printf(arena, "%s/attempt-%lld", folder, (long long)attempt);
    DT_TRY(dt_file_make_dirs(below, 0700, err));
    path = dt_arena_printf(arena, "%s/plan.json", below);
    if (flight->plan.recipe.task == DT_TASK_COMMAND)
        flight->plan.git_commit = dt_provenance_commit(flight->plan.recipe.workdir.folder, arena);
    json = dt_plan_to_json(&flight->plan);
    dt_json_write_pretty(&text, json);
    if (flight->tree != NULL)
        DT_TRY(dt_tree_write(
            flight->tree,
            dt_arena_printf(arena, "%s/" DT_WORKDIR_TREE_FILE, folder, flight->plan.tree), err));
    if (flight->tree != NULL)
        DT_TRY(dt_workdir_left_write(flight->left, folder, err));
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

/* Returns the resolved recipe as JSON, as stored, and its hash. The plan has all fields. */
static void recipe_text(const char **json_text, char *hash, const dt_recipe *recipe,
                        dt_arena *arena)
{
    json_t *json = dt_recipe_of_task_to_json(recipe);
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    json_decref(json);
    *json_text = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    dt_recipe_hash(hash, recipe);
}

/* Saves the environment for the run's supervisors, without what the recipe references as secrets. */
static dt_status keep_environment(const char *run, const dt_recipe *recipe, dt_arena *arena,
                                  dt_error *err)
{
    return dt_supervisor_keep_environment(
        run, dt_launch_env_text(recipe->notify.webhook, &recipe->env, arena), err);
}

/* Parameters of a new run. */
typedef struct beginning {
    const char *run, *folder;
    const dt_recipe_source *source;
    const dt_labels *labels;
    const dt_fork *fork;             /* NULL: a new run */
    const dt_task_start *task;       /* NULL: training */
    const char *checkpoint, *digest; /* the run's own copy; "" if none */
    const dt_preflight *flight;
} beginning;

/* Adds the row; for a fork also the parent's history and its checkpoint. */
static dt_status add_run(dt_store *store, const dt_run *row, const beginning *attempt,
                         dt_error *err)
{
    dt_store_checkpoint checkpoint = {.path = attempt->checkpoint,
                                      .digest = attempt->digest,
                                      .valid_loss = NAN,
                                      .score = NAN,
                                      .time_ms = row->created_ms};
    bool begun = false;
    dt_status st;

    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_store_run_add(store, row, err));
    if (attempt->fork != NULL) {
        checkpoint.step = row->parent_step;
        checkpoint.valid_loss = attempt->fork->valid_loss;
        checkpoint.score = attempt->fork->score;
        checkpoint.bytes = dt_tree_bytes(attempt->checkpoint);
        DT_TRY(dt_store_run_copy_past(store, attempt->run, attempt->fork->parent->id,
                                      checkpoint.step, err));
        DT_TRY(dt_store_checkpoint_add(store, attempt->run, &checkpoint, err));
    }
    DT_TRY(dt_store_commit(store, err));
    begun = false;
out:
    if (begun)
        dt_store_rollback(store);
    return st;
}

static dt_status add_row(dt_store *store, const beginning *attempt, dt_arena *arena, dt_error *err)
{
    const dt_recipe *recipe = &attempt->flight->recipe;
    const dt_fork *fork = attempt->fork;
    json_t *changes = fork != NULL ? dt_overrides_of_resume(fork->parent, recipe, arena)
                      : attempt->task != NULL
                          ? json_array()
                          : dt_overrides_of_launch(attempt->source, recipe, arena);
    json_t *origin = dt_provenance_make(attempt->source->path, attempt->flight, arena);
    char hash[HASH_SIZE], absolute[PATH_MAX];
    const char *json;
    dt_status st = DT_OK;
    dt_run row = {
        .id = attempt->run,
        .name = fork != NULL ? fork->name : recipe->name,
        .state = attempt->flight->waits ? DT_RUN_WAITING : DT_RUN_QUEUED,
        .attempt = 1,
        .created_ms = dt_clock_wall_ms(),
        .steps_total =
            dt_preflight_steps(attempt->flight, fork != NULL ? &fork->resume_place : NULL),
        .loss = NAN,
        .valid_loss = NAN,
        .tokens_per_second = NAN,
        .recipe_path =
            realpath(attempt->source->path, absolute) != NULL ? absolute : attempt->source->path,
        .recipe_text = attempt->source->text,
        .exit_code = -1,
        .reason = "",
        .tags = attempt->labels->tags,
        .note = attempt->labels->note,
        .group = attempt->labels->group,
        .parent = fork != NULL ? fork->parent->id : "",
        .parent_step = fork != NULL ? fork->resume_place.step : 0,
    };

    recipe_text(&json, hash, recipe, arena);
    row.recipe_json = json;
    row.recipe_hash = hash;
    DT_TRY(dt_labels_write(&row, attempt->folder, err));
    DT_TRY(add_run(store, &row, attempt, err));
    (void)dt_overrides_store(store, attempt->run, changes, NULL); /* best effort */
    (void)dt_provenance_store(store, attempt->run, origin, NULL);
out:
    json_decref(origin);
    json_decref(changes);
    return st;
}

/* Starts the supervisor. The store already has the attempt: if the supervisor does not start,
 * the attempt has failed. */
static dt_status supervise(dt_store *store, const char *run, dt_error *err)
{
    dt_status st = dt_supervisor_start(run, err);

    bool restored;

    if (st != DT_OK &&
        dt_store_run_set_state(store, run, DT_RUN_FAILED, DT_EXIT_SYSTEM,
                               err != NULL ? err->message : "the supervisor did not start",
                               dt_clock_wall_ms(), NULL) == DT_OK)
        (void)dt_store_run_restore(store, &restored, run, NULL);
    return st;
}

/* Copies the checkpoint that a fork or a task starts from into the run's folder. */
static dt_status take_checkpoint(beginning *io, dt_arena *arena, dt_error *err)
{
    const char *parent = dt_arena_printf(arena, "%s/checkpoints", io->folder);

    io->checkpoint = io->digest = "";
    if (io->fork == NULL && (io->task == NULL || io->task->checkpoint[0] == '\0'))
        return DT_OK;
    return dt_checkpoint_copy(&io->checkpoint, &io->digest,
                              io->fork != NULL ? io->fork->checkpoint : io->task->checkpoint,
                              parent, io->run, arena, err);
}

/* Copies the files that came with the weights, for a later export. */
static dt_status take_origin(const beginning *attempt, dt_arena *arena, dt_error *err)
{
    const char *parent;
    dt_status st = DT_OK;

    if (attempt->fork == NULL)
        return dt_weights_keep_origin(&attempt->flight->plan.weights, &attempt->flight->recipe,
                                      attempt->folder, arena, err);
    DT_TRY(dt_run_path(&parent, attempt->fork->parent->id, NULL, arena, err));
    DT_TRY(dt_weights_copy_origin(parent, &attempt->flight->recipe, attempt->folder, arena, err));
out:
    return st;
}

static dt_status keep_text(const char **path, const char *folder, const char *name,
                           const dt_strbuf *text, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *path = dt_arena_printf(arena, "%s/%s", folder, name);
    if (text != NULL)
        DT_TRY(dt_file_write_atomic(*path, text->data, text->length, 0600, err));
out:
    return st;
}

/* Writes the input of a task to files in the run's folder. */
static dt_status take_task(const beginning *attempt, dt_plan_task *task, dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;

    if (attempt->task == NULL)
        return DT_OK;
    DT_TRY(
        keep_text(&task->input, attempt->folder, DT_TASK_INPUT, attempt->task->input, arena, err));
    task->target = "";
    if (attempt->task->target != NULL)
        DT_TRY(keep_text(&task->target, attempt->folder, DT_TASK_TARGET, attempt->task->target,
                         arena, err));
    if (task->output[0] == '\0')
        DT_TRY(keep_text(&task->output, attempt->folder, DT_TASK_OUTPUT, NULL, arena, err));
out:
    return st;
}

/* Writes the record from which a lost history is restored: for a run that waits, no supervisor does. */
static dt_status keep_record(dt_store *store, const char *run, const char *folder,
                             int64_t start_step, dt_arena *arena, dt_error *err)
{
    dt_attempt_record record = {.changes_json = "[]", .provenance_json = "{}"};
    dt_status st;

    DT_TRY(dt_store_run_find(store, &record.run, run, arena, err));
    record.created_ms = record.run.attempt > 1 ? dt_clock_wall_ms() : record.run.created_ms;
    record.start_step = start_step;
    DT_TRY(dt_attempt_record_write(&record, folder, err));
out:
    return st;
}

static dt_status begin(const char **run, dt_store *store, beginning *attempt, dt_preflight *flight,
                       dt_arena *arena, dt_error *err)
{
    const char *folder = NULL, *copy, *below = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_run_id_take(run, &folder, arena, err));
    attempt->run = *run;
    attempt->folder = folder;
    attempt->flight = flight;
    DT_TRY(keep_text(&copy, folder, "recipe.yaml", NULL, arena, err));
    DT_TRY(dt_file_write_atomic(copy, attempt->source->text, strlen(attempt->source->text), 0600,
                                err));
    DT_TRY(take_checkpoint(attempt, arena, err));
    DT_TRY(take_origin(attempt, arena, err));
    DT_TRY(take_task(attempt, &flight->plan.task, arena, err));
    DT_TRY(write_plan(flight, *run, 1, attempt->checkpoint, folder, arena, err));
    if (attempt->fork != NULL)
        DT_TRY(dt_run_path(&below, attempt->fork->parent->id, NULL, arena, err));
    write_origins(flight, 1, folder, attempt->source->path, below,
                  attempt->fork != NULL ? attempt->fork->parent->attempt : 0, arena);
    DT_TRY(keep_environment(*run, &flight->recipe, arena, err));
    DT_TRY(add_row(store, attempt, arena, err));
    if (flight->waits)
        DT_TRY(keep_record(store, *run, folder,
                           attempt->fork != NULL ? attempt->fork->resume_place.step : 0, arena,
                           err));
    folder = NULL; /* owned by the row now */
    if (!flight->waits)
        DT_TRY(supervise(store, *run, err));
out:
    if (folder != NULL)
        (void)dt_file_remove_tree(folder, NULL);
    return st;
}

dt_status dt_attempt_launch(const char **run, dt_store *store, const dt_recipe_source *source,
                            const dt_labels *labels, const dt_fork *fork, dt_preflight *flight,
                            dt_arena *arena, dt_error *err)
{
    beginning attempt = {.source = source, .labels = labels, .fork = fork};
    dt_status st = DT_OK;

    /* also for the points of a sweep */
    if (fork == NULL && flight->plan.weights.kind == DT_WEIGHTS_NONE)
        DT_TRY(dt_weights_preflight(flight, arena, err));
    if (fork != NULL)
        DT_TRY(dt_weights_preflight_base(flight, fork->checkpoint, arena, err));
    DT_TRY(begin(run, store, &attempt, flight, arena, err));
out:
    return st;
}

dt_status dt_attempt_launch_task(const char **run, dt_store *store, const dt_recipe_source *source,
                                 const dt_labels *labels, const dt_task_start *start,
                                 dt_preflight *flight, dt_arena *arena, dt_error *err)
{
    beginning attempt = {.source = source, .labels = labels, .task = start};

    return begin(run, store, &attempt, flight, arena, err);
}

/* Returns the number of the next attempt; attempts that failed before their first step count
 * too. */
static dt_status next_attempt(int64_t *out, dt_store *store, const char *run, dt_arena *arena,
                              dt_error *err)
{
    dt_attempt *attempts;
    int64_t count;
    dt_status st = DT_OK;

    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run, arena, err));
    *out = count > 0 ? attempts[count - 1].attempt + 1 : 1;
out:
    return st;
}

dt_status dt_attempt_resume(dt_store *store, const dt_run *run, const char *checkpoint,
                            const dt_budget_place *resume_place, dt_preflight *flight,
                            dt_arena *arena, dt_error *err)
{
    int64_t attempt, added;
    const char *folder, *json, *lock_path;
    char hash[HASH_SIZE];
    dt_status st = DT_OK;
    dt_error problem = DT_ERROR_INIT;
    json_t *changes = NULL, *origin = NULL;
    bool begun = false;
    int lock = -1;
    dt_run now;

    /* One resume at a time: two would choose the same number for the plan's folder. */
    DT_TRY(dt_run_path(&folder, run->id, NULL, arena, err));
    DT_TRY(dt_run_check_owner(run->id, folder, err));
    DT_TRY(dt_run_path(&lock_path, run->id, "resume.lock", arena, err));
    st = dt_file_lock(&lock, lock_path, &problem);
    if (st == DT_ERR_BUSY)
        DT_THROW(err, st, "run '%s' is being resumed by another process: see 'dtrun status %s'",
                 run->id, run->id);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    /* The previous holder of the lock may have resumed the run since it was read. */
    DT_TRY(dt_store_run_find(store, &now, run->id, arena, err));
    if (now.attempt != run->attempt || !dt_run_state_is_terminal(now.state))
        DT_THROW(err, DT_ERR_BUSY,
                 "run '%s' was just resumed by another process: see 'dtrun status %s'", run->id,
                 run->id);
    DT_TRY(next_attempt(&attempt, store, run->id, arena, err));
    DT_TRY(keep_environment(run->id, &flight->recipe, arena, err));
    if (flight->plan.recipe.task == DT_TASK_TRAIN)
        DT_TRY(dt_weights_preflight_base(flight, checkpoint, arena, err));
    DT_TRY(write_plan(flight, run->id, attempt, checkpoint, folder, arena, err));
    write_origins(flight, attempt, folder, NULL, folder, attempt - 1, arena);
    recipe_text(&json, hash, &flight->recipe, arena);
    origin = dt_provenance_make(run->recipe_path, flight, arena);
    DT_TRY(dt_store_begin(store, err));
    begun = true;
    DT_TRY(dt_store_attempt_add(store, run->id, resume_place->step,
                                dt_preflight_steps(flight, resume_place), json, hash,
                                dt_clock_wall_ms(), &added, err));
    DT_ASSERT(added == attempt);
    if (flight->waits)
        DT_TRY(dt_store_run_set_state(store, run->id, DT_RUN_WAITING, -1, "", dt_clock_wall_ms(),
                                      err));
    DT_TRY(dt_store_commit(store, err));
    begun = false;
    changes = dt_overrides_of_resume(run, &flight->recipe, arena);
    (void)dt_overrides_store(store, run->id, changes, NULL);
    (void)dt_provenance_store(store, run->id, origin, NULL);
    if (flight->waits)
        DT_TRY(keep_record(store, run->id, folder, resume_place->step, arena, err));
    else
        DT_TRY(supervise(store, run->id, err));
out:
    if (begun)
        dt_store_rollback(store);
    json_decref(origin);
    json_decref(changes);
    if (lock >= 0)
        close(lock);
    return st;
}
