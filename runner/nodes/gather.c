/* gather: a checkpoint's files from the nodes that wrote them, to the launch machine.
 *
 * Each node holds the whole index.json and the files of its own ranks; its marker `part` is the
 * index's digest, and the index has the digest of every file. They are brought into
 * CHECKPOINTS/NAME, where nothing counts until `complete` is there: it comes last. A file that is
 * there and matches is not fetched again; one that broke off goes on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/name.h"
#include "runner/nodes/nodes_int.h"
#include "runner/transport/remote.h"

#include "base/banned.h"

#define PIECE_BYTES     ((size_t)262144)
#define ASK_SECONDS     20.0
#define STALL_SECONDS   30.0
#define INDEX_MAX_BYTES ((size_t)64 << 20)
#define UNFINISHED      ".fetching"

typedef struct gathering {
    const dt_node_place *places;
    int64_t count;
    const char *name, *folder; /* CHECKPOINTS/NAME here */
    const atomic_bool *cancelled;
    char *piece;
} gathering;

static bool is_far(const dt_node_place *place)
{
    return !place->here && !place->checkpoints_shared;
}

/* The names are a node's word. */
static bool is_good_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 200;
}

static dt_status check_file(bool *good, const gathering *all, const char *path, int64_t bytes,
                            const char *wanted, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char hex[DT_DIGEST_SIZE];
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    struct stat info;
    ssize_t got;

    *good = false;
    if (fd < 0 && errno == ENOENT)
        return DT_OK;
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_size != bytes)
        goto out;
    DT_TRY(dt_digest_new(&digest, err));
    while ((got = read(fd, all->piece, PIECE_BYTES)) > 0)
        dt_digest_add(digest, all->piece, (size_t)got);
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    dt_digest_get(hex, digest);
    *good = strcmp(hex, wanted) == 0;
out:
    dt_digest_free(digest);
    if (fd >= 0)
        close(fd);
    return st;
}

/* All that the node sends, behind what `fd` has. */
static dt_status take(dt_remote *remote, int fd, const gathering *all, dt_error *err)
{
    dt_status st;
    size_t got;

    st = dt_file_write_all(fd, remote->early.data, remote->early.length, err);
    while (st == DT_OK) {
        st = dt_remote_read(remote, all->piece, PIECE_BYTES, &got, STALL_SECONDS, err);
        if (st != DT_OK || got == 0)
            break;
        st = dt_file_write_all(fd, all->piece, got, err);
    }
    if (st == DT_OK)
        st = dt_remote_finish(remote, NULL, NULL, ASK_SECONDS, err);
    if (st == DT_OK && fsync(fd) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write: %s", strerror(errno));
    return st;
}

static dt_status fetch(const gathering *all, const dt_node_place *place, const char *name,
                       int64_t bytes, const char *digest, dt_error *err)
{
    dt_strbuf there, here, unfinished;
    dt_remote remote = {0};
    dt_status st = DT_OK;
    char offset[32];
    bool good;
    off_t have;
    int fd = -1;

    dt_strbuf_init(&there);
    dt_strbuf_init(&here);
    dt_strbuf_init(&unfinished);
    dt_strbuf_add_fmt(&there, "%s/%s/%s", place->checkpoints, all->name, name);
    dt_strbuf_add_fmt(&here, "%s/%s", all->folder, name);
    dt_strbuf_add_fmt(&unfinished, "%s" UNFINISHED, here.data);
    fd = open(unfinished.data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    have = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    if (have > bytes) {
        have = lseek(fd, 0, SEEK_SET);
        if (ftruncate(fd, 0) != 0)
            have = -1;
    }
    if (have < 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", unfinished.data, strerror(errno));
    snprintf(offset, sizeof(offset), "%lld", (long long)have);
    {
        const char *const words[] = {place->agent, "node", "get", there.data, offset, NULL};

        DT_TRY(dt_remote_open(&remote, place->node, words, all->cancelled, err));
    }
    DT_TRY(take(&remote, fd, all, err));
    DT_TRY(check_file(&good, all, unfinished.data, bytes, digest, err));
    if (!good) {
        unlink(unfinished.data);
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' of node '%s' does not match its digest", there.data,
                 place->node);
    }
    if (rename(unfinished.data, here.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", unfinished.data, strerror(errno));
out:
    dt_remote_close(&remote);
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&there);
    dt_strbuf_release(&here);
    dt_strbuf_release(&unfinished);
    return st;
}

/* A small file of the checkpoint, from a node. */
static dt_status read_there(dt_strbuf *out, const gathering *all, const dt_node_place *place,
                            const char *name, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s/%s", place->checkpoints, all->name, name);
    {
        const char *const words[] = {place->agent, "node", "get", path.data, "0", NULL};

        st = dt_nodes_ask(out, place->node, words, NULL, 0, ASK_SECONDS, all->cancelled, err);
    }
    dt_strbuf_release(&path);
    return st;
}

static dt_status fetch_index(json_t **index, char *digest, const gathering *all,
                             const dt_node_place *place, dt_error *err)
{
    dt_strbuf marker, bytes, path;
    dt_status st = DT_OK;

    dt_strbuf_init(&marker);
    dt_strbuf_init(&bytes);
    dt_strbuf_init(&path);
    DT_TRY(read_there(&marker, all, place, DT_CHECKPOINT_PART, err));
    DT_TRY(read_there(&bytes, all, place, DT_CHECKPOINT_INDEX, err));
    dt_digest_of(digest, bytes.data, bytes.length);
    if (marker.length != DT_DIGEST_SIZE || strncmp(marker.data, digest, DT_DIGEST_SIZE - 1) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "checkpoint '%s' on node '%s' is not whole", all->name,
                 place->node);
    DT_TRY(dt_json_parse(index, bytes.data, bytes.length, DT_CHECKPOINT_INDEX, err));
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_INDEX, all->folder);
    DT_TRY(dt_file_write_atomic(path.data, bytes.data, bytes.length, 0600, err));
out:
    dt_strbuf_release(&marker);
    dt_strbuf_release(&bytes);
    dt_strbuf_release(&path);
    return st;
}

static dt_status has_file(bool *has, const gathering *all, const dt_node_place *place,
                          const char *name, dt_error *err)
{
    dt_strbuf path, answer;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&answer);
    dt_strbuf_add_fmt(&path, "%s/%s/%s", place->checkpoints, all->name, name);
    {
        const char *const words[] = {place->agent, "node", "size", path.data, NULL};

        st = dt_nodes_ask(&answer, place->node, words, NULL, 0, ASK_SECONDS, all->cancelled, err);
    }
    *has = st == DT_OK && answer.data[0] != '-';
    dt_strbuf_release(&path);
    dt_strbuf_release(&answer);
    return st;
}

/* From whichever node has it, unless it is here. */
static dt_status bring(const gathering *all, const json_t *item, dt_error *err)
{
    const char *name, *digest;
    dt_status st = DT_OK;
    dt_strbuf here;
    int64_t bytes;
    bool good;

    dt_strbuf_init(&here);
    DT_TRY(dt_json_get_string(&name, item, "name", "index", err));
    DT_TRY(dt_json_get_string(&digest, item, "xxh3_128", "index", err));
    DT_TRY(dt_json_get_int(&bytes, item, "bytes", "index", err));
    if (!is_good_name(name) || bytes < 0)
        DT_THROW(err, DT_ERR_CORRUPT, "the index of checkpoint '%s' names a file '%s'", all->name,
                 name);
    dt_strbuf_add_fmt(&here, "%s/%s", all->folder, name);
    DT_TRY(check_file(&good, all, here.data, bytes, digest, err));
    for (int64_t i = 0; !good && i < all->count; i++) {
        if (!is_far(&all->places[i]))
            continue;
        DT_TRY(has_file(&good, all, &all->places[i], name, err));
        if (good)
            DT_TRY(fetch(all, &all->places[i], name, bytes, digest, err));
    }
    if (!good)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no node has '%s' of checkpoint '%s'", name, all->name);
out:
    dt_strbuf_release(&here);
    return st;
}

static dt_status gather(const gathering *all, const dt_node_place *first, dt_error *err)
{
    char digest[DT_DIGEST_SIZE + 1];
    json_t *index = NULL, *files, *item;
    dt_status st = DT_OK;
    dt_strbuf path;
    size_t i;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_MARKER, all->folder);
    if (dt_file_exists(path.data))
        goto out;
    DT_TRY(dt_file_make_dirs(all->folder, 0700, err));
    DT_TRY(fetch_index(&index, digest, all, first, err));
    DT_TRY(dt_json_get_array(&files, index, "files", "index", err));
    json_array_foreach(files, i, item) DT_TRY(bring(all, item, err));
    DT_TRY(dt_file_sync_dir(all->folder, err));
    digest[DT_DIGEST_SIZE - 1] = '\n';
    DT_TRY(dt_file_write_atomic(path.data, digest, DT_DIGEST_SIZE, 0600, err));
out:
    json_decref(index);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_nodes_gather(const dt_node_place *places, int64_t count, const char *name,
                          const char *checkpoints_here, const atomic_bool *cancelled, dt_error *err)
{
    gathering all = {.places = places, .count = count, .name = name, .cancelled = cancelled};
    const dt_node_place *first = NULL;
    dt_strbuf folder;
    dt_status st = DT_OK;

    dt_strbuf_init(&folder);
    for (int64_t i = count - 1; i >= 0; i--)
        if (is_far(&places[i]))
            first = &places[i];
    if (first == NULL)
        goto out; /* they are all here */
    if (!is_good_name(name))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is not the name of a checkpoint", name);
    dt_strbuf_add_fmt(&folder, "%s/%s", checkpoints_here, name);
    all.folder = folder.data;
    all.piece = malloc(PIECE_BYTES);
    if (all.piece == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(gather(&all, first, err));
out:
    free(all.piece);
    dt_strbuf_release(&folder);
    return st;
}
