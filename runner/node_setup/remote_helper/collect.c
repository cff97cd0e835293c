/* collect: sends files and folders of a command's folder to the launch machine.
 *
 * Stdin has a line of JSON, the list of paths relative to FOLDER. Stdout has first
 *
 *   total {"files", "bytes", "quiet_ms", "paths": [...]}
 *
 * with what the files take on the disk, the time since one of them changed, and the first NAMES_MAX files; and then,
 * for each path and for what is in it:
 *
 *   file {"path", "mode", "time_ns"}    then "data N" and N bytes, or "hole N", repeatedly, and "end"
 *   folder {"path"}                     before its contents
 *   link {"path", "target"}             of a link that stays in FOLDER
 *   changed {"path"}                    after a file: it changed while it was read
 *   missing {"path"}                    the file does not exist
 *   refused {"path", "why"}             it leads out of FOLDER, cannot be read, or is not a file
 *
 * and "done" at last. A file that grows meanwhile is sent up to the size that it had.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/workdir/tree.h"

#define PIECE_BYTES   ((size_t)262144)
#define REQUEST_BYTES ((size_t)1 << 20)
#define DEPTH_MAX     100
#define NAMES_MAX     1000

typedef struct collecting {
    const char *folder; /* its real path */
    char *piece;
} collecting;

static dt_status say(const char *kind, json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "%s ", kind);
    dt_json_write(&text, json);
    dt_strbuf_add_char(&text, '\n');
    if (fwrite(text.data, 1, text.length, stdout) != text.length)
        st = DT_FAIL(err, DT_ERR_PEER, "cannot answer: %s", strerror(errno));
    json_decref(json);
    dt_strbuf_release(&text);
    return st;
}

static dt_status refuse(const char *path, const char *why, dt_error *err)
{
    return say("refused", json_pack("{s:o, s:s}", "path", dt_json_text(path), "why", why), err);
}

static dt_status send_hole(off_t bytes, dt_error *err)
{
    return printf("hole %lld\n", (long long)bytes) > 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_PEER, "cannot answer: %s", strerror(errno));
}

/* Sends the bytes from `at` up to `end`. *at: behind the last one; the file may have become shorter. */
static dt_status send_data(const collecting *collection, int fd, off_t *at, off_t end,
                           dt_error *err)
{
    dt_status st = DT_OK;

    while (*at < end) {
        size_t most = end - *at < (off_t)PIECE_BYTES ? (size_t)(end - *at) : PIECE_BYTES;
        ssize_t got = pread(fd, collection->piece, most, *at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (printf("data %zd\n", got) < 0 ||
            fwrite(collection->piece, 1, (size_t)got, stdout) != (size_t)got)
            DT_THROW(err, DT_ERR_PEER, "cannot answer: %s", strerror(errno));
        *at += got;
    }
out:
    return st;
}

static dt_status send_content(const collecting *collection, int fd, off_t bytes, dt_error *err)
{
    dt_status st = DT_OK;

    for (off_t at = 0, end; at < bytes;) {
        off_t data = lseek(fd, at, SEEK_DATA);

        if (data < 0 && errno == ENXIO)
            data = bytes; /* a hole up to the end */
        else if (data < 0 || data > bytes)
            data = data < 0 ? at : bytes;
        if (data > at)
            DT_TRY(send_hole(data - at, err));
        at = data;
        end = at < bytes ? lseek(fd, at, SEEK_HOLE) : bytes;
        if (end <= at || end > bytes)
            end = bytes;
        DT_TRY(send_data(collection, fd, &at, end, err));
        if (at < end)
            break; /* it became shorter */
    }
out:
    return st;
}

static dt_status send_file(const collecting *collection, const char *full, const char *path,
                           dt_error *err)
{
    int fd = open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info, after;
    dt_status st = DT_OK;

    if (fd < 0 || fstat(fd, &info) != 0)
        return fd < 0 && errno == ENOENT ? DT_OK : refuse(path, strerror(errno), err);
    DT_TRY(say("file",
               json_pack("{s:s, s:i, s:I}", "path", path, "mode", (int)(info.st_mode & 0777),
                         "time_ns",
                         (json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec),
               err));
    DT_TRY(send_content(collection, fd, info.st_size, err));
    puts("end");
    if (fstat(fd, &after) != 0 || after.st_size != info.st_size ||
        after.st_mtim.tv_sec != info.st_mtim.tv_sec ||
        after.st_mtim.tv_nsec != info.st_mtim.tv_nsec || after.st_nlink == 0)
        DT_TRY(say("changed", json_pack("{s:s}", "path", path), err));
out:
    close(fd);
    return st;
}

/* Returns true if the path, with all links followed, is in the folder. */
static bool is_within(const collecting *collection, const char *full)
{
    char real[PATH_MAX];
    size_t length = strlen(collection->folder);

    return realpath(full, real) != NULL && strncmp(real, collection->folder, length) == 0 &&
           (real[length] == '/' || real[length] == '\0');
}

static dt_status send_link(const collecting *collection, const char *full, const char *path,
                           dt_error *err)
{
    char target[PATH_MAX];
    ssize_t length = readlink(full, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    if (target[0] == '/' || !is_within(collection, full) ||
        dt_utf8_valid_length(target, strlen(target)) != strlen(target))
        return refuse(path, "it is a link that leads out of the folder, or to nothing", err);
    return say("link", json_pack("{s:s, s:s}", "path", path, "target", target), err);
}

static dt_status send_any(const collecting *collection, const char *path, int depth, dt_error *err);

static dt_status send_folder(const collecting *collection, const char *full, const char *path,
                             int depth, dt_error *err)
{
    DIR *dir = depth < DEPTH_MAX ? opendir(full) : NULL;
    struct dirent *entry;
    dt_status st = DT_OK;
    dt_strbuf below;

    dt_strbuf_init(&below);
    if (dir == NULL)
        DT_TRY(refuse(path, depth < DEPTH_MAX ? strerror(errno) : "it is too deep", err));
    else
        DT_TRY(say("folder", json_pack("{s:s}", "path", path), err));
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&below);
        dt_strbuf_add_fmt(&below, "%s/%s", path, entry->d_name);
        DT_TRY(send_any(collection, below.data, depth + 1, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&below);
    return st;
}

static dt_status send_any(const collecting *collection, const char *path, int depth, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf full;

    dt_strbuf_init(&full);
    dt_strbuf_add_fmt(&full, "%s/%s", collection->folder, path);
    if (lstat(full.data, &info) != 0)
        st = say("missing", json_pack("{s:o}", "path", dt_json_text(path)), err);
    else if (dt_utf8_valid_length(path, strlen(path)) != strlen(path))
        st = refuse(path, "its name is not UTF-8", err);
    else if (S_ISLNK(info.st_mode))
        st = send_link(collection, full.data, path, err);
    else if (!is_within(collection, full.data))
        st = refuse(path, "it leads out of the folder", err);
    else if (S_ISDIR(info.st_mode))
        st = send_folder(collection, full.data, path, depth, err);
    else if (S_ISREG(info.st_mode))
        st = send_file(collection, full.data, path, err);
    else
        st = refuse(path, "it is a socket, pipe or device", err);
    dt_strbuf_release(&full);
    return st;
}

/* --- what will be sent */

typedef struct totals {
    int64_t files, bytes, newest_ns;
    json_t *paths;
} totals;

static void add_totals(totals *out, const char *full, const char *path, int depth)
{
    struct dirent *entry;
    struct stat info;
    dt_strbuf below, name;
    int64_t changed_ns;
    DIR *dir;

    if (depth > DEPTH_MAX || lstat(full, &info) != 0)
        return;
    changed_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    out->newest_ns = changed_ns > out->newest_ns ? changed_ns : out->newest_ns;
    if (S_ISREG(info.st_mode)) {
        int64_t blocks = (int64_t)info.st_blocks * 512;

        if (++out->files <= NAMES_MAX)
            json_array_append_new(out->paths, dt_json_text(path));
        out->bytes += blocks < info.st_size ? blocks : (int64_t)info.st_size;
    }
    dir = S_ISDIR(info.st_mode) ? opendir(full) : NULL;
    if (dir == NULL)
        return;
    dt_strbuf_init(&below);
    dt_strbuf_init(&name);
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&below);
        dt_strbuf_reset(&name);
        dt_strbuf_add_fmt(&below, "%s/%s", full, entry->d_name);
        dt_strbuf_add_fmt(&name, "%s/%s", path, entry->d_name);
        add_totals(out, below.data, name.data, depth + 1);
    }
    dt_strbuf_release(&below);
    dt_strbuf_release(&name);
    closedir(dir);
}

static dt_status write_totals(const collecting *collection, const json_t *paths, dt_error *err)
{
    totals sum = {.paths = json_array()};
    const json_t *item;
    dt_strbuf full;
    size_t i;

    dt_strbuf_init(&full);
    json_array_foreach((json_t *)paths, i, item) {
        const char *path = json_string_value(item);

        dt_strbuf_reset(&full);
        dt_strbuf_add_fmt(&full, "%s/%s", collection->folder, path);
        if (path != NULL && dt_tree_path_is_good(path) && is_within(collection, full.data))
            add_totals(&sum, full.data, path, 0);
    }
    dt_strbuf_release(&full);
    return say("total",
               json_pack("{s:I, s:I, s:I, s:o}", "files", (json_int_t)sum.files, "bytes",
                         (json_int_t)sum.bytes, "quiet_ms",
                         (json_int_t)(dt_clock_wall_ms() - sum.newest_ns / 1000000), "paths",
                         sum.paths),
               err);
}

dt_status dt_remote_helper_collect(const char *folder, dt_error *err)
{
    collecting collection = {.piece = dt_malloc(PIECE_BYTES)};
    char *real = realpath(folder, NULL);
    json_t *paths = NULL, *item;
    dt_status st = DT_OK;
    size_t i;

    if (real == NULL && errno != ENOENT && errno != ENOTDIR)
        DT_THROW(err, DT_ERR_IO, "cannot read the folder '%s': %s", folder, strerror(errno));
    collection.folder =
        real != NULL ? real : folder; /* without the folder, all paths are missing */
    DT_TRY(dt_remote_helper_request(&paths, "collect", REQUEST_BYTES, err));
    DT_TRY(write_totals(&collection, paths, err));
    json_array_foreach(paths, i, item) {
        const char *path = json_string_value(item);

        if (path == NULL || !dt_tree_path_is_good(path))
            DT_THROW(err, DT_ERR_USAGE, "collect: not a path in the folder");
        DT_TRY(send_any(&collection, path, 0, err));
    }
    puts("done");
out:
    json_decref(paths);
    free(real);
    free(collection.piece);
    return st;
}
