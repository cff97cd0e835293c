/* upload_file: sends one file to a node unless it is there, by content hash; resumes an interrupted upload. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/dirs.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/transfer/content.h"
#include "runner/transport/remote.h"

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

dt_status dt_upload_file(const char **there, const char *path, const char *known, const char *into,
                         const char *agent, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err)
{
    dt_error problem = DT_ERROR_INIT, cause = DT_ERROR_INIT;
    char hex[DT_DIGEST_SIZE], size[32];
    const char *const words[] = {agent, "node", "put", hex, size, basename(path), into, NULL};
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
    DT_TRY(path_there(there, hex, basename(path), into, agent, arena, err));
out:
    dt_remote_close(&remote);
    dt_strbuf_release(&line);
    if (fd >= 0)
        close(fd);
    return st;
}
