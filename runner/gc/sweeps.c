/* sweeps: finds and removes folders of ended sweeps. Their runs are ordinary runs, and are kept. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/gc/gc.h"
#include "runner/sweep/group.h"

#define GONE_PREFIX ".gone-"

/* Adds a sweep; its age counts from the time when its driver recorded the end. */
static dt_status add_one(dt_gc *gc, const char *name, dt_error *err)
{
    const char *folder, *progress;
    struct stat info;
    dt_status st = DT_OK;

    DT_TRY(dt_group_folder(&folder, name, gc->arena, err));
    progress = dt_arena_printf(gc->arena, "%s/progress.json", folder);
    if (stat(progress, &info) == 0 && info.st_uid == geteuid())
        dt_gc_add(gc, DT_GC_SWEEPS, NULL, folder, (int64_t)info.st_mtime * 1000);
out:
    return st;
}

/* Adds what an interrupted removal has left. */
static dt_status add_leftovers(dt_gc *gc, dt_error *err)
{
    struct dirent *entry;
    const char *folder;
    DIR *dir = NULL;
    dt_status st;

    DT_TRY(dt_group_folder(&folder, "", gc->arena, err));
    dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, GONE_PREFIX, strlen(GONE_PREFIX)) == 0)
            dt_gc_add(gc, DT_GC_LEFTOVERS, NULL,
                      dt_arena_printf(gc->arena, "%s%s", folder, entry->d_name), 0);
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

dt_status dt_gc_scan_sweeps(dt_gc *gc, dt_error *err)
{
    const char **names;
    dt_status st = DT_OK;
    int64_t count = 0;

    if (gc->kinds & 1u << DT_GC_SWEEPS)
        DT_TRY(dt_group_list(&names, &count, true, gc->arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(add_one(gc, names[i], err));
    if (gc->kinds & 1u << DT_GC_LEFTOVERS)
        DT_TRY(add_leftovers(gc, err));
out:
    return st;
}

/* Removes a sweep's folder, unless the sweep was resumed since the scan. */
dt_status dt_gc_remove_sweep(dt_gc *gc, const dt_gc_item *item, bool *removed, dt_error *err)
{
    const char *name = strrchr(item->path, '/') + 1, *aside;
    dt_sweep_group group;
    dt_status st;
    int lock = -1;

    *removed = false;
    DT_TRY(dt_group_read(&group, name, gc->arena, err));
    DT_TRY(dt_group_hold(&lock, &group, gc->arena, err));
    DT_TRY(dt_group_read(&group, name, gc->arena, err));
    if (!group.ended)
        goto out;
    aside = dt_arena_printf(gc->arena, "%.*s" GONE_PREFIX "%s", (int)(name - item->path),
                            item->path, name);
    if (rename(item->path, aside) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", item->path, strerror(errno));
    DT_TRY(dt_file_remove_tree(aside, err));
    *removed = true;
out:
    if (lock >= 0)
        close(lock);
    return st;
}
