/* api_files: serves images and tables that a command has written and `collect` has brought to the folder of its run.
 *
 * Only regular files of `collected` and `collected-node-K` are listed and opened. No link is followed, at no place of a
 * path, and the type of an answer is that of the name. Other kinds of files are not served: an SVG can run scripts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "web/web_int.h"

#define FILES_MOST   200   /* listed */
#define ENTRIES_MOST 20000 /* looked at */
#define DEPTH_MOST   16
#define IMAGE_MOST   ((int64_t)32 << 20) /* bytes of a larger image are not served */

static const struct {
    const char *ending, *kind, *type, *file_name; /* file_name: of a download; NULL: shown */
} kinds[] = {
    {".png", "image", "image/png", NULL},
    {".jpg", "image", "image/jpeg", NULL},
    {".jpeg", "image", "image/jpeg", NULL},
    {".csv", "table", "text/csv; charset=utf-8", "table.csv"},
    {".tsv", "table", "text/tab-separated-values; charset=utf-8", "table.tsv"},
};

/* Returns the index of the kind of a name in `kinds`; -1: it is not served. */
static int kind_of(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t ending = strlen(kinds[i].ending);

        if (length > ending && strcasecmp(name + length - ending, kinds[i].ending) == 0)
            return (int)i;
    }
    return -1;
}

static bool is_collected(const char *folder, size_t length)
{
    static const char first[] = "collected", other[] = "collected-node-";
    size_t begin = sizeof(other) - 1;

    if (length == sizeof(first) - 1 && strncmp(folder, first, length) == 0)
        return true;
    return length > begin && strncmp(folder, other, begin) == 0 &&
           strspn(folder + begin, "0123456789") >= length - begin;
}

/* Opens the folder of the run; -1: there is none. */
static int folder_open(const dt_web_request *request, const char *run)
{
    return open(dt_arena_printf(request->arena, "%s/runs/%s", request->folder, run),
                O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* --- the list */

typedef struct found_file {
    const char *path;
    int kind;
    int64_t bytes, time_ms;
} found_file;

typedef struct search {
    dt_arena *arena;
    found_file *files;
    int64_t count, capacity, entries;
} search;

static void look_in(search *s, int parent, const char *name, const char *path, int depth);

static void look_at(search *s, int folder, const char *name, const char *path, int depth)
{
    int kind = kind_of(name);
    struct stat info;

    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISDIR(info.st_mode)) {
        look_in(s, folder, name, path, depth + 1);
        return;
    }
    if (!S_ISREG(info.st_mode) || kind < 0)
        return;
    s->files =
        dt_arena_array_room(s->arena, s->files, s->count + 1, &s->capacity, sizeof(*s->files));
    s->files[s->count++] = (found_file){.path = dt_arena_strndup(s->arena, path, strlen(path)),
                                        .kind = kind,
                                        .bytes = info.st_size,
                                        .time_ms = (int64_t)info.st_mtim.tv_sec * 1000 +
                                                   info.st_mtim.tv_nsec / 1000000};
}

static void look_in(search *s, int parent, const char *name, const char *path, int depth)
{
    int fd = depth > DEPTH_MOST
                 ? -1
                 : openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    if (dir == NULL && fd >= 0)
        close(fd);
    while (dir != NULL && s->entries < ENTRIES_MOST && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        s->entries++;
        look_at(s, fd, entry->d_name, dt_arena_printf(s->arena, "%s/%s", path, entry->d_name),
                depth);
    }
    if (dir != NULL)
        closedir(dir);
}

/* Looks in the folders of the run with collected files. Takes `folder`. */
static void look_in_run(search *s, int folder)
{
    DIR *dir = fdopendir(folder);
    struct dirent *entry;

    if (dir == NULL) {
        close(folder);
        return;
    }
    while ((entry = readdir(dir)) != NULL)
        if (is_collected(entry->d_name, strlen(entry->d_name)))
            look_in(s, folder, entry->d_name, entry->d_name, 0);
    closedir(dir);
}

static int newest_first(const void *left, const void *right)
{
    const found_file *a = left, *b = right;

    if (a->time_ms != b->time_ms)
        return a->time_ms > b->time_ms ? -1 : 1;
    return strcmp(a->path, b->path);
}

dt_status dt_web_files(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    search s = {.arena = request->arena};
    json_t *list = json_array();
    dt_status st = DT_OK;
    int64_t shown;
    dt_run run;
    int folder;

    DT_TRY(dt_web_run(&run, request, err));
    folder = folder_open(request, run.id);
    if (folder >= 0)
        look_in_run(&s, folder);
    if (s.count > 1)
        qsort(s.files, (size_t)s.count, sizeof(*s.files), newest_first);
    shown = s.count < FILES_MOST ? s.count : FILES_MOST;
    for (int64_t i = 0; i < shown; i++)
        json_array_append_new(
            list, json_pack("{so ss sI sI}", "path", dt_web_string_json(s.files[i].path), "kind",
                            kinds[s.files[i].kind].kind, "bytes", (json_int_t)s.files[i].bytes,
                            "time_ms", (json_int_t)s.files[i].time_ms));
    DT_TRY(dt_web_reply_json(reply, 200,
                             json_pack("{so sO sI sb}", "run", dt_web_string_json(run.id), "files",
                                       list, "left_out", (json_int_t)(s.count - shown),
                                       "incomplete", (int)(s.entries >= ENTRIES_MOST)),
                             err));
out:
    json_decref(list);
    return st;
}

/* --- one file */

/* Opens a file below `folder`, which it closes. Returns -1 unless it is a regular file that no link leads to. */
static int file_open(int folder, const char *path)
{
    size_t length = strcspn(path, "/");
    struct stat info;
    int fd = folder;

    if (path[length] == '\0' || !is_collected(path, length))
        length = 0;
    while (fd >= 0 && length > 0) {
        char name[256];
        bool last = path[length] == '\0';
        int next = -1;

        if (length < sizeof(name)) {
            memcpy(name, path, length);
            name[length] = '\0';
            if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
                next = openat(fd, name,
                              O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
                                  (last ? 0 : O_DIRECTORY));
        }
        close(fd);
        fd = next;
        if (last && fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
            return fd;
        path += last ? length : length + 1;
        length = last ? 0 : strcspn(path, "/");
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

typedef struct file_stream {
    int fd;
    int64_t left;
} file_stream;

static dt_status file_next(void *state, dt_store *store, dt_strbuf *out, bool *more, dt_error *err)
{
    file_stream *s = state;
    char part[DT_WEB_PART_BYTES];
    ssize_t got;

    do
        got = read(s->fd, part, s->left < (int64_t)sizeof(part) ? (size_t)s->left : sizeof(part));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read the file: %s", strerror(errno));
    dt_strbuf_add(out, part, (size_t)got);
    s->left -= got;
    *more = got > 0 && s->left > 0;
    return DT_OK;
}

static void file_free(void *state)
{
    file_stream *s = state;

    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

dt_status dt_web_file_of_run(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *path = dt_web_argument(request, "path");
    file_stream *s = dt_calloc(1, sizeof(*s));
    int kind = path != NULL ? kind_of(path) : -1, folder;
    dt_status st = DT_OK;
    struct stat info;
    int64_t most;
    dt_run run;

    s->fd = -1;
    dt_web_reply_stream(reply, file_next, file_free, s);
    reply->stream.waits = true; /* a slow disk holds no handle of the store */
    DT_TRY(dt_web_run(&run, request, err));
    DT_TRY(dt_web_argument_int(&most, request, "most", INT64_MAX, 1, INT64_MAX, err));
    if (kind < 0)
        DT_THROW(err, DT_ERR_USAGE, "'path' must be a .png, .jpg, .csv or .tsv file (see /files)");
    folder = folder_open(request, run.id);
    s->fd = folder >= 0 ? file_open(folder, path) : -1;
    if (s->fd < 0 || fstat(s->fd, &info) != 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "run '%s' has no such collected file", run.id);
    if (strcmp(kinds[kind].kind, "image") == 0 && info.st_size > IMAGE_MOST)
        DT_THROW(err, DT_ERR_USAGE, "the image has %.1f MB, more than %.1f MB",
                 (double)info.st_size / 1e6, (double)IMAGE_MOST / 1e6);
    s->left = info.st_size < most ? info.st_size : most;
    reply->type = kinds[kind].type;
    reply->file_name = kinds[kind].file_name;
out:
    return st;
}
