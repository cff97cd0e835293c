#include "runner/supervisor/folder/resume_point.h"

#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/node_setup/transfer/saved.h"
#include "runner/supervisor/folder/run_folder.h"

typedef struct known {
    const dt_store_checkpoint *rows;
    int64_t count;
    const dt_attempt *attempts;
    int64_t attempts_count;
} known;

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

const dt_attempt *dt_resume_point_left(const dt_attempt *attempts, int64_t count,
                                       const dt_store_checkpoint *checkpoint)
{
    for (int64_t i = 0; i < count; i++)
        if (attempts[i].attempt > checkpoint->attempt && attempts[i].start_step < checkpoint->step)
            return &attempts[i];
    return NULL;
}

/* Compares by name: the folder's path may have changed since the row was written. */
static bool is_known(const void *context, const char *path)
{
    const known *history = context;

    for (int64_t i = 0; i < history->count; i++)
        if (strcmp(name_of(history->rows[i].path), name_of(path)) == 0)
            return dt_resume_point_left(history->attempts, history->attempts_count,
                                        &history->rows[i]) == NULL;
    return false;
}

dt_status dt_run_newest_checkpoint(dt_resume_point *out, dt_store *store, const char *run,
                                   const char *parent, dt_arena *arena, dt_error *err)
{
    const dt_checkpoint_info *info;
    dt_checkpoint *checkpoint = NULL;
    dt_store_checkpoint *rows;
    dt_attempt *attempts;
    dt_status st = DT_OK;
    const char *path;
    known history;

    *out = (dt_resume_point){0};
    if (!dt_file_exists(parent))
        return DT_OK; /* no checkpoint was ever started */
    DT_TRY(dt_store_checkpoint_list(store, &rows, &history.count, run, arena, err));
    history.rows = rows;
    DT_TRY(dt_store_attempt_list(store, &attempts, &history.attempts_count, run, arena, err));
    history.attempts = attempts;
    DT_TRY(dt_checkpoint_find_newest_fit(&path, parent, is_known, &history, arena, err));
    if (path == NULL)
        goto out;
    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    info = dt_checkpoint_get_info(checkpoint);
    *out = (dt_resume_point){path, info->attempt, info->step, info->steps_total};
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

/* Finds the newest checkpoint in runs/ID/saved that fits. */
static void find_brought(dt_resume_point *out, const char *folder, int64_t step,
                         const known *history, dt_arena *arena)
{
    dt_saved *saved;
    int64_t count;

    dt_saved_list(&saved, &count, folder, arena);
    for (int64_t i = 0; i < count && out->path == NULL; i++) {
        const dt_store_checkpoint row = {.attempt = saved[i].attempt, .step = saved[i].step};

        if ((step < 0 || saved[i].step == step) &&
            dt_resume_point_left(history->attempts, history->attempts_count, &row) == NULL)
            *out = (dt_resume_point){
                .path = saved[i].path, .attempt = saved[i].attempt, .step = saved[i].step};
    }
}

dt_status dt_run_program_checkpoint(dt_resume_point *out, dt_store *store, const char *run,
                                    int64_t step, bool many, dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *rows;
    dt_attempt *attempts;
    const char *folder;
    dt_status st = DT_OK;
    known history;

    *out = (dt_resume_point){0};
    DT_TRY(dt_store_checkpoint_list(store, &rows, &history.count, run, arena, err));
    DT_TRY(dt_store_attempt_list(store, &attempts, &history.attempts_count, run, arena, err));
    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    history.rows = rows;
    history.attempts = attempts;
    if (many)
        find_brought(out, folder, step, &history, arena);
    for (int64_t i = 0; i < history.count && out->path == NULL; i++)
        if ((step < 0 || rows[i].step == step) &&
            dt_resume_point_left(attempts, history.attempts_count, &rows[i]) == NULL)
            *out = (dt_resume_point){
                .path = rows[i].path, .attempt = rows[i].attempt, .step = rows[i].step};
out:
    return st;
}

const char *dt_run_checkpoint_here(const char *run, const dt_store_checkpoint *checkpoint,
                                   dt_arena *arena)
{
    dt_saved *saved;
    const char *folder;
    int64_t count;

    if (dt_run_path(&folder, run, NULL, arena, NULL) != DT_OK)
        return checkpoint->path;
    dt_saved_list(&saved, &count, folder, arena);
    for (int64_t i = 0; i < count; i++)
        if (saved[i].step == checkpoint->step && saved[i].attempt == checkpoint->attempt &&
            strcmp(saved[i].path, checkpoint->path) == 0)
            return dt_arena_printf(arena, "%s/" DT_SAVED_FOLDER "/step-%lld/%s", folder,
                                   (long long)saved[i].step, name_of(saved[i].path));
    return checkpoint->path;
}
