/* run_list: filters, selects and sorts runs, and prints them as a table. */
#include "runner/view/runs/runs.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "recipes/fields/fields.h"
#include "runner/cli/options.h"
#include "runner/cli/tags.h"
#include "runner/term/term.h"

dt_status dt_run_key_check(dt_store *store, const char *key, dt_error *err)
{
    const char *names[DT_FIELDS_MAX + 1] = {NULL}, *meant;
    bool known = dt_run_key_is_own(key);
    dt_status st = DT_OK;

    for (size_t i = 0; i < dt_fields_count; i++) {
        known = known || strcmp(dt_fields[i].path, key) == 0;
        names[i] = dt_fields[i].path;
    }
    if (known)
        return DT_OK;
    DT_TRY(dt_run_key_is_metric(store, &known, key, err));
    if (known)
        return DT_OK;
    meant = dt_suggest(key, names);
    if (meant != NULL)
        DT_THROW(err, DT_ERR_USAGE, "no run has '%s' (did you mean '%s'?)", key, meant);
    DT_THROW(err, DT_ERR_USAGE,
             "no run has '%s'; expected a recipe key, a metric, or a key of 'dtrun list --json'",
             key);
out:
    return st;
}

/* --- times */

static bool parse_ago(int64_t *wall_ms, const char *text, int64_t now_ms)
{
    static const char units[] = "smhdw";
    static const int64_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
    const char *unit;
    double number;
    char *end;

    number = strtod(text, &end);
    unit = *end != '\0' && end[1] == '\0' ? strchr(units, *end) : NULL;
    if (end == text || unit == NULL || !(number >= 0 && number < 1e9))
        return false;
    *wall_ms = now_ms - (int64_t)(number * 1000 * (double)seconds[unit - units]);
    return true;
}

static bool parse_date(int64_t *wall_ms, const char *text)
{
    static const char *const forms[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm parts = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &parts);

        if (end != NULL && (*end == '\0' || strcmp(end, "Z") == 0)) {
            *wall_ms = (int64_t)(*end == '\0' ? mktime(&parts) : timegm(&parts)) * 1000;
            return true;
        }
    }
    return false;
}

dt_status dt_since_parse(int64_t *wall_ms, const char *text, int64_t now_ms, dt_error *err)
{
    if (parse_ago(wall_ms, text, now_ms) || parse_date(wall_ms, text))
        return DT_OK;
    return DT_FAIL(
        err, DT_ERR_USAGE,
        "expected a time such as 90m, 2h, 3d, 2026-11-20 or '2026-11-20 14:30', not '%s'", text);
}

/* Whether the filter and order of the SQL query suffice. */
bool dt_run_selection_is_plain(const dt_run_selection *selection)
{
    return selection->since_ms == 0 && selection->tags_count == 0 && selection->group == NULL &&
           selection->name == NULL && selection->filters_count == 0 && selection->sort == NULL;
}

/* Whether the selection leaves the run out because it is archived. */
static bool is_hidden(const dt_run_selection *selection, const dt_run *run)
{
    for (size_t i = 0; i < selection->tags_count; i++)
        if (strcmp(selection->tags[i], DT_ARCHIVED) == 0)
            return false;
    return !selection->archived && dt_tags_have(run->tags, DT_ARCHIVED);
}

static bool passes_labels(const dt_run_selection *selection, const dt_run *run)
{
    for (size_t i = 0; i < selection->tags_count; i++)
        if (!dt_tags_have(run->tags, selection->tags[i]))
            return false;
    return run->created_ms >= selection->since_ms &&
           (selection->group == NULL || strcmp(run->group, selection->group) == 0) &&
           (selection->name == NULL || fnmatch(selection->name, run->name, 0) == 0);
}

static dt_status passes(bool *out, dt_store *store, const dt_run_selection *selection,
                        dt_run_entry *entry, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_run_value value;

    *out = passes_labels(selection, entry->run);
    for (size_t i = 0; i < selection->filters_count && *out; i++) {
        DT_TRY(dt_run_value_get(&value, store, entry, selection->filters[i].key, arena, err));
        *out = dt_run_filter_passes(&selection->filters[i], &value);
    }
out:
    return st;
}

static dt_status check_keys(dt_store *store, const dt_run_selection *selection, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < selection->filters_count; i++)
        DT_TRY(dt_run_key_check(store, selection->filters[i].key, err));
    if (selection->sort != NULL)
        DT_TRY(dt_run_key_check(store, selection->sort, err));
out:
    return st;
}

/* --- order */

typedef struct sorted {
    dt_run_entry entry;
    dt_run_value value;
    size_t place; /* order of equal values: newest first */
} sorted;

static int compare(const void *left, const void *right, void *descending)
{
    const sorted *a = left, *b = right;
    int order = dt_run_value_order(&a->value, &b->value, *(const bool *)descending);

    return order != 0 ? order : a->place < b->place ? -1 : 1;
}

static dt_status sort(dt_run_entries *entries, dt_store *store, const dt_run_selection *selection,
                      dt_arena *arena, dt_error *err)
{
    sorted *all = dt_arena_alloc_array(arena, entries->count + 1, sizeof(all[0]));
    bool descending = selection->descending;
    dt_status st = DT_OK;

    for (size_t i = 0; i < entries->count; i++) {
        DT_TRY(dt_run_value_get(&all[i].value, store, &entries->items[i], selection->sort, arena,
                                err));
        all[i].entry = entries->items[i];
        all[i].place = i;
    }
    qsort_r(all, entries->count, sizeof(all[0]), compare, &descending);
    for (size_t i = 0; i < entries->count; i++)
        entries->items[i] = all[i].entry;
out:
    return st;
}

/* Releases the entries beyond the limit. */
static void cut(dt_run_entries *entries, int64_t limit)
{
    if (limit <= 0 || entries->count <= (size_t)limit)
        return;
    entries->more = true;
    for (size_t i = (size_t)limit; i < entries->count; i++)
        dt_run_entry_release(&entries->items[i]);
    entries->count = (size_t)limit;
}

dt_status dt_run_select(dt_run_entries *out, dt_store *store, const dt_run_selection *selection,
                        dt_arena *arena, dt_error *err)
{
    int64_t limit =
        dt_run_selection_is_plain(selection) && selection->limit > 0 ? selection->limit + 1 : 0;
    int64_t count;
    dt_status st = DT_OK;
    dt_run *runs;
    bool good;

    *out = (dt_run_entries){0};
    DT_TRY(check_keys(store, selection, err));
    for (;; limit *= 2) { /* archived runs among the newest ones make room for older ones */
        int64_t shown = 0;

        DT_TRY(dt_store_run_list(store, &runs, &count, selection->state, limit, arena, err));
        for (int64_t i = 0; i < count; i++)
            shown += !is_hidden(selection, &runs[i]);
        if (limit == 0 || count < limit || shown > selection->limit)
            break;
    }
    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(out->items[0]));
    for (int64_t i = 0; i < count; i++) {
        dt_run_entry *entry = &out->items[out->count];

        *entry = (dt_run_entry){.run = &runs[i]};
        DT_TRY(passes(&good, store, selection, entry, arena, err));
        if (good && is_hidden(selection, entry->run)) {
            out->archived++;
            good = false;
        }
        if (good)
            out->count++;
        else
            dt_run_entry_release(entry);
    }
    if (selection->sort != NULL)
        DT_TRY(sort(out, store, selection, arena, err));
    cut(out, selection->limit);
out:
    return st;
}

void dt_run_entries_release(dt_run_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        dt_run_entry_release(&entries->items[i]);
    *entries = (dt_run_entries){0};
}

enum { DIFFERING_MOST = 8, DIFFERING_RUNS = 500, USUAL_COUNT = 10, COLUMNS_MOST = 64 };

dt_status dt_run_columns_parse(dt_run_columns *out, dt_store *store, const char *text,
                               dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_run_columns){.usual = text[0] == '+'};
    text += text[0] == '+';
    out->keys = dt_arena_alloc_array(arena, COLUMNS_MOST, sizeof(out->keys[0]));
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        const char *key = dt_arena_printf(arena, "%.*s", (int)length, text);

        text += length + (text[length] == ',');
        if (length == 0)
            continue;
        DT_TRY(dt_run_key_check(store, key, err));
        if (out->count == COLUMNS_MOST)
            DT_THROW(err, DT_ERR_USAGE, "--columns: at most %d", COLUMNS_MOST);
        out->keys[out->count++] = key;
    }
out:
    return st;
}

void dt_run_columns_differing(dt_run_columns *out, dt_run_entries *entries, dt_arena *arena)
{
    size_t kept = 0;

    *out = (dt_run_columns){.usual = true};
    if (entries->count > DIFFERING_RUNS)
        return; /* too many runs to show how their recipes differ */
    dt_recipe_diff(&out->keys, &out->count, entries->items, entries->count, arena);
    for (size_t i = 0; i < out->count; i++) /* values of the environment can be long, and secret */
        if (strcmp(out->keys[i], "env") != 0)
            out->keys[kept++] = out->keys[i];
    out->count = kept;
    if (out->count > DIFFERING_MOST)
        out->count = DIFFERING_MOST;
}

/* The usual columns; `spare` as in dt_table. Group and tags are left out if no run has any. */
static const struct {
    const char *title;
    bool right;
    int spare;
} usual[USUAL_COUNT] = {{"run", false, 0},  {"name", false, 0},   {"state", false, 0},
                        {"step", true, 1},  {"loss", true, 2},    {"validation loss", true, 4},
                        {"speed", true, 5}, {"created", true, 3}, {"group", false, 6},
                        {"tags", false, 7}};
enum { SPEED_AT = 6, GROUP_AT = 8, TAGS_AT = 9, SPARE_FIRST = 8 };

static bool any_has(const dt_run_entries *entries, size_t usual_at)
{
    for (size_t i = 0; i < entries->count; i++) {
        const dt_run *run = entries->items[i].run;

        if ((usual_at == GROUP_AT ? run->group : run->tags)[0] != '\0')
            return true;
    }
    return usual_at < GROUP_AT;
}

static const char mixed_speeds[] = "speed (last)";

/* The unit of the speeds of all runs; mixed_speeds if they differ, and each row then names its own. */
static const char *speed_title(const dt_run_entries *entries)
{
    const char *unit = entries->count > 0 ? dt_runs_speed(entries->items[0].run) : "tokens/s";

    for (size_t i = 1; i < entries->count; i++)
        if (strcmp(unit, dt_runs_speed(entries->items[i].run)) != 0)
            return mixed_speeds;
    return strcmp(unit, "rows/s") == 0 ? "rows/s (last)" : "tokens/s (last)";
}

/* Which of the usual columns are shown. */
typedef struct usual_cells {
    size_t count;
    bool shown[USUAL_COUNT];
    bool names_unit; /* each speed has its unit */
    int64_t now_ms;
} usual_cells;

static void add_speed(dt_table *table, const dt_run *run, double speed, bool names_unit)
{
    char number[DT_FORMAT_SIZE];

    dt_format_count(number, sizeof(number), speed);
    if (names_unit && !isnan(speed))
        dt_table_add(table, DT_STYLE_PLAIN, "%s %s", number, dt_runs_speed(run));
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%s", number);
}

static void add_usual(dt_table *table, const dt_run *run, const dt_activity *activity,
                      const usual_cells *cells)
{
    bool holds = activity->steps || dt_run_state_is_terminal(run->state);
    char a[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_BOLD, "%s", run->id);
    if (cells->count == 1)
        return;
    dt_table_add(table, DT_STYLE_PLAIN, "%s", run->name);
    dt_table_add(table, dt_runs_activity_style(run, activity), "%s",
                 dt_runs_shown_state(run, activity));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_runs_progress(a, sizeof(a), "/", run));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_format_loss(a, sizeof(a), run->loss));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_format_loss(a, sizeof(a), run->valid_loss));
    add_speed(table, run, holds ? run->tokens_per_second : NAN, cells->names_unit);
    dt_table_add(table, DT_STYLE_DIM, "%s",
                 dt_format_ago(a, sizeof(a), run->created_ms, cells->now_ms));
    if (cells->shown[GROUP_AT])
        dt_table_add(table, DT_STYLE_PLAIN, "%s", run->group);
    if (cells->shown[TAGS_AT])
        dt_table_add(table, DT_STYLE_PLAIN, "%s", run->tags);
}

/* Returns the last part of an absolute path, and other texts unchanged. */
static const char *shortened(const char *text)
{
    const char *slash = strrchr(text, '/');

    return text[0] == '/' && slash != NULL && slash[1] != '\0' ? slash + 1 : text;
}

/* Returns the title of a key; numbers that apply to each node, such as 'ranks', get "per node". */
static const char *title_of(const char *key, dt_arena *arena)
{
    const dt_field *field = dt_field_find(key);
    const char *title = NULL;

    if (field != NULL && field->unit != NULL && strcmp(field->unit, "per node") == 0)
        title = dt_arena_printf(arena, "%s per node", key);
    return title != NULL ? title : key;
}

static bool is_number_column(dt_store *store, dt_run_entries *entries, const char *key,
                             dt_arena *arena)
{
    dt_run_value value;

    return entries->count > 0 &&
           dt_run_value_get(&value, store, &entries->items[0], key, arena, NULL) == DT_OK &&
           value.is_number;
}

static dt_status add_rows(dt_table *table, dt_store *store, dt_run_entries *entries,
                          const dt_run_columns *columns, const usual_cells *cells, dt_arena *arena,
                          dt_error *err)
{
    dt_activity activity;
    dt_status st = DT_OK;
    dt_run_value value;

    for (size_t i = 0; i < entries->count; i++) {
        dt_run_entry *entry = &entries->items[i];

        DT_TRY(dt_activity_read(&activity, store, entry->run, cells->now_ms, arena, err));
        add_usual(table, entry->run, &activity, cells);
        for (size_t c = 0; c < columns->count; c++) {
            DT_TRY(dt_run_value_get(&value, store, entry, columns->keys[c], arena, err));
            dt_table_add(table, DT_STYLE_PLAIN, "%s", value.there ? shortened(value.text) : "-");
        }
    }
out:
    return st;
}

dt_status dt_run_table_write(dt_strbuf *out, const dt_term *term, dt_store *store,
                             dt_run_entries *entries, const dt_run_columns *columns,
                             dt_arena *arena, dt_error *err)
{
    dt_table_column titles[USUAL_COUNT + COLUMNS_MOST];
    int spare[USUAL_COUNT + COLUMNS_MOST];
    const char *speed = columns->usual ? speed_title(entries) : "";
    usual_cells cells = {.count = columns->usual ? USUAL_COUNT : 1,
                         .names_unit = strcmp(speed, mixed_speeds) == 0,
                         .now_ms = dt_clock_wall_ms()};
    size_t count = 0;
    dt_table table;
    dt_status st;

    for (size_t i = 0; i < cells.count; i++) {
        cells.shown[i] = any_has(entries, i);
        if (!cells.shown[i])
            continue;
        spare[count] = usual[i].spare;
        titles[count++] = (dt_table_column){i == SPEED_AT ? speed : usual[i].title, usual[i].right};
    }
    for (size_t i = 0; i < columns->count; i++) {
        spare[count] = SPARE_FIRST + (int)i;
        titles[count++] =
            (dt_table_column){title_of(columns->keys[i], arena),
                              is_number_column(store, entries, columns->keys[i], arena)};
    }
    dt_table_init(&table, titles, count, arena);
    table.spare = spare;
    DT_TRY(add_rows(&table, store, entries, columns, &cells, arena, err));
    dt_table_write(out, &table, term, 0);
out:
    return st;
}
