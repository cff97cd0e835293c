#include "runner/smoke/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "recipes/read/writer.h"
#include "runner/supervisor/folder/run_folder.h"

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

dt_status dt_smoke_place_write(const char **path, const dt_smoke_place *place, const char *name,
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
