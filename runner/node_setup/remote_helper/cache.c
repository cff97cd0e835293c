/* cache: the cache of a node: its folder and free space, marks of entries in use, and removal of old
 * entries; and the caller's request on stdin. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/remote_helper/spare.h"
#include "runner/node_setup/workdir/contents.h"

/* --- folder, space, and the caller */

dt_status dt_remote_helper_cache(dt_strbuf *out, dt_error *err)
{
    char self[PATH_MAX], *slash = NULL;
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/self/exe: %s", strerror(errno));
    self[length] = '\0';
    for (int up = 0; up < 2; up++) {
        slash = strrchr(self, '/');
        DT_ASSERT(slash != NULL);
        *slash = '\0';
    }
    dt_strbuf_reset(out);
    dt_strbuf_add_str(out, self);
    return DT_OK;
}

static bool has_space(const struct statvfs *info, int64_t bytes)
{
    return (int64_t)info->f_bavail > bytes / (int64_t)info->f_frsize;
}

dt_status dt_remote_helper_check_space(const char *path, int64_t bytes, dt_error *err)
{
    struct statvfs info;
    dt_strbuf cache;
    bool known;

    dt_strbuf_init(&cache);
    known = statvfs(path, &info) == 0;
    if (known && !has_space(&info, bytes) && dt_remote_helper_cache(&cache, NULL) == DT_OK) {
        dt_spare_prune(cache.data, 0);
        known = statvfs(path, &info) == 0;
    }
    dt_strbuf_release(&cache);
    if (!known)
        return DT_FAIL(err, DT_ERR_IO, "cannot check '%s': %s", path, strerror(errno));
    if (!has_space(&info, bytes))
        return DT_FAIL(
            err, DT_ERR_IO,
            "not enough free space in '%s': %lld MB are needed, %lld MB are free: free some, or "
            "make it a link to a larger disk",
            path, (long long)(bytes >> 20) + 1, (long long)(info.f_bavail * info.f_frsize >> 20));
    return DT_OK;
}

/* Returns false for a pipe without a reader, and for a socket whose other end is closed. */
bool dt_remote_helper_is_heard(void)
{
    struct pollfd out = {STDOUT_FILENO, 0, 0};

    return poll(&out, 1, 0) <= 0 || (out.revents & (POLLERR | POLLHUP)) == 0;
}

dt_status dt_remote_helper_request(json_t **out, const char *operation, size_t most, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf line;
    char c;

    dt_strbuf_init(&line);
    for (;;) {
        ssize_t got = read(STDIN_FILENO, &c, 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || line.length > most)
            DT_THROW(err, DT_ERR_PEER, "%s: the request is incomplete", operation);
        if (c == '\n')
            break;
        dt_strbuf_add_char(&line, c);
    }
    DT_TRY(dt_json_parse(out, line.data, line.length, operation, err));
out:
    dt_strbuf_release(&line);
    return st;
}

/* --- marks of entries in use */

#define WEEK_MS        ((int64_t)7 * 86400 * 1000)
#define MISSED_MS      ((int64_t)2 * DT_CACHE_PIN_REFRESH_SECONDS * 1000) /* a refresh was missed */
#define NAME_MAX_BYTES 128

static void host_name(char *out, size_t size)
{
    if (gethostname(out, size - 1) != 0 || out[0] == '\0')
        snprintf(out, size, "unknown");
    out[size - 1] = '\0';
    for (char *p = out; *p != '\0'; p++)
        if (*p == '/' || *p == '.')
            *p = '_';
}

/* Returns the prefix of marks, "KIND-NAME.", for CACHE/KIND/NAME and paths in it; "" for other
 * paths. */
static void front_of(char *out, size_t size, const char *cache, const char *path)
{
    static const char *const kinds[] = {"agents", "bundles", "data", "setups"};
    size_t length = strlen(cache), name;

    out[0] = '\0';
    if (strncmp(path, cache, length) != 0 || path[length] != '/')
        return;
    path += length + 1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        length = strlen(kinds[i]);
        if (strncmp(path, kinds[i], length) != 0 || path[length] != '/')
            continue;
        name = strcspn(path + length + 1, "/");
        if (name > 0 && name <= NAME_MAX_BYTES && memchr(path + length + 1, '.', name) == NULL)
            snprintf(out, size, "%s-%.*s.", kinds[i], (int)name, path + length + 1);
    }
}

dt_status dt_cache_pin(char **mark, const char *cache, const char *path, dt_error *err)
{
    char front[NAME_MAX_BYTES + 32], host[65], boot[DT_BOOT_ID_SIZE];
    dt_status st = DT_OK;
    dt_strbuf name;
    int fd = -1;

    *mark = NULL;
    dt_strbuf_init(&name);
    front_of(front, sizeof(front), cache, path);
    if (front[0] == '\0')
        goto out;
    host_name(host, sizeof(host));
    dt_strbuf_add_fmt(&name, "%s/uses", cache);
    DT_TRY(dt_file_make_dirs(name.data, 0700, err));
    dt_strbuf_add_fmt(&name, "/%s%s.XXXXXX", front, host);
    fd = mkostemp(name.data, O_CLOEXEC);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", name.data, strerror(errno));
    dt_boot_id(boot);
    DT_TRY(dt_file_write_all(fd, boot, strlen(boot), err));
    *mark = dt_strbuf_detach(&name);
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&name);
    return st;
}

void dt_cache_pin_refresh(const char *mark)
{
    (void)utimensat(AT_FDCWD, mark, NULL, 0);
}

void dt_cache_pin_release(char *mark)
{
    if (mark != NULL)
        unlink(mark);
    free(mark);
}

/* Returns true if the mark has this machine's host name but another boot id. Either a crash of this
 * machine left it, or another machine has the same host name. */
static bool is_of_another_boot(const char *path, const char *name)
{
    char host[65], boot[DT_BOOT_ID_SIZE];
    const char *of = strchr(name, '.');
    dt_strbuf text;
    bool other = false;

    host_name(host, sizeof(host));
    if (of == NULL || strncmp(of + 1, host, strlen(host)) != 0 || of[1 + strlen(host)] != '.')
        return false;
    dt_strbuf_init(&text);
    if (dt_file_read(&text, path, sizeof(boot), NULL) == DT_OK)
        other = dt_boot_differs(text.data, dt_boot_id(boot));
    dt_strbuf_release(&text);
    return other;
}

static bool is_valid(const char *path, const char *name)
{
    struct stat info;
    int64_t age_ms;

    if (lstat(path, &info) != 0)
        return false;
    age_ms = dt_clock_wall_ms() - (int64_t)info.st_mtime * 1000;
    return age_ms < WEEK_MS && (age_ms < MISSED_MS || !is_of_another_boot(path, name));
}

/* front NULL: removes stale marks; else returns true if there is a valid mark with this prefix. */
static bool look(const char *cache, const char *front)
{
    struct dirent *entry;
    bool found = false;
    dt_strbuf path;
    DIR *directory;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/uses", cache);
    directory = opendir(path.data);
    while (directory != NULL && !found && (entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.' ||
            (front != NULL && strncmp(entry->d_name, front, strlen(front)) != 0))
            continue;
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/uses/%s", cache, entry->d_name);
        if (front != NULL)
            found = is_valid(path.data, entry->d_name);
        else if (!is_valid(path.data, entry->d_name))
            unlink(path.data);
    }
    if (directory != NULL)
        closedir(directory);
    dt_strbuf_release(&path);
    return found;
}

static bool cache_is_pinned(const char *cache, const char *kind, const char *name)
{
    char front[NAME_MAX_BYTES + 32];

    snprintf(front, sizeof(front), "%s-%.*s.", kind, NAME_MAX_BYTES, name);
    return look(cache, front);
}

/* removes stale marks */
static void cache_pins_prune(const char *cache)
{
    look(cache, NULL);
}

/* Returns true if a process's program is `path` or in it. Processes of other users cannot be read, but do not run
 * programs of this user's cache. */
static bool is_running(const char *path)
{
    size_t length = strlen(path);
    struct dirent *entry;
    bool found = false;
    DIR *directory = opendir("/proc");

    while (directory != NULL && !found && (entry = readdir(directory)) != NULL) {
        char link[64], program[PATH_MAX];
        ssize_t got;

        if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
            continue;
        snprintf(link, sizeof(link), "/proc/%.20s/exe", entry->d_name);
        got = readlink(link, program, sizeof(program));
        found = got >= (ssize_t)length && memcmp(program, path, length) == 0 &&
                (got == (ssize_t)length || program[length] == '/' || program[length] == ' ');
    }
    if (directory != NULL)
        closedir(directory);
    return found;
}

bool dt_cache_is_used(const char *cache, const char *kind, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s/%s", cache, kind, name);
    return is_running(path) || cache_is_pinned(cache, kind, name);
}

/* prune: removes old files from the cache.
 *
 * A bundle or an agent is removed if no process of this machine runs from it, no agent of a machine
 * with the same home directory has it pinned (remote_helper.h), and no launch has used it for a day
 * (each launch updates the time of its folder). Data and cached digests are removed after thirty days without use,
 * incomplete files and spare folders (spare.h) after a day. Errors are ignored: the next launch tries again.
 */

#define DAY_MS        ((int64_t)86400 * 1000)
#define HOUR_MS       ((int64_t)3600 * 1000)
#define PRUNED_SUFFIX ".pruned" /* its time is that of the last look at the folder */

static void prune_folder(const char *cache, const char *below, int64_t keep_ms)
{
    int64_t now_ms = dt_clock_wall_ms();
    struct dirent *entry;
    char path[PATH_MAX];
    struct stat info;
    DIR *directory;

    snprintf(path, sizeof(path), "%s/%s", cache, below);
    directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s/%s", cache, below, entry->d_name);
        if (lstat(path, &info) == 0 && now_ms - (int64_t)info.st_mtime * 1000 > keep_ms &&
            (strcmp(below, DT_CONTENTS_FOLDER) == 0 || /* folders are built of copies */
             !dt_cache_is_used(cache, below, entry->d_name)))
            (void)dt_file_remove_tree(path, NULL);
    }
    if (directory != NULL)
        closedir(directory);
}

/* Returns true once an hour: the folder can have many files, and a look at each takes longer than a launch. */
static bool is_due(const char *cache, const char *below)
{
    char path[PATH_MAX];
    struct stat info;

    snprintf(path, sizeof(path), "%s/%s" PRUNED_SUFFIX, cache, below);
    if (stat(path, &info) == 0 && dt_clock_wall_ms() - (int64_t)info.st_mtime * 1000 < HOUR_MS)
        return false;
    return dt_file_write_atomic(path, "", 0, 0600, NULL) == DT_OK;
}

void dt_remote_helper_prune(const char *cache)
{
    cache_pins_prune(cache);
    dt_spare_prune(cache, DAY_MS);
    prune_folder(cache, "agents", DAY_MS);
    prune_folder(cache, "bundles", DAY_MS);
    prune_folder(cache, "data", 30 * DAY_MS);
    if (is_due(cache, DT_CONTENTS_FOLDER))
        prune_folder(cache, DT_CONTENTS_FOLDER, 30 * DAY_MS);
    prune_folder(cache, DT_SETUPS_FOLDER, 30 * DAY_MS);
    if (is_due(cache, "digests"))
        prune_folder(cache, "digests", 30 * DAY_MS);
    prune_folder(cache, DT_WORKDIRS_FOLDER, 30 * DAY_MS);
}
