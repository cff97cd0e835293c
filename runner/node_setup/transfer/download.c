/* download: copies one file of a checkpoint from the node that has it to the launch machine;
 * resumes an interrupted copy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/transfer/gather_int.h"
#include "runner/transport/remote.h"

#define STALL_SECONDS 30.0
#define UNFINISHED    ".fetching"

bool dt_gather_is_far(const dt_node_layout *layout)
{
    return !layout->here && !layout->checkpoints_shared;
}

static void path_there(dt_strbuf *out, const dt_gathering *all, const dt_node_layout *layout,
                       const char *file)
{
    if (dt_gather_is_far(layout))
        dt_strbuf_add_str(out, layout->checkpoints);
    else
        dt_nodes_parts(out, layout);
    dt_strbuf_add_fmt(out, "/%s/%s", all->request->name, file);
}

/* Returns the size of NAME/`file` on the node; -1: it is missing. */
static dt_status size_there(int64_t *bytes, const dt_gathering *all, const dt_node_layout *layout,
                            const char *file, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    path_there(&path, all, layout, file);
    st = dt_nodes_size(bytes, layout->node, layout->agent, path.data, all->request->cancelled, err);
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_gather_read_there(dt_strbuf *out, const dt_gathering *all,
                               const dt_node_layout *layout, const char *file, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    path_there(&path, all, layout, file);
    {
        const char *const words[] = {layout->agent, "node", "get", path.data, "0", NULL};

        st = dt_nodes_ask(out, layout->node, words, NULL, 0, DT_GATHER_ASK_SECONDS,
                          all->request->cancelled, err);
    }
    dt_strbuf_release(&path);
    return st;
}

dt_status dt_gather_keepalive(dt_remote *out, const dt_gathering *all, const dt_node_layout *layout,
                              dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path, heard;
    dt_status st = DT_OK;
    int code = 0;

    dt_strbuf_init(&path);
    dt_strbuf_init(&heard);
    path_there(&path, all, layout, "");
    {
        const char *const words[] = {layout->agent, "node", "hold", path.data, NULL};

        DT_TRY(dt_remote_open(out, layout->node, words, all->request->cancelled, err));
    }
    DT_TRY(dt_nodes_line(&heard, out, DT_GATHER_ASK_SECONDS, err));
    if (strcmp(heard.data, "held") == 0)
        goto out;
    DT_TRY(dt_remote_finish(out, &code, &problem, DT_GATHER_ASK_SECONDS, err));
    DT_THROW(err, DT_ERR_NOT_FOUND, "node '%s' no longer has checkpoint '%s'", layout->node,
             all->request->name);
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&heard);
    return st;
}

static dt_status check_file(bool *good, const dt_gathering *all, const char *path, int64_t bytes,
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
    while ((got = read(fd, all->piece, DT_GATHER_PIECE_BYTES)) > 0)
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

/* Appends all that the node sends to `fd`. */
static dt_status take(dt_remote *remote, int fd, const dt_gathering *all, dt_error *err)
{
    dt_status st = DT_OK;
    size_t got;

    while (st == DT_OK) {
        st = dt_remote_read(remote, all->piece, DT_GATHER_PIECE_BYTES, &got, STALL_SECONDS, err);
        if (st != DT_OK || got == 0)
            break;
        st = dt_file_write_all(fd, all->piece, got, err);
    }
    if (st == DT_OK)
        st = dt_remote_finish(remote, NULL, NULL, DT_GATHER_ASK_SECONDS, err);
    if (st == DT_OK && fsync(fd) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write: %s", strerror(errno));
    return st;
}

static dt_status fetch(const dt_gathering *all, const dt_node_layout *layout, const char *name,
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
    path_there(&there, all, layout, name);
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
        const char *const words[] = {layout->agent, "node", "get", there.data, offset, NULL};

        DT_TRY(dt_remote_open(&remote, layout->node, words, all->request->cancelled, err));
    }
    DT_TRY(take(&remote, fd, all, err));
    DT_TRY(check_file(&good, all, unfinished.data, bytes, digest, err));
    if (!good) {
        unlink(unfinished.data);
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' of node '%s' does not match its digest", there.data,
                 layout->node);
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

/* Moves a file of a node that writes below the launch machine's own folder (node_plan.c), instead
 * of copying it. */
static dt_status move(bool *moved, const dt_gathering *all, const dt_node_layout *layout,
                      const char *name, dt_error *err)
{
    dt_strbuf from, to;
    dt_status st = DT_OK;

    dt_strbuf_init(&from);
    dt_strbuf_init(&to);
    dt_nodes_parts(&from, layout);
    dt_strbuf_add_fmt(&from, "/%s/%s", all->request->name, name);
    dt_strbuf_add_fmt(&to, "%s/%s", all->folder, name);
    *moved = rename(from.data, to.data) == 0;
    if (!*moved && errno != ENOENT)
        st = DT_FAIL(err, DT_ERR_IO, "cannot move '%s' to '%s': %s", from.data, to.data,
                     strerror(errno));
    dt_strbuf_release(&from);
    dt_strbuf_release(&to);
    return st;
}

/* Checks a file name from a node, which is not trusted. */
static bool is_good_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL && strlen(name) < 200;
}

dt_status dt_gather_download(const dt_gathering *all, const json_t *item, dt_error *err)
{
    const dt_gather_request *request = all->request;
    const char *name, *digest;
    dt_status st = DT_OK;
    int64_t bytes, has;
    dt_strbuf here;
    bool good;

    dt_strbuf_init(&here);
    DT_TRY(dt_json_get_string(&name, item, "name", "index", err));
    DT_TRY(dt_json_get_string(&digest, item, "xxh3_128", "index", err));
    DT_TRY(dt_json_get_int(&bytes, item, "bytes", "index", err));
    if (!is_good_name(name) || bytes < 0)
        DT_THROW(err, DT_ERR_CORRUPT, "the index of checkpoint '%s' is malformed at file '%s'",
                 request->name, name);
    dt_strbuf_add_fmt(&here, "%s/%s", all->folder, name);
    DT_TRY(check_file(&good, all, here.data, bytes, digest, err));
    for (int64_t i = 0; !good && i < request->count; i++) {
        const dt_node_layout *layout = &request->layouts[i];

        if (!dt_gather_is_far(layout)) {
            DT_TRY(move(&good, all, layout, name, err));
            if (good)
                DT_TRY(check_file(&good, all, here.data, bytes, digest, err));
            continue;
        }
        DT_TRY(size_there(&has, all, layout, name, err));
        good = has >= 0;
        if (good)
            DT_TRY(fetch(all, layout, name, bytes, digest, err));
    }
    if (!good)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no node has '%s' of checkpoint '%s'", name, request->name);
out:
    dt_strbuf_release(&here);
    return st;
}
