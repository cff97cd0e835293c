/* upload_bundle: sends a bundle to a node, as one zstd stream (remote_helper/receive.c reads it). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "runner/node_setup/bundle.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

#define PIECE_BYTES    ((size_t)262144)
#define ASK_SECONDS    20.0
#define STALL_SECONDS  30.0  /* time limit for the node to accept more bytes */
#define SETTLE_SECONDS 120.0 /* time limit for the node to write and check, after the last byte */
#define LINKS_SECONDS  600.0 /* both limits if the node first reads files that it links */

typedef struct sink {
    dt_remote remote;
    dt_packer *packer;
    char *piece;       /* PIECE_BYTES */
    int64_t done, all; /* bytes of files */
    void (*progress)(void *context, const char *text);
    void *context;
} sink;

/* Appends the header, a line of JSON. alike: {name: bundle} of files that the node links from
 * another bundle. */
static void write_header(dt_strbuf *out, const dt_bundle *bundle, const json_t *alike)
{
    json_t *files = json_array(), *header;

    for (int64_t i = 0; i < bundle->file_count; i++) {
        const dt_bundle_file *file = &bundle->files[i];
        json_t *item = json_pack(
            "{s:s, s:I, s:i, s:s}", "name", file->name, "bytes", (json_int_t)file->bytes, "mode",
            strncmp(file->name, "bin/", 4) == 0 ? 0700 : 0600, "digest", file->digest);

        if (json_object_get(alike, file->name) != NULL)
            json_object_set(item, "bundle", json_object_get(alike, file->name));
        json_array_append_new(files, item);
    }
    header = json_pack("{s:o}", "files", files);
    dt_json_write(out, header);
    dt_strbuf_add_char(out, '\n');
    json_decref(header);
}

/* Finds files of this bundle in other bundles on the node; none after a failure. */
static json_t *ask_alike(const dt_bundle *bundle, const char *node, const char *agent,
                         const atomic_bool *cancelled)
{
    const char *const words[] = {agent, "node", "alike", NULL};
    json_t *alike = json_object();
    dt_strbuf header, answer;

    dt_strbuf_init(&header);
    dt_strbuf_init(&answer);
    write_header(&header, bundle, NULL);
    if (dt_nodes_ask(&answer, node, words, header.data, header.length, ASK_SECONDS, cancelled,
                     NULL) == DT_OK)
        for (char *line = answer.data, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            char *space = memchr(line, ' ', (size_t)(end - line));

            *end = '\0';
            if (space != NULL) {
                *space = '\0';
                json_object_set_new(alike, line, json_string(space + 1));
            }
        }
    dt_strbuf_release(&header);
    dt_strbuf_release(&answer);
    return alike;
}

/* Counts bytes, and reports each tenth of the total. */
static void add_done(sink *to, int64_t bytes)
{
    int64_t told = to->done * 10 / to->all;
    char text[96];

    to->done += bytes;
    if (to->progress == NULL || (to->done > bytes && to->done * 10 / to->all == told))
        return;
    snprintf(text, sizeof(text), "copying the engine: %lld of %lld MB", (long long)(to->done >> 20),
             (long long)(to->all >> 20));
    to->progress(to->context, text);
}

static dt_status put_file(sink *to, const dt_bundle_file *file, dt_error *err)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    int64_t left = file->bytes;
    dt_status st = DT_OK;

    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", file->path, strerror(errno));
    while (left > 0) {
        ssize_t got = read(fd, to->piece, left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            DT_THROW(err, DT_ERR_IO, "'%s' became shorter while it was sent", file->path);
        DT_TRY(dt_packer_put(to->packer, to->piece, (size_t)got, false, err));
        left -= got;
        add_done(to, got);
    }
out:
    close(fd);
    return st;
}

static dt_status put_all(sink *to, const dt_bundle *bundle, const json_t *alike, dt_error *err)
{
    dt_strbuf header;
    dt_status st;

    dt_strbuf_init(&header);
    write_header(&header, bundle, alike);
    DT_TRY(dt_packer_put(to->packer, header.data, header.length, false, err));
    for (int64_t i = 0; i < bundle->file_count; i++)
        if (json_object_get(alike, bundle->files[i].name) == NULL)
            DT_TRY(put_file(to, &bundle->files[i], err));
    DT_TRY(dt_packer_put(to->packer, NULL, 0, true, err));
out:
    dt_strbuf_release(&header);
    return st;
}

static dt_status send_all_but(const json_t *alike, const dt_bundle *bundle, const char *node,
                              const char *agent, void (*progress)(void *context, const char *text),
                              void *context, const atomic_bool *cancelled, dt_error *err)
{
    const char *const words[] = {agent, "node", "receive", bundle->hash, NULL};
    dt_error cause = DT_ERROR_INIT, problem = DT_ERROR_INIT;
    dt_status st = DT_OK, sent;
    bool links = json_object_size(alike) > 0;
    sink to = {.progress = progress, .context = context};
    int code = 0;

    for (int64_t i = 0; i < bundle->file_count; i++)
        if (json_object_get(alike, bundle->files[i].name) == NULL)
            to.all += bundle->files[i].bytes;
    to.piece = dt_malloc(PIECE_BYTES);
    DT_TRY(dt_packer_new(&to.packer, &to.remote, links ? LINKS_SECONDS : STALL_SECONDS, err));
    DT_TRY(dt_remote_open(&to.remote, node, words, cancelled, err));
    sent = put_all(&to, bundle, alike, &cause);
    if (sent != DT_OK && sent != DT_ERR_PEER)
        DT_THROW(err, sent, "%s", cause.message);
    /* If the node stopped reading, its exit code and stderr have the reason. */
    DT_TRY(
        dt_remote_finish(&to.remote, &code, &problem, links ? LINKS_SECONDS : SETTLE_SECONDS, err));
    if (code != 0 || sent != DT_OK)
        DT_THROW(err, DT_ERR_IO, "node '%s': %s", node,
                 code != 0 ? problem.message : cause.message);
out:
    dt_remote_close(&to.remote);
    dt_packer_free(to.packer);
    free(to.piece);
    return st;
}

dt_status dt_upload_bundle(const dt_bundle *bundle, const char *node, const char *agent,
                           void (*progress)(void *context, const char *text), void *context,
                           const atomic_bool *cancelled, dt_error *err)
{
    json_t *alike = ask_alike(bundle, node, agent, cancelled);
    dt_error problem = DT_ERROR_INIT;
    dt_status st;

    st = send_all_but(alike, bundle, node, agent, progress, context, cancelled, &problem);
    /* A bundle that files were to be linked from was damaged, removed, or is too slow to read: send
     * all files. */
    if ((st == DT_ERR_IO || st == DT_ERR_TIMEOUT) && json_object_size(alike) > 0) {
        json_object_clear(alike);
        dt_error_clear(&problem);
        st = send_all_but(alike, bundle, node, agent, progress, context, cancelled, &problem);
    }
    json_decref(alike);
    return st == DT_OK ? DT_OK : DT_FAIL(err, st, "%s", problem.message);
}
