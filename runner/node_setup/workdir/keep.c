/* keep: what a launch keeps of a command's folder: contents of its files in CACHE/files, and the names of
 * those that rules left out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

/* --- digests that are known
 *
 * CACHE/workdirs/KEY, where KEY is the digest of the folder's path, has lines that end with a NUL: "INODE MODIFIED
 * CHANGED CHECKED" of CACHE/files, and for each file in the order of the tree "BYTES INODE DEVICE MODIFIED CHANGED
 * DISK_BYTES DIGEST PATH". A file that still is as the line says is not read. As in contents.h, CHANGED cannot be set, and files
 * that changed within the last two seconds are not listed. Its content is in CACHE/files if nothing was added or removed
 * there since; after an hour this is looked up again, which notes the use. The content is checked when it is sent.
 */

#define KNOWN_BYTES ((size_t)256 << 20)
#define SETTLED_NS  ((int64_t)2000000000)
#define CHECKED_NS  ((int64_t)3600 * 1000000000)

typedef struct known_file {
    int64_t bytes, modified_ns, changed_ns, disk_bytes;
    uint64_t inode, device;
    const char *digest; /* DT_DIGEST_SIZE - 1 bytes, not ended */
    const char *path;   /* NULL: there are no more */
} known_file;

typedef struct known {
    const char *path; /* NULL: nothing is remembered */
    dt_strbuf before, now;
    const char *at; /* in `before`: behind `next` */
    known_file next;
    const char *store; /* folder of the contents */
    bool stored;       /* the contents of all listed files are there */
    int64_t begin_ns, checked_ns;
} known;

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Reads the next line; one that is damaged ends the list. */
static void known_step(known *list)
{
    const char *end = list->before.data + list->before.length, *at = list->at;
    int64_t numbers[6];
    char *after;

    list->next = (known_file){0};
    for (size_t i = 0; at < end && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        numbers[i] = (int64_t)strtoull(at, &after, 10);
        if (after == at || *after != ' ')
            return;
        at = after + 1;
    }
    if (end - at < DT_DIGEST_SIZE || at[DT_DIGEST_SIZE - 1] != ' ' ||
        strspn(at, "0123456789abcdef") != DT_DIGEST_SIZE - 1)
        return;
    list->next = (known_file){.bytes = numbers[0],
                              .inode = (uint64_t)numbers[1],
                              .device = (uint64_t)numbers[2],
                              .modified_ns = numbers[3],
                              .changed_ns = numbers[4],
                              .disk_bytes = numbers[5],
                              .digest = at,
                              .path = at + DT_DIGEST_SIZE};
    list->at = list->next.path + strlen(list->next.path) + 1;
}

/* Appends what changes whenever a content is added or removed. */
static void print_store(dt_strbuf *out, const char *store)
{
    struct stat info = {0};

    (void)stat(store, &info);
    dt_strbuf_add_fmt(out, "%llu %lld %lld ", (unsigned long long)info.st_ino,
                      (long long)nanoseconds(&info.st_mtim), (long long)nanoseconds(&info.st_ctim));
}

/* Reads the line of the store. */
static void known_begin(known *list)
{
    dt_strbuf now;

    dt_strbuf_init(&now);
    print_store(&now, list->store);
    list->checked_ns = list->begin_ns;
    if (strncmp(list->before.data, now.data, now.length) == 0) {
        int64_t checked_ns = strtoll(list->before.data + now.length, NULL, 10);

        list->stored = checked_ns <= list->begin_ns && list->begin_ns - checked_ns < CHECKED_NS;
        if (list->stored)
            list->checked_ns = checked_ns;
    }
    list->at = list->before.data + strlen(list->before.data) + 1;
    dt_strbuf_release(&now);
}

static void known_open(known *out, const char *folder, const char *cache, dt_arena *arena)
{
    char key[DT_DIGEST_SIZE];
    const char *place;
    struct timespec now;

    *out = (known){0};
    dt_strbuf_init(&out->before);
    dt_strbuf_init(&out->now);
    if (cache == NULL || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return;
    out->begin_ns = nanoseconds(&now);
    place = dt_arena_printf(arena, "%s/" DT_WORKDIRS_FOLDER, cache);
    if (dt_file_make_dirs(place, 0700, NULL) != DT_OK)
        return;
    dt_digest_of(key, folder, strlen(folder));
    out->path = dt_arena_printf(arena, "%s/%s", place, key);
    if (dt_file_read(&out->before, out->path, KNOWN_BYTES, NULL) != DT_OK)
        dt_strbuf_reset(&out->before);
    dt_strbuf_add(&out->before, "", 0); /* allocates */
    out->store = dt_arena_printf(arena, "%s/" DT_CONTENTS_FOLDER, cache);
    known_begin(out);
    known_step(out);
}

/* Adds a line, unless the file can change again within the same time. */
static void known_add(known *list, const dt_tree_entry *entry)
{
    if (list->path == NULL || entry->changed_ns > list->begin_ns - SETTLED_NS)
        return;
    dt_strbuf_add_fmt(&list->now, "%lld %llu %llu %lld %lld %lld %s %s", (long long)entry->bytes,
                      (unsigned long long)entry->inode, (unsigned long long)entry->device,
                      (long long)entry->time_ns, (long long)entry->changed_ns,
                      (long long)entry->disk_bytes, entry->digest, entry->path);
    dt_strbuf_add_char(&list->now, '\0');
}

/* Sets what is known of a file as it was listed; returns false if it has to be read. Files come in the order of the
 * tree. */
static bool known_find(known *list, dt_tree_entry *entry)
{
    const known_file *file = &list->next;
    int order = 1;

    while (file->path != NULL && (order = dt_tree_order(file->path, entry->path)) < 0)
        known_step(list);
    if (file->path == NULL || order != 0 || file->bytes != entry->bytes ||
        file->inode != entry->inode || file->device != entry->device ||
        file->modified_ns != entry->time_ns || file->changed_ns != entry->changed_ns)
        return false;
    entry->disk_bytes = file->disk_bytes;
    memcpy(entry->digest, file->digest, DT_DIGEST_SIZE - 1);
    entry->digest[DT_DIGEST_SIZE - 1] = '\0';
    return true;
}

/* Writes the file without a sync: a list that is lost or damaged is only made again. */
static bool write_whole(const char *path, const dt_strbuf *text)
{
    bool whole = false;
    dt_strbuf aside;
    int fd;

    dt_strbuf_init(&aside);
    dt_strbuf_add_fmt(&aside, "%s.%ld.new", path, (long)getpid());
    fd = open(aside.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0) {
        whole = dt_file_write_all(fd, text->data, text->length, NULL) == DT_OK;
        whole = close(fd) == 0 && whole && rename(aside.data, path) == 0;
    }
    if (fd >= 0 && !whole)
        unlink(aside.data);
    dt_strbuf_release(&aside);
    return whole;
}

/* Writes the list. Errors are ignored: the files are read again. */
static void known_close(known *list, bool complete)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (list->path != NULL && complete) {
        print_store(&text, list->store);
        dt_strbuf_add_fmt(&text, "%lld", (long long)list->checked_ns);
        dt_strbuf_add_char(&text, '\0');
        dt_strbuf_add(&text, list->now.data, list->now.length);
        if (text.length != list->before.length ||
            memcmp(text.data, list->before.data, text.length) != 0)
            (void)write_whole(list->path, &text);
        else
            (void)utimensat(AT_FDCWD, list->path, NULL, 0); /* so that cache.c sees it as used */
    }
    dt_strbuf_release(&text);
    dt_strbuf_release(&list->before);
    dt_strbuf_release(&list->now);
}

/* --- contents */

#define PIECE_BYTES ((size_t)1 << 20)

typedef struct keeping {
    const char *cache;
    char *piece;
    known known;
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
static dt_status keep_file(dt_tree_entry *entry, bool *vanished, const char *path, keeping *all,
                           dt_error *err)
{
    dt_content content = {0};
    dt_status st = DT_OK;
    struct stat info, after;
    int fd;

    if (known_find(&all->known, entry) &&
        (all->known.stored || dt_contents_have(all->cache, entry->digest, entry->bytes, false))) {
        known_add(&all->known, entry);
        return DT_OK;
    }
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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
    entry->time_ns = nanoseconds(&info.st_mtim);
    entry->changed_ns = nanoseconds(&info.st_ctim);
    entry->inode = (uint64_t)info.st_ino;
    entry->device = (uint64_t)info.st_dev;
    DT_TRY(read_file(entry->digest, &entry->bytes, NULL, fd, info.st_size, path, all, err));
    entry->disk_bytes = disk_bytes(fd, &info, entry->bytes);
    if (all->cache == NULL)
        goto out;
    if (!dt_contents_have(all->cache, entry->digest, entry->bytes, false)) {
        DT_TRY(dt_content_begin(&content, all->cache, err));
        DT_TRY(read_file(entry->digest, &entry->bytes, &content, fd, info.st_size, path, all, err));
        /* if the file changed meanwhile, the bytes and the digest of the copy count */
        DT_TRY(dt_content_finish(&content, entry->digest, all->cache, err));
        entry->disk_bytes = disk_bytes(fd, &info, entry->bytes);
    }
    if (fstat(fd, &after) == 0 && after.st_size == entry->bytes &&
        nanoseconds(&after.st_ctim) == entry->changed_ns)
        known_add(&all->known, entry);
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
    known_open(&all.known, folder, cache, arena);
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
    known_close(&all.known, st == DT_OK);
    free(all.piece);
    dt_strbuf_release(&path);
    return st;
}
