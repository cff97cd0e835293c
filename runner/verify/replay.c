/* replay: runs the steps again, as a run of its own in a private state folder. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "recipes/fields/fields.h"
#include "runner/cli/report.h"
#include "runner/launch/attempt.h"
#include "runner/supervisor/folder/launch_env.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/supervisor.h"
#include "runner/verify/verify.h"

#define LOOK_SECONDS 0.1
#define NOTE_SECONDS 10.0
#define END_SECONDS  120.0

/* --- the private folder */

static dt_status make_place(dt_verify_replay *out, const char *run, dt_arena *arena, dt_error *err)
{
    const char *state, *parent;
    dt_status st = DT_OK;
    char *folder;

    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    parent = dt_arena_printf(arena, "%s/verify", state);
    DT_TRY(dt_file_make_dirs(parent, 0700, err));
    folder = dt_arena_printf(arena, "%s/%s.XXXXXX", parent, run);
    if (mkdtemp(folder) == NULL)
        DT_THROW(err, DT_ERR_IO, "cannot create a folder in '%s': %s", parent, strerror(errno));
    out->folder = folder;
    if (setenv("XDG_STATE_HOME", folder, 1) != 0)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
out:
    return st;
}

void dt_replay_close(dt_verify_replay *replay)
{
    if (replay->files != NULL)
        for (int64_t rank = 0; rank < replay->ranks; rank++)
            dt_record_file_release(&replay->files[rank]);
    if (replay->folder != NULL)
        (void)dt_file_remove_tree(replay->folder, NULL);
    memset(replay, 0, sizeof(*replay));
}

/* --- the plan */

/* Only what the steps are computed from: nothing is evaluated, saved on the way, restarted or reported. */
static void strip(dt_recipe *recipe)
{
    recipe->evaluate.every = recipe->evaluate.every_epoch = recipe->evaluate.tasks_every = 0;
    recipe->evaluate.tasks.count = recipe->evaluate.samples.count = 0;
    recipe->evaluate.bleu = false;
    recipe->checkpoint.every = recipe->checkpoint.every_epoch = recipe->checkpoint.keep_best = 0;
    recipe->checkpoint.best_by = DT_BEST_BY_VALID_LOSS;
    recipe->failure.max_restarts = 0;
    recipe->time_limit_seconds = 0;
    recipe->notify.webhook = "";
}

/* All ranks of the attempt on one node. */
static dt_status move_to(dt_plan *plan, const char *on, dt_arena *arena, dt_error *err)
{
    if (on == NULL)
        return DT_OK;
    if (plan->node_count > 1)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "the ranks were on %lld nodes: on one node their sums round in another "
                       "order, and bits cannot be compared (leave --on out)",
                       (long long)plan->node_count);
    plan->node_names = dt_arena_alloc_array(arena, 1, sizeof(*plan->node_names));
    plan->node_names[0] = dt_arena_strdup(arena, on);
    return DT_OK;
}

static dt_status write_plan(dt_plan *plan, const char *folder, dt_arena *arena, dt_error *err)
{
    const char *below = dt_arena_printf(arena, "%s/attempt-1", folder);
    json_t *json = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_make_dirs(below, 0700, err));
    json = dt_plan_to_json(plan);
    dt_json_write_pretty(&text, json);
    DT_TRY(dt_file_write_atomic(dt_arena_printf(arena, "%s/plan.json", below), text.data,
                                text.length, 0600, err));
out:
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

static dt_status make_plan(dt_plan *out, dt_verify_replay *replay, const dt_verify_task *task,
                           const char *on, dt_arena *arena, dt_error *err)
{
    const char *digest, *parent = dt_arena_printf(arena, "%s/checkpoints", replay->run_folder);
    dt_status st = DT_OK;

    *out = task->attempt->plan;
    strip(&out->recipe);
    DT_TRY(move_to(out, on, arena, err));
    out->run = replay->run;
    out->attempt = 1;
    out->directory = parent;
    out->until = task->until;
    if (task->path[0] != '\0' && strcmp(task->path, out->resume_from) != 0)
        out->new_data = out->new_model = false; /* the attempt's own checkpoint */
    out->resume_from = "";
    if (task->path[0] != '\0')
        DT_TRY(dt_checkpoint_copy(&out->resume_from, &digest, task->path, parent, replay->run,
                                  arena, err));
    DT_TRY(write_plan(out, replay->run_folder, arena, err));
out:
    return st;
}

static dt_status add_row(dt_store *store, const dt_run *run, const dt_verify_replay *replay,
                         const dt_plan *plan, const dt_verify_task *task, dt_arena *arena,
                         dt_error *err)
{
    json_t *json = dt_recipe_of_task_to_json(&plan->recipe);
    char hash[33];
    dt_status st;
    dt_strbuf text;
    dt_run row = {.id = replay->run,
                  .name = dt_arena_printf(arena, "verify-%s", run->id),
                  .state = DT_RUN_QUEUED,
                  .attempt = 1,
                  .created_ms = dt_clock_wall_ms(),
                  .steps_total = task->until,
                  .loss = NAN,
                  .valid_loss = NAN,
                  .tokens_per_second = NAN,
                  .recipe_path = run->recipe_path,
                  .recipe_text = run->recipe_text,
                  .recipe_hash = hash,
                  .exit_code = -1,
                  .reason = "",
                  .tags = "verify",
                  .note = "",
                  .group = "",
                  .parent = "",
                  .parent_step = task->from};

    dt_strbuf_init(&text);
    dt_json_write(&text, json);
    row.recipe_json = text.data;
    dt_recipe_hash(hash, &plan->recipe);
    st = dt_store_run_add(store, &row, err);
    dt_strbuf_release(&text);
    json_decref(json);
    return st;
}

/* A replay computes with the instruction set of the record, on a processor that has more. */
static dt_status take_instructions(const dt_verify_task *task, dt_arena *arena, dt_error *err)
{
    const json_t *header = task->attempt->files[0].header;
    const char *text = json_string_value(json_object_get(header, "arithmetic"));
    const char *isa = text != NULL && strncmp(text, "cpu ", 4) == 0 ? text + 4 : NULL;

    if (isa != NULL &&
        setenv("DTRUN_CPU_ISA", dt_arena_strndup(arena, isa, strcspn(isa, " ")), 1) != 0)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    return DT_OK;
}

/* --- waiting */

/* Stops the replay, and waits for its supervisor, which writes to the folder. */
static void end(dt_store *store, const dt_verify_replay *replay, dt_arena *arena)
{
    double until = dt_clock_monotonic_seconds() + END_SECONDS;
    const char *path = dt_arena_printf(arena, "%s/supervisor.lock", replay->run_folder);
    dt_run row;
    int lock = -1;

    if (dt_store_run_find(store, &row, replay->run, arena, NULL) == DT_OK &&
        !dt_run_state_is_terminal(row.state))
        (void)dt_supervisor_stop(replay->run, true, NULL);
    while (dt_file_lock(&lock, path, NULL) == DT_ERR_BUSY && dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds(LOOK_SECONDS);
    if (lock >= 0)
        close(lock);
}

/* Whether the replay's ranks compute as those of the record, as soon as a header is there. */
static dt_status check_header(const dt_verify_replay *replay, const dt_verify_task *task,
                              bool *known, dt_arena *arena, dt_error *err)
{
    dt_record_file file = {0};
    const char *why;
    dt_status st = DT_OK;

    if (dt_record_file_read(&file, replay->run_folder, 1, 0, arena, NULL) != DT_OK ||
        file.header == NULL)
        goto out;
    *known = true;
    if (!dt_record_headers_match(&why, task->attempt->files[0].header, file.header, arena))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "bits cannot be compared with those of the record: %s (verify where the run was "
                 "computed, or with the same kind of machine)",
                 why);
out:
    dt_record_file_release(&file);
    return st;
}

static dt_status await(dt_verify_replay *replay, dt_store *store, const dt_verify_task *task,
                       const dt_call *call, dt_error *err)
{
    double noted = dt_clock_monotonic_seconds();
    bool known = false;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_run row = {0};

    dt_arena_init(&arena, 0);
    for (;;) {
        dt_arena_reset(&arena);
        DT_TRY(dt_store_run_find(store, &row, replay->run, &arena, err));
        if (!known)
            DT_TRY(check_header(replay, task, &known, &arena, err));
        if (dt_run_state_is_terminal(row.state))
            break;
        if (dt_interrupt_seen())
            DT_THROW(err, DT_ERR_BUSY, "interrupted");
        if (dt_clock_monotonic_seconds() - noted > NOTE_SECONDS) {
            dt_report_note(call, "replay: %s, step %lld of %lld", dt_run_state_name(row.state),
                           (long long)row.step, (long long)task->until);
            noted = dt_clock_monotonic_seconds();
        }
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    if (row.state != DT_RUN_FINISHED)
        replay->failure = dt_arena_strdup(
            call->arena, row.reason[0] != '\0' ? row.reason : dt_run_state_name(row.state));
out:
    dt_arena_release(&arena);
    return st;
}

/* --- after the end */

static dt_status read_results(dt_verify_replay *out, const dt_verify_task *task, dt_store *store,
                              dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *all;
    dt_status st = DT_OK;
    int64_t count;

    out->files = dt_arena_alloc_array(arena, (size_t)out->ranks, sizeof(*out->files));
    for (int64_t rank = 0; rank < out->ranks; rank++) {
        st = dt_record_file_read(&out->files[rank], out->run_folder, 1, rank, arena, err);
        if (st == DT_ERR_NOT_FOUND && out->failure != NULL) {
            dt_error_clear(err);
            st = DT_OK;
        }
        DT_TRY(st);
    }
    out->checkpoint = "";
    DT_TRY(dt_store_checkpoint_list(store, &all, &count, out->run, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (all[i].step == task->until && dt_store_checkpoint_exists(&all[i]))
            out->checkpoint = all[i].path;
out:
    return st;
}

dt_status dt_replay_run(dt_verify_replay *out, const dt_run *run, const dt_verify_task *task,
                        const char *on, const dt_call *call, dt_error *err)
{
    dt_arena *arena = call->arena;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    bool started = false;
    dt_plan plan;

    memset(out, 0, sizeof(*out));
    out->ranks = task->attempt->ranks;
    DT_TRY(make_place(out, run->id, arena, err));
    DT_TRY(dt_run_id_take(&out->run, &out->run_folder, arena, err));
    DT_TRY(make_plan(&plan, out, task, on, arena, err));
    DT_TRY(take_instructions(task, arena, err));
    DT_TRY(dt_supervisor_keep_environment(out->run, dt_launch_env_text("", &plan.recipe.env, arena),
                                          err));
    DT_TRY(dt_store_open(&store, NULL, err));
    DT_TRY(add_row(store, run, out, &plan, task, arena, err));
    DT_TRY(dt_supervisor_start(out->run, err));
    started = true;
    DT_TRY(await(out, store, task, call, err));
    end(store, out, arena);
    started = false;
    DT_TRY(read_results(out, task, store, arena, err));
out:
    if (started)
        end(store, out, arena);
    dt_store_close(store);
    return st;
}
