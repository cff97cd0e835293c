#include "engine/checkpoint/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint_int.h"

static int newest_first(const void *a, const void *b)
{
    const dt_checkpoint_entry *left = a, *right = b;

    if (left->attempt != right->attempt)
        return left->attempt > right->attempt ? -1 : 1;
    if (left->name.step != right->name.step)
        return left->name.step > right->name.step ? -1 : 1;
    return (left->name.copy < right->name.copy) - (left->name.copy > right->name.copy);
}

static dt_status has(bool *out, const dt_checkpoint_entry *entry, const char *name, dt_arena *arena,
                     dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/%s", entry->path, name);

    *out = dt_file_exists(path);
    return DT_OK;
}

static dt_status look_at(dt_checkpoint_entry *entry, dt_arena *arena, dt_error *err)
{
    dt_checkpoint *opened = NULL;
    dt_error problem = DT_ERROR_INIT;
    bool part = false;
    dt_status st = DT_OK;

    entry->attempt = -1;
    entry->problem = "";
    if (entry->name.partial)
        return DT_OK;
    DT_TRY(has(&entry->whole, entry, DT_CHECKPOINT_MARKER, arena, err));
    DT_TRY(has(&part, entry, DT_CHECKPOINT_PART, arena, err));
    entry->marked = entry->whole || part;
    if ((part && !entry->whole ? dt_checkpoint_open_part : dt_checkpoint_open)(&opened, entry->path,
                                                                               &problem) == DT_OK) {
        const dt_checkpoint_info *info = dt_checkpoint_get_info(opened);

        entry->opens = entry->marked;
        entry->attempt = info->attempt;
        entry->valid_loss = info->valid_loss;
        entry->score = dt_checkpoint_score(info);
        entry->best_by = info->best_by;
        entry->kept_for = info->kept_for;
    } else {
        entry->problem = dt_arena_strdup(arena, problem.message);
    }
    if (problem.code == DT_ERR_NOMEM)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a list of checkpoints");
out:
    dt_checkpoint_close(opened);
    return st;
}

static dt_status add(dt_checkpoint_entry **entries, int64_t *count, int64_t *capacity,
                     const char *parent, const char *text, dt_arena *arena, dt_error *err)
{
    dt_checkpoint_entry entry = {0};

    if (!dt_checkpoint_name_parse(&entry.name, text))
        return DT_OK;
    if (*count == *capacity) {
        int64_t wider = *capacity == 0 ? 16 : *capacity * 2;
        dt_checkpoint_entry *room = dt_arena_alloc_array(arena, (size_t)wider, sizeof(*room));

        if (*count > 0)
            memcpy(room, *entries, (size_t)*count * sizeof(*room));
        *entries = room;
        *capacity = wider;
    }
    entry.path = dt_arena_printf(arena, "%s/%s", parent, text);
    (*entries)[(*count)++] = entry;
    return DT_OK;
}

dt_status dt_checkpoint_list(dt_checkpoint_entry **out, int64_t *count, const char *parent,
                             dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    DIR *dir = opendir(parent);
    struct dirent *item;
    int64_t capacity = 0;

    *out = NULL;
    *count = 0;
    if (dir == NULL && errno == ENOENT)
        return DT_OK;
    if (dir == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot look for checkpoints in '%s': %s", parent,
                       strerror(errno));
    while ((item = readdir(dir)) != NULL)
        DT_TRY(add(out, count, &capacity, parent, item->d_name, arena, err));
    for (int64_t i = 0; i < *count; i++)
        DT_TRY(look_at(&(*out)[i], arena, err));
    if (*count > 0)
        qsort(*out, (size_t)*count, sizeof(**out), newest_first);
out:
    closedir(dir);
    return st;
}
