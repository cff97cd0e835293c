#include "runner/node_setup/workdir/workdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/contents.h"
#include "runner/node_setup/workdir/tree.h"

#define PIECE_BYTES    ((size_t)262144)
#define ANSWER_SECONDS 120.0
#define STALL_SECONDS  30.0
#define UNFINISHED     ".collecting"
#define PROBLEMS_MAX   20
#define NAMES_MAX      5
#define SPARE_BYTES    ((int64_t)16 << 20) /* the history and the logs must fit too */

typedef struct collection {
    const dt_collect_request *request;
    dt_collect_result *result;
    int64_t problems;
    int64_t expected, received; /* files; expected: 0 until the node has said it */
    int64_t done_bytes;         /* received */
    int64_t all_bytes;          /* expected */
    json_t
        *waiting; /* object: paths of files that were not received, as far as the node named them */
    dt_remote remote;
    dt_strbuf line, path;
    char *piece;
} collection;

static void add_problem(collection *all, const char *path, const char *why)
{
    if (all->problems++ < PROBLEMS_MAX)
        dt_strbuf_add_fmt(&all->result->problems, "%s: '%s' %s\n", all->request->node, path, why);
}

/* Reads the next line; "" at the end of the output. */
static dt_status next_line(collection *all, dt_error *err)
{
    return dt_nodes_line(&all->line, &all->remote, ANSWER_SECONDS, err);
}

/* Sets all->path to INTO/path, and makes its folder. A link in between, which an earlier file may have become, is
 * replaced. */
static dt_status make_path(collection *all, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    dt_strbuf_reset(&all->path);
    dt_strbuf_add_str(&all->path, all->request->into);
    DT_TRY(dt_file_make_dirs(all->path.data, 0700, err));
    for (const char *at = path, *slash; (slash = strchr(at, '/')) != NULL; at = slash + 1) {
        dt_strbuf_add_fmt(&all->path, "/%.*s", (int)(slash - at), at);
        if (lstat(all->path.data, &info) == 0 && !S_ISDIR(info.st_mode))
            unlink(all->path.data);
        if (mkdir(all->path.data, 0700) != 0 && errno != EEXIST)
            DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", all->path.data, strerror(errno));
    }
    dt_strbuf_reset(&all->path);
    dt_strbuf_add_fmt(&all->path, "%s/%s", all->request->into, path);
out:
    return st;
}

/* Reports the progress, about each tenth. */
static void tell(collection *all, int64_t got)
{
    int64_t before = all->done_bytes;
    char text[96];

    all->done_bytes += got;
    if (all->request->progress == NULL || all->all_bytes <= 0 ||
        before * 10 / all->all_bytes == all->done_bytes * 10 / all->all_bytes)
        return;
    snprintf(text, sizeof(text), "%.1f of %.1f MB", (double)all->done_bytes / 1e6,
             (double)all->all_bytes / 1e6);
    all->request->progress(all->request->context, text);
}

static dt_status take_bytes(collection *all, int fd, int64_t left, dt_error *err)
{
    dt_status st = DT_OK;
    size_t got;

    while (left > 0) {
        DT_TRY(dt_remote_read(&all->remote, all->piece,
                              left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES, &got,
                              STALL_SECONDS, err));
        if (got == 0)
            DT_THROW(err, DT_ERR_PEER, "node '%s': the connection was lost", all->request->node);
        DT_TRY(dt_sparse_write(fd, all->piece, got, err));
        all->result->bytes += (int64_t)got;
        left -= (int64_t)got;
        tell(all, (int64_t)got);
    }
out:
    return st;
}

static bool same_bytes(int a, int b)
{
    char *one = dt_malloc(2 * PIECE_BYTES), *other = one + PIECE_BYTES;
    ssize_t got, more;
    bool same;

    do {
        got = read(a, one, PIECE_BYTES);
        more = read(b, other, PIECE_BYTES); /* regular files: short only at the end */
        same = got == more && got >= 0 && memcmp(one, other, (size_t)got) == 0;
    } while (same && got > 0);
    free(one);
    return same;
}

static bool is_equal(const char *a, const char *b)
{
    int one = open(a, O_RDONLY | O_CLOEXEC), other = open(b, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat x, y;
    bool equal = one >= 0 && other >= 0 && fstat(one, &x) == 0 && fstat(other, &y) == 0 &&
                 S_ISREG(y.st_mode) && x.st_size == y.st_size && same_bytes(one, other);

    if (one >= 0)
        close(one);
    if (other >= 0)
        close(other);
    return equal;
}

/* Gives the complete file its name, unless an earlier node had the same. */
static dt_status name_file(collection *all, const char *unfinished, const char *path, int64_t bytes,
                           dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf first;

    dt_strbuf_init(&first);
    dt_strbuf_add_fmt(&first, "%s/%s", all->request->first != NULL ? all->request->first : "",
                      path);
    if (all->request->first != NULL && is_equal(unfinished, first.data)) {
        unlink(unfinished);
        all->result->bytes -= bytes;
        goto out;
    }
    if (lstat(all->path.data, &info) == 0 && S_ISDIR(info.st_mode))
        DT_TRY(dt_file_remove_tree(all->path.data, err)); /* an earlier attempt's */
    if (rename(unfinished, all->path.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", unfinished, strerror(errno));
    all->result->files++;
out:
    dt_strbuf_release(&first);
    return st;
}

static dt_status take_file(collection *all, const char *path, const json_t *json, dt_error *err)
{
    int64_t time_ns = (int64_t)json_integer_value(json_object_get(json, "time_ns"));
    mode_t mode = (mode_t)json_integer_value(json_object_get(json, "mode")) & 0777;
    const struct timespec time = {.tv_sec = (time_t)(time_ns / 1000000000),
                                  .tv_nsec = (long)(time_ns % 1000000000)};
    const struct timespec times[] = {time, time};
    int64_t before = all->result->bytes;
    dt_status st = DT_OK;
    dt_strbuf unfinished;
    long long length;
    int fd = -1;

    dt_strbuf_init(&unfinished);
    DT_TRY(make_path(all, path, err));
    dt_strbuf_add_fmt(&unfinished, "%s" UNFINISHED, all->path.data);
    unlink(unfinished.data);
    fd = open(unfinished.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", unfinished.data, strerror(errno));
    for (;;) {
        DT_TRY(next_line(all, err));
        if (strcmp(all->line.length > 0 ? all->line.data : "", "end") == 0)
            break;
        if (all->line.length > 0 && sscanf(all->line.data, "hole %lld", &length) == 1 &&
            length > 0) {
            if (lseek(fd, (off_t)length, SEEK_CUR) < 0)
                DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
            continue;
        }
        if (all->line.length == 0 || sscanf(all->line.data, "data %lld", &length) != 1 ||
            length < 1)
            DT_THROW(err, DT_ERR_PEER, "node '%s': the transfer of '%s' was interrupted",
                     all->request->node, path);
        DT_TRY(take_bytes(all, fd, length, err));
    }
    DT_TRY(dt_sparse_end(fd, err));
    (void)fchmod(fd, mode | 0600);
    (void)futimens(fd, times);
    DT_TRY(name_file(all, unfinished.data, path, all->result->bytes - before, err));
out:
    if (fd >= 0 && close(fd) != 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (st != DT_OK && fd >= 0)
        unlink(unfinished.data);
    if (st == DT_OK) {
        (void)json_object_del(all->waiting, path);
        all->received++;
    }
    dt_strbuf_release(&unfinished);
    return st;
}

static dt_status take_folder(collection *all, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    DT_TRY(make_path(all, path, err));
    if (lstat(all->path.data, &info) == 0 && !S_ISDIR(info.st_mode))
        unlink(all->path.data); /* an earlier attempt's */
    if (mkdir(all->path.data, 0700) != 0 && errno != EEXIST)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", all->path.data, strerror(errno));
out:
    return st;
}

/* Handles what the node will send: refuses what is too much, still changes, or does not fit on this disk. */
static dt_status take_total(collection *all, const json_t *json, dt_error *err)
{
    const dt_collect_request *request = all->request;
    int64_t quiet_ms = (int64_t)json_integer_value(json_object_get(json, "quiet_ms"));
    dt_status st = DT_OK;
    struct statvfs disk;
    json_t *path;
    size_t i;

    all->expected = (int64_t)json_integer_value(json_object_get(json, "files"));
    all->all_bytes = (int64_t)json_integer_value(json_object_get(json, "bytes"));
    json_array_foreach(json_object_get(json, "paths"), i, path)
        json_object_set_new(all->waiting, json_string_value(path), json_true());
    if (request->max_bytes >= 0 && all->all_bytes > request->max_bytes)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "it has %.1f MB on %s, more than %.1f MB",
                 (double)all->all_bytes / 1e6, request->node, (double)request->max_bytes / 1e6);
    if (all->expected > 0 && quiet_ms < request->quiet_ms)
        DT_THROW(err, DT_ERR_TIMEOUT, "it is still being written on %s", request->node);
    if (all->expected == 0)
        goto out;
    DT_TRY(dt_file_make_dirs(request->into, 0700, err));
    if (statvfs(request->into, &disk) == 0 &&
        (int64_t)(disk.f_bavail * disk.f_frsize) < all->all_bytes + SPARE_BYTES)
        DT_THROW(err, DT_ERR_IO,
                 "not enough free space for '%s': %.1f MB are needed, %.1f MB are free",
                 request->into, (double)(all->all_bytes + SPARE_BYTES) / 1e6,
                 (double)(disk.f_bavail * disk.f_frsize) / 1e6);
out:
    return st;
}

static void add_missing(collection *all, const char *path)
{
    const json_t *item;
    size_t i;

    json_array_foreach((json_t *)all->request->paths, i, item) {
        const char *wanted = json_string_value(item);
        size_t length = strlen(path);

        if (wanted != NULL && strncmp(wanted, path, length) == 0 &&
            wanted[length + strspn(wanted + length, "/")] == '\0') {
            json_array_append(all->result->missing, (json_t *)item);
            return;
        }
    }
    add_problem(all, path, "vanished while it was read");
}

static dt_status take_link(collection *all, const char *path, const json_t *json, dt_error *err)
{
    const char *target = json_string_value(json_object_get(json, "target"));
    dt_status st = DT_OK;

    if (target == NULL || target[0] == '/' || target[0] == '\0')
        return DT_OK;
    DT_TRY(make_path(all, path, err));
    DT_TRY(dt_file_remove_tree(all->path.data, err));
    if (symlink(target, all->path.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the link '%s': %s", all->path.data, strerror(errno));
out:
    return st;
}

/* Handles a line "KIND JSON". */
static dt_status take_line(collection *all, dt_error *err)
{
    char *space = strchr(all->line.data, ' ');
    const char *path, *why;
    json_t *json = NULL;
    dt_status st = DT_OK;
    char kind[16];

    if (space == NULL || space - all->line.data >= (ptrdiff_t)sizeof(kind))
        DT_THROW(err, DT_ERR_CORRUPT, "node '%s': unexpected answer '%.80s'", all->request->node,
                 all->line.data);
    snprintf(kind, sizeof(kind), "%.*s", (int)(space - all->line.data), all->line.data);
    DT_TRY(dt_json_parse(&json, space + 1, strlen(space + 1), all->request->node, err));
    if (strcmp(kind, "total") == 0) {
        st = take_total(all, json, err);
        goto out;
    }
    path = json_string_value(json_object_get(json, "path"));
    why = json_string_value(json_object_get(json, "why"));
    if (path == NULL || !dt_tree_path_is_good(path))
        DT_THROW(err, DT_ERR_CORRUPT, "node '%s': not a path in the folder", all->request->node);
    if (strcmp(kind, "file") == 0)
        DT_TRY(take_file(all, path, json, err));
    else if (strcmp(kind, "link") == 0)
        DT_TRY(take_link(all, path, json, err));
    else if (strcmp(kind, "folder") == 0)
        DT_TRY(take_folder(all, path, err));
    else if (strcmp(kind, "missing") == 0)
        add_missing(all, path);
    else if (strcmp(kind, "changed") == 0)
        add_problem(all, path, "changed while it was read: the copy may have parts of two states");
    else
        add_problem(all, path, why != NULL ? why : "cannot be read");
out:
    json_decref(json);
    return st;
}

/* Returns the paths as a line, without slashes at their ends. */
static void make_request(dt_strbuf *out, const json_t *paths)
{
    json_t *list = json_array();
    const json_t *item;
    size_t i;

    json_array_foreach((json_t *)paths, i, item) {
        const char *path = json_string_value(item);
        size_t length = path != NULL ? strlen(path) : 0;

        while (length > 0 && path[length - 1] == '/')
            length--;
        json_array_append_new(list, json_stringn(path != NULL ? path : "", length));
    }
    dt_json_write(out, list);
    dt_strbuf_add_char(out, '\n');
    json_decref(list);
}

/* Adds to the error which files are not here, and where they are. */
static void name_missing(const collection *all, dt_error *err)
{
    int64_t named = 0, left = all->expected - all->received;
    const char *path;
    json_t *unused;
    dt_strbuf text;

    dt_strbuf_init(&text);
    json_object_foreach(all->waiting, path, unused)
        if (named++ < NAMES_MAX)
            dt_strbuf_add_fmt(&text, "%s'%s'", named > 1 ? ", " : "", path);
    if (left > NAMES_MAX)
        dt_strbuf_add_fmt(&text, " and %lld more", (long long)(left - NAMES_MAX));
    if (left > 0 && text.length > 0)
        dt_error_prefix(err, "%s %s not here but in '%s' on %s", text.data,
                        left == 1 ? "is" : "are", all->request->folder, all->request->node);
    dt_strbuf_release(&text);
}

dt_status dt_nodes_collect(dt_collect_result *out, const dt_collect_request *request, dt_error *err)
{
    const char *const words[] = {request->agent, "node", "collect", request->folder, NULL};
    collection all = {.request = request, .result = out, .piece = dt_malloc(PIECE_BYTES)};
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_init(&all.line);
    dt_strbuf_init(&all.path);
    all.waiting = json_object();
    out->missing = json_array();
    make_request(&text, request->paths);
    DT_TRY(dt_remote_open(&all.remote, request->node, words, request->cancelled, err));
    DT_TRY(dt_remote_write(&all.remote, text.data, text.length, STALL_SECONDS, err));
    for (;;) {
        DT_TRY(next_line(&all, err));
        if (all.line.length == 0) { /* its stderr has the reason */
            DT_TRY(dt_remote_finish(&all.remote, NULL, NULL, STALL_SECONDS, err));
            DT_THROW(err, DT_ERR_PEER, "node '%s': the transfer was interrupted", request->node);
        }
        if (strcmp(all.line.data, "done") == 0)
            break;
        DT_TRY(take_line(&all, err));
    }
    DT_TRY(dt_remote_finish(&all.remote, NULL, NULL, STALL_SECONDS, err));
out:
    if (st == DT_ERR_IO || st == DT_ERR_PEER)
        name_missing(&all, err);
    json_decref(all.waiting);
    if (all.problems > PROBLEMS_MAX)
        dt_strbuf_add_fmt(&out->problems, "and %lld more\n",
                          (long long)(all.problems - PROBLEMS_MAX));
    dt_remote_close(&all.remote);
    dt_strbuf_release(&text);
    dt_strbuf_release(&all.line);
    dt_strbuf_release(&all.path);
    free(all.piece);
    return st;
}
