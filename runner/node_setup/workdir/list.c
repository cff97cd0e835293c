#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/display.h"
#include "base/file.h"
#include "base/memory.h"
#include "runner/node_setup/workdir/ignore.h"
#include "runner/node_setup/workdir/workdir.h"

#define RULES_BYTES_MAX ((size_t)1 << 20)
#define DEPTH_MAX       100
#define UNTRUSTED       "detected dubious ownership in repository at "
#define COUNTED_MAX     1000000 /* entries that are counted although they are left out */

/* What git ignores in a repository that the folder is in or has. */
typedef struct repository {
    dt_git_ignores ignores;
    size_t front; /* bytes of a path before the path from the folder that was asked */
} repository;

typedef struct listing {
    const char *folder;
    dt_tree *tree;
    int64_t capacity;
    dt_ignore lines;       /* of .dtrunignore files */
    dt_ignore git_lines;   /* of .gitignore files, where git does not answer */
    const repository *git; /* of the folder that is listed; NULL: git does not answer */
    dt_workdir_left_list *left;
    int64_t counted;            /* entries below what is left out */
    int64_t largest;            /* entry of the largest file; -1: none */
    int64_t special, links_out; /* left out; links that lead out of the folder */
    int64_t without_git;        /* repositories for which git failed */
    const char *a_special, *a_link, *why_without_git;
    dt_arena *arena;
} listing;

/* --- files */

static const char *full_path(const listing *all, const char *path)
{
    return path[0] == '\0' ? all->folder : dt_arena_printf(all->arena, "%s/%s", all->folder, path);
}

static dt_status add(listing *all, dt_tree_entry entry, dt_error *err)
{
    dt_tree *tree = all->tree;

    if (tree->count == DT_TREE_ENTRIES_MAX)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "workdir '%s' has more than %d files, at '%s': name what is not needed in "
                       "'%s/" DT_WORKDIR_IGNORE_FILE "', or set workdir.ship: never if the nodes "
                       "have the folder",
                       all->folder, DT_TREE_ENTRIES_MAX, entry.path, all->folder);
    tree->entries = dt_arena_array_room(all->arena, tree->entries, tree->count + 1, &all->capacity,
                                        sizeof(entry));
    if (entry.kind == DT_TREE_FILE) {
        if (all->largest < 0 || entry.bytes > tree->entries[all->largest].bytes)
            all->largest = tree->count;
        tree->files++;
        tree->bytes += entry.bytes;
    }
    tree->entries[tree->count++] = entry;
    return DT_OK;
}

/* Returns true for a link that leads to a place outside of the folder. */
static bool leads_out(const char *path, const char *target)
{
    int depth = 0;

    if (target[0] == '/')
        return true;
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++)
        depth++;
    for (const char *at = target; *at != '\0'; at += strspn(at, "/")) {
        size_t length = strcspn(at, "/");

        if (length == 2 && strncmp(at, "..", 2) == 0)
            depth--;
        else if (length != 1 || at[0] != '.')
            depth++;
        if (depth < 0)
            return true;
        at += length;
    }
    return false;
}

static dt_status add_link(listing *all, const char *path, dt_error *err)
{
    char target[PATH_MAX];
    ssize_t length = readlink(full_path(all, path), target, sizeof(target) - 1);

    if (length < 0)
        return DT_OK; /* it vanished */
    target[length] = '\0';
    if (dt_utf8_valid_length(target, (size_t)length) != (size_t)length)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "workdir: the link '%s' leads to a name that is not UTF-8: rename it, or "
                       "name the link in " DT_WORKDIR_IGNORE_FILE,
                       full_path(all, path));
    if (leads_out(path, target) && all->links_out++ == 0)
        all->a_link = dt_arena_printf(all->arena, "%s -> %s", path, target);
    return add(all,
               (dt_tree_entry){.kind = DT_TREE_LINK,
                               .path = path,
                               .target = dt_arena_strdup(all->arena, target)},
               err);
}

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static dt_status add_file(listing *all, const char *path, const struct stat *info, dt_error *err)
{
    return add(all,
               (dt_tree_entry){.kind = DT_TREE_FILE,
                               .path = path,
                               .mode = (int64_t)(info->st_mode & 0777),
                               .bytes = (int64_t)info->st_size,
                               .time_ns = nanoseconds(&info->st_mtim),
                               .inode = (uint64_t)info->st_ino,
                               .device = (uint64_t)info->st_dev,
                               .changed_ns = nanoseconds(&info->st_ctim)},
               err);
}

static bool is_skipped(const struct dirent *entry)
{
    const char *name = entry->d_name;

    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0 ||
           strncmp(name, DT_WORKDIR_PROBE, strlen(DT_WORKDIR_PROBE)) == 0;
}

static int is_wanted(const struct dirent *entry)
{
    return !is_skipped(entry);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* --- what is left out */

/* Counts the files below a folder that is left out, up to a limit. */
static void count_below(listing *all, dt_workdir_left *left, const char *path, int depth)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat info;
    dt_strbuf below;

    dt_strbuf_init(&below);
    while (dir != NULL && all->counted < COUNTED_MAX && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        all->counted++;
        dt_strbuf_reset(&below);
        dt_strbuf_add_fmt(&below, "%s/%s", path, entry->d_name);
        if (lstat(below.data, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX)
            count_below(all, left, below.data, depth + 1);
        else if (S_ISREG(info.st_mode)) {
            left->files++;
            left->bytes += (int64_t)info.st_size;
        }
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&below);
}

static void leave_out(listing *all, const char *path, const char *rule, const struct stat *info)
{
    dt_workdir_left_list *list = all->left;
    dt_workdir_left one = {.path = path, .rule = rule};

    if (S_ISDIR(info->st_mode))
        count_below(all, &one, full_path(all, path), 0);
    else if (S_ISREG(info->st_mode))
        one = (dt_workdir_left){path, rule, 1, (int64_t)info->st_size};
    list->items =
        dt_arena_array_room(all->arena, list->items, list->count + 1, &list->capacity, sizeof(one));
    list->items[list->count++] = one;
}

/* --- which rules */

static dt_status add_lines(dt_ignore *to, const listing *all, const char *folder, const char *name,
                           dt_error *err)
{
    const char *file =
        dt_arena_printf(all->arena, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name);
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    st = dt_file_read(&text, full_path(all, file), RULES_BYTES_MAX, &problem);
    if (st == DT_OK)
        dt_ignore_add(to, folder, file, text.data, text.length);
    else if (st == DT_ERR_NOT_FOUND)
        st = DT_OK;
    else /* without its lines too much would be sent */
        st = DT_FAIL(err, DT_ERR_RECIPE, "workdir: %s", problem.message);
    dt_strbuf_release(&text);
    return st;
}

/* Asks git about the folder `path`, or about `taken_in` below it. */
static void ask_git(listing *all, const char *path, const char *taken_in)
{
    repository *git = dt_arena_alloc(all->arena, sizeof(*git));
    size_t length = strlen(path);
    dt_error problem = DT_ERROR_INIT;
    const char *at;

    git->front = length + (length > 0);
    all->git = git;
    if (dt_git_ignores_ask(&git->ignores, full_path(all, path),
                           taken_in != NULL ? taken_in + git->front : NULL, all->arena,
                           &problem) == DT_OK)
        return;
    all->git = NULL;
    if (all->without_git++ > 0)
        return;
    all->why_without_git =
        dt_arena_printf(all->arena, "'%s': %s", full_path(all, path), problem.message);
    at = strstr(problem.message, UNTRUSTED);
    if (at != NULL)
        all->why_without_git = dt_arena_printf(
            all->arena, "%s (if you trust it: git config --global --add safe.directory %s)",
            all->why_without_git, at + strlen(UNTRUSTED));
}

static bool has_git(const char *folder, size_t length, dt_arena *arena)
{
    return dt_file_exists(dt_arena_printf(arena, "%.*s/.git", (int)length, folder));
}

/* Returns true if the folder is in a git repository. */
static bool is_in_repository(const listing *all)
{
    for (size_t length = strlen(all->folder); length > 0; length--)
        if ((all->folder[length] == '\0' || all->folder[length] == '/') &&
            has_git(all->folder, length, all->arena))
            return true;
    return false;
}

/* Decides whether an entry is sent; notes one that is not. If .dtrunignore takes in a folder that git ignores, git is
 * asked again: its other rules apply there. */
static bool is_sent(listing *all, const char *path, const struct stat *info)
{
    bool is_folder = S_ISDIR(info->st_mode);
    const dt_ignore_line *line = dt_ignore_find(&all->lines, path, is_folder);
    const char *rule = NULL;

    if (all->git != NULL)
        rule = dt_git_ignores_find(&all->git->ignores, path + all->git->front, is_folder);
    if (line != NULL && line->takes_in) {
        if (is_folder && all->git != NULL &&
            dt_git_ignores_any(&all->git->ignores, path + all->git->front))
            ask_git(all, dt_arena_strndup(all->arena, path, all->git->front), path);
        return true;
    }
    if (line == NULL && rule == NULL && all->git == NULL)
        line = dt_ignore_find(&all->git_lines, path, is_folder);
    if (line != NULL && !line->takes_in)
        rule = dt_arena_printf(all->arena, "'%s' of %s", line->text, line->file);
    if (rule != NULL)
        leave_out(all, path, rule, info);
    return rule == NULL;
}

static dt_status list_folder(listing *all, const char *path, int depth, dt_error *err);

/* in: descriptor of the folder. */
static dt_status list_entry(listing *all, int in, const char *folder, const char *name, int depth,
                            dt_error *err)
{
    const char *path =
        dt_arena_printf(all->arena, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name);
    const repository *git = all->git;
    dt_status st = DT_OK;
    struct stat info;

    if (fstatat(in, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return DT_OK; /* it vanished */
    if (!is_sent(all, path, &info))
        return DT_OK;
    if (dt_utf8_valid_length(name, strlen(name)) != strlen(name))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "workdir: the name of '%s' is not UTF-8: rename it, or name it in "
                       "'%s/" DT_WORKDIR_IGNORE_FILE "' (with '?' for each other byte)",
                       full_path(all, path), all->folder);
    if (S_ISLNK(info.st_mode))
        return add_link(all, path, err);
    if (S_ISREG(info.st_mode))
        return add_file(all, path, &info, err);
    if (!S_ISDIR(info.st_mode)) {
        if (all->special++ == 0)
            all->a_special = path;
        return DT_OK;
    }
    DT_TRY(add(all,
               (dt_tree_entry){
                   .kind = DT_TREE_FOLDER, .path = path, .mode = (int64_t)(info.st_mode & 0777)},
               err));
    DT_TRY(list_folder(all, path, depth + 1, err));
out:
    all->git = git;
    return st;
}

static dt_status list_folder(listing *all, const char *path, int depth, dt_error *err)
{
    size_t lines = all->lines.count, git_lines = all->git_lines.count;
    struct dirent **names = NULL;
    dt_status st = DT_OK;
    int count = 0, in = -1;

    if (depth > DEPTH_MAX)
        DT_THROW(err, DT_ERR_RECIPE,
                 "workdir: '%s' is more than %d folders deep: name it in " DT_WORKDIR_IGNORE_FILE,
                 full_path(all, path), DEPTH_MAX);
    if (depth == 0 ? is_in_repository(all)
                   : has_git(full_path(all, path), strlen(full_path(all, path)), all->arena))
        ask_git(all, path, NULL);
    in = open(full_path(all, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    count = in >= 0 ? scandirat(in, ".", &names, is_wanted, by_bytes) : -1;
    if (count < 0 && depth > 0 && errno == ENOENT)
        count = 0; /* it vanished */
    if (count < 0)
        DT_THROW(err, DT_ERR_RECIPE, "workdir: cannot read the folder '%s': %s%s",
                 full_path(all, path), strerror(errno),
                 depth > 0 ? " (name it in " DT_WORKDIR_IGNORE_FILE " if it is not needed)" : "");
    DT_TRY(add_lines(&all->lines, all, path, DT_WORKDIR_IGNORE_FILE, err));
    if (all->git == NULL)
        DT_TRY(add_lines(&all->git_lines, all, path, ".gitignore", err));
    for (int i = 0; i < count; i++)
        DT_TRY(list_entry(all, in, path, names[i]->d_name, depth, err));
out:
    if (in >= 0)
        close(in);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    all->lines.count = lines;
    all->git_lines.count = git_lines;
    return st;
}

/* --- results */

static const char *size_text(int64_t bytes, dt_arena *arena)
{
    return bytes >= 1000000000 ? dt_arena_printf(arena, "%.1f GB", (double)bytes / 1e9)
           : bytes >= 1000000  ? dt_arena_printf(arena, "%.1f MB", (double)bytes / 1e6)
                               : dt_arena_printf(arena, "%lld kB", (long long)(bytes + 999) / 1000);
}

static dt_status check_size(const listing *all, int64_t max_bytes, dt_error *err)
{
    const dt_tree *tree = all->tree;
    const dt_tree_entry *largest;

    if (tree->bytes <= max_bytes)
        return DT_OK;
    largest = &tree->entries[all->largest];
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "workdir '%s' has %s in %lld files, more than workdir.max_mb %lld; the largest "
                   "file is '%s' with %s: put the line /%s into '%s/" DT_WORKDIR_IGNORE_FILE
                   "', raise workdir.max_mb, or set workdir.ship: never if the nodes have the "
                   "folder",
                   all->folder, size_text(tree->bytes, all->arena), (long long)tree->files,
                   (long long)(max_bytes / 1000000), largest->path,
                   size_text(largest->bytes, all->arena),
                   dt_ignore_escape(largest->path, all->arena), all->folder);
}

static void add_others(dt_strbuf *notes, int64_t count)
{
    if (count > 1)
        dt_strbuf_add_fmt(notes, " (and %lld more)", (long long)count - 1);
    dt_strbuf_add_char(notes, '\n');
}

static int by_rule(const void *a, const void *b)
{
    return strcmp(((const dt_workdir_left *)a)->rule, ((const dt_workdir_left *)b)->rule);
}

/* Adds a line for each rule with what it leaves out. */
static void add_left(dt_strbuf *notes, const listing *all)
{
    int64_t count = all->left->count;
    dt_workdir_left *items = dt_arena_alloc_array(all->arena, (size_t)count + 1, sizeof(*items));

    if (count > 0) {
        memcpy(items, all->left->items, (size_t)count * sizeof(*items));
        qsort(items, (size_t)count, sizeof(*items), by_rule);
    }
    for (int64_t i = 0; i < count;) {
        dt_workdir_left sum = items[i++];

        for (; i < count && strcmp(items[i].rule, sum.rule) == 0; i++) {
            sum.files += items[i].files;
            sum.bytes += items[i].bytes;
        }
        if (sum.files > 0)
            dt_strbuf_add_fmt(notes, "workdir: not sent by %s: %s%lld %s, %s\n", sum.rule,
                              all->counted >= COUNTED_MAX ? "more than " : "", (long long)sum.files,
                              sum.files == 1 ? "file" : "files", size_text(sum.bytes, all->arena));
    }
}

static void add_notes(dt_strbuf *notes, const listing *all)
{
    if (all->without_git > 0) {
        dt_strbuf_add_fmt(notes,
                          "workdir: git does not say what it ignores in %s; the .gitignore files "
                          "there are read without git, and files that they name are not sent even "
                          "if git tracks them",
                          all->why_without_git);
        add_others(notes, all->without_git);
    }
    add_left(notes, all);
    if (all->special > 0) {
        dt_strbuf_add_fmt(notes, "workdir: '%s' is left out: it is a socket, pipe or device",
                          all->a_special);
        add_others(notes, all->special);
    }
    if (all->links_out > 0) {
        dt_strbuf_add_fmt(notes, "workdir: sent as a link that leads out of the folder: '%s'",
                          all->a_link);
        add_others(notes, all->links_out);
    }
    if (all->tree->count == 0)
        dt_strbuf_add_fmt(notes, "workdir: '%s' has no files, or all are ignored\n", all->folder);
}

dt_status dt_workdir_list(dt_tree *out, dt_workdir_left_list *left, dt_strbuf *notes,
                          const char *folder, int64_t max_bytes, dt_arena *arena, dt_error *err)
{
    listing all = {.tree = out,
                   .left = left,
                   .largest = -1,
                   .lines.arena = arena,
                   .git_lines.arena = arena,
                   .arena = arena};
    dt_status st = DT_OK;
    char *real = realpath(folder, NULL);

    *out = (dt_tree){0};
    *left = (dt_workdir_left_list){0};
    if (real == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read workdir '%s': %s", folder, strerror(errno));
    all.folder = strcmp(real, "/") == 0 ? "" : dt_arena_strdup(arena, real);
    if (all.folder[0] == '\0')
        DT_THROW(err, DT_ERR_RECIPE, "workdir '/' cannot be sent to nodes: choose another folder");
    DT_TRY(list_folder(&all, "", 0, err));
    DT_TRY(check_size(&all, max_bytes, err));
    add_notes(notes, &all);
out:
    free(real);
    return st;
}

void dt_workdir_describe_changes(dt_strbuf *out, const dt_tree *before, const dt_tree *now,
                                 int64_t attempt)
{
    int64_t count = 0;
    dt_strbuf names;

    dt_strbuf_init(&names);
    for (int side = 0; side < 2; side++) {
        const dt_tree *one = side == 0 ? now : before, *other = side == 0 ? before : now;

        for (int64_t i = 0; i < one->count; i++) {
            const dt_tree_entry *entry = dt_tree_find(other, one->entries[i].path);

            if (entry != NULL && (side == 1 || dt_tree_entry_same(entry, &one->entries[i])))
                continue;
            if (count++ < 5)
                dt_strbuf_add_fmt(&names, "%s%s%s", names.length > 0 ? ", " : "",
                                  one->entries[i].path, side == 1 ? " (removed)" : "");
        }
    }
    if (count > 0)
        dt_strbuf_add_fmt(out, "%lld %s since attempt %lld: %s%s", (long long)count,
                          count == 1 ? "change" : "changes", (long long)attempt, names.data,
                          count > 5 ? ", ..." : "");
    dt_strbuf_release(&names);
}

void dt_workdir_mark(char **path, const char *folder)
{
    dt_strbuf name;
    int fd;

    *path = NULL;
    dt_strbuf_init(&name);
    dt_strbuf_add_fmt(&name, "%s/" DT_WORKDIR_PROBE "XXXXXX", folder);
    fd = mkostemp(name.data, O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        *path = dt_strbuf_detach(&name);
    }
    dt_strbuf_release(&name);
}

void dt_workdir_unmark(char *path)
{
    if (path != NULL)
        unlink(path);
    free(path);
}
