#include "runner/node_setup/remote_helper/spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define NUMBERS_MAX   8   /* spare folders of one workdir, for runs that end side by side */
#define FREE_SHARE    4   /* of the free space, a spare folder takes at most this part */
#define LEAST_FILES   100 /* fewer files are placed sooner than a folder is given and taken, */
#define LEAST_BYTES   ((int64_t)16 << 20) /* unless they are large */
#define DAY_MS        ((int64_t)86400 * 1000)
#define NEW_PREFIX    ".new-"
#define TAKEN_PREFIX  ".taken-"
#define GONE_PREFIX   ".gone-"
#define SPARE_TREE    "tree"
#define SPARE_STAMPS  "stamps"
#define SPARE_CONTENT "folder"

static bool is_in(const char *link, const char *folder)
{
    char target[PATH_MAX];
    ssize_t length = readlink(link, target, sizeof(target) - 1);
    size_t front = strlen(folder);

    target[length > 0 ? length : 0] = '\0';
    return strncmp(target, folder, front) == 0 &&
           (target[front] == '/' || target[front] == '\0' || target[front] == ' ');
}

/* Returns true if a process whose files this user can read has its current folder or an open file in the folder: its
 * paths would follow the folder to the next run. */
static bool is_held(const char *folder, dt_arena *arena)
{
    static const char *const links[] = {"cwd", "root", "exe"};
    char real[PATH_MAX], path[PATH_MAX];
    DIR *processes = realpath(folder, real) != NULL ? opendir("/proc") : NULL;
    bool held = processes == NULL;
    struct dirent *process;

    while (!held && (process = readdir(processes)) != NULL) {
        struct dirent *file;
        DIR *files;

        if (process->d_name[0] < '0' || process->d_name[0] > '9' ||
            strtol(process->d_name, NULL, 10) == (long)getpid())
            continue;
        for (size_t i = 0; !held && i < sizeof(links) / sizeof(links[0]); i++) {
            snprintf(path, sizeof(path), "/proc/%.20s/%s", process->d_name, links[i]);
            held = is_in(path, real);
        }
        snprintf(path, sizeof(path), "/proc/%.20s/fd", process->d_name);
        files = held ? NULL : opendir(path);
        while (files != NULL && !held && (file = readdir(files)) != NULL) {
            snprintf(path, sizeof(path), "/proc/%.20s/fd/%.20s", process->d_name, file->d_name);
            held = file->d_name[0] != '.' && is_in(path, real);
        }
        if (files != NULL)
            closedir(files);
    }
    if (processes != NULL)
        closedir(processes);
    return held;
}

/* --- giving */

static const char *in_spare(dt_arena *arena, const char *cache, const char *name)
{
    return dt_arena_printf(arena, "%s/" DT_SPARE_FOLDER "/%s", cache, name);
}

static const char *in(dt_arena *arena, const char *folder, const char *name)
{
    return dt_arena_printf(arena, "%s/%s", folder, name);
}

/* Renames the folder, and its documents after it; but not if a file appears in it meanwhile. */
static bool give_whole(const dt_survey *of, const char *folder, const char *to, dt_arena *arena)
{
    const char *content = in(arena, to, SPARE_CONTENT);

    if (rename(folder, content) != 0)
        return false;
    if (!dt_survey_is_all(of)) {
        (void)rename(content, folder);
        return false;
    }
    return rename(dt_arena_printf(arena, "%s" DT_SENT_TREE_RECORD, folder),
                  in(arena, to, SPARE_TREE)) == 0 &&
           rename(dt_arena_printf(arena, "%s" DT_STAMPS_RECORD, folder),
                  in(arena, to, SPARE_STAMPS)) == 0;
}

/* Moves the untouched entries. What the command made or changed stays where it is, with the documents. */
static bool give_some(const dt_survey *of, const char *folder, const char *to, dt_arena *arena)
{
    const dt_tree *tree = &of->all->tree;
    const char *content = in(arena, to, SPARE_CONTENT);
    dt_stamp *stamps = dt_arena_alloc_array(arena, (size_t)tree->count + 1, sizeof(stamps[0]));
    int fd = mkdir(content, 0700) == 0
                 ? open(content, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    bool given = fd >= 0;
    struct stat info;

    for (int64_t i = 0; given && i < tree->count; i++) {
        const char *path = tree->entries[i].path;

        if (of->states[i] != DT_ENTRY_UNTOUCHED)
            continue;
        if (tree->entries[i].kind == DT_TREE_FOLDER)
            given = mkdirat(fd, path, of->all->stamps[i].mode & 07777) == 0;
        else
            given = renameat(of->fd, path, fd, path) == 0;
    }
    dt_stamps_pass_tick();
    for (int64_t i = 0; given && i < tree->count; i++)
        if (fstatat(fd, tree->entries[i].path, &info, AT_SYMLINK_NOFOLLOW) == 0)
            stamps[i] = dt_stamp_settled(&info);
    given = given &&
            link(dt_arena_printf(arena, "%s" DT_SENT_TREE_RECORD, folder),
                 in(arena, to, SPARE_TREE)) == 0 &&
            dt_stamps_write(in(arena, to, SPARE_STAMPS), of->all->key, stamps, tree->count);
    if (fd >= 0)
        close(fd);
    return given;
}

/* Gives the complete folder the first name that is free. */
static bool name_spare(const char *from, const char *key, const char *cache, dt_arena *arena)
{
    for (int i = 0; i < NUMBERS_MAX; i++)
        if (rename(from, in_spare(arena, cache, dt_arena_printf(arena, "%s-%d", key, i))) == 0)
            return true;
    return false;
}

static bool is_worth(const dt_survey *of)
{
    struct statfs info;

    return (of->files >= LEAST_FILES || of->bytes >= LEAST_BYTES) && fstatfs(of->fd, &info) == 0 &&
           of->bytes / (int64_t)info.f_bsize <= (int64_t)info.f_bavail / FREE_SHARE;
}

bool dt_spare_give(const char *folder, const char *cache, dt_arena *arena)
{
    const char *unfinished = dt_arena_printf(arena, "%s" DT_SENT_TREE_UNFINISHED, folder);
    char *to = dt_arena_printf(arena, "%s/" DT_SPARE_FOLDER "/" NEW_PREFIX "XXXXXX", cache);
    dt_survey of = {.fd = -1};
    bool given = false;
    dt_stamped all;

    if (dt_file_exists(unfinished)) /* the list does not say what is there */
        return false;
    dt_stamps_read_folder(&all, folder, arena);
    if (all.key == NULL || !dt_survey_open(&of, &all, folder, arena) || !is_worth(&of) ||
        is_held(folder, arena) ||
        dt_file_make_dirs(in_spare(arena, cache, ""), 0700, NULL) != DT_OK || mkdtemp(to) == NULL)
        goto out;
    given = (of.touched == 0 && dt_survey_is_all(&of) ? give_whole(&of, folder, to, arena)
                                                      : give_some(&of, folder, to, arena)) &&
            name_spare(to, all.key, cache, arena);
    if (!given)
        (void)dt_file_remove_tree(to, NULL);
out:
    dt_survey_close(&of);
    return given;
}

/* --- taking */

typedef struct taking {
    dt_survey survey;
    const dt_tree *tree;
    dt_sent_act *acts;
    dt_arena *arena;
} taking;

static int64_t time_of(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* Finds the newest spare folder of the key that is older than *time_ns, which is set to its time. */
static const char *find_newest(int64_t *time_ns, const char *key, const char *cache,
                               dt_arena *arena)
{
    int64_t before_ns = *time_ns, newest_ns = -1;
    const char *found = NULL;
    struct stat info;

    for (int i = 0; i < NUMBERS_MAX; i++) {
        const char *path = in_spare(arena, cache, dt_arena_printf(arena, "%s-%d", key, i));

        if (lstat(path, &info) != 0 || time_of(&info) <= newest_ns || time_of(&info) >= before_ns)
            continue;
        newest_ns = time_of(&info);
        found = path;
    }
    *time_ns = newest_ns;
    return found;
}

/* Renames a spare folder to a name that nothing else takes. */
static const char *set_aside(const char *path, const char *prefix, const char *cache,
                             dt_arena *arena)
{
    char *aside = dt_arena_printf(arena, "%s/" DT_SPARE_FOLDER "/%sXXXXXX", cache, prefix);

    if (path == NULL || mkdtemp(aside) == NULL)
        return NULL;
    if (rename(path, aside) == 0) { /* an empty folder is replaced */
        (void)utimensat(AT_FDCWD, aside, NULL, 0);
        return aside;
    }
    (void)rmdir(aside);
    return NULL;
}

/* Returns true for the same content; permissions and times may differ. */
static bool is_same(const dt_tree_entry *a, const dt_tree_entry *b)
{
    return a->kind == b->kind &&
           (a->kind != DT_TREE_FILE ||
            (a->bytes == b->bytes && strcmp(a->digest, b->digest) == 0)) &&
           (a->kind != DT_TREE_LINK || strcmp(a->target, b->target) == 0);
}

/* Finds for each entry of the spare folder the one of the tree, in *matches (-1: none), and what is left to do. Returns
 * how many files of the tree are there. */
static int64_t match(taking *with, int64_t *matches)
{
    const dt_tree *old = &with->survey.all->tree, *tree = with->tree;
    int64_t files = 0, i = 0;

    for (int64_t n = 0; n < tree->count; n++)
        with->acts[n] = DT_SENT_PLACE;
    for (int64_t j = 0; j < old->count; j++) {
        int order = 1;

        matches[j] = -1;
        while (i < tree->count &&
               (order = dt_tree_order(tree->entries[i].path, old->entries[j].path)) < 0)
            i++;
        if (order != 0 || with->survey.states[j] != DT_ENTRY_UNTOUCHED ||
            !is_same(&old->entries[j], &tree->entries[i]))
            continue;
        matches[j] = i;
        with->acts[i] = DT_SENT_KEEP;
        files += old->entries[j].kind == DT_TREE_FILE;
    }
    return files;
}

/* Gives an entry of the spare folder the permissions and the time of the tree. Its stamp is taken again. */
static bool adapt(const taking *with, int64_t j, const dt_tree_entry *wanted)
{
    const dt_tree_entry *old = &with->survey.all->tree.entries[j];
    const struct timespec time = {.tv_sec = (time_t)(wanted->time_ns / 1000000000),
                                  .tv_nsec = (long)(wanted->time_ns % 1000000000)};
    const struct timespec times[] = {time, time};
    mode_t mode = (mode_t)wanted->mode, hidden;
    int fd = with->survey.fd;
    struct stat info;

    if (wanted->kind == DT_TREE_LINK ||
        (old->mode == wanted->mode && old->time_ns == wanted->time_ns))
        return true;
    if (wanted->kind == DT_TREE_FOLDER) { /* as mkdir makes it (sent_tree.c) */
        hidden = umask(0);
        umask(hidden);
        mode = (mode | 0700) & ~hidden;
    }
    if (fchmodat(fd, wanted->path, mode, 0) != 0 ||
        (wanted->kind == DT_TREE_FILE &&
         utimensat(fd, wanted->path, times, AT_SYMLINK_NOFOLLOW) != 0) ||
        fstatat(fd, wanted->path, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    with->survey.all->stamps[j] = dt_stamp_of(&info);
    return true;
}

/* Makes the spare folder a part of the new tree. */
static bool change(const taking *with, const int64_t *matches)
{
    const dt_tree *old = &with->survey.all->tree;
    bool good = true;

    for (int64_t j = old->count; good && j-- > 0;) { /* the contents of a folder come after it */
        const dt_tree_entry *entry = &old->entries[j];

        if (matches[j] >= 0)
            good = adapt(with, j, &with->tree->entries[matches[j]]);
        else if (with->survey.states[j] != DT_ENTRY_ABSENT)
            good = unlinkat(with->survey.fd, entry->path,
                            entry->kind == DT_TREE_FOLDER ? AT_REMOVEDIR : 0) == 0;
    }
    return good;
}

/* Takes the spare folder `path`. One that is damaged or of another boot is removed; one with another content keeps its
 * name. */
static bool take(dt_spare *out, taking *with, dt_stamped *before, const char *path,
                 const char *cache)
{
    dt_arena *arena = with->arena;
    int64_t *matches;
    struct stat info;
    bool good;

    if (lstat(path, &info) != 0)
        return false;
    out->path = set_aside(path, TAKEN_PREFIX, cache, arena);
    if (out->path == NULL)
        return false; /* another build has taken it */
    out->folder = in(arena, out->path, SPARE_CONTENT);
    dt_stamps_read(before, in(arena, out->path, SPARE_TREE), in(arena, out->path, SPARE_STAMPS),
                   arena);
    good = before->key != NULL && dt_survey_open(&with->survey, before, out->folder, arena) &&
           dt_stamps_are_kept(with->survey.fd) && dt_survey_is_all(&with->survey);
    if (!good)
        goto out;
    matches = dt_arena_alloc_array(arena, (size_t)before->tree.count + 1, sizeof(matches[0]));
    if (2 * match(with, matches) >= with->tree->files) {
        good = change(with, matches);
        goto out;
    }
    good = false;
    (void)utimensat(AT_FDCWD, out->path, (const struct timespec[]){info.st_atim, info.st_mtim}, 0);
    if (rename(out->path, path) == 0)
        *out = (dt_spare){0};
out:
    dt_survey_close(&with->survey);
    if (!good)
        dt_spare_release(out);
    return good;
}

bool dt_spare_take(dt_spare *out, dt_stamped *before, dt_sent_act *acts, const dt_tree *tree,
                   const char *key, const char *cache, dt_arena *arena)
{
    taking with = {.survey = {.fd = -1}, .tree = tree, .acts = acts, .arena = arena};
    int64_t time_ns = INT64_MAX;
    const char *path;

    *out = (dt_spare){0};
    while ((path = find_newest(&time_ns, key, cache, arena)) != NULL)
        if (take(out, &with, before, path, cache))
            return true;
    *before = (dt_stamped){0};
    return false;
}

void dt_spare_release(dt_spare *spare)
{
    if (spare->path != NULL)
        (void)dt_file_remove_tree(spare->path, NULL);
    *spare = (dt_spare){0};
}

/* --- removal */

void dt_spare_prune(const char *cache, int64_t keep_ms)
{
    int64_t now_ms = dt_clock_wall_ms();
    struct dirent *entry;
    struct stat info;
    dt_arena arena;
    DIR *dir;

    dt_arena_init(&arena, 0);
    dir = opendir(in_spare(&arena, cache, ""));
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *path = in_spare(&arena, cache, entry->d_name), *aside;
        bool unfinished = entry->d_name[0] == '.';

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            lstat(path, &info) != 0 ||
            now_ms - (int64_t)info.st_mtime * 1000 < (unfinished ? DAY_MS : keep_ms))
            continue;
        aside = set_aside(path, GONE_PREFIX, cache, &arena);
        if (aside != NULL)
            (void)dt_file_remove_tree(aside, NULL);
    }
    if (dir != NULL)
        closedir(dir);
    dt_arena_release(&arena);
}
