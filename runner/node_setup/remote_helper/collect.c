/* collect: sends files and folders of a command's folder to the launch machine.
 *
 * Stdin has a line of JSON, the list of paths relative to FOLDER. Stdout has, for each of them and for what is in it:
 *
 *   file {"path", "mode", "time_ns"}    then "data N" and N bytes, repeatedly, and "end"
 *   link {"path", "target"}             of a link that stays in FOLDER
 *   missing {"path"}                    the file does not exist
 *   refused {"path", "why"}             it leads out of FOLDER, cannot be read, or is not a file
 *
 * and "done" at last. A file that changes meanwhile is sent as it is read.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/utf8.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/workdir/tree.h"

#include "base/banned.h"

#define PIECE_BYTES   ((size_t)262144)
#define REQUEST_BYTES ((size_t)1 << 20)
#define DEPTH_MAX     100

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

static dt_status send_file(const collecting *all, const char *full, const char *path, dt_error *err)
{
    int fd = open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    dt_status st = DT_OK;
    struct stat info;
    int64_t left;

    if (fd < 0 || fstat(fd, &info) != 0)
        return fd < 0 && errno == ENOENT ? DT_OK : refuse(path, strerror(errno), err);
    DT_TRY(say("file",
               json_pack("{s:s, s:i, s:I}", "path", path, "mode", (int)(info.st_mode & 0777),
                         "time_ns",
                         (json_int_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec),
               err));
    for (left = info.st_size; left > 0;) { /* it may grow: not beyond what it was */
        ssize_t got =
            read(fd, all->piece, left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (printf("data %zd\n", got) < 0 ||
            fwrite(all->piece, 1, (size_t)got, stdout) != (size_t)got)
            DT_THROW(err, DT_ERR_PEER, "cannot answer: %s", strerror(errno));
        left -= got;
    }
    puts("end");
out:
    close(fd);
    return st;
}

/* Returns true if the path, with all links followed, is in the folder. */
static bool is_within(const collecting *all, const char *full)
{
    char real[PATH_MAX];
    size_t length = strlen(all->folder);

    return realpath(full, real) != NULL && strncmp(real, all->folder, length) == 0 &&
           (real[length] == '/' || real[length] == '\0');
}

static dt_status send_link(const collecting *all, const char *full, const char *path, dt_error *err)
{
    char target[PATH_MAX];
    ssize_t length = readlink(full, target, sizeof(target) - 1);

    target[length > 0 ? length : 0] = '\0';
    if (target[0] == '/' || !is_within(all, full) ||
        dt_utf8_valid_length(target, strlen(target)) != strlen(target))
        return refuse(path, "it is a link that leads out of the folder, or to nothing", err);
    return say("link", json_pack("{s:s, s:s}", "path", path, "target", target), err);
}

static dt_status send_any(const collecting *all, const char *path, int depth, dt_error *err);

static dt_status send_folder(const collecting *all, const char *full, const char *path, int depth,
                             dt_error *err)
{
    DIR *dir = depth < DEPTH_MAX ? opendir(full) : NULL;
    struct dirent *entry;
    dt_status st = DT_OK;
    dt_strbuf below;

    dt_strbuf_init(&below);
    if (dir == NULL)
        DT_TRY(refuse(path, depth < DEPTH_MAX ? strerror(errno) : "it is too deep", err));
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&below);
        dt_strbuf_add_fmt(&below, "%s/%s", path, entry->d_name);
        DT_TRY(send_any(all, below.data, depth + 1, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&below);
    return st;
}

static dt_status send_any(const collecting *all, const char *path, int depth, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    dt_strbuf full;

    dt_strbuf_init(&full);
    dt_strbuf_add_fmt(&full, "%s/%s", all->folder, path);
    if (lstat(full.data, &info) != 0)
        st = say("missing", json_pack("{s:o}", "path", dt_json_text(path)), err);
    else if (dt_utf8_valid_length(path, strlen(path)) != strlen(path))
        st = refuse(path, "its name is not UTF-8", err);
    else if (S_ISLNK(info.st_mode))
        st = send_link(all, full.data, path, err);
    else if (!is_within(all, full.data))
        st = refuse(path, "it leads out of the folder", err);
    else if (S_ISDIR(info.st_mode))
        st = send_folder(all, full.data, path, depth, err);
    else if (S_ISREG(info.st_mode))
        st = send_file(all, full.data, path, err);
    else
        st = refuse(path, "it is a socket, pipe or device", err);
    dt_strbuf_release(&full);
    return st;
}

dt_status dt_remote_helper_collect(const char *folder, dt_error *err)
{
    collecting all = {.piece = dt_malloc(PIECE_BYTES)};
    char *real = realpath(folder, NULL);
    json_t *paths = NULL, *item;
    dt_status st = DT_OK;
    size_t i;

    if (real == NULL)
        DT_THROW(err, DT_ERR_IO, "cannot read the folder '%s': %s", folder, strerror(errno));
    all.folder = real;
    DT_TRY(dt_remote_helper_request(&paths, "collect", REQUEST_BYTES, err));
    json_array_foreach(paths, i, item) {
        const char *path = json_string_value(item);

        if (path == NULL || !dt_tree_path_is_good(path))
            DT_THROW(err, DT_ERR_USAGE, "collect: not a path in the folder");
        DT_TRY(send_any(&all, path, 0, err));
    }
    puts("done");
out:
    json_decref(paths);
    free(real);
    free(all.piece);
    return st;
}
