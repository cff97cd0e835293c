#include "runner/supervisor/rebuild/rebuild_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "engine/checkpoint/list.h"

#define MARKER_BYTES 4096

static bool is_known(const dt_store_checkpoint *rows, int64_t count, const char *path)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(strrchr(rows[i].path, '/') + 1, strrchr(path, '/') + 1) == 0)
            return true;
    return false;
}

static int64_t count_bytes(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int64_t bytes = 0;
    struct stat info;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            bytes += info.st_size;
    if (dir != NULL)
        closedir(dir);
    return bytes;
}

/* Adds a checkpoint; the marker file holds its digest and time. */
static dt_status add(dt_store *store, const char *run, const dt_checkpoint_entry *entry,
                     dt_error *err)
{
    dt_store_checkpoint row = {.attempt = entry->attempt,
                               .step = entry->name.step,
                               .path = entry->path,
                               .valid_loss = entry->valid_loss,
                               .score = entry->score};
    dt_strbuf path, marker;
    struct stat info;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&marker);
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_MARKER, entry->path);
    DT_TRY(dt_file_read(&marker, path.data, MARKER_BYTES, err));
    marker.data[strcspn(marker.data, "\n")] = '\0';
    row.digest = marker.data;
    row.bytes = count_bytes(entry->path);
    if (stat(path.data, &info) == 0)
        row.time_ms = (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
    DT_TRY(dt_store_checkpoint_add(store, run, &row, err));
out:
    dt_strbuf_release(&marker);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_adopt_logs(dt_store *store, const char *run, const char *folder, int64_t attempt,
                        dt_arena *arena, dt_error *err)
{
    dt_rank *rows;
    int64_t count;
    dt_status st = DT_OK;
    struct dirent *entry;
    struct stat info;
    dt_strbuf path;
    long long rank;
    DIR *dir = NULL;

    dt_strbuf_init(&path);
    DT_TRY(dt_store_rank_list(store, &rows, &count, run, attempt, arena, err));
    dt_strbuf_add_fmt(&path, "%s/logs", folder);
    dir = opendir(path.data);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        dt_rank row = {.device = "", .state = "waiting", .exit_code = -1, .exit_signal = -1};

        if (sscanf(entry->d_name, "rank-%lld.log", &rank) != 1 || rank < 0 ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        for (int64_t i = 0; i < count; i++)
            if (rows[i].rank == rank)
                row = rows[i];
        row.rank = rank;
        row.log_bytes = info.st_size;
        DT_TRY(dt_store_rank_set(store, run, attempt, &row, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_adopt_checkpoints(dt_store *store, const char *run, const char *folder,
                               dt_arena *arena, dt_error *err)
{
    const char *parent = dt_arena_printf(arena, "%s/checkpoints", folder);
    dt_checkpoint_entry *entries;
    dt_store_checkpoint *rows;
    int64_t count, known;
    dt_status st;

    DT_TRY(dt_store_checkpoint_list(store, &rows, &known, run, arena, err));
    DT_TRY(dt_checkpoint_list(&entries, &count, parent, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (entries[i].whole && entries[i].opens && !is_known(rows, known, entries[i].path))
            DT_TRY(add(store, run, &entries[i], err));
out:
    return st;
}
