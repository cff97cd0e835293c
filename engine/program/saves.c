#include "engine/program/saves.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/program/words.h"

#define STEP             "{step}"
#define PATHS_MOST       10000
#define FEW              16
#define DEPTH_MOST       32
#define DIGITS_MOST      15
#define INTERVAL_SECONDS 2.0

/* The files of a checkpoint as one look found them; equal if nothing changed until the next. */
typedef struct look {
    ino_t inode;
    int64_t files, bytes, newest_ns;
} look;

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
    dt_events *events;
    const char *path; /* of the recipe, with the run's id */
    char *pattern;    /* for glob: {step} is [0-9]* */
    double interval_seconds;
    save *all; /* [count], ascending by path */
    size_t count;
    atomic_int_fast64_t step;
    bool warned_paths, warned_text, found;
    bool running; /* the thread exists */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool ending; /* under the lock */
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

static bool has_marker(const char *path, const char *marker)
{
    struct stat info;
    dt_strbuf file;
    bool has;

    dt_strbuf_init(&file);
    dt_strbuf_add_fmt(&file, "%s/%s", path, marker);
    has = stat(file.data, &info) == 0;
    dt_strbuf_release(&file);
    return has;
}

/* --- a look */

static bool is_complete(const dt_saves *saves, const save *one, bool ended_well)
{
    const char *marker = saves->recipe->checkpoints.marker;
    double wait =
        marker[0] != '\0' ? saves->interval_seconds / 2 : saves->recipe->checkpoints.settle_seconds;

    if (one->files.files == 0 || (marker[0] != '\0' && !has_marker(one->path, marker)))
        return false;
    return ended_well || dt_clock_monotonic_seconds() - one->since_seconds >= wait;
}

/* last: the program has ended well, so that other nodes have no part of it that is being written. */
static dt_status report(dt_saves *saves, const save *one, bool last, dt_error *err)
{
    const char *folder = saves->recipe->workdir.folder;
    int64_t step, metrics = one->step;
    dt_strbuf path;
    dt_status st;

    dt_saves_match(&step, saves->path, one->path);
    if (step < 0)
        step = metrics > 0 ? metrics : number_in_name(one->path);
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s%s%s", one->path[0] == '/' ? "" : folder,
                      one->path[0] == '/' ? "" : "/", one->path);
    st = dt_events_send(saves->events,
                        json_pack("{s:s, s:I, s:s, s:I, s:s, s:n, s:n, s:n, s:b}", "event",
                                  "checkpoint", "step", (json_int_t)step, "directory", path.data,
                                  "bytes", (json_int_t)one->files.bytes, "digest", "", "valid_loss",
                                  "score", "seconds", "last", (int)last),
                        err);
    dt_strbuf_release(&path);
    return st;
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
    one->step = saves->step;
    one->reported = first;
}

static bool is_wanted(dt_saves *saves, const char *path)
{
    int64_t step;

    if (!dt_saves_match(&step, saves->path, path))
        return false;
    if (dt_utf8_valid_length(path, strlen(path)) == strlen(path))
        return true;
    if (!saves->warned_text)
        dt_log_warn("a checkpoint is left out: its name is not UTF-8");
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
                dt_log_warn("more than %d paths match '%s': the others are left out", PATHS_MOST,
                            saves->path);
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

/* first: what exists is not reported. */
static dt_status look_at_files(dt_saves *saves, bool first, bool ended_well, dt_error *err)
{
    dt_status st = DT_OK;
    glob_t paths = {0};

    if (glob(saves->pattern, GLOB_NOSORT, NULL, &paths) != 0)
        paths.gl_pathc = 0;
    if (paths.gl_pathc > 0)
        qsort(paths.gl_pathv, paths.gl_pathc, sizeof(paths.gl_pathv[0]), by_bytes);
    list(saves, &paths);
    for (size_t i = 0; i < saves->count; i++) {
        save *one = &saves->all[i];

        compare(saves, one, first);
        if (one->reported || !is_complete(saves, one, ended_well))
            continue;
        DT_TRY(report(saves, one, ended_well, err));
        one->reported = saves->found = true;
    }
out:
    globfree(&paths);
    return st;
}

/* --- the thread */

static void *run(void *context)
{
    dt_saves *saves = context;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    pthread_mutex_lock(&saves->lock);
    while (!saves->ending && st == DT_OK) {
        struct timespec until;
        double seconds = dt_clock_monotonic_seconds() + saves->interval_seconds;

        until.tv_sec = (time_t)seconds;
        until.tv_nsec = (long)(1e9 * (seconds - (double)until.tv_sec));
        while (!saves->ending &&
               pthread_cond_timedwait(&saves->ended, &saves->lock, &until) != ETIMEDOUT)
            continue;
        if (saves->ending)
            break;
        pthread_mutex_unlock(&saves->lock);
        st = look_at_files(saves, false, false, &problem); /* fails if the channel is lost */
        pthread_mutex_lock(&saves->lock);
    }
    pthread_mutex_unlock(&saves->lock);
    return NULL;
}

dt_status dt_saves_open(dt_saves **out, const dt_plan *plan, dt_events *events, dt_arena *arena,
                        dt_error *err)
{
    const dt_recipe *recipe = &plan->recipe;
    const char *path = dt_program_replace_run(plan, recipe->checkpoints.path, arena);
    const char *number = strstr(path, STEP);
    double settle = recipe->checkpoints.settle_seconds;
    pthread_condattr_t attributes;
    dt_saves *saves;
    dt_strbuf text;

    *out = NULL;
    if (path[0] == '\0')
        return DT_OK;
    saves = dt_calloc(1, sizeof(*saves));
    saves->recipe = recipe;
    saves->path = path;
    saves->events = events;
    saves->interval_seconds = settle / 2 < INTERVAL_SECONDS ? settle / 2 : INTERVAL_SECONDS;
    pthread_mutex_init(&saves->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&saves->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    dt_strbuf_init(&text);
    if (number != NULL)
        dt_strbuf_add_fmt(&text, "%.*s[0-9]*%s", (int)(number - path), path, number + strlen(STEP));
    else
        dt_strbuf_add_str(&text, path);
    saves->pattern = dt_strbuf_detach(&text);
    *out = saves;
    return look_at_files(saves, true, false, err);
}

dt_status dt_saves_start(dt_saves *saves, dt_error *err)
{
    if (saves == NULL)
        return DT_OK;
    if (pthread_create(&saves->thread, NULL, run, saves) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot start a thread that looks for checkpoints");
    saves->running = true;
    return DT_OK;
}

void dt_saves_note_step(dt_saves *saves, int64_t step)
{
    if (saves != NULL)
        saves->step = step;
}

static void end_thread(dt_saves *saves)
{
    if (!saves->running)
        return;
    pthread_mutex_lock(&saves->lock);
    saves->ending = true;
    pthread_cond_signal(&saves->ended);
    pthread_mutex_unlock(&saves->lock);
    pthread_join(saves->thread, NULL);
    saves->running = false;
}

void dt_saves_end(dt_saves *saves, bool ended_well)
{
    dt_error problem = DT_ERROR_INIT;

    if (saves == NULL)
        return;
    end_thread(saves);
    (void)look_at_files(saves, false, ended_well, &problem);
    if (ended_well && !saves->found)
        dt_log_warn("the program saved nothing that matches 'checkpoints': '%s' in '%s'",
                    saves->path, saves->recipe->workdir.folder);
}

void dt_saves_close(dt_saves *saves)
{
    if (saves == NULL)
        return;
    end_thread(saves);
    for (size_t i = 0; i < saves->count; i++)
        free(saves->all[i].path);
    free(saves->all);
    free(saves->pattern);
    pthread_cond_destroy(&saves->ended);
    pthread_mutex_destroy(&saves->lock);
    free(saves);
}
