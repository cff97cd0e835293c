/* list_filters: filters of lists and dicts. */
#include <stdlib.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

static dt_jinja_value pair(dt_jinja_run *run, dt_jinja_value first, dt_jinja_value second)
{
    dt_jinja_value made = dt_value_list(run, DT_SHAPE_TUPLE, 2);

    dt_jinja_append(run, made, first);
    dt_jinja_append(run, made, second);
    return made;
}

static dt_jinja_value copy(dt_jinja_run *run, const dt_jinja_list *list, int shape)
{
    dt_jinja_value made = dt_value_list(run, shape, list->count);

    for (int64_t i = 0; i < list->count; i++)
        dt_jinja_append(run, made, list->items[i]);
    return made;
}

dt_status dt_filter_length(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    (void)args;
    *out = dt_jinja_integer(0);
    return dt_value_length(&out->as.integer, run, value);
}

dt_status dt_filter_list(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    (void)args;
    DT_TRY(dt_value_iterate(&items, run, value));
    *out = copy(run, items, DT_SHAPE_LIST);
    out->origin = value.kind == DT_JINJA_LIST ? value.origin : DT_JINJA_TEMPLATE;
out:
    return st;
}

dt_status dt_filter_first(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    (void)args;
    DT_TRY(dt_value_iterate(&items, run, value));
    *out = items->count > 0 ? items->items[0]
                            : dt_value_undefined_hint(run, "No first item, sequence was empty.");
out:
    return st;
}

/* Refuses values that Python's reversed() refuses. */
static dt_status check_reversible(const dt_jinja_run *run, dt_jinja_value value)
{
    if (value.kind == DT_JINJA_LIST && value.shape == DT_SHAPE_GENERATOR)
        return dt_jinja_fail(run, "'generator' object is not reversible");
    return DT_OK;
}

dt_status dt_filter_last(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    (void)args;
    DT_TRY(check_reversible(run, value));
    DT_TRY(dt_value_iterate(&items, run, value));
    *out = items->count > 0 ? items->items[items->count - 1]
                            : dt_value_undefined_hint(run, "No last item, sequence was empty.");
out:
    return st;
}

dt_status dt_filter_reverse(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                            const dt_jinja_value *args)
{
    const dt_jinja_value bounds[3] = {dt_jinja_missing(), dt_jinja_missing(), dt_jinja_integer(-1)};
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    (void)args;
    if (value.kind == DT_JINJA_STRING)
        return dt_value_slice(out, run, value, bounds);
    DT_TRY(dt_value_iterate(&items, run, value));
    *out = dt_value_list(run,
                         value.kind == DT_JINJA_LIST && value.shape == DT_SHAPE_GENERATOR
                             ? DT_SHAPE_LIST
                             : DT_SHAPE_GENERATOR,
                         items->count);
    for (int64_t i = items->count; i > 0; i--)
        dt_jinja_append(run, *out, items->items[i - 1]);
out:
    return st;
}

dt_status dt_filter_items(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    (void)args;
    *out = dt_value_list(run, DT_SHAPE_GENERATOR, 0);
    if (value.kind == DT_JINJA_UNDEFINED)
        return DT_OK;
    if (value.kind != DT_JINJA_DICT)
        return dt_jinja_fail(run, "Can only get item pairs from a mapping.");
    for (int64_t i = 0; i < dt_dict_of(value)->count; i++)
        dt_jinja_append(
            run, *out,
            pair(run, dt_dict_of(value)->entries[i].key, dt_dict_of(value)->entries[i].value));
    return dt_jinja_spend(run, dt_dict_of(value)->count);
}

dt_status dt_filter_join(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args)
{
    dt_jinja_sink sink = {.length = 0};
    const dt_jinja_text *between;
    const dt_jinja_list *items;
    dt_status st = DT_OK;
    dt_jinja_value item;

    DT_TRY(dt_value_iterate(&items, run, value));
    between = NULL;
    if (args[0].kind != DT_JINJA_MISSING)
        DT_TRY(dt_value_to_text(&between, run, args[0]));
    for (int64_t i = 0; i < items->count; i++) {
        DT_TRY(dt_value_path(&item, run, items->items[i], args[1]));
        if (i > 0 && between != NULL)
            DT_TRY(dt_sink_add_text(run, &sink, between));
        DT_TRY(dt_value_print(run, &sink, item));
    }
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* --- sorting */

typedef struct keyed {
    dt_jinja_value key, item;
} keyed;

static dt_status lower(dt_jinja_value *key, dt_jinja_run *run, bool case_sensitive)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;

    if (case_sensitive || key->kind != DT_JINJA_STRING)
        return DT_OK;
    DT_TRY(dt_text_change_case(&text, run, dt_text_of(*key), DT_CASE_LOWER));
    *key = dt_jinja_string(text);
out:
    return st;
}

/* Gives the key of an item by "a.b,c.d", a list if there is a comma. */
static dt_status key_of(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value item,
                        dt_jinja_value path, bool case_sensitive)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;
    dt_jinja_value part;

    if (path.kind != DT_JINJA_STRING ||
        memchr(dt_text_of(path)->data, ',', dt_text_of(path)->length) == NULL) {
        DT_TRY(dt_value_path(out, run, item, path));
        return lower(out, run, case_sensitive);
    }
    text = dt_text_of(path);
    *out = dt_value_list(run, DT_SHAPE_LIST, 0);
    for (size_t from = 0, to; from <= text->length; from = to + 1) {
        for (to = from; to < text->length && text->data[to] != ','; to++)
            ;
        DT_TRY(dt_value_path(&part, run, item, dt_jinja_string(dt_text_part(run, text, from, to))));
        DT_TRY(lower(&part, run, case_sensitive));
        dt_jinja_append(run, *out, part);
    }
out:
    return st;
}

/* Merges two sorted halves; equal keys keep their order. */
static dt_status sort_keyed(dt_jinja_run *run, keyed *items, keyed *scratch, int64_t count,
                            bool reverse)
{
    int64_t half = count / 2, left = 0, right = half, to = 0;
    dt_status st = DT_OK;

    if (count < 2)
        return DT_OK;
    DT_TRY(dt_jinja_spend(run, count));
    DT_TRY(sort_keyed(run, items, scratch, half, reverse));
    DT_TRY(sort_keyed(run, items + half, scratch, count - half, reverse));
    while (left < half && right < count) {
        int order;

        DT_TRY(dt_value_compare(&order, run, items[right].key, items[left].key));
        scratch[to++] = (reverse ? order == 1 : order < 0) ? items[right++] : items[left++];
    }
    while (left < half)
        scratch[to++] = items[left++];
    while (right < count)
        scratch[to++] = items[right++];
    memcpy(items, scratch, (size_t)count * sizeof(*items));
out:
    return st;
}

static dt_status make_keyed(keyed **out, int64_t *count, dt_jinja_run *run, dt_jinja_value value,
                            dt_jinja_value path, bool case_sensitive)
{
    const dt_jinja_list *list;
    dt_status st = DT_OK;

    DT_TRY(dt_value_iterate(&list, run, value));
    *count = list->count;
    *out = dt_jinja_alloc_array(run, (size_t)list->count + 1, sizeof(**out));
    for (int64_t i = 0; i < list->count; i++) {
        (*out)[i].item = list->items[i];
        DT_TRY(key_of(&(*out)[i].key, run, list->items[i], path, case_sensitive));
    }
out:
    return st;
}

static dt_status sort_list(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           dt_jinja_value path, bool case_sensitive, bool reverse)
{
    keyed *items, *scratch;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(make_keyed(&items, &count, run, value, path, case_sensitive));
    scratch = dt_jinja_alloc_array(run, (size_t)count + 1, sizeof(*scratch));
    DT_TRY(sort_keyed(run, items, scratch, count, reverse));
    *out = dt_value_list(run, DT_SHAPE_LIST, count);
    for (int64_t i = 0; i < count; i++)
        dt_jinja_append(run, *out, items[i].item);
out:
    return st;
}

/* reverse, case_sensitive, attribute */
dt_status dt_filter_sort(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args)
{
    return sort_list(out, run, value, args[2], dt_value_truth(args[1]), dt_value_truth(args[0]));
}

/* case_sensitive, by, reverse */
dt_status dt_filter_dictsort(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                             const dt_jinja_value *args)
{
    bool by_value = args[1].kind == DT_JINJA_STRING && dt_text_is(dt_text_of(args[1]), "value");
    dt_status st = DT_OK;
    dt_jinja_value items;

    if (value.kind != DT_JINJA_DICT)
        return dt_jinja_fail(run, "dictsort: expected a dict, got %s", dt_value_type(value));
    if (!by_value && args[1].kind != DT_JINJA_MISSING &&
        !(args[1].kind == DT_JINJA_STRING && dt_text_is(dt_text_of(args[1]), "key")))
        return dt_jinja_fail(run, "You can only sort by either \"key\" or \"value\"");
    DT_TRY(dt_filter_items(&items, run, value, args));
    DT_TRY(sort_list(out, run, items, dt_jinja_integer(by_value), dt_value_truth(args[0]),
                     dt_value_truth(args[2])));
out:
    return st;
}

static dt_status extreme(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args, bool largest)
{
    dt_status st = DT_OK;
    int64_t count, best = 0;
    keyed *items;
    int order;

    DT_TRY(make_keyed(&items, &count, run, value, args[1], dt_value_truth(args[0])));
    for (int64_t i = 1; i < count; i++) {
        DT_TRY(dt_value_compare(&order, run, items[i].key, items[best].key));
        if (order != 2 && (largest ? order > 0 : order < 0))
            best = i;
    }
    *out = count > 0 ? items[best].item
                     : dt_value_undefined_hint(run, "No aggregated item, sequence was empty.");
out:
    return st;
}

dt_status dt_filter_min(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_value *args)
{
    return extreme(out, run, value, args, false);
}

dt_status dt_filter_max(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_value *args)
{
    return extreme(out, run, value, args, true);
}

/* attribute, start */
dt_status dt_filter_sum(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_value *args)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;
    dt_jinja_value item;

    DT_TRY(dt_value_iterate(&items, run, value));
    *out = args[1].kind == DT_JINJA_MISSING ? dt_jinja_integer(0) : args[1];
    for (int64_t i = 0; i < items->count; i++) {
        DT_TRY(dt_value_path(&item, run, items->items[i], args[0]));
        if (item.kind == DT_JINJA_STRING)
            return dt_jinja_fail(run, "unsupported operand type(s) for +: 'int' and 'str'");
        DT_TRY(dt_value_binary(out, run, DT_OP_ADD, *out, item));
    }
out:
    return st;
}

/* case_sensitive, attribute */
dt_status dt_filter_unique(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    dt_status st = DT_OK;
    int64_t count;
    keyed *items;

    DT_TRY(make_keyed(&items, &count, run, value, args[1], dt_value_truth(args[0])));
    *out = dt_value_list(run, DT_SHAPE_GENERATOR, 0);
    for (int64_t i = 0, kept = 0; i < count; i++) {
        bool seen = false;

        DT_TRY(dt_jinja_spend(run, kept));
        for (int64_t k = 0; k < kept && !seen; k++)
            seen = dt_value_equal(items[k].key, items[i].key);
        if (seen)
            continue;
        dt_jinja_append(run, *out, items[i].item);
        items[kept++] = items[i];
    }
out:
    return st;
}

/* attribute, default, case_sensitive */
dt_status dt_filter_groupby(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                            const dt_jinja_value *args)
{
    bool case_sensitive = dt_value_truth(args[2]);
    keyed *items, *scratch;
    dt_status st = DT_OK;
    int64_t count;

    if (args[1].kind != DT_JINJA_MISSING)
        return dt_jinja_fail(run, "unsupported: the argument 'default' of groupby");
    DT_TRY(make_keyed(&items, &count, run, value, args[0], case_sensitive));
    scratch = dt_jinja_alloc_array(run, (size_t)count + 1, sizeof(*scratch));
    DT_TRY(sort_keyed(run, items, scratch, count, false));
    *out = dt_value_list(run, DT_SHAPE_LIST, 0);
    for (int64_t i = 0, end; i < count; i = end) {
        dt_jinja_value group = dt_value_list(run, DT_SHAPE_LIST, 0), key;

        for (end = i; end < count && dt_value_equal(items[end].key, items[i].key); end++)
            dt_jinja_append(run, group, items[end].item);
        if (end == i) /* NaN differs from itself */
            dt_jinja_append(run, group, items[end++].item);
        DT_TRY(dt_value_path(&key, run, items[i].item, args[0]));
        dt_jinja_append(run, *out, pair(run, key, group));
    }
out:
    return st;
}

/* --- parts */

/* linecount, fill_with */
dt_status dt_filter_batch(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    const dt_jinja_list *items;
    dt_jinja_value row = dt_jinja_none();
    dt_status st = DT_OK;
    int64_t size, held = 0;

    DT_TRY(dt_call_integer(&size, run, args[0], 1, "batch"));
    DT_TRY(dt_value_iterate(&items, run, value));
    if (size < 1)
        return dt_jinja_fail(run, "batch: expected a positive number");
    *out = dt_value_list(run, DT_SHAPE_GENERATOR, 0);
    for (int64_t i = 0; i < items->count; i++, held++) {
        if (i % size == 0) {
            row = dt_value_list(run, DT_SHAPE_LIST, 0);
            dt_jinja_append(run, *out, row);
        }
        dt_jinja_append(run, row, items->items[i]);
    }
    for (; held % size != 0 && args[1].kind != DT_JINJA_MISSING && args[1].kind != DT_JINJA_NONE;
         held++) {
        DT_TRY(dt_jinja_spend(run, 1));
        dt_jinja_append(run, row, args[1]);
    }
out:
    return st;
}

/* slices, fill_with */
dt_status dt_filter_slice(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;
    int64_t slices, from = 0;

    DT_TRY(dt_call_integer(&slices, run, args[0], 1, "slice"));
    DT_TRY(dt_value_iterate(&items, run, value));
    if (slices < 1)
        return dt_jinja_fail(run, "slice: expected a positive number");
    DT_TRY(dt_jinja_spend(run, slices));
    *out = dt_value_list(run, DT_SHAPE_GENERATOR, 0);
    for (int64_t k = 0; k < slices; k++) {
        int64_t more = k < items->count % slices, to = from + items->count / slices + more;
        dt_jinja_value row = dt_value_list(run, DT_SHAPE_LIST, 0);

        for (; from < to; from++)
            dt_jinja_append(run, row, items->items[from]);
        if (!more && args[1].kind != DT_JINJA_MISSING && args[1].kind != DT_JINJA_NONE)
            dt_jinja_append(run, row, args[1]);
        dt_jinja_append(run, *out, row);
    }
out:
    return st;
}
