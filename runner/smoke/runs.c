/* runs: creates the state folder of a smoke test, copies the folder of a command, launches runs there,
 * reads their history, and sets the results of checks. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "recipes/read/reader.h"
#include "runner/cli/command.h"
#include "runner/node_setup/workdir/contents.h"
#include "runner/smoke/smoke_int.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/term/term.h"

enum { WORDS_MAX = 32 };
#define STOP_SECONDS 60.0
#define LOOK_SECONDS 0.02

dt_status dt_smoke_place_open(dt_smoke_place *out, double limit_seconds, dt_arena *arena,
                              dt_error *err)
{
    const char *parent = getenv("TMPDIR");
    dt_status st = DT_OK;
    char *folder;

    *out = (dt_smoke_place){.arena = arena, .limit_seconds = limit_seconds};
    DT_TRY(dt_dir_program(&out->dtrun, "dtrun", NULL, arena, err));
    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    folder = dt_arena_printf(arena, "%s/dtrun-smoke.XXXXXX", parent);
    if (mkdtemp(folder) == NULL)
        DT_THROW(err, DT_ERR_IO,
                 "cannot create a folder in '%s': %s (set TMPDIR to a folder with free space)",
                 parent, strerror(errno));
    out->folder = folder;
    if (setenv("XDG_STATE_HOME", folder, 1) != 0)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
out:
    return st;
}

dt_status dt_smoke_place_call(json_t **out, int *exit_code, dt_smoke_place *place,
                              const char *const *words, dt_error *err)
{
    const char *argv[WORDS_MAX + 3] = {place->dtrun};
    dt_status st = DT_OK;
    dt_strbuf answer, errors;
    int count = 1;

    *out = NULL;
    dt_strbuf_init(&answer);
    dt_strbuf_init(&errors);
    for (; *words != NULL; words++) {
        DT_ASSERT(count < WORDS_MAX);
        argv[count++] = *words;
    }
    argv[count] = "--json";
    st = dt_child_run(
        exit_code,
        &(dt_child_call){
            .argv = argv, .out = &answer, .errors = &errors, .seconds = place->limit_seconds},
        err);
    if (st == DT_ERR_TIMEOUT)
        dt_error_prefix(err, "dtrun %s", argv[1]);
    DT_TRY(st);
    if (answer.length > 0)
        DT_TRY(dt_json_parse(out, answer.data, answer.length, argv[1], err));
out:
    dt_strbuf_release(&answer);
    dt_strbuf_release(&errors);
    return st;
}

/* Writes the recipe to NAME.yaml in the folder; *path lives in the arena. */
static dt_status smoke_place_write(const char **path, const dt_smoke_place *place, const char *name,
                                   const dt_recipe *recipe, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_recipe_write(&text, recipe);
    *path = dt_arena_printf(place->arena, "%s/%s.yaml", place->folder, name);
    DT_TRY(dt_file_write_atomic(*path, text.data, text.length, 0600, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Waits until the supervisor has ended; it would write to the folder that is removed. */
static dt_status await_supervisor(const char *run, dt_arena *arena, dt_error *err)
{
    double until = dt_clock_monotonic_seconds() + STOP_SECONDS;
    const char *path;
    int lock = -1;
    dt_status st;

    DT_TRY(dt_run_path(&path, run, "supervisor.lock", arena, err));
    while ((st = dt_file_lock(&lock, path, NULL)) == DT_ERR_BUSY) {
        if (dt_clock_monotonic_seconds() > until)
            DT_THROW(err, DT_ERR_IO, "the supervisor of run '%s' did not end", run);
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    if (st == DT_OK)
        close(lock);
    st = DT_OK; /* a lock that cannot be checked is ignored */
out:
    return st;
}

static dt_status end_one(dt_smoke_place *place, const dt_run *run, dt_error *err)
{
    const char *const words[] = {"stop", "--now", run->id, NULL};
    const char *const removal[] = {"rm", "--yes", run->id, NULL};
    json_t *answer = NULL;
    dt_status st = DT_OK;
    int exit_code = 0;

    if (!dt_run_state_is_terminal(run->state))
        DT_TRY(dt_smoke_place_call(&answer, &exit_code, place, words, err));
    if (exit_code != 0)
        DT_THROW(err, DT_ERR_IO, "cannot stop run '%s'", run->id);
    DT_TRY(await_supervisor(run->id, place->arena, err));
    if (place->remove_runs) { /* what a command left on other nodes */
        json_decref(answer);
        DT_TRY(dt_smoke_place_call(&answer, &exit_code, place, removal, err));
        if (exit_code != 0)
            DT_THROW(err, DT_ERR_IO, "cannot remove run '%s'", run->id);
    }
out:
    json_decref(answer);
    return st;
}

/* Stops every run in the folder. */
static dt_status end_all(dt_smoke_place *place, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;

    if (place->store == NULL && dt_store_open(&place->store, NULL, NULL) != DT_OK)
        return DT_OK; /* nothing ever ran */
    place->limit_seconds = STOP_SECONDS;
    DT_TRY(dt_store_run_list(place->store, &runs, &count, -1, 0, place->arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(end_one(place, &runs[i], err));
out:
    return st;
}

dt_status dt_smoke_place_close(dt_smoke_place *place, bool keep, dt_error *err)
{
    dt_status st = DT_OK;

    if (place->folder == NULL)
        return DT_OK;
    st = end_all(place, err);
    dt_store_close(place->store);
    place->store = NULL;
    if (st == DT_OK && !keep)
        st = dt_file_remove_tree(place->folder, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s' was kept", place->folder);
    return st;
}

/* copy: copies the folder of a command, for the runs of a smoke test. */

enum { MODE_BITS = 07777, DEPTH_MOST = 200 };

typedef struct copying {
    const char *from;
    const char *to;    /* NULL: only measure */
    const char *saved; /* pattern of checkpoints, relative; "": none */
    int64_t bytes, largest_bytes;
    const char *largest;
    dt_arena *arena;
} copying;

static dt_status copy_folder(copying *io, const char *path, int depth, dt_error *err);

static dt_status copy_link(const char *from, const char *to, const struct stat *info,
                           dt_arena *arena, dt_error *err)
{
    char *target = dt_arena_alloc(arena, (size_t)info->st_size + 1);
    ssize_t length = readlink(from, target, (size_t)info->st_size + 1);

    if (length < 0 || length > info->st_size)
        return DT_FAIL(err, DT_ERR_IO, "cannot read the link '%s': %s", from,
                       length < 0 ? strerror(errno) : "it changes");
    target[length] = '\0';
    return symlink(target, to) == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot create '%s': %s", to, strerror(errno));
}

/* Measures a file, and copies it unless only its size is asked for. */
static dt_status copy_file(copying *io, const char *path, const struct stat *info, dt_error *err)
{
    const char *from = dt_arena_printf(io->arena, "%s/%s", io->from, path);
    int64_t bytes = (int64_t)info->st_blocks * 512;

    io->bytes += bytes;
    if (bytes >= io->largest_bytes) {
        io->largest = path;
        io->largest_bytes = bytes;
    }
    if (io->to == NULL)
        return DT_OK;
    return dt_contents_copy_file(
        dt_arena_printf(io->arena, "%s/%s", io->to, path), from, info->st_mode & MODE_BITS,
        (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec, err);
}

/* Copies a file, link or folder with what is below. Sockets, pipes and devices are left out. */
static dt_status copy_entry(copying *io, const char *path, int depth, dt_error *err)
{
    const char *from = dt_arena_printf(io->arena, "%s/%s", io->from, path), *to;
    struct stat info;
    dt_status st = DT_OK;

    if (io->saved[0] != '\0' && fnmatch(io->saved, path, FNM_PATHNAME) == 0)
        goto out;
    if (lstat(from, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", from, strerror(errno));
    to = io->to != NULL ? dt_arena_printf(io->arena, "%s/%s", io->to, path) : NULL;
    if (S_ISREG(info.st_mode))
        DT_TRY(copy_file(io, path, &info, err));
    else if (S_ISLNK(info.st_mode) && to != NULL)
        DT_TRY(copy_link(from, to, &info, io->arena, err));
    if (!S_ISDIR(info.st_mode))
        goto out;
    if (to != NULL && mkdir(to, (info.st_mode & MODE_BITS) | S_IRWXU) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", to, strerror(errno));
    DT_TRY(copy_folder(io, path, depth + 1, err));
out:
    return st;
}

/* path: of the folder, relative; "": the whole. */
static dt_status copy_folder(copying *io, const char *path, int depth, dt_error *err)
{
    const char *folder = dt_arena_printf(io->arena, "%s/%s", io->from, path);
    DIR *entries = opendir(folder);
    dt_status st = DT_OK;
    struct dirent *entry;

    if (entries == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read the folder '%s': %s", folder, strerror(errno));
    if (depth > DEPTH_MOST)
        DT_THROW(err, DT_ERR_RECIPE, "the folder '%s' has more than %d levels", io->from,
                 DEPTH_MOST);
    while ((entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        DT_TRY(copy_entry(io,
                          path[0] == '\0'
                              ? dt_arena_strdup(io->arena, entry->d_name)
                              : dt_arena_printf(io->arena, "%s/%s", path, entry->d_name),
                          depth, err));
    }
out:
    if (entries != NULL)
        closedir(entries);
    return st;
}

/* Returns the pattern of the checkpoints of all runs: {step} and {run} become '*'. */
static const char *pattern_of(const char *path, dt_arena *arena)
{
    char *out = dt_arena_strdup(arena, path), *to = out;

    for (const char *at = path; *at != '\0'; at++) {
        if (strncmp(at, "{step}", strlen("{step}")) == 0 ||
            strncmp(at, "{run}", strlen("{run}")) == 0) {
            at = strchr(at, '}');
            *to++ = '*';
            continue;
        }
        *to++ = *at;
    }
    *to = '\0';
    return strncmp(out, "./", 2) == 0 ? out + 2 : out;
}

dt_status dt_smoke_place_copy(dt_recipe *io, const dt_smoke_place *place, const char *name,
                              dt_error *err)
{
    const char *to = dt_arena_printf(place->arena, "%s/%s-workdir", place->folder, name);
    copying work = {.from = io->workdir.folder, .largest = "", .arena = place->arena};
    char size[DT_FORMAT_SIZE], largest[DT_FORMAT_SIZE];
    dt_status st = DT_OK;

    work.saved = pattern_of(io->checkpoints.path, place->arena);
    DT_TRY(copy_folder(&work, "", 0, err));
    if (work.bytes > io->workdir.max_mb * 1000000)
        DT_THROW(err, DT_ERR_RECIPE,
                 "the test would copy '%s', which has %s (the largest file: '%s', %s), more than "
                 "workdir.max_mb (%lld): use --set workdir.max_mb=N, or move files out of the "
                 "folder",
                 work.from, dt_format_bytes(size, sizeof(size), (double)work.bytes), work.largest,
                 dt_format_bytes(largest, sizeof(largest), (double)work.largest_bytes),
                 (long long)io->workdir.max_mb);
    work.to = to;
    if (mkdir(to, S_IRWXU) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", to, strerror(errno));
    DT_TRY(copy_folder(&work, "", 0, err));
    io->workdir.folder = to;
out:
    return st;
}

#define RUN_LOOK_SECONDS 0.02
#define VARIABLE_BYTES   32

static dt_status open_store(dt_smoke_place *place, dt_error *err)
{
    return place->store != NULL ? DT_OK : dt_store_open(&place->store, NULL, err);
}

/* Converts the error object of a refused launch to an error. */
static dt_status refused(const json_t *answer, int exit_code, dt_error *err)
{
    const json_t *error = json_object_get(answer, "error");
    const char *message = json_string_value(json_object_get(error, "message"));

    if (dt_interrupt_seen())
        return DT_FAIL(err, DT_ERR_BUSY, "interrupted");
    if (message == NULL)
        return DT_FAIL(err, DT_ERR_IO, "dtrun launch started no run: exit code %d", exit_code);
    return DT_FAIL(err, DT_ERR_IO, "%s", message);
}

/* Launches detached: an interrupt would not reach a launch that follows the run. */
dt_status dt_smoke_launch(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                          const dt_recipe *recipe, dt_error *err)
{
    const char *words[] = {"launch", NULL, "--detach", NULL}, *id;
    json_t *answer = NULL;
    dt_status st = DT_OK;
    int exit_code = 0;

    out->recipe = *recipe;
    DT_TRY(smoke_place_write(&words[1], place, name, recipe, err));
    DT_TRY(dt_smoke_place_call(&answer, &exit_code, place, words, err));
    id = json_string_value(json_object_get(answer, "run"));
    if (id == NULL)
        DT_TRY(refused(answer, exit_code, err));
    DT_TRY(open_store(place, err));
    DT_TRY(dt_store_run_find(place->store, &out->row, id, place->arena, err));
out:
    json_decref(answer);
    return st;
}

dt_status dt_smoke_await(dt_smoke_run *io, dt_smoke_place *place, dt_smoke_seen *seen,
                         void *context, dt_error *err)
{
    double until = dt_clock_monotonic_seconds() + place->limit_seconds;
    dt_status st = DT_OK;
    dt_arena arena;
    dt_run row = io->row;

    dt_arena_init(&arena, 0);
    while (!dt_run_state_is_terminal(row.state) && !seen(place, &row, context, &arena)) {
        if (dt_interrupt_seen())
            DT_THROW(err, DT_ERR_BUSY, "interrupted");
        if (dt_clock_monotonic_seconds() > until) {
            st = DT_FAIL(err, DT_ERR_TIMEOUT, "the run is %s at step %lld after %.0f s (--limit)",
                         dt_run_state_name(row.state), (long long)row.step, place->limit_seconds);
            break;
        }
        dt_clock_sleep_seconds(RUN_LOOK_SECONDS);
        dt_arena_reset(&arena);
        DT_TRY(dt_store_run_find(place->store, &row, io->row.id, &arena, err));
    }
    if (st == DT_OK)
        DT_TRY(dt_store_run_find(place->store, &io->row, io->row.id, place->arena, err));
    else
        (void)dt_store_run_find(place->store, &io->row, io->row.id, place->arena, NULL);
out:
    dt_arena_release(&arena);
    return st;
}

static bool has_steps(dt_smoke_place *place, const dt_run *row, void *context, dt_arena *arena)
{
    (void)place;
    (void)arena;
    return row->step >= *(const int64_t *)context;
}

/* Waits until the run has done `steps` steps, or has ended. */
static dt_status await(dt_smoke_run *io, dt_smoke_place *place, int64_t steps, dt_error *err)
{
    return dt_smoke_await(io, place, has_steps, &steps, err);
}

static dt_status not_finished(const dt_run *row, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_IO, "the run is %s%s%s", dt_run_state_name(row->state),
                   row->reason[0] != '\0' ? ": " : "", row->reason);
}

dt_status dt_smoke_train(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, const char *planted, dt_error *err)
{
    double start = dt_clock_monotonic_seconds();
    char variable[VARIABLE_BYTES] = "";
    dt_status st = DT_OK;

    if (planted != NULL) {
        snprintf(variable, sizeof(variable), "%.*s", (int)strcspn(planted, "="), planted);
        setenv(variable, strchr(planted, '=') + 1, 1);
    }
    st = dt_smoke_launch(out, place, name, recipe, err);
    if (planted != NULL)
        unsetenv(variable);
    DT_TRY(st);
    DT_TRY(await(out, place, INT64_MAX, err));
    out->seconds = dt_clock_monotonic_seconds() - start;
    if (out->row.state != DT_RUN_FINISHED)
        DT_TRY(not_finished(&out->row, err));
out:
    return st;
}

dt_status dt_smoke_begin(dt_smoke_run *out, dt_smoke_place *place, const char *name,
                         const dt_recipe *recipe, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_smoke_launch(out, place, name, recipe, err));
    DT_TRY(await(out, place, 1, err));
    if (dt_run_state_is_terminal(out->row.state))
        DT_TRY(not_finished(&out->row, err));
out:
    return st;
}

dt_status dt_smoke_line_read(dt_smoke_line *out, const dt_smoke_place *place,
                             const dt_smoke_run *run, const char *metric, dt_error *err)
{
    return dt_store_metric_list(place->store, &out->points, &out->count, run->row.id, metric, -1,
                                false, place->arena, err);
}

/* result: sets the verdict and the figure of a check. */

static void say(dt_smoke_result *out, const dt_smoke *smoke, dt_smoke_verdict verdict,
                const char *fmt, va_list args)
{
    char line[sizeof(((dt_error *)0)->message)];

    vsnprintf(line, sizeof(line), fmt, args);
    out->verdict = verdict;
    out->figure = dt_arena_strdup(smoke->arena, line);
}

#define SAY(verdict)                           \
    do {                                       \
        va_list args;                          \
        va_start(args, fmt);                   \
        say(out, smoke, (verdict), fmt, args); \
        va_end(args);                          \
    } while (0)

void dt_smoke_figure(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
{
    SAY(DT_SMOKE_GOOD);
}

void dt_smoke_fail(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
{
    SAY(DT_SMOKE_FAILED);
}

void dt_smoke_skip(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
{
    SAY(DT_SMOKE_SKIPPED);
}
