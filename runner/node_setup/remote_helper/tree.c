/* tree: builds the folder of a command from contents in CACHE/files.
 *
 * Reads from stdin "BYTES\n" and a document of this size (../workdir/tree.h); prints a line "FIRST COUNT" for each
 * range of entries whose contents are not in the store, then "send"; reads these contents, in order, as one zstd
 * stream. Then it makes FOLDER equal to the tree.
 *
 * FOLDER.tree lists what FOLDER was built of, once it is complete. What an earlier build placed and the new tree has
 * too is left as the command left it, unless it is gone; what differs between the trees is replaced; what the new
 * tree lacks is removed if the command did not change it. Other files are the command's, and stay.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/workdir/contents.h"

#include "base/banned.h"

#define PIECE_BYTES    131072
#define DOCUMENT_BYTES ((int64_t)256 << 20)
#define SPARE_BYTES    ((int64_t)16 << 20)

typedef struct building {
    dt_tree tree, before; /* before: without entries if the folder was never complete */
    const char *folder, *record;
    dt_strbuf cache;
    bool *wanted; /* [tree.count]: contents that are not in the store */
    dt_unpacker *from;
    dt_arena arena;
} building;

/* --- from stdin */

static dt_status read_exactly(char *bytes, int64_t length, dt_error *err)
{
    while (length > 0) {
        ssize_t got = read(STDIN_FILENO, bytes, (size_t)length);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return DT_FAIL(err, DT_ERR_PEER, "the transfer of the folder was interrupted");
        bytes += got;
        length -= got;
    }
    return DT_OK;
}

static dt_status read_tree(building *all, dt_error *err)
{
    int64_t length = 0;
    json_t *json = NULL;
    dt_status st = DT_OK;
    char c, *text = NULL;

    for (;;) {
        DT_TRY(read_exactly(&c, 1, err));
        if (c == '\n')
            break;
        if (c < '0' || c > '9' || length > DOCUMENT_BYTES)
            DT_THROW(err, DT_ERR_CORRUPT, "the list of files is malformed");
        length = length * 10 + (c - '0');
    }
    if (length > DOCUMENT_BYTES)
        DT_THROW(err, DT_ERR_CORRUPT, "the list of files is too large");
    text = dt_malloc((size_t)length + 1);
    DT_TRY(read_exactly(text, length, err));
    DT_TRY(dt_json_parse(&json, text, (size_t)length, "the list of files", err));
    DT_TRY(dt_tree_from_json(&all->tree, json, &all->arena, err));
out:
    json_decref(json);
    free(text);
    return st;
}

static dt_status take_content(building *all, const dt_tree_entry *entry, char *piece, dt_error *err)
{
    char hex[DT_DIGEST_SIZE];
    dt_content content = {0};
    int64_t left = entry->bytes;
    dt_status st = DT_OK;

    DT_TRY(dt_content_begin(&content, all->cache.data, err));
    while (left > 0) {
        size_t now = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        DT_TRY(dt_unpacker_take(all->from, piece, now, err));
        DT_TRY(dt_content_add(&content, piece, now, err));
        left -= (int64_t)now;
    }
    dt_digest_get(hex, content.digest);
    if (strcmp(hex, entry->digest) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' was damaged in transfer", entry->path);
    DT_TRY(dt_content_finish(&content, hex, all->cache.data, err));
out:
    dt_content_drop(&content);
    return st;
}

/* --- contents */

/* Returns true if the file is in the folder as an earlier build placed it: its content is not needed. */
static bool is_placed(const building *all, const dt_tree_entry *entry)
{
    const dt_tree_entry *before = dt_tree_find(&all->before, entry->path);
    struct stat info;
    dt_strbuf path;
    bool placed = false;

    if (before == NULL || !dt_tree_entry_same(before, entry))
        return false;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", all->folder, entry->path);
    placed =
        lstat(path.data, &info) == 0 && (entry->kind != DT_TREE_FOLDER || S_ISDIR(info.st_mode));
    dt_strbuf_release(&path);
    return placed;
}

static void find_wanted(building *all, int64_t *bytes)
{
    *bytes = SPARE_BYTES;
    for (int64_t i = 0; i < all->tree.count; i++) {
        const dt_tree_entry *entry = &all->tree.entries[i];

        if (entry->kind != DT_TREE_FILE || is_placed(all, entry))
            continue;
        *bytes += entry->bytes;
        all->wanted[i] = !dt_contents_have(all->cache.data, entry->digest, entry->bytes, true);
        *bytes += all->wanted[i] ? entry->bytes : 0;
    }
}

static void print_wanted(const building *all)
{
    for (int64_t i = 0, first; i < all->tree.count; i++) {
        if (!all->wanted[i])
            continue;
        first = i;
        while (i + 1 < all->tree.count && all->wanted[i + 1])
            i++;
        printf("%lld %lld\n", (long long)first, (long long)(i - first + 1));
    }
    puts("send");
    fflush(stdout);
}

/* Reads all contents, and the end of the stream, so that the sender never writes to a closed pipe. */
static dt_status take_contents(building *all, dt_error *err)
{
    char *piece = dt_malloc(PIECE_BYTES);
    ssize_t got;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < all->tree.count; i++)
        if (all->wanted[i])
            DT_TRY(take_content(all, &all->tree.entries[i], piece, err));
    do
        got = read(STDIN_FILENO, piece, PIECE_BYTES);
    while (got > 0 || (got < 0 && errno == EINTR));
out:
    free(piece);
    return st;
}

/* --- the folder */

static dt_status place_all(building *all, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_make_dirs(all->folder, 0700, err));
    DT_TRY(dt_sent_tree_remove(all->folder, &all->before, &all->tree, NULL, NULL, err));
    for (int64_t i = 0; i < all->tree.count; i++)
        if (!is_placed(all, &all->tree.entries[i]))
            DT_TRY(dt_sent_tree_place(all->folder, &all->tree.entries[i], all->cache.data, err));
out:
    return st;
}

static dt_status build(building *all, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t bytes;

    DT_TRY(read_tree(all, err));
    st = dt_tree_read(&all->before, all->record, &all->arena, err);
    if (st != DT_OK) { /* never complete, or damaged */
        all->before = (dt_tree){0};
        dt_error_clear(err);
    }
    all->wanted = dt_calloc((size_t)all->tree.count + 1, sizeof(*all->wanted));
    DT_TRY(dt_unpacker_new(&all->from, "the folder", err));
    dt_remote_helper_prune(all->cache.data);
    find_wanted(all, &bytes);
    DT_TRY(dt_remote_helper_check_space(all->cache.data, bytes, err));
    print_wanted(all);
    DT_TRY(take_contents(all, err));
    if (unlink(all->record) != 0 && errno != ENOENT)
        DT_THROW(err, DT_ERR_IO, "cannot remove '%s': %s", all->record, strerror(errno));
    DT_TRY(place_all(all, err));
    DT_TRY(dt_tree_write(&all->tree, all->record, err));
out:
    return st;
}

dt_status dt_remote_helper_tree(const char *folder, dt_error *err)
{
    building all = {.folder = folder};
    dt_status st = DT_OK;

    dt_arena_init(&all.arena, 0);
    dt_strbuf_init(&all.cache);
    all.record = dt_arena_printf(&all.arena, "%s" DT_SENT_TREE_RECORD, folder);
    DT_TRY(dt_remote_helper_cache(&all.cache, err));
    DT_TRY(build(&all, err));
out:
    dt_unpacker_free(all.from);
    free(all.wanted);
    dt_strbuf_release(&all.cache);
    dt_arena_release(&all.arena);
    return st;
}
