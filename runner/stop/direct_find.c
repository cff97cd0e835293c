/* direct_find: finds the run that a name stands for without the history, from the folders of
 * runs or from what runs on a node. */
#include "runner/stop/direct.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/run_name.h"

#define PLAN_BYTES ((size_t)16 << 20)

typedef struct candidate {
    const char *id, *name;
    int64_t made_ns;
} candidate;

static const char *name_of(const char *folder, dt_arena *arena)
{
    json_t *plan = NULL;
    const char *name = "";
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-1/plan.json", folder);
    if (dt_json_read(&plan, path.data, PLAN_BYTES, NULL) == DT_OK) {
        const char *text =
            json_string_value(json_object_get(json_object_get(plan, "recipe"), "name"));

        name = text != NULL ? dt_arena_strdup(arena, text) : "";
    }
    json_decref(plan);
    dt_strbuf_release(&path);
    return name != NULL ? name : "";
}

/* Returns the launch time: no later attempt changes attempt-1/plan.json. */
static int64_t made_ns(const char *folder, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/attempt-1/plan.json", folder);
    struct stat info;

    if (stat(path, &info) != 0)
        return 0;
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static bool is_prefix(const char *ref, const char *id)
{
    return strlen(ref) >= DT_RUN_PREFIX_LEAST && strncmp(id, ref, strlen(ref)) == 0;
}

/* Returns how well the run matches: 0 not at all, 1 as a prefix, 2 by name, 3 "last", 4 exactly. */
static int fit_of(const candidate *one, const char *ref)
{
    if (strcmp(one->id, ref) == 0)
        return 4;
    if (strcmp(ref, DT_RUN_LAST) == 0)
        return 3;
    if (strcmp(one->name, ref) == 0)
        return 2;
    return is_prefix(ref, one->id) ? 1 : 0;
}

static dt_status check_named(const char *ref, dt_error *err)
{
    return ref[0] != '\0' ? DT_OK
                          : DT_FAIL(err, DT_ERR_USAGE,
                                    "the name of the run is empty: give an id, or the beginning of"
                                    " one");
}

dt_status dt_direct_find(const char **run, const char *ref, dt_arena *arena, dt_error *err)
{
    const char *state, *runs, *other = NULL;
    candidate best = {.made_ns = -1};
    struct dirent *entry;
    dt_status st = DT_OK;
    int best_fit = 0;
    DIR *dir = NULL;

    *run = NULL;
    DT_TRY(check_named(ref, err));
    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, err));
    runs = dt_arena_printf(arena, "%s/runs", state);
    dir = opendir(runs);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *folder = dt_arena_printf(arena, "%s/%s", runs, entry->d_name);
        candidate one = {.id = dt_arena_strdup(arena, entry->d_name)};
        int fit;

        if (entry->d_name[0] == '.')
            continue;
        one.name = name_of(folder, arena);
        one.made_ns = made_ns(folder, arena);
        fit = fit_of(&one, ref);
        if (fit == 1 && best_fit == 1)
            other = one.id;
        if (fit > best_fit || (fit > 1 && fit == best_fit && one.made_ns > best.made_ns)) {
            best = one;
            best_fit = fit;
        }
    }
    if (best_fit == 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run '%s' in the folder '%s'", ref, runs);
    if (best_fit == 1 && other != NULL)
        DT_THROW(err, DT_ERR_USAGE, "'%s' is the beginning of several runs, among them %s and %s",
                 ref, best.id, other);
    *run = best.id;
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

/* True if no earlier entry has the same run: several attempts of a run may have processes. */
static bool is_first_of(const json_t *runs, size_t at, const char *id)
{
    for (size_t i = 0; i < at; i++) {
        const char *before = json_string_value(json_object_get(json_array_get(runs, i), "run"));

        if (before != NULL && strcmp(before, id) == 0)
            return false;
    }
    return true;
}

dt_status dt_direct_pick(const char **run, const json_t *runs, const char *ref, dt_error *err)
{
    int64_t count = 0;
    dt_status st = DT_OK;
    dt_strbuf several;
    json_t *entry;
    size_t i;

    *run = NULL;
    dt_strbuf_init(&several);
    DT_TRY(check_named(ref, err));
    json_array_foreach(runs, i, entry) {
        const char *id = json_string_value(json_object_get(entry, "run"));

        if (id == NULL || (strcmp(id, ref) != 0 && !is_prefix(ref, id)) ||
            !is_first_of(runs, i, id))
            continue;
        *run = id;
        if (strcmp(id, ref) == 0)
            goto out;
        dt_strbuf_add_fmt(&several, "%s%s", count++ > 0 ? ", " : "", id);
    }
    if (count > 1)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is the beginning of several runs there: %s (give more of the id)", ref,
                 several.data);
out:
    dt_strbuf_release(&several);
    return st;
}
