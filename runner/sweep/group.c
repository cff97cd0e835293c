#include "runner/sweep/group.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/file.h"
#include "recipes/read/origins.h"
#include "recipes/read/reader.h"

enum { FILE_MAX_BYTES = 64 << 20, NAMES_TRIED = 1000 };
enum { NAME_MOST = 56 }; /* leaves room for the number of a point */

static dt_status sweeps_folder(const char **out, dt_arena *arena, dt_error *err)
{
    const char *state;
    dt_status st;

    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, err));
    *out = dt_arena_printf(arena, "%s/sweeps", state);
out:
    return st;
}

dt_status dt_group_folder(const char **out, const char *name, dt_arena *arena, dt_error *err)
{
    const char *parent;
    dt_status st;

    DT_TRY(sweeps_folder(&parent, arena, err));
    *out = dt_arena_printf(arena, "%s/%s", parent, name);
out:
    return st;
}

/* --- writing */

static dt_status write_text(const dt_sweep_group *group, const char *file, const char *text,
                            size_t length, dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", group->folder, file);
    st = dt_file_write_atomic(path.data, text, length, 0600, err);
    dt_strbuf_release(&path);
    return st;
}

static dt_status write_json(const dt_sweep_group *group, const char *file, json_t *json,
                            dt_error *err)
{
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, json);
    st = write_text(group, file, text.data, text.length, err);
    dt_strbuf_release(&text);
    json_decref(json);
    return st;
}

/* Sets the origin of a point's name: the sweep's name plus a number. */
static void name_point(json_t *origins, const char *name)
{
    json_t *chain = json_object_get(json_object_get(origins, "fields"), "name");

    if (json_array_size(chain) > 0)
        json_object_set_new(json_array_get(chain, 0), "value", dt_json_text(name));
}

static dt_status write_points(const dt_sweep_group *group, const dt_recipe *recipes, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < group->count; i++) {
        char file[64];

        snprintf(file, sizeof(file), "point-%lld.yaml", (long long)i + 1);
        dt_strbuf_reset(&text);
        dt_recipe_write(&text, &recipes[i]);
        DT_TRY(write_text(group, file, text.data, text.length, err));
        if (group->points[i].origins == NULL)
            continue;
        snprintf(file, sizeof(file), "point-%lld" DT_ORIGINS_ENDING, (long long)i + 1);
        dt_strbuf_reset(&text);
        name_point(group->points[i].origins, recipes[i].name);
        dt_json_write_pretty(&text, group->points[i].origins);
        DT_TRY(write_text(group, file, text.data, text.length, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

static json_t *to_json(const dt_sweep_group *group)
{
    json_t *points = json_array();

    for (int64_t i = 0; i < group->count; i++)
        json_array_append_new(points,
                              json_pack("{s:o, s:o}", "name", dt_json_text(group->points[i].name),
                                        "values", dt_json_text(group->points[i].values)));
    return json_pack("{s:i, s:o, s:I, s:I, s:o, s:I, s:f, s:o, s:b, s:I, s:s, s:o}", "sweep", 1,
                     "group", dt_json_text(group->name), "at_once", (json_int_t)group->at_once,
                     "nodes", (json_int_t)group->nodes, "metric", dt_json_text(group->metric),
                     "after", (json_int_t)group->after, "keep", group->keep, "tags",
                     dt_json_text(group->tags), "queues", (int)group->queues, "priority",
                     (json_int_t)group->priority, "comes_after", group->after_runs, "points",
                     points);
}

dt_status dt_group_write_progress(const dt_sweep_group *group, dt_error *err)
{
    json_t *points = json_array();

    for (int64_t i = 0; i < group->count; i++) {
        const dt_sweep_point *point = &group->points[i];

        json_array_append_new(points,
                              json_pack("{s:s, s:o, s:I, s:b}", "run", point->run, "problem",
                                        dt_json_text(point->problem), "cut", (json_int_t)point->cut,
                                        "again", (int)point->again));
    }
    return write_json(
        group, "progress.json",
        json_pack("{s:i, s:b, s:o}", "progress", 1, "ended", group->ended, "points", points), err);
}

static dt_status take_name(dt_sweep_group *io, const char *wanted, dt_arena *arena, dt_error *err)
{
    const char *parent;
    dt_status st;

    if (strchr(wanted, '/') != NULL || wanted[0] == '.')
        DT_THROW(err, DT_ERR_USAGE,
                 "invalid sweep name '%s': the name must be valid as a folder name", wanted);
    DT_TRY(dt_dir_make(&parent, DT_DIR_STATE, arena, err));
    DT_TRY(sweeps_folder(&parent, arena, err));
    DT_TRY(dt_file_make_dirs(parent, 0700, err));
    for (int i = 1; i < NAMES_TRIED; i++) {
        io->name = i == 1 ? wanted : dt_arena_printf(arena, "%s.%d", wanted, i);
        DT_TRY(dt_group_folder(&io->folder, io->name, arena, err));
        if (mkdir(io->folder, 0700) == 0)
            return DT_OK;
        if (errno != EEXIST)
            DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", io->folder, strerror(errno));
    }
    DT_THROW(err, DT_ERR_IO, "no free name for a group found: '%s' and so on are taken", wanted);
out:
    io->folder = NULL;
    return st;
}

/* Names the points after the recipe, with what take_name has added to the name of the group: the runs of one
 * recipe in groups of one name stay distinct. */
static void name_points(dt_sweep_group *io, const char *wanted, dt_recipe *recipes, dt_arena *arena)
{
    const char *base =
        dt_arena_printf(arena, "%.*s%s", NAME_MOST, recipes[0].name, io->name + strlen(wanted));

    for (int64_t i = 0; i < io->count; i++) {
        io->points[i].name = dt_arena_printf(arena, "%s-%lld", base, (long long)i + 1);
        recipes[i].name = io->points[i].name;
    }
}

dt_status dt_group_make(dt_sweep_group *io, const char *wanted, dt_recipe *recipes,
                        const char *text, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(take_name(io, wanted, arena, err));
    name_points(io, wanted, recipes, arena);
    DT_TRY(write_text(io, "recipe.yaml", text, strlen(text), err));
    DT_TRY(write_points(io, recipes, err));
    DT_TRY(dt_group_write_progress(io, err));
    DT_TRY(write_json(io, "sweep.json", to_json(io), err)); /* this file makes it a group */
out:
    if (st != DT_OK && io->folder != NULL)
        (void)dt_file_remove_tree(io->folder, NULL);
    return st;
}

/* --- reading */

static dt_status read_json(json_t **out, const char *folder, const char *file, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, file);
    st = dt_json_read(out, path.data, FILE_MAX_BYTES, &problem);
    if (st != DT_OK)
        st = DT_FAIL(err, st, "%s", problem.message);
    dt_strbuf_release(&path);
    return st;
}

static dt_status get_text(const char **out, const json_t *object, const char *key, dt_arena *arena,
                          dt_error *err)
{
    const char *text;
    dt_status st;

    DT_TRY(dt_json_get_string(&text, object, key, "a sweep", err));
    *out = dt_arena_strdup(arena, text);
out:
    return st;
}

static dt_status read_points(dt_sweep_group *out, const json_t *sweep, const json_t *progress,
                             dt_arena *arena, dt_error *err)
{
    const json_t *points = json_object_get(sweep, "points"),
                 *done = json_object_get(progress, "points");
    dt_status st = DT_OK;

    out->count = (int64_t)json_array_size(points);
    out->points = dt_arena_alloc_array(arena, (size_t)out->count + 1, sizeof(out->points[0]));
    for (int64_t i = 0; i < out->count; i++) {
        const json_t *point = json_array_get(points, (size_t)i),
                     *of = json_array_get(done, (size_t)i);
        dt_sweep_point *to = &out->points[i];

        DT_TRY(get_text(&to->name, point, "name", arena, err));
        DT_TRY(get_text(&to->values, point, "values", arena, err));
        DT_TRY(get_text(&to->run, of, "run", arena, err));
        DT_TRY(get_text(&to->problem, of, "problem", arena, err));
        DT_TRY(dt_json_get_int(&to->cut, of, "cut", "a sweep", err));
        to->again = json_is_true(json_object_get(of, "again")); /* missing in older files */
    }
out:
    return st;
}

dt_status dt_group_read(dt_sweep_group *out, const char *name, dt_arena *arena, dt_error *err)
{
    json_t *sweep = NULL, *progress = NULL;
    dt_status st = DT_OK;

    *out = (dt_sweep_group){0};
    if (strchr(name, '/') != NULL || name[0] == '.' || name[0] == '\0')
        DT_THROW(err, DT_ERR_NOT_FOUND, "sweep '%s' not found", name);
    DT_TRY(dt_group_folder(&out->folder, name, arena, err));
    DT_TRY(read_json(&sweep, out->folder, "sweep.json", err));
    DT_TRY(read_json(&progress, out->folder, "progress.json", err));
    DT_TRY(get_text(&out->name, sweep, "group", arena, err));
    DT_TRY(get_text(&out->metric, sweep, "metric", arena, err));
    DT_TRY(get_text(&out->tags, sweep, "tags", arena, err));
    DT_TRY(dt_json_get_int(&out->at_once, sweep, "at_once", "a sweep", err));
    DT_TRY(dt_json_get_int_or(&out->nodes, sweep, "nodes", 0, "a sweep",
                              err)); /* missing in older files: all */
    DT_TRY(dt_json_get_int(&out->after, sweep, "after", "a sweep", err));
    DT_TRY(dt_json_get_number(&out->keep, sweep, "keep", "a sweep", err));
    /* The next three are missing in older files. */
    out->queues = json_is_true(json_object_get(sweep, "queues"));
    DT_TRY(dt_json_get_int_or(&out->priority, sweep, "priority", 0, "a sweep", err));
    DT_TRY(dt_json_get_string_or(&out->after_runs, sweep, "comes_after", "", "a sweep", err));
    out->after_runs = dt_arena_strdup(arena, out->after_runs);
    DT_TRY(dt_json_get_bool(&out->ended, progress, "ended", "a sweep", err));
    DT_TRY(read_points(out, sweep, progress, arena, err));
out:
    json_decref(sweep);
    json_decref(progress);
    return st;
}

/* A damaged group is skipped: nothing can be done for it. */
static bool has_state(const char *name, bool ended, dt_arena *arena)
{
    dt_sweep_group group;

    return name[0] != '.' && dt_group_read(&group, name, arena, NULL) == DT_OK &&
           group.ended == ended;
}

static void add_name(const char ***names, int64_t *count, int64_t *room, const char *name,
                     dt_arena *arena)
{
    *names = dt_arena_array_room(arena, *names, *count + 1, room, sizeof(**names));
    (*names)[*count] = dt_arena_strdup(arena, name);
    (*count)++;
}

dt_status dt_group_list(const char ***out, int64_t *count, bool ended, dt_arena *arena,
                        dt_error *err)
{
    const char *folder;
    struct dirent *entry;
    int64_t room = 0;
    DIR *dir = NULL;
    dt_status st;

    *count = 0;
    *out = NULL;
    DT_TRY(sweeps_folder(&folder, arena, err));
    dir = opendir(folder); /* NULL: there is no sweep yet */
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (has_state(entry->d_name, ended, arena))
            add_name(out, count, &room, entry->d_name, arena);
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

dt_status dt_group_hold(int *lock, const dt_sweep_group *group, dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/driver.lock", group->folder);
    dt_status st = DT_OK;

    *lock = -1;
    DT_TRY(dt_file_lock(lock, path, err));
out:
    return st;
}

dt_status dt_group_read_recipe(dt_strbuf *out, const dt_sweep_group *group, size_t max_bytes,
                               dt_error *err)
{
    dt_strbuf path;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/recipe.yaml", group->folder);
    st = dt_file_read(out, path.data, max_bytes, err);
    dt_strbuf_release(&path);
    return st;
}

/* --- stop */

/* Two files, because an empty file can be created on a full disk. */
dt_status dt_group_ask_stop(const dt_sweep_group *group, bool now, dt_error *err)
{
    const char *text = now ? "now\n" : "\n"; /* format that drivers before 0.3 read */
    dt_status st = DT_OK;

    if (now)
        DT_TRY(write_text(group, "stop.now", "", 0, err));
    if (write_text(group, "stop", text, strlen(text), NULL) != DT_OK)
        DT_TRY(write_text(group, "stop", "", 0, err));
out:
    return st;
}

static bool is_there(const dt_sweep_group *group, const char *name)
{
    dt_strbuf path;
    bool there;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", group->folder, name);
    there = dt_file_exists(path.data);
    dt_strbuf_release(&path);
    return there;
}

dt_status dt_group_forget_stop(const dt_sweep_group *group, dt_error *err)
{
    static const char *const names[] = {"stop", "stop.now"};
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s", group->folder, names[i]);
        DT_TRY(dt_file_remove_tree(path.data, err));
    }
out:
    dt_strbuf_release(&path);
    return st;
}

bool dt_group_stop_asked(const dt_sweep_group *group, bool *now)
{
    *now = is_there(group, "stop.now");
    return *now || is_there(group, "stop");
}
