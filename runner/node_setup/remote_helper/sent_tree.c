#define _GNU_SOURCE
#include "runner/node_setup/remote_helper/sent_tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "runner/node_setup/workdir/contents.h"

#include "base/banned.h"

#define DEPTH_MAX 200

/* Returns true if it is as it was sent. */
static bool is_unchanged(const dt_tree_entry *entry, const char *path)
{
    struct stat info;

    if (lstat(path, &info) != 0)
        return false;
    if (entry->kind == DT_TREE_LINK)
        return S_ISLNK(info.st_mode);
    return S_ISREG(info.st_mode) && info.st_size == entry->bytes &&
           (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec == entry->time_ns;
}

/* Returns true for a link that dt_sent_tree_overlay made. */
static bool leads_to_setup(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    return target[0] == '/' && strstr(target, "/" DT_SETUPS_FOLDER "/") != NULL;
}

/* Removes folders named __pycache__, and links to a setup, counts other files, and removes folders that are empty. */
static void sweep(dt_strbuf *path, int64_t *kept, int64_t *kept_bytes, int depth)
{
    DIR *all = depth < DEPTH_MAX ? opendir(path->data) : NULL;
    size_t length = path->length;
    struct dirent *entry;
    struct stat info;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_add_fmt(path, "/%s", entry->d_name);
        if (lstat(path->data, &info) != 0) {
            /* it vanished */
        } else if (S_ISDIR(info.st_mode) && strcmp(entry->d_name, "__pycache__") == 0) {
            (void)dt_file_remove_tree(path->data, NULL);
        } else if (S_ISDIR(info.st_mode)) {
            sweep(path, kept, kept_bytes, depth + 1);
            (void)rmdir(path->data); /* fails unless it is empty */
        } else if (S_ISLNK(info.st_mode) && leads_to_setup(path->data)) {
            (void)unlink(path->data);
        } else {
            ++*kept;
            *kept_bytes += (int64_t)info.st_size;
        }
        path->data[length] = '\0';
        path->length = length;
    }
    if (all != NULL)
        closedir(all);
}

dt_status dt_sent_tree_remove(const char *folder, const dt_tree *sent, const dt_tree *spared,
                              int64_t *kept, int64_t *kept_bytes, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (int64_t i = sent->count; i-- > 0;) { /* the contents of a folder come after it */
        const dt_tree_entry *entry = &sent->entries[i];

        if (spared != NULL && dt_tree_find(spared, entry->path) != NULL)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->path);
        if (entry->kind == DT_TREE_FOLDER)
            (void)rmdir(path.data); /* fails unless it is empty */
        else if (is_unchanged(entry, path.data) && unlink(path.data) != 0)
            DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", path.data, strerror(errno));
    }
    if (kept == NULL)
        goto out;
    *kept = *kept_bytes = 0;
    dt_strbuf_reset(&path);
    dt_strbuf_add_str(&path, folder);
    sweep(&path, kept, kept_bytes, 0);
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- building */

/* Makes the entry's path free for it, if something else is there. */
static dt_status clear(const char *path, bool for_folder, dt_error *err)
{
    struct stat info;

    if (lstat(path, &info) != 0 || (for_folder && S_ISDIR(info.st_mode)))
        return DT_OK;
    if (S_ISDIR(info.st_mode) && rmdir(path) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot replace the folder '%s': %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode) && unlink(path) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot replace '%s': %s", path, strerror(errno));
    return DT_OK;
}

static dt_status place_at(const char *path, const dt_tree_entry *entry, const char *cache,
                          dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(clear(path, entry->kind == DT_TREE_FOLDER, err));
    switch (entry->kind) {
    case DT_TREE_FILE:
        DT_TRY(dt_contents_copy(path, cache, entry->digest, entry->mode, entry->time_ns, err));
        break;
    case DT_TREE_LINK:
        if (symlink(entry->target, path) != 0)
            DT_THROW(err, DT_ERR_IO, "cannot make the link '%s': %s", path, strerror(errno));
        break;
    case DT_TREE_FOLDER:
        if (mkdir(path, (mode_t)entry->mode | 0700) != 0 && errno != EEXIST)
            DT_THROW(err, DT_ERR_IO, "cannot make the folder '%s': %s", path, strerror(errno));
        break;
    }
out:
    return st;
}

dt_status dt_sent_tree_place(const char *folder, const dt_tree_entry *entry, const char *cache,
                             dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->path);
    st = place_at(path.data, entry, cache, err);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_sent_tree_build(const char *folder, const dt_tree *tree, const char *cache,
                             dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    for (int64_t i = 0; i < tree->count; i++)
        DT_TRY(dt_sent_tree_place(folder, &tree->entries[i], cache, err));
out:
    return st;
}

/* --- what a setup made */

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

/* Adds what the setup created, unless the run has something there. An empty folder is created instead of linked: the
 * command may write into it. */
static dt_status overlay_new(const char *from, const char *to, dt_error *err)
{
    struct stat there, here;

    if (lstat(from, &there) != 0 || lstat(to, &here) == 0)
        return DT_OK;
    if (S_ISDIR(there.st_mode) && is_empty(from) ? mkdir(to, there.st_mode & 0777) != 0
                                                 : symlink(from, to) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make '%s': %s", to, strerror(errno));
    return DT_OK;
}

/* Copies a file that the setup changed over the one that was sent. */
static dt_status overlay_changed(const char *from, const char *to, const dt_tree_entry *sent,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf bytes;

    dt_strbuf_init(&bytes);
    if (is_unchanged(sent, from) || !is_unchanged(sent, to) || lstat(from, &info) != 0 ||
        !S_ISREG(info.st_mode))
        goto out;
    DT_TRY(dt_file_read(&bytes, from, (size_t)1 << 30, err));
    DT_TRY(dt_file_write_atomic(to, bytes.data, bytes.length, info.st_mode & 0777, err));
out:
    dt_strbuf_release(&bytes);
    return st;
}

static dt_status overlay(const char *folder, const dt_tree *sent, const char *from,
                         const char *below, int depth, dt_error *err)
{
    dt_strbuf path, there, here;
    struct dirent *entry;
    dt_status st = DT_OK;
    DIR *all = NULL;

    dt_strbuf_init(&path);
    dt_strbuf_init(&there);
    dt_strbuf_init(&here);
    dt_strbuf_add_fmt(&there, "%s/%s", from, below);
    all = depth < DEPTH_MAX ? opendir(there.data) : NULL;
    while (all != NULL && (entry = readdir(all)) != NULL) {
        const dt_tree_entry *known;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_reset(&there);
        dt_strbuf_reset(&here);
        dt_strbuf_add_fmt(&path, "%s%s%s", below, below[0] != '\0' ? "/" : "", entry->d_name);
        dt_strbuf_add_fmt(&there, "%s/%s", from, path.data);
        dt_strbuf_add_fmt(&here, "%s/%s", folder, path.data);
        known = dt_tree_find(sent, path.data);
        if (known == NULL)
            DT_TRY(overlay_new(there.data, here.data, err));
        else if (known->kind == DT_TREE_FOLDER)
            DT_TRY(overlay(folder, sent, from, path.data, depth + 1, err));
        else if (known->kind == DT_TREE_FILE)
            DT_TRY(overlay_changed(there.data, here.data, known, err));
    }
out:
    if (all != NULL)
        closedir(all);
    dt_strbuf_release(&path);
    dt_strbuf_release(&there);
    dt_strbuf_release(&here);
    return st;
}

dt_status dt_sent_tree_overlay(const char *folder, const dt_tree *sent, const char *from,
                               dt_error *err)
{
    return overlay(folder, sent, from, "", 0, err);
}
