#include "runner/view/runs/run_select.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/tags.h"

/* Whether the filter and order of the SQL query suffice. */
bool dt_run_selection_is_plain(const dt_run_selection *selection)
{
    return selection->since_ms == 0 && selection->tags_count == 0 && selection->group == NULL &&
           selection->name == NULL && selection->filters_count == 0 && selection->sort == NULL;
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

/* False for a value that is unknown or not a number: it comes last in both orders. */
static bool counts(const dt_run_value *value)
{
    return value->there && !(value->is_number && isinf(value->number));
}

static int compare(const void *left, const void *right, void *descending)
{
    const sorted *a = left, *b = right;
    int order = dt_run_value_order(&a->value, &b->value);

    if (*(const bool *)descending && counts(&a->value) && counts(&b->value))
        order = -order;
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
    int64_t count, limit = dt_run_selection_is_plain(selection) && selection->limit > 0
                               ? selection->limit + 1
                               : 0;
    dt_status st = DT_OK;
    dt_run *runs;
    bool good;

    *out = (dt_run_entries){0};
    DT_TRY(check_keys(store, selection, err));
    DT_TRY(dt_store_run_list(store, &runs, &count, selection->state, limit, arena, err));
    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(out->items[0]));
    for (int64_t i = 0; i < count; i++) {
        dt_run_entry *entry = &out->items[out->count];

        *entry = (dt_run_entry){.run = &runs[i]};
        DT_TRY(passes(&good, store, selection, entry, arena, err));
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
