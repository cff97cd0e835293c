#include "runner/node_setup/remote_helper/sent_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/node_setup/workdir/contents.h"

#define DEPTH_MAX 200

/* --- what is at a path */

/* Returns true if the file or link at `path` is as the entry describes. */
static bool is_as(const dt_tree_entry *entry, const char *path, const struct stat *info)
{
    char target[PATH_MAX];
    ssize_t length;

    switch (entry->kind) {
    case DT_TREE_FOLDER:
        return S_ISDIR(info->st_mode);
    case DT_TREE_LINK:
        if (!S_ISLNK(info->st_mode))
            return false;
        length = readlink(path, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        return strcmp(target, entry->target) == 0;
    case DT_TREE_FILE:
        break;
    }
    return S_ISREG(info->st_mode) && info->st_size == entry->bytes &&
           (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec == entry->time_ns;
}

/* Returns true if the folder that has `path` is one, and not a link that the command made. */
static bool has_parent(dt_sent_tree *tree, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) : 0;
    struct stat info;
    dt_strbuf full_path;

    if (length == 0)
        return true;
    if (tree->parent.length == length && strncmp(tree->parent.data, path, length) == 0)
        return tree->parent_good;
    dt_strbuf_init(&full_path);
    tree->parent_good = true;
    for (size_t i = 1; i <= length && tree->parent_good; i++) {
        if (path[i] != '/')
            continue;
        dt_strbuf_reset(&full_path);
        dt_strbuf_add_fmt(&full_path, "%s/%.*s", tree->folder, (int)i, path);
        if (lstat(full_path.data, &info) != 0)
            break; /* absent */
        tree->parent_good = S_ISDIR(info.st_mode);
    }
    dt_strbuf_reset(&tree->parent);
    dt_strbuf_add(&tree->parent, path, length);
    dt_strbuf_release(&full_path);
    return tree->parent_good;
}

dt_sent_state dt_sent_tree_state(dt_sent_tree *tree, const char *path)
{
    const dt_tree_entry *sent = dt_tree_find(&tree->sent, path);
    const dt_tree_entry *setup = dt_tree_find(&tree->setup, path);
    dt_sent_state state = DT_SENT_OWN;
    struct stat info;
    dt_strbuf full;

    if (!has_parent(tree, path))
        return DT_SENT_BLOCKED;
    dt_strbuf_init(&full);
    dt_strbuf_add_fmt(&full, "%s/%s", tree->folder, path);
    if (lstat(full.data, &info) != 0)
        state = DT_SENT_ABSENT;
    else if (S_ISDIR(info.st_mode))
        state = DT_SENT_FOLDER;
    else if (sent != NULL && is_as(sent, full.data, &info))
        state = DT_SENT_PLACED;
    else if (setup != NULL && is_as(setup, full.data, &info))
        state = DT_SENT_SETUP;
    dt_strbuf_release(&full);
    return state;
}

static bool is_all_placed(dt_sent_tree *tree, dt_strbuf *path, int depth)
{
    size_t length = path->length;
    struct dirent *entry;
    bool placed = depth < DEPTH_MAX;
    dt_strbuf full;
    DIR *directory;

    dt_strbuf_init(&full);
    dt_strbuf_add_fmt(&full, "%s/%s", tree->folder, path->data);
    directory = placed ? opendir(full.data) : NULL;
    placed = directory != NULL;
    while (placed && (entry = readdir(directory)) != NULL) {
        dt_sent_state state;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_add_fmt(path, "/%s", entry->d_name);
        state = dt_sent_tree_state(tree, path->data);
        placed = state == DT_SENT_PLACED || state == DT_SENT_SETUP || state == DT_SENT_ABSENT ||
                 (state == DT_SENT_FOLDER && is_all_placed(tree, path, depth + 1));
        path->data[length] = '\0';
        path->length = length;
    }
    if (directory != NULL)
        closedir(directory);
    dt_strbuf_release(&full);
    return placed;
}

/* Returns true if nothing in the folder `path` is the command's own. */
static bool sent_tree_is_all_placed(dt_sent_tree *tree, const char *path)
{
    dt_strbuf full_path;
    bool placed;

    dt_strbuf_init(&full_path);
    dt_strbuf_add_str(&full_path, path);
    placed = is_all_placed(tree, &full_path, 0);
    dt_strbuf_release(&full_path);
    return placed;
}

/* --- decisions */

/* Returns true if the command's own file or link equals the entry. */
static bool is_same_content(const dt_sent_tree *tree, const dt_tree_entry *entry)
{
    struct stat info;
    dt_strbuf path;
    bool same = false;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", tree->folder, entry->path);
    if (entry->kind == DT_TREE_FILE)
        same = dt_contents_is_at(path.data, entry->digest, entry->bytes);
    else if (lstat(path.data, &info) == 0)
        same = is_as(entry, path.data, &info);
    dt_strbuf_release(&path);
    return same;
}

dt_sent_act dt_sent_tree_decide(dt_sent_tree *tree, const dt_tree_entry *entry)
{
    const dt_tree_entry *sent = dt_tree_find(&tree->sent, entry->path);
    bool unchanged = sent != NULL && dt_tree_entry_same(sent, entry);

    switch (dt_sent_tree_state(tree, entry->path)) {
    case DT_SENT_ABSENT:
    case DT_SENT_SETUP:
        return DT_SENT_PLACE;
    case DT_SENT_PLACED:
        return !unchanged                        ? DT_SENT_PLACE
               : sent->time_ns != entry->time_ns ? DT_SENT_DATE
                                                 : DT_SENT_KEEP;
    case DT_SENT_FOLDER:
        if (entry->kind == DT_TREE_FOLDER || (unchanged && !tree->adds))
            return DT_SENT_KEEP;
        return !tree->adds && sent_tree_is_all_placed(tree, entry->path) ? DT_SENT_PLACE
                                                                         : DT_SENT_CONFLICT;
    case DT_SENT_OWN:
        return (unchanged && !tree->adds) || is_same_content(tree, entry) ? DT_SENT_KEEP
                                                                          : DT_SENT_CONFLICT;
    case DT_SENT_BLOCKED:
        break;
    }
    return unchanged && !tree->adds ? DT_SENT_KEEP : DT_SENT_CONFLICT;
}

/* --- the documents */

static void read_document(dt_tree *out, const char *folder, const char *ending, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s%s", folder, ending);

    if (dt_tree_read(out, path, arena, NULL) != DT_OK)
        *out = (dt_tree){0};
}

/* Merges the trees. An entry of the unfinished build counts if it is what is there. */
static void merge(dt_sent_tree *out, const dt_tree *before, const dt_tree *unfinished,
                  dt_arena *arena)
{
    size_t most = (size_t)(before->count + unfinished->count) + 1;
    dt_sent_tree placing = {.folder = out->folder, .sent = *unfinished};
    dt_tree tree = {.entries = dt_arena_alloc_array(arena, most, sizeof(tree.entries[0]))};
    int64_t i = 0, j = 0;

    dt_strbuf_init(&placing.parent);
    while (i < before->count || j < unfinished->count) {
        int order = i == before->count ? 1
                    : j == unfinished->count
                        ? -1
                        : dt_tree_order(before->entries[i].path, unfinished->entries[j].path);
        const dt_tree_entry *old = order <= 0 ? &before->entries[i++] : NULL;
        const dt_tree_entry *new = order >= 0 ? &unfinished->entries[j++] : NULL;
        dt_sent_state state = new != NULL ? dt_sent_tree_state(&placing, new->path) : DT_SENT_OWN;

        if (new != NULL &&
            (state == DT_SENT_PLACED || (state == DT_SENT_FOLDER && new->kind == DT_TREE_FOLDER)))
            tree.entries[tree.count++] = *new;
        else if (old != NULL)
            tree.entries[tree.count++] = *old;
    }
    dt_sent_tree_release(&placing);
    out->sent = tree;
}

void dt_sent_tree_read(dt_sent_tree *out, const char *folder, dt_arena *arena)
{
    dt_tree before, unfinished;

    *out = (dt_sent_tree){.folder = folder};
    dt_strbuf_init(&out->parent);
    read_document(&before, folder, DT_SENT_TREE_RECORD, arena);
    read_document(&unfinished, folder, DT_SENT_TREE_UNFINISHED, arena);
    read_document(&out->setup, folder, DT_SENT_TREE_SETUP, arena);
    merge(out, &before, &unfinished, arena);
}

void dt_sent_tree_release(dt_sent_tree *tree)
{
    dt_strbuf_release(&tree->parent);
}

/* --- removal */

static dt_status remove_placed(dt_sent_tree *tree, const dt_tree *entries, const dt_tree *spared,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (int64_t i = entries->count; i-- > 0;) { /* the contents of a folder come after it */
        const dt_tree_entry *entry = &entries->entries[i];
        dt_sent_state state;

        if (spared != NULL && dt_tree_find(spared, entry->path) != NULL)
            continue;
        state = dt_sent_tree_state(tree, entry->path);
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", tree->folder, entry->path);
        if (state == DT_SENT_FOLDER)
            (void)rmdir(path.data); /* fails unless it is empty */
        else if ((state == DT_SENT_PLACED || state == DT_SENT_SETUP) && unlink(path.data) != 0)
            DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", path.data, strerror(errno));
    }
out:
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_sent_tree_remove(dt_sent_tree *tree, const dt_tree *spared, dt_error *err)
{
    dt_status st = remove_placed(tree, &tree->setup, spared, err);

    return st == DT_OK ? remove_placed(tree, &tree->sent, spared, err) : st;
}

/* --- placing */

/* Removes an empty folder, which a file cannot replace, or whatever a folder is to replace. */
static dt_status clear(const char *path, bool for_folder, dt_error *err)
{
    struct stat info;

    if (lstat(path, &info) != 0 || S_ISDIR(info.st_mode) == for_folder)
        return DT_OK;
    if ((S_ISDIR(info.st_mode) ? rmdir(path) : unlink(path)) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot replace '%s': %s", path, strerror(errno));
    return DT_OK;
}

dt_status dt_sent_tree_date(const char *path, const dt_tree_entry *entry, dt_error *err)
{
    const struct timespec time = {.tv_sec = (time_t)(entry->time_ns / 1000000000),
                                  .tv_nsec = (long)(entry->time_ns % 1000000000)};
    const struct timespec times[] = {time, time};

    if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot set the time of '%s': %s", path, strerror(errno));
    return DT_OK;
}

dt_status dt_sent_tree_place(const char *path, const char *unfinished, const dt_tree_entry *entry,
                             const char *cache, bool move, dt_error *err)
{
    dt_status st = DT_OK;

    if (entry->kind == DT_TREE_FOLDER) {
        mode_t mode = (mode_t)entry->mode | 0700;

        if (mkdir(path, mode) == 0)
            return DT_OK;
        DT_TRY(clear(path, true, err));
        if (mkdir(path, mode) != 0 && errno != EEXIST)
            DT_THROW(err, DT_ERR_IO, "cannot make the folder '%s': %s", path, strerror(errno));
        return DT_OK;
    }
    if (entry->kind == DT_TREE_LINK && symlink(entry->target, unfinished) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the link '%s': %s", path, strerror(errno));
    if (entry->kind == DT_TREE_FILE)
        DT_TRY((move ? dt_contents_move : dt_contents_copy)(unfinished, cache, entry->digest,
                                                            entry->mode, entry->time_ns, err));
    if (rename(unfinished, path) == 0)
        return DT_OK;
    DT_TRY(clear(path, false, err));
    if (rename(unfinished, path) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot place '%s': %s", path, strerror(errno));
out:
    return st;
}
