/* keep: what a launch keeps of a command's folder: contents of its files in CACHE/files, and the names of
 * those that rules left out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "runner/node_setup/workdir/contents.h"
#include "runner/node_setup/workdir/workdir.h"

/* left: keeps what rules left out of a command's folder, for the message of a program that does not find it. */

#define FILE_NAME  "workdir-left-out.json"
#define ITEMS_MOST 1000
#define FILE_BYTES ((size_t)4 << 20)

dt_status dt_workdir_left_write(const dt_workdir_left_list *left, const char *run_folder,
                                dt_error *err)
{
    json_t *list = json_array();
    dt_strbuf path, text;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    for (int64_t i = 0; i < left->count && i < ITEMS_MOST; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "path", dt_json_text(left->items[i].path),
                                        "rule", dt_json_text(left->items[i].rule)));
    dt_strbuf_add_fmt(&path, "%s/" FILE_NAME, run_folder);
    dt_json_write(&text, list);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    json_decref(list);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* Returns whether the path names this file or folder, or something below, maybe from a folder above. */
static bool is_below(const char *named, const char *left)
{
    size_t length = strlen(left);

    for (const char *at = named; (at = strstr(at, left)) != NULL; at++)
        if ((at == named || at[-1] == '/') && (at[length] == '\0' || at[length] == '/'))
            return true;
    return false;
}

const char *dt_workdir_left_hint(const char *run_folder, const char *message, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/" FILE_NAME, run_folder), *hint = NULL;
    const char *quote = strpbrk(message, "'\""), *end;
    json_t *list = NULL, *one;
    size_t i;

    if (strstr(message, "No such file") == NULL ||
        dt_json_read(&list, path, FILE_BYTES, NULL) != DT_OK)
        return NULL;
    for (; hint == NULL && quote != NULL && (end = strchr(quote + 1, *quote)) != NULL;
         quote = strpbrk(end + 1, "'\"")) {
        const char *named = dt_arena_strndup(arena, quote + 1, (size_t)(end - quote - 1));

        json_array_foreach(list, i, one) {
            const char *left = json_string_value(json_object_get(one, "path"));
            const char *rule = json_string_value(json_object_get(one, "rule"));

            if (hint == NULL && left != NULL && rule != NULL && is_below(named, left))
                hint = dt_arena_printf(
                    arena, "'%s' was not sent to the nodes: it is left out by %s", left, rule);
        }
    }
    json_decref(list);
    return hint;
}

#define PIECE_BYTES ((size_t)1 << 20)

typedef struct keeping {
    const char *cache;
    char *piece;
} keeping;

/* Reads the file from its start, and at most `most` bytes: it may grow. content NULL: only for its digest. */
static dt_status read_file(char *hex, int64_t *bytes, dt_content *content, int fd, int64_t most,
                           const char *path, const keeping *all, dt_error *err)
{
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    ssize_t got;

    *bytes = 0;
    DT_TRY(dt_digest_new(&digest, err));
    while (*bytes < most) {
        size_t wanted =
            most - *bytes < (int64_t)PIECE_BYTES ? (size_t)(most - *bytes) : PIECE_BYTES;

        got = pread(fd, all->piece, wanted, (off_t)*bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0)
            break;
        if (content != NULL)
            DT_TRY(dt_content_add(content, all->piece, (size_t)got, err));
        else
            dt_digest_add(digest, all->piece, (size_t)got);
        *bytes += got;
    }
    dt_digest_get(hex, digest);
out:
    dt_digest_free(digest);
    return st;
}

/* Returns what the file takes on a disk without its holes. A file without holes can have fewer blocks too, on a file
 * system that compresses. */
static int64_t disk_bytes(int fd, const struct stat *info, int64_t bytes)
{
    int64_t blocks = (int64_t)info->st_blocks * 512;
    off_t hole;

    if (blocks >= bytes)
        return bytes;
    hole = lseek(fd, 0, SEEK_HOLE);
    return hole >= 0 && hole < info->st_size ? blocks : bytes;
}

/* *vanished: the file is not there any more. */
static dt_status keep_file(dt_tree_entry *entry, bool *vanished, const char *path,
                           const keeping *all, dt_error *err)
{
    dt_content content = {0};
    dt_status st = DT_OK;
    struct stat info;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    *vanished = fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR);
    if (*vanished)
        return DT_OK;
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "workdir: cannot read '%s': %s (name it in " DT_WORKDIR_IGNORE_FILE
                 " if it is not needed)",
                 path, strerror(errno));
    *vanished = !S_ISREG(info.st_mode);
    if (*vanished)
        goto out;
    entry->mode = (int64_t)(info.st_mode & 0777);
    entry->time_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    DT_TRY(read_file(entry->digest, &entry->bytes, NULL, fd, info.st_size, path, all, err));
    entry->disk_bytes = disk_bytes(fd, &info, entry->bytes);
    if (all->cache == NULL || dt_contents_have(all->cache, entry->digest, entry->bytes, false))
        goto out;
    DT_TRY(dt_content_begin(&content, all->cache, err));
    DT_TRY(read_file(entry->digest, &entry->bytes, &content, fd, info.st_size, path, all, err));
    /* if the file changed meanwhile, the bytes and the digest of the copy count */
    DT_TRY(dt_content_finish(&content, entry->digest, all->cache, err));
    entry->disk_bytes = disk_bytes(fd, &info, entry->bytes);
out:
    dt_content_drop(&content);
    if (fd >= 0)
        close(fd);
    return st;
}

dt_status dt_workdir_keep(dt_tree *io, const char *folder, const char *cache, dt_arena *arena,
                          dt_error *err)
{
    keeping all = {.cache = cache, .piece = dt_malloc(PIECE_BYTES)};
    int64_t kept = 0;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    io->files = io->bytes = 0;
    for (int64_t i = 0; i < io->count; i++) {
        dt_tree_entry *entry = &io->entries[i];
        bool vanished = false;

        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", folder, entry->path);
        if (entry->kind == DT_TREE_FILE)
            DT_TRY(keep_file(entry, &vanished, path.data, &all, err));
        if (vanished)
            continue;
        io->files += entry->kind == DT_TREE_FILE;
        io->bytes += entry->bytes;
        io->entries[kept++] = *entry;
    }
    io->count = kept;
out:
    free(all.piece);
    dt_strbuf_release(&path);
    return st;
}
