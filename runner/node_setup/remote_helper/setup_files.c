/* setup_files: gives a setup a copy of the run's folder, and the run's folder what the setup made. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/workdir/contents.h"

#define DEPTH_MAX 200

/* --- the copy */

static dt_status copy_entry(const char *path, const dt_tree_entry *entry, dt_sent_tree *from,
                            const char *cache, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    if (entry->kind == DT_TREE_FILE && dt_sent_tree_state(from, entry->path) == DT_SENT_PLACED) {
        dt_strbuf_add_fmt(&text, "%s/%s", from->folder, entry->path);
        st = dt_contents_copy_file(path, text.data, entry->mode, entry->time_ns, err);
    } else {
        dt_strbuf_add_fmt(&text, "%s" DT_SENT_TREE_PLACING, path);
        st = dt_sent_tree_place(path, text.data, entry, cache, false, err);
    }
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_sent_tree_copy(const char *folder, dt_sent_tree *from, const char *cache,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    for (int64_t i = 0; i < from->sent.count; i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, from->sent.entries[i].path);
        DT_TRY(copy_entry(path.data, &from->sent.entries[i], from, cache, err));
    }
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- what the setup made */

typedef struct overlaying {
    dt_sent_tree *tree;
    const char *from;
    dt_tree made; /* what is in the run's folder now */
    int64_t capacity;
    dt_arena *arena;
} overlaying;

static void note(overlaying *all, dt_tree_entry entry)
{
    if (all->made.count == all->capacity) {
        all->capacity = all->capacity > 0 ? 2 * all->capacity : 64;
        all->made.entries = dt_realloc(all->made.entries, (size_t)all->capacity, sizeof(entry));
    }
    all->made.entries[all->made.count++] = entry;
}

static bool is_empty(const char *path)
{
    struct dirent *entry;
    DIR *all = opendir(path);
    int count = 0;

    while (all != NULL && (entry = readdir(all)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (all != NULL)
        closedir(all);
    return count == 0;
}

/* Notes what the setup created: a link in the run's folder, or a folder if it is empty, so that the run can write
 * there. */
static void find_new(overlaying *all, const char *path, const char *there)
{
    bool folder;
    struct stat info;

    if (lstat(there, &info) != 0 || dt_sent_tree_state(all->tree, path) != DT_SENT_ABSENT)
        return;
    folder = S_ISDIR(info.st_mode) && is_empty(there);
    note(all, (dt_tree_entry){.kind = folder ? DT_TREE_FOLDER : DT_TREE_LINK,
                              .path = dt_arena_strdup(all->arena, path),
                              .target = folder ? NULL : dt_arena_strdup(all->arena, there),
                              .mode = (int64_t)(info.st_mode & 0777)});
}

/* Notes a file that the setup changed, unless the command changed it too. */
static void find_changed(overlaying *all, const dt_tree_entry *sent, const char *there)
{
    dt_tree_entry now = *sent;
    struct stat info;

    if (lstat(there, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    now.mode = (int64_t)(info.st_mode & 0777);
    now.bytes = now.disk_bytes = info.st_size;
    now.time_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    if ((now.bytes != sent->bytes || now.time_ns != sent->time_ns) &&
        dt_sent_tree_state(all->tree, sent->path) == DT_SENT_PLACED)
        note(all, now);
}

static void find(overlaying *all, const char *below, int depth)
{
    struct dirent *entry;
    dt_strbuf path, there;
    DIR *dir;

    dt_strbuf_init(&path);
    dt_strbuf_init(&there);
    dt_strbuf_add_fmt(&there, "%s/%s", all->from, below);
    dir = depth < DEPTH_MAX ? opendir(there.data) : NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const dt_tree_entry *known;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_reset(&there);
        dt_strbuf_add_fmt(&path, "%s%s%s", below, below[0] != '\0' ? "/" : "", entry->d_name);
        dt_strbuf_add_fmt(&there, "%s/%s", all->from, path.data);
        known = dt_tree_find(&all->tree->sent, path.data);
        if (known == NULL)
            find_new(all, path.data, there.data);
        else if (known->kind == DT_TREE_FOLDER)
            find(all, path.data, depth + 1);
        else if (known->kind == DT_TREE_FILE)
            find_changed(all, known, there.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&path);
    dt_strbuf_release(&there);
}

static dt_status add_made(const overlaying *all, const dt_tree_entry *made, dt_error *err)
{
    dt_strbuf there, here, unfinished;
    dt_status st = DT_OK;

    dt_strbuf_init(&there);
    dt_strbuf_init(&here);
    dt_strbuf_init(&unfinished);
    dt_strbuf_add_fmt(&here, "%s/%s", all->tree->folder, made->path);
    dt_strbuf_add_fmt(&there, "%s/%s", all->from, made->path);
    dt_strbuf_add_fmt(&unfinished, "%s" DT_SENT_TREE_PLACING, all->tree->folder);
    if (made->kind != DT_TREE_FILE) {
        DT_TRY(dt_sent_tree_place(here.data, unfinished.data, made, "", false, err));
        goto out;
    }
    unlink(unfinished.data);
    DT_TRY(dt_contents_copy_file(unfinished.data, there.data, made->mode, made->time_ns, err));
    if (rename(unfinished.data, here.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot place '%s': %s", here.data, strerror(errno));
out:
    dt_strbuf_release(&there);
    dt_strbuf_release(&here);
    dt_strbuf_release(&unfinished);
    return st;
}

static int by_path(const void *a, const void *b)
{
    return dt_tree_order(((const dt_tree_entry *)a)->path, ((const dt_tree_entry *)b)->path);
}

/* The document is written first: what an interrupted overlay has made is known to be placed. */
dt_status dt_sent_tree_overlay(dt_sent_tree *tree, const char *from, dt_arena *arena, dt_error *err)
{
    overlaying all = {.tree = tree, .from = from, .arena = arena};
    const char *record = dt_arena_printf(arena, "%s" DT_SENT_TREE_SETUP, tree->folder);
    dt_status st = DT_OK;

    find(&all, "", 0);
    if (all.made.count == 0)
        goto out;
    qsort(all.made.entries, (size_t)all.made.count, sizeof(all.made.entries[0]), by_path);
    DT_TRY(dt_tree_write(&all.made, record, err));
    for (int64_t i = 0; i < all.made.count; i++)
        DT_TRY(add_made(&all, &all.made.entries[i], err));
out:
    free(all.made.entries);
    return st;
}
