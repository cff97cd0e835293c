/* import: collects runs and points of other programs, and writes all of them into the history in one
 * transaction. */
#include "runner/import/import.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/metric_kinds.h"
#include "base/names.h"
#include "runner/launch/attempt.h"
#include "runner/supervisor/folder/run_folder.h"
#include "store/curve.h"

void dt_imported_init(dt_imported *out, dt_arena *arena)
{
    *out = (dt_imported){.arena = arena};
}

void dt_imported_release(dt_imported *imported)
{
    free(imported->points);
    imported->points = NULL;
}

static void names_add(dt_import_names *names, const char *name, dt_arena *arena)
{
    names->items = dt_arena_array_room(arena, names->items, names->count + 1, &names->capacity,
                                       sizeof(names->items[0]));
    names->items[names->count++] = name;
}

static const char *shown(const char *name, dt_arena *arena)
{
    const char *copy;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_display_add(&text, name, strlen(name));
    for (size_t i = 0; i < text.length; i++)
        if (text.data[i] == '\n' || text.data[i] == '\t')
            text.data[i] = ' ';
    copy = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    return copy;
}

void dt_import_name(int32_t *out, dt_import_names *names, const char *name, dt_arena *arena)
{
    const char *clean = shown(name, arena);

    for (*out = 0; *out < names->count; (*out)++)
        if (strcmp(names->items[*out], clean) == 0)
            return;
    names_add(names, clean, arena);
}

void dt_import_recipe(dt_imported *imported, int32_t run, const char *json)
{
    dt_import_names *recipes = &imported->recipes;

    while (recipes->count <= run)
        names_add(recipes, "{}", imported->arena);
    recipes->items[run] = dt_arena_strdup(imported->arena, json);
}

dt_status dt_import_add(dt_imported *imported, const dt_import_point *point, dt_error *err)
{
    if (imported->count == DT_IMPORT_POINTS_MOST)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "more than %d points: split the file",
                       DT_IMPORT_POINTS_MOST);
    imported->points = dt_array_room(imported->points, imported->count + 1, &imported->capacity,
                                     sizeof(imported->points[0]));
    imported->points[imported->count] = *point;
    imported->points[imported->count].number = imported->count;
    imported->count++;
    return DT_OK;
}

/* Turns the name in the file into a valid name of a run. Other names in the file that would become the same name
 * get different ones (name_apart), and the note keeps the original. */
static const char *make_name(const char *given, dt_arena *arena)
{
    char name[DT_RUN_NAME_MAX_BYTES + 1];
    size_t length = 0;

    for (; *given != '\0' && length < DT_RUN_NAME_MAX_BYTES; given++) {
        bool plain = (unsigned char)*given < 128 && isalnum((unsigned char)*given);
        bool inside = *given == '_' || (length > 0 && (*given == '.' || *given == '-'));

        name[length++] = plain || inside ? *given : '_';
    }
    name[length] = '\0';
    if (strcmp(name, DT_RUN_LAST) == 0)
        return DT_RUN_LAST "_";
    return dt_arena_strdup(arena, length > 0 ? name : "imported");
}

/* Returns the name of run `at`, with a number if an earlier run of the file has it for another original. */
static const char *name_apart(const dt_imported *imported, int32_t at)
{
    const char *const *given = imported->runs.items;
    const char *name = make_name(given[at], imported->arena);
    int64_t number = 1;

    for (int32_t i = 0; i < at; i++)
        if (strcmp(given[i], given[at]) != 0 &&
            strcmp(make_name(given[i], imported->arena), name) == 0)
            number++;
    return number == 1 ? name
                       : dt_arena_printf(imported->arena, "%.*s-%lld", DT_RUN_NAME_MAX_BYTES - 8,
                                         name, (long long)number);
}

static int by_place(const void *a, const void *b)
{
    const dt_import_point *left = a, *right = b;

    if (left->run != right->run)
        return left->run < right->run ? -1 : 1;
    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->metric != right->metric)
        return left->metric < right->metric ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* The progress of a run, computed from its points. */
typedef struct progress {
    int64_t step, first_ms, last_ms;
    double loss, valid_loss, speed;
} progress;

static void look(progress *p, const dt_import_point *point, const char *metric)
{
    p->step = point->step > p->step ? point->step : p->step;
    p->first_ms = point->time_ms < p->first_ms ? point->time_ms : p->first_ms;
    p->last_ms = point->time_ms > p->last_ms ? point->time_ms : p->last_ms;
    if (strcmp(metric, dt_metric_name(DT_METRIC_LOSS)) == 0)
        p->loss = isfinite(point->value) ? point->value : INFINITY;
    else if (strcmp(metric, dt_metric_name(DT_METRIC_VALID_LOSS)) == 0)
        p->valid_loss = isfinite(point->value) ? point->value : INFINITY;
    else if (isnan(point->value))
        return;
    else if (strcmp(metric, dt_metric_name(DT_METRIC_TOKENS_PER_SECOND)) == 0)
        p->speed = point->value;
}

static bool is_overwritten(const dt_import_point *point, const dt_import_point *next)
{
    return next->run == point->run && next->step == point->step && next->metric == point->metric;
}

/* Adds points in order of steps, so that each bucket of the pyramid is written once. */
static dt_status add_points(progress *p, dt_store *store, dt_imported *imported, const char *id,
                            int64_t from, int64_t to, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = from; i < to; i++) {
        const dt_import_point *point = &imported->points[i];
        const char *metric = imported->metrics.items[point->metric];

        look(p, point, metric);
        if (i + 1 < to && is_overwritten(point, point + 1))
            continue;
        DT_TRY(dt_store_metric_add(store, id, 1, point->step, metric, point->value, point->time_ms,
                                   err));
        imported->stored++;
    }
out:
    return st;
}

static const char *recipe_of(const dt_imported *imported, int32_t run)
{
    return run < imported->recipes.count ? imported->recipes.items[run] : "{}";
}

static dt_status add_run(dt_store *store, dt_imported *imported, const char *id, const char *given,
                         const dt_import_source *source, int64_t from, int64_t to, dt_error *err)
{
    int64_t now_ms = dt_clock_wall_ms();
    progress p = {.first_ms = INT64_MAX, .loss = NAN, .valid_loss = NAN, .speed = NAN};
    dt_run run = {.id = id,
                  .state = DT_RUN_QUEUED,
                  .attempt = 1,
                  .recipe_path = source->path,
                  .recipe_text = "",
                  .recipe_json = recipe_of(imported, imported->points[from].run),
                  .recipe_hash = "",
                  .reason = "",
                  .boot_id = "",
                  .loss = NAN,
                  .valid_loss = NAN,
                  .tokens_per_second = NAN};
    dt_status st = DT_OK;

    for (int64_t i = from; i < to; i++)
        p.first_ms =
            imported->points[i].time_ms < p.first_ms ? imported->points[i].time_ms : p.first_ms;
    run.created_ms = p.first_ms < now_ms && p.first_ms > 0 ? p.first_ms : now_ms;
    run.name = name_apart(imported, imported->points[from].run);
    run.steps_total = imported->points[to - 1].step;
    run.note =
        strcmp(run.name, given) == 0
            ? dt_arena_printf(imported->arena, "imported from '%s'", source->path)
            : dt_arena_printf(imported->arena, "'%s', imported from '%s'", given, source->path);
    DT_TRY(dt_store_run_add(store, &run, err));
    DT_TRY(dt_store_run_set_state(store, id, DT_RUN_RUNNING, 0, "", run.created_ms, err));
    DT_TRY(add_points(&p, store, imported, id, from, to, err));
    DT_TRY(dt_store_run_set_progress(store, id, p.step, p.loss, p.valid_loss, p.speed,
                                     run.created_ms, err));
    DT_TRY(dt_store_run_set_state(store, id, DT_RUN_FINISHED, 0, "",
                                  p.last_ms > run.created_ms ? p.last_ms : run.created_ms, err));
out:
    return st;
}

/* Sets the labels that are given; a note replaces the note on the origin. */
static dt_status label(dt_store *store, const char *id, const dt_labels *labels, dt_arena *arena,
                       dt_error *err)
{
    const dt_labels given = {.tags = labels->tags, .note = labels->note, .group = labels->group};

    if (given.tags == NULL && given.note == NULL && given.group == NULL)
        return DT_OK;
    return dt_labels_change(store, id, &given, arena, err);
}

static dt_status write_all(const char **ids, dt_store *store, dt_imported *imported,
                           const dt_import_source *source, const dt_labels *labels, dt_error *err)
{
    int64_t from = 0, to;
    dt_status st = DT_OK;

    for (; from < imported->count; from = to) {
        int32_t run = imported->points[from].run;

        for (to = from; to < imported->count && imported->points[to].run == run;)
            to++;
        DT_TRY(
            add_run(store, imported, ids[run], imported->runs.items[run], source, from, to, err));
        DT_TRY(label(store, ids[run], labels, imported->arena, err));
    }
out:
    return st;
}

/* Applies --name: the name of a single run, or a prefix of all names. */
static void rename_runs(dt_imported *imported, const char *const *ids, const char *name)
{
    int32_t count = imported->runs.count, named = 0;

    for (int32_t i = 0; i < count; i++)
        named += ids[i] != NULL;
    for (int32_t i = 0; i < count; i++) {
        const char **of = &imported->runs.items[i];

        *of = named == 1 ? name : dt_arena_printf(imported->arena, "%s-%s", name, *of);
    }
}

dt_status dt_import_write(const char ***out, dt_store *store, dt_imported *imported,
                          const dt_import_source *source, const char *name, const dt_labels *labels,
                          dt_error *err)
{
    int32_t count = imported->runs.count;
    const char **ids, **folders;
    dt_status st = DT_OK;

    if (imported->count == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' has no points", source->path);
    qsort(imported->points, (size_t)imported->count, sizeof(imported->points[0]), by_place);
    ids = dt_arena_alloc_array(imported->arena, (size_t)count, sizeof(ids[0]));
    folders = dt_arena_alloc_array(imported->arena, (size_t)count, sizeof(folders[0]));
    for (int64_t i = 0; i < imported->count; i++) { /* a run may have no points */
        int32_t run = imported->points[i].run;

        if (ids[run] == NULL)
            DT_TRY(dt_run_id_take(&ids[run], &folders[run], imported->arena, err));
    }
    if (name != NULL)
        rename_runs(imported, ids, name);
    imported->stored = 0;
    DT_TRY(dt_store_begin(store, err));
    st = write_all(ids, store, imported, source, labels, err);
    if (st == DT_OK)
        st = dt_store_commit(store, err);
    if (st != DT_OK)
        dt_store_rollback(store);
    *out = ids;
out:
    for (int32_t i = 0; st != DT_OK && i < count; i++)
        if (folders[i] != NULL)
            (void)dt_file_remove_tree(folders[i], NULL);
    return st;
}
