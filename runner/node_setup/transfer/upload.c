/* upload: sends files to a node: a zstd stream, the comparison of a file with the node's, and one file by
 * content hash. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/dirs.h"
#include "base/memory.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/contents.h"
#include "runner/transport/remote.h"

/* pack: sends bytes to a command on a node as one zstd stream (remote_helper/receive.c reads it). */

#define PACKED_BYTES ((size_t)262144)
#define LEVEL        1 /* as fast as a fast network, and packs a bundle to a third of its size */

struct dt_packer {
    dt_remote *to;
    double stall_seconds;
    ZSTD_CStream *stream;
    char packed[PACKED_BYTES];
};

dt_status dt_packer_new(dt_packer **out, dt_remote *to, double stall_seconds, dt_error *err)
{
    *out = dt_calloc(1, sizeof(**out));
    (*out)->to = to;
    (*out)->stall_seconds = stall_seconds;
    (*out)->stream = ZSTD_createCStream();
    if ((*out)->stream == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    (void)ZSTD_CCtx_setParameter((*out)->stream, ZSTD_c_compressionLevel, LEVEL);
    return DT_OK;
}

dt_status dt_packer_put(dt_packer *packer, const void *bytes, size_t length, bool last,
                        dt_error *err)
{
    ZSTD_inBuffer in = {bytes, length, 0};
    size_t left;

    do {
        ZSTD_outBuffer out = {packer->packed, PACKED_BYTES, 0};
        dt_status st;

        left = ZSTD_compressStream2(packer->stream, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return DT_FAIL(err, DT_ERR_NOMEM, "zstd: %s", ZSTD_getErrorName(left));
        st = dt_remote_write(packer->to, packer->packed, out.pos, packer->stall_seconds, err);
        if (st != DT_OK)
            return st;
    } while (last ? left > 0 : in.pos < in.size);
    return DT_OK;
}

void dt_packer_free(dt_packer *packer)
{
    if (packer != NULL)
        ZSTD_freeCStream(packer->stream);
    free(packer);
}

/* compare: compares a file of the launch machine with the file of the same path on a node.
 *
 * Equal name and size prove little: a corpus that was generated again often has the same size. The
 * two are one file in a shared folder if inode and change time (ctime) agree: users cannot set a
 * ctime. Some file systems make it up, in whole seconds, and are not trusted. All other files are
 * compared by their digests, which both machines cache (workdir/contents.h).
 */

#define SIZE_SECONDS 20.0
#define COMPARE_STALL_SECONDS \
    600.0 /* another launch can be reading the same file; this one waits */

/* The answer to "size", "BYTES INODE CHANGED"; bytes -1: there is no such file. */
typedef struct look {
    long long bytes, changed_ns;
    unsigned long long inode;
} look;

static dt_status look_there(look *out, const char *path, dt_talk *talk, dt_error *err)
{
    const char *const words[] = {"size", path, NULL};
    dt_strbuf answer;
    dt_status st;

    *out = (look){.bytes = -1};
    dt_strbuf_init(&answer);
    st = dt_talk_ask(talk, &answer, words, SIZE_SECONDS, err);
    if (st == DT_OK &&
        sscanf(answer.data, "%lld %llu %lld", &out->bytes, &out->inode, &out->changed_ns) < 1)
        st = DT_FAIL(err, DT_ERR_CORRUPT, "node '%s': cannot get the size of '%s'", talk->node,
                     path);
    dt_strbuf_release(&answer);
    return st;
}

static dt_status digest_there(char *hex, const char *path, dt_talk *talk, dt_error *err)
{
    const char *const words[] = {"digest", path, NULL};
    dt_status st = DT_OK;
    dt_strbuf answer;
    const char *last;

    dt_strbuf_init(&answer);
    DT_TRY(dt_talk_ask(talk, &answer, words, COMPARE_STALL_SECONDS, err));
    last = strstr(answer.data, "is ");
    if (last == NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "node '%s': cannot compare '%s'", talk->node, path);
    snprintf(hex, DT_DIGEST_SIZE, "%s", last + 3);
out:
    dt_strbuf_release(&answer);
    return st;
}

dt_status dt_nodes_compare(dt_same *out, const char *path, dt_talk *talk,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err)
{
    char here_hex[DT_DIGEST_SIZE], there_hex[DT_DIGEST_SIZE], text[160];
    const char *cache, *slash = strrchr(path, '/');
    dt_status st = DT_OK;
    struct stat here;
    look there;

    *out = DT_OTHER;
    if (stat(path, &here) != 0)
        DT_THROW(err, DT_ERR_IO, "'%s' no longer exists", path);
    DT_TRY(look_there(&there, path, talk, err));
    if (there.bytes < 0)
        *out = DT_MISSING;
    if (there.bytes != (long long)here.st_size)
        goto out;
    if (here.st_ctim.tv_nsec != 0 && there.inode == (unsigned long long)here.st_ino &&
        there.changed_ns == (long long)here.st_ctim.tv_sec * 1000000000 + here.st_ctim.tv_nsec) {
        *out = DT_SAME;
        goto out;
    }
    if (request->progress != NULL) {
        snprintf(text, sizeof(text), "comparing %.80s", slash != NULL ? slash + 1 : path);
        request->progress(request->context, text);
    }
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    DT_TRY(dt_content_digest(here_hex, path, cache, request->cancelled, NULL, NULL, err));
    DT_TRY(digest_there(there_hex, path, talk, err));
    if (strcmp(here_hex, there_hex) == 0)
        *out = DT_SAME;
out:
    return st;
}

/* upload_file: sends one file to a node unless it is there, by content hash; resumes an interrupted upload. */

#define PIECE_BYTES    ((size_t)262144)
#define START_SECONDS  600.0 /* another launch can be sending the same file; this one waits */
#define STALL_SECONDS  30.0
#define SETTLE_SECONDS 120.0

static dt_status send_from(dt_remote *remote, int fd, const char *path, int64_t from, int64_t bytes,
                           const dt_prepare_request *request, dt_error *err)
{
    char *piece = dt_malloc(PIECE_BYTES), text[160];
    int64_t done = from, told = -1;
    dt_status st = DT_OK;

    while (done < bytes) {
        ssize_t got = pread(fd, piece, PIECE_BYTES, (off_t)done);

        if (got <= 0)
            DT_THROW(err, DT_ERR_IO, "'%s' became shorter while it was sent", path);
        DT_TRY(dt_remote_write(remote, piece, (size_t)got, STALL_SECONDS, err));
        done += got;
        if (request->progress != NULL && done * 10 / bytes != told) {
            told = done * 10 / bytes;
            snprintf(text, sizeof(text), "copying %.80s: %lld of %lld kB", basename(path),
                     (long long)(done >> 10), (long long)((bytes + 1023) >> 10));
            request->progress(request->context, text);
        }
    }
out:
    free(piece);
    return st;
}

/* Returns the path of the file on the node. CACHE is derived from the agent's path,
 * CACHE/agents/HASH. */
static dt_status path_there(const char **out, const char *digest, const char *name,
                            const char *into, const char *agent, dt_arena *arena, dt_error *err)
{
    const char *end = strrchr(agent, '/');

    end = end != NULL ? memrchr(agent, '/', (size_t)(end - agent)) : NULL;
    if (into != NULL)
        *out = dt_arena_printf(arena, "%s/%s", into, name);
    else if (end != NULL)
        *out = dt_arena_printf(arena, "%.*s/data/%s/%s", (int)(end - agent), agent, digest, name);
    else
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s' is not the path of an agent in a cache", agent);
    return DT_OK;
}

/* Returns whether the node's cache has the file. */
static dt_status is_there(bool *out, const char *digest, const char *name, dt_talk *talk,
                          dt_error *err)
{
    const char *const words[] = {"have", digest, name, NULL};
    dt_strbuf answer;
    dt_status st;

    dt_strbuf_init(&answer);
    st = dt_talk_ask(talk, &answer, words, SIZE_SECONDS, err);
    *out = st == DT_OK && strcmp(answer.data, "have\n") == 0;
    dt_strbuf_release(&answer);
    return st;
}

dt_status dt_upload_file(const char **there, const char *path, const char *known, const char *into,
                         dt_talk *talk, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err)
{
    dt_error problem = DT_ERROR_INIT, cause = DT_ERROR_INIT;
    char hex[DT_DIGEST_SIZE], size[32];
    const char *const words[] = {talk->agent, "node", "put", hex, size, basename(path), into, NULL};
    bool have = false;
    dt_status st = DT_OK, sent = DT_OK;
    dt_remote remote = {0};
    const char *cache = NULL;
    struct stat info;
    dt_strbuf line;
    int fd = -1, code = 0;

    *there = NULL;
    dt_strbuf_init(&line);
    if (into == NULL)
        DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (known != NULL)
        snprintf(hex, sizeof(hex), "%s", known);
    else
        DT_TRY(dt_content_digest(hex, path, cache, request->cancelled, NULL, NULL, err));
    snprintf(size, sizeof(size), "%lld", (long long)info.st_size);
    DT_TRY(path_there(there, hex, basename(path), into, talk->agent, arena, err));
    if (into == NULL)
        DT_TRY(is_there(&have, hex, basename(path), talk, err));
    if (have)
        goto out;
    DT_TRY(dt_remote_open(&remote, request->node, words, request->cancelled, err));
    DT_TRY(dt_nodes_line(&line, &remote, START_SECONDS, err));
    if (strncmp(line.data, "from ", 5) == 0) {
        int64_t from = strtoll(line.data + 5, NULL, 10);

        if (from < 0 || from > info.st_size)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "node '%s': its partial copy of '%s' is longer than the file", request->node,
                     path);
        sent = send_from(&remote, fd, path, from, info.st_size, request, &cause);
        dt_remote_write_end(&remote);
        if (sent != DT_OK && sent != DT_ERR_PEER)
            DT_THROW(err, sent, "%s", cause.message);
        DT_TRY(dt_nodes_line(&line, &remote, SETTLE_SECONDS, err));
    }
    DT_TRY(dt_remote_finish(&remote, &code, &problem, SETTLE_SECONDS, err));
    if (code != 0 || sent != DT_OK || strcmp(line.data, "have") != 0)
        DT_THROW(err, sent == DT_ERR_PEER && code == 0 ? DT_ERR_PEER : DT_ERR_IO,
                 "node '%s': cannot copy '%s': %s", request->node, path,
                 code != 0 ? problem.message : cause.message);
out:
    dt_remote_close(&remote);
    dt_strbuf_release(&line);
    if (fd >= 0)
        close(fd);
    return st;
}
