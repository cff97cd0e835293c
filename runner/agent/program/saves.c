/* saves: finds the checkpoints that a program writes. */

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "runner/agent/program/program_int.h"

#define STEP             "{step}"
#define PATHS_MOST       10000
#define FEW              16
#define DEPTH_MOST       32
#define DIGITS_MOST      15
#define INTERVAL_SECONDS 2.0

/* The files of a checkpoint as one look found them; equal if nothing changed until the next. */
typedef struct look {
    ino_t inode;
    int64_t files, bytes;
    int64_t newest_ns;      /* time of the last change, of folders too */
    int64_t newest_file_ns; /* the same, of files alone */
} look;

/* The program at a look. What exists before it starts is not reported. */
typedef enum program_phase { BEFORE, RUNNING, ENDED_WELL, DIED } program_phase;

typedef struct save {
    char *path;
    look files;
    int64_t own_ns;       /* when the file or folder itself last changed */
    double since_seconds; /* when these files were first seen, by the monotonic clock */
    int64_t step;         /* of the metrics at that time */
    bool reported;
} save;

struct dt_saves {
    const dt_recipe *recipe;
    const dt_reports *reports;
    const char *path; /* of the recipe, with the run's id */
    char *pattern;    /* the same below the recipe's folder, for glob: {step} is [0-9]* */
    double interval_seconds;
    double looked_seconds; /* by the monotonic clock */
    double ran_seconds;    /* a look began, and after it the program still ran; by the same clock */
    save *all;             /* [count], ascending by path */
    size_t count;
    const atomic_int_fast64_t *step; /* of the metrics */
    bool warned_paths, warned_text, found;
};

/* --- paths */

bool dt_saves_match(int64_t *step, const char *pattern, const char *path)
{
    const char *at = strstr(pattern, STEP);
    size_t length = strlen(path);
    bool fits = false;
    char *before, *copy;

    *step = -1;
    if (at == NULL)
        return fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0;
    before = dt_strdup(pattern);
    before[at - pattern] = '\0';
    copy = dt_strdup(path);
    for (size_t i = 0; i < length && !fits; i++) {
        size_t digits = strspn(path + i, "0123456789");

        if (digits == 0 || digits > DIGITS_MOST || (i > 0 && isdigit((unsigned char)path[i - 1])))
            continue;
        copy[i] = '\0';
        fits = fnmatch(before, copy, FNM_PATHNAME | FNM_PERIOD) == 0 &&
               fnmatch(at + strlen(STEP), path + i + digits, FNM_PATHNAME) == 0;
        copy[i] = path[i];
        if (fits)
            *step = strtoll(path + i, NULL, 10);
    }
    free(before);
    free(copy);
    return fits;
}

/* Returns whether a path that glob() found is one of the recipe's, as dt_saves_match does for its part
 * below the folder. */
static bool matches(int64_t *step, const dt_saves *saves, const char *path)
{
    const char *folder = saves->recipe->workdir.folder;

    if (saves->path[0] != '/' && folder[0] != '\0')
        path += strlen(folder) + 1;
    return dt_saves_match(step, saves->path, path);
}

/* Returns the last number in the path's last part; 0 without one. */
static int64_t number_in_name(const char *path)
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    int64_t number = 0;

    while (*name != '\0') {
        size_t digits = strspn(name, "0123456789");

        if (digits > 0 && digits <= DIGITS_MOST)
            number = strtoll(name, NULL, 10);
        name += digits > 0 ? digits : 1;
    }
    return number;
}

/* --- files */

static int64_t changed_ns(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

static void add_tree(look *out, const char *path, int depth)
{
    struct dirent *entry;
    struct stat info;
    dt_strbuf below;
    DIR *folder;

    if ((depth == 0 ? stat : lstat)(path, &info) != 0)
        return;
    if (changed_ns(&info) > out->newest_ns)
        out->newest_ns = changed_ns(&info);
    if (!S_ISDIR(info.st_mode)) {
        out->files++;
        out->bytes += info.st_size;
        if (changed_ns(&info) > out->newest_file_ns)
            out->newest_file_ns = changed_ns(&info);
        return;
    }
    folder = depth < DEPTH_MOST ? opendir(path) : NULL;
    if (folder == NULL)
        return;
    dt_strbuf_init(&below);
    while ((entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        dt_strbuf_reset(&below);
        dt_strbuf_add_fmt(&below, "%s/%s", path, entry->d_name);
        add_tree(out, below.data, depth + 1);
    }
    dt_strbuf_release(&below);
    closedir(folder);
}

static bool is_same(const look *a, const look *b)
{
    return a->inode == b->inode && a->files == b->files && a->bytes == b->bytes &&
           a->newest_ns == b->newest_ns;
}

/* Returns when the marker in the folder was written; -1: it is not there. */
static int64_t marker_ns(const char *path, const char *marker)
{
    struct stat info;
    dt_strbuf file;
    int64_t ns;

    dt_strbuf_init(&file);
    dt_strbuf_add_fmt(&file, "%s/%s", path, marker);
    ns = stat(file.data, &info) == 0 ? changed_ns(&info) : -1;
    dt_strbuf_release(&file);
    return ns;
}

/* --- a look */

static bool is_complete(const dt_saves *saves, const save *one, program_phase phase)
{
    const char *marker = saves->recipe->checkpoints.marker;
    double wait = saves->recipe->checkpoints.settle_seconds;

    if (one->files.files == 0)
        return false;
    if (marker[0] != '\0') {
        int64_t marked_ns = marker_ns(one->path, marker);

        if (marked_ns < 0)
            return false;
        /* after the program: no file is newer than the marker, as one of a checkpoint that was being written over */
        if (phase == DIED && marked_ns >= one->files.newest_file_ns)
            return true;
        wait = saves->interval_seconds / 2;
    }
    return phase == ENDED_WELL || saves->ran_seconds - one->since_seconds >= wait;
}

/* last: the program has ended well, so that other nodes have no part of it that is being written. */
static void report(dt_saves *saves, const save *one, bool last)
{
    int64_t step, metrics = one->step;

    matches(&step, saves, one->path);
    if (step < 0)
        step = metrics > 0 ? metrics : number_in_name(one->path);
    dt_reports_send(saves->reports,
                    json_pack("{s:s, s:I, s:s, s:I, s:s, s:n, s:n, s:n, s:b}", "event",
                              "checkpoint", "step", (json_int_t)step, "directory", one->path,
                              "bytes", (json_int_t)one->files.bytes, "digest", "", "valid_loss",
                              "score", "seconds", "last", (int)last));
}

/* Compares the files at the path with those of the last look; *one: the save of the last look, or a new one. */
static void compare(dt_saves *saves, save *one, bool first)
{
    struct stat info;
    look now = {0};

    if (stat(one->path, &info) != 0)
        return;
    /* where there are many, those that were reported are not searched for changes inside of their folders */
    if (saves->count > FEW && one->reported && one->files.inode == info.st_ino &&
        one->own_ns == changed_ns(&info))
        return;
    now.inode = info.st_ino;
    add_tree(&now, one->path, 0);
    one->own_ns = changed_ns(&info);
    if (is_same(&now, &one->files))
        return;
    one->files = now;
    one->since_seconds = dt_clock_monotonic_seconds();
    one->step = *saves->step;
    one->reported = first;
}

static bool is_wanted(dt_saves *saves, const char *path)
{
    int64_t step;

    if (!matches(&step, saves, path))
        return false;
    if (dt_utf8_valid_length(path, strlen(path)) == strlen(path))
        return true;
    if (!saves->warned_text)
        dt_reports_warn(saves->reports, "a checkpoint is left out: its name is not UTF-8");
    saves->warned_text = true;
    return false;
}

/* Replaces `all` by the paths that exist now; those of the last look are kept. Both lists are ascending. */
static void list(dt_saves *saves, const glob_t *paths)
{
    save *before = saves->all;
    size_t before_count = saves->count, at = 0;

    saves->all = dt_calloc(paths->gl_pathc + 1, sizeof(*saves->all));
    saves->count = 0;
    for (size_t i = 0; i < paths->gl_pathc; i++) {
        save *one = &saves->all[saves->count];

        if (!is_wanted(saves, paths->gl_pathv[i]))
            continue;
        if (saves->count == PATHS_MOST) {
            if (!saves->warned_paths)
                dt_reports_warn(saves->reports,
                                "more than %d paths match '%s': the others are left out",
                                PATHS_MOST, saves->path);
            saves->warned_paths = true;
            break;
        }
        while (at < before_count && strcmp(before[at].path, paths->gl_pathv[i]) < 0)
            free(before[at++].path);
        if (at < before_count && strcmp(before[at].path, paths->gl_pathv[i]) == 0)
            *one = before[at++];
        else
            one->path = dt_strdup(paths->gl_pathv[i]);
        saves->count++;
    }
    while (at < before_count)
        free(before[at++].path);
    free(before);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns whether the process runs. One that has died is a zombie until the agent's loop, which may be held up, takes
 * its exit code. */
static bool runs(pid_t pid)
{
    dt_proc_stat stat;

    return pid > 0 && dt_proc_stat_read(&stat, pid) && stat.state != 'Z' && stat.state != 'X';
}

/* pid: of the program while it runs, else 0. */
static void look_at_files(dt_saves *saves, program_phase phase, pid_t pid)
{
    double begun_seconds = dt_clock_monotonic_seconds();
    glob_t paths = {0};

    if (glob(saves->pattern, GLOB_NOSORT, NULL, &paths) != 0)
        paths.gl_pathc = 0;
    if (paths.gl_pathc > 0)
        qsort(paths.gl_pathv, paths.gl_pathc, sizeof(paths.gl_pathv[0]), by_bytes);
    list(saves, &paths);
    for (size_t i = 0; i < saves->count; i++)
        compare(saves, &saves->all[i], phase == BEFORE);
    if (runs(pid))
        saves->ran_seconds = begun_seconds;
    for (size_t i = 0; i < saves->count; i++) {
        save *one = &saves->all[i];

        if (one->reported || !is_complete(saves, one, phase))
            continue;
        report(saves, one, phase == ENDED_WELL);
        one->reported = saves->found = true;
    }
    globfree(&paths);
    saves->looked_seconds = dt_clock_monotonic_seconds();
}

/* --- from the start of the program to its end */

double dt_saves_interval_seconds(const dt_recipe *recipe)
{
    double settle = recipe->checkpoints.settle_seconds;

    return settle / 2 < INTERVAL_SECONDS ? settle / 2 : INTERVAL_SECONDS;
}

void dt_saves_open(dt_saves **out, const dt_plan *plan, const atomic_int_fast64_t *step,
                   const dt_reports *reports, dt_arena *arena)
{
    const dt_recipe *recipe = &plan->recipe;
    const char *number;
    dt_saves *saves;
    dt_strbuf text;

    *out = NULL;
    if (recipe->checkpoints.path[0] == '\0')
        return;
    saves = dt_calloc(1, sizeof(*saves));
    saves->recipe = recipe;
    saves->path = dt_program_replace_run(plan, recipe->checkpoints.path, arena);
    saves->step = step;
    saves->reports = reports;
    saves->interval_seconds = dt_saves_interval_seconds(recipe);
    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, dt_program_path(plan, recipe->checkpoints.path, true, arena));
    number = strstr(text.data, STEP);
    if (number != NULL)
        saves->pattern = dt_strdup(dt_arena_printf(arena, "%.*s[0-9]*%s", (int)(number - text.data),
                                                   text.data, number + strlen(STEP)));
    else
        saves->pattern = dt_strdup(text.data);
    dt_strbuf_release(&text);
    *out = saves;
    look_at_files(saves, BEFORE, 0);
}

void dt_saves_look(dt_saves *saves, pid_t pid)
{
    if (saves != NULL &&
        dt_clock_monotonic_seconds() - saves->looked_seconds >= saves->interval_seconds)
        look_at_files(saves, RUNNING, pid);
}

void dt_saves_end(dt_saves *saves, bool ended_well)
{
    if (saves == NULL)
        return;
    look_at_files(saves, ended_well ? ENDED_WELL : DIED, 0);
    if (ended_well && !saves->found)
        dt_reports_warn(saves->reports,
                        "the program saved nothing that matches 'checkpoints': '%s' in '%s'",
                        saves->path, saves->recipe->workdir.folder);
}

void dt_saves_close(dt_saves *saves)
{
    if (saves == NULL)
        return;
    for (size_t i = 0; i < saves->count; i++)
        free(saves->all[i].path);
    free(saves->all);
    free(saves->pattern);
    free(saves);
}
