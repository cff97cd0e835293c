/* list: the names of checkpoints, those below a directory, and the newest of them. */
#include "engine/checkpoint/checkpoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint_int.h"
#include "engine/checkpoint/name.h"

/* --- names */

void dt_checkpoint_name_format(char *out, const dt_checkpoint_name *name)
{
    char copy[24] = "";

    if (name->copy > 1)
        snprintf(copy, sizeof(copy), "-%lld", (long long)name->copy);
    snprintf(out, DT_CHECKPOINT_NAME_SIZE, "step-%08lld%s%s", (long long)name->step, copy,
             name->partial ? DT_CHECKPOINT_PARTIAL : "");
}

static bool number(int64_t *out, const char **at)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *out = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

bool dt_checkpoint_name_parse(dt_checkpoint_name *out, const char *text)
{
    char again[DT_CHECKPOINT_NAME_SIZE];
    const char *at = text;

    memset(out, 0, sizeof(*out));
    out->copy = 1;
    if (strncmp(at, "step-", 5) != 0)
        return false;
    at += 5;
    if (!number(&out->step, &at))
        return false;
    if (*at == '-') {
        at++;
        if (!number(&out->copy, &at))
            return false;
    }
    out->partial = strcmp(at, DT_CHECKPOINT_PARTIAL) == 0;
    dt_checkpoint_name_format(again, out);
    return strcmp(again, text) == 0;
}

/* --- all below a directory */

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
    *entries = dt_arena_array_room(arena, *entries, *count + 1, capacity, sizeof(entry));
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

/* --- the newest */

static dt_status verify(const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint *opened = NULL;

    DT_TRY(dt_checkpoint_open(&opened, path, err));
    DT_TRY(dt_checkpoint_verify(opened, err));
out:
    dt_checkpoint_close(opened);
    return st;
}

dt_status dt_checkpoint_find_newest_fit(const char **path, const char *parent,
                                        dt_checkpoint_fit_fn *fits, const void *context,
                                        dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_entry *entries;
    int64_t count;

    *path = NULL;
    DT_TRY(dt_checkpoint_list(&entries, &count, parent, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (!entries[i].opens && !entries[i].name.partial)
            dt_log_warn("checkpoint skipped: %s", entries[i].problem);
    for (int64_t i = 0; i < count && *path == NULL; i++) {
        dt_error problem = DT_ERROR_INIT;

        if (!entries[i].opens || !entries[i].whole || !fits(context, entries[i].path))
            continue;
        if (verify(entries[i].path, &problem) == DT_OK)
            *path = entries[i].path;
        else if (problem.code == DT_ERR_NOMEM)
            DT_THROW(err, problem.code, "%s", problem.message);
        else
            dt_log_warn("checkpoint skipped: %s", problem.message);
    }
out:
    return st;
}

static bool any_fits(const void *unused, const char *path)
{
    return true;
}

dt_status dt_checkpoint_find_newest(const char **path, const char *parent, dt_arena *arena,
                                    dt_error *err)
{
    return dt_checkpoint_find_newest_fit(path, parent, any_fits, NULL, arena, err);
}
