#include "recipes/read/reader.h"

#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reading.h"

typedef struct axis {
    const dt_field *field;
    const char *path, *name; /* name: of a field that is a map of names, as in args.lr; else NULL */
    dt_yaml_node *list;
    int64_t count;
} axis;

static dt_status refuse(const dt_reading *reading, const dt_text_mark *mark, const char *path,
                        const char *message)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "'" DT_RECIPE_SWEEP_KEY "': ");
    if (path != NULL) {
        dt_text_show(&text, path);
        dt_strbuf_add_char(&text, ' ');
    }
    dt_strbuf_add_str(&text, message);
    return dt_reading_refuse(reading, mark, &text);
}

/* --- swept fields */

/* Fields that define the sweep itself cannot be swept. */
static bool is_about_sweeps(const char *path)
{
    return strcmp(path, "name") == 0 || strncmp(path, "search.", strlen("search.")) == 0 ||
           strncmp(path, "early_stop.", strlen("early_stop.")) == 0;
}

static dt_status refuse_path(const dt_reading *reading, const dt_yaml_node *entry)
{
    const char *path = entry->key->text;
    char found[DT_SUGGEST_SIZE];
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, "'" DT_RECIPE_SWEEP_KEY "': ");
    dt_text_show_word(&text, path);
    if (dt_field_is_map(path))
        dt_strbuf_add_str(&text,
                          " is a map: sweep one of its fields, as in 'optimizer.lr: [1e-4, 3e-4]'");
    else if (dt_suggest_field(found, "", path) != NULL)
        dt_strbuf_add_fmt(&text, " is not a field (did you mean '%s'?)", found);
    else
        dt_strbuf_add_str(&text, " is not a field (expected for example optimizer.lr)");
    return dt_reading_refuse(reading, &entry->key->mark, &text);
}

static dt_status read_axis(axis *out, dt_reading *reading, const axis *before, size_t count,
                           dt_yaml_node *entry)
{
    const char *path = dt_field_unalias(entry->key->text);
    const dt_text_mark *mark = &entry->key->mark, *given;

    *out = (axis){.field = dt_field_find(path), .path = path, .list = entry};
    if (out->field == NULL)
        out->field = dt_reading_assignment(&out->name, path);
    if (out->field == NULL)
        return refuse_path(reading, entry);
    if (is_about_sweeps(path))
        return refuse(reading, mark, path, "cannot be swept");
    for (size_t i = 0; i < count; i++)
        if (strcmp(before[i].path, path) == 0)
            return refuse(reading, mark, path, "is listed twice");
    given = &reading->field[out->field - dt_fields];
    if (given->source != NULL && strncmp(given->source, "--set ", strlen("--set ")) == 0)
        return refuse(reading, mark, path, "is also set by --set: remove one");
    if (entry->kind != DT_YAML_LIST)
        return refuse(reading, &entry->mark, path, "takes a list of values");
    for (const dt_yaml_node *item = entry->first; item != NULL; item = item->next)
        out->count++;
    if (out->count == 0)
        return refuse(reading, &entry->mark, path, "has no values");
    return DT_OK;
}

/* Reads the swept fields and their values. *bad: an error was reported, and the sweep is unusable. */
static dt_status read_axes(axis *axes, size_t *count, bool *bad, dt_reading *reading)
{
    dt_yaml_node *map = reading->sweep;
    dt_status st = DT_OK;

    *count = 0;
    *bad = map->kind != DT_YAML_MAP || map->first == NULL;
    if (*bad)
        return refuse(reading, &map->mark, NULL,
                      "expected a map of fields with a list of values each, as in "
                      "{optimizer.lr: [1e-4, 3e-4], seed: [1, 2]}");
    for (dt_yaml_node *entry = map->first; entry != NULL; entry = entry->next) {
        *bad = *bad || *count == DT_SWEEP_AXES;
        st = *count == DT_SWEEP_AXES
                 ? refuse(reading, &entry->mark, NULL, "has more than 16 fields")
                 : read_axis(&axes[*count], reading, axes, *count, entry);
        *bad = *bad || st != DT_OK;
        DT_TRY(dt_reading_report(reading, st, DT_RECIPE_SWEEP_KEY));
        if (*count < DT_SWEEP_AXES)
            (*count)++;
        else
            break;
    }
out:
    return st;
}

/* --- points of a sweep */

static dt_status count_points(int64_t *out, int64_t *grid, const dt_reading *reading,
                              const axis *axes, size_t count)
{
    const dt_recipe *recipe = reading->recipe;
    const dt_text_mark *mark = &reading->sweep->mark;

    *grid = 1;
    for (size_t i = 0; i < count; i++) {
        if (recipe->search.kind == DT_SEARCH_ZIP && axes[i].count != axes[0].count)
            return refuse(reading, &axes[i].list->mark, axes[i].path,
                          "has a different number of values than the first field, which 'search: "
                          "zip' requires to be equal");
        *grid *= axes[i].count;
        if (*grid > DT_SWEEP_POINTS)
            return refuse(reading, mark, NULL, "it has more than 10,000 points");
    }
    *out = recipe->search.kind == DT_SEARCH_ZIP ? axes[0].count : *grid;
    if (recipe->search.kind != DT_SEARCH_RANDOM)
        return DT_OK;
    if (recipe->search.count == 0)
        return refuse(reading, mark, NULL,
                      "'search: random' requires 'search.count', the number of points");
    *out = recipe->search.count < *grid ? recipe->search.count : *grid;
    return DT_OK;
}

/* Draws a random number by splitmix64 (Steele et al. 2014). */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns a point of the grid in a random order from the seed. */
static int64_t drawn(int64_t point, int64_t grid, int64_t seed, dt_arena *arena)
{
    int64_t *order = dt_arena_alloc_array(arena, (size_t)grid, sizeof(*order));
    uint64_t state = (uint64_t)seed;

    for (int64_t i = 0; i < grid; i++)
        order[i] = i;
    for (int64_t i = 0; i <= point; i++) {
        int64_t other = i + (int64_t)(draw(&state) % (uint64_t)(grid - i)), held = order[i];

        order[i] = order[other];
        order[other] = held;
    }
    return order[point];
}

/* --- a point */

/* Applies a value in the folder of the layer with the sweep, as a separate source, so that the field's other
 * value is not a duplicate. */
static dt_status apply_value(dt_reading *reading, const axis *of, int64_t which, const char **value)
{
    dt_yaml_node *item = of->list->first;

    for (; which > 0; which--)
        item = item->next;
    item->mark.source = dt_arena_strdup(reading->arena, item->mark.source);
    *value = dt_origin_value(of->field, item, reading->arena);
    if (of->name != NULL)
        return dt_reading_apply_assignment(reading, of->field, of->name, item);
    return dt_reading_apply(reading, of->field->path, &of->list->key->mark, item);
}

static dt_status apply_point(dt_reading *reading, dt_sweep *sweep, const axis *axes, int64_t grid)
{
    const dt_recipe *recipe = reading->recipe;
    int64_t place = sweep->point;
    dt_status st = DT_OK;

    if (recipe->search.kind == DT_SEARCH_RANDOM)
        place = drawn(place, grid, recipe->search.seed, reading->arena);
    for (size_t i = sweep->axes; i-- > 0;) {
        int64_t which = recipe->search.kind == DT_SEARCH_ZIP ? place : place % axes[i].count;

        sweep->paths[i] = axes[i].path;
        st = apply_value(reading, &axes[i], which, &sweep->values[i]);
        DT_TRY(dt_reading_report(reading, st, DT_RECIPE_SWEEP_KEY));
        place /= recipe->search.kind == DT_SEARCH_ZIP ? 1 : axes[i].count;
    }
out:
    return st;
}

dt_status dt_sweep_apply(dt_reading *reading, dt_sweep *sweep)
{
    dt_sweep first = {0}, *of = sweep != NULL ? sweep : &first;
    const char *folder = reading->folder;
    axis axes[DT_SWEEP_AXES];
    int64_t grid = 0;
    dt_status st = DT_OK;
    bool bad;

    of->points = 0;
    if (reading->sweep == NULL)
        return DT_OK;
    st = read_axes(axes, &of->axes, &bad, reading);
    DT_TRY(dt_reading_report(reading, st, DT_RECIPE_SWEEP_KEY));
    if (bad)
        goto out;
    st = count_points(&of->points, &grid, reading, axes, of->axes);
    if (st != DT_OK) {
        of->points = 0;
        DT_TRY(dt_reading_report(reading, st, DT_RECIPE_SWEEP_KEY));
        goto out;
    }
    DT_ASSERT(of->point >= 0 && of->point < of->points);
    reading->layer++;
    reading->folder = reading->sweep_folder;
    DT_TRY(apply_point(reading, of, axes, grid));
out:
    reading->folder = folder;
    return st;
}
