#include "runner/supervisor/folder/resume_point.h"

#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"

#include "base/banned.h"

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
    const known *all = context;

    for (int64_t i = 0; i < all->count; i++)
        if (strcmp(name_of(all->rows[i].path), name_of(path)) == 0)
            return dt_resume_point_left(all->attempts, all->attempts_count, &all->rows[i]) == NULL;
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
    known all;

    *out = (dt_resume_point){0};
    if (!dt_file_exists(parent))
        return DT_OK; /* no checkpoint was ever started */
    DT_TRY(dt_store_checkpoint_list(store, &rows, &all.count, run, arena, err));
    all.rows = rows;
    DT_TRY(dt_store_attempt_list(store, &attempts, &all.attempts_count, run, arena, err));
    all.attempts = attempts;
    DT_TRY(dt_checkpoint_find_newest_fit(&path, parent, is_known, &all, arena, err));
    if (path == NULL)
        goto out;
    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    info = dt_checkpoint_get_info(checkpoint);
    *out = (dt_resume_point){path, info->attempt, info->step, info->steps_total};
out:
    dt_checkpoint_close(checkpoint);
    return st;
}

dt_status dt_run_program_checkpoint(dt_resume_point *out, dt_store *store, const char *run,
                                    int64_t step, dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *rows;
    dt_attempt *attempts;
    dt_status st = DT_OK;
    int64_t count, attempts_count;

    *out = (dt_resume_point){0};
    DT_TRY(dt_store_checkpoint_list(store, &rows, &count, run, arena, err));
    DT_TRY(dt_store_attempt_list(store, &attempts, &attempts_count, run, arena, err));
    for (int64_t i = 0; i < count && out->path == NULL; i++)
        if ((step < 0 || rows[i].step == step) &&
            dt_resume_point_left(attempts, attempts_count, &rows[i]) == NULL)
            *out = (dt_resume_point){
                .path = rows[i].path, .attempt = rows[i].attempt, .step = rows[i].step};
out:
    return st;
}
