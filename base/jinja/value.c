/* value: the values of Python that a template sees: their types, truth, order, items and slices. */
#include <math.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

const char *dt_value_type(dt_jinja_value value)
{
    static const char *const names[] = {
        "Undefined", "NoneType",  "bool",   "int",      "float", "str",         "list",
        "dict",      "Namespace", "method", "function", "Macro", "LoopContext", "missing"};
    static const char *const lists[] = {"list", "tuple", "range", "generator", "dict_items"};

    return value.kind == DT_JINJA_LIST ? lists[value.shape] : names[value.kind];
}

/* --- making */

dt_jinja_value dt_jinja_from_bool(bool truth)
{
    return (dt_jinja_value){.kind = DT_JINJA_BOOL, .as.truth = truth};
}

dt_jinja_value dt_jinja_none(void)
{
    return (dt_jinja_value){.kind = DT_JINJA_NONE};
}

dt_jinja_value dt_value_list(dt_jinja_run *run, int shape, int64_t room)
{
    dt_jinja_list *list = dt_jinja_alloc(run, sizeof(*list));

    if (room > 0) {
        list->items = dt_jinja_alloc_array(run, (size_t)room, sizeof(*list->items));
        list->capacity = room;
    }
    return (dt_jinja_value){.kind = DT_JINJA_LIST, .shape = (uint8_t)shape, .as.other = list};
}

dt_jinja_value dt_jinja_new_list(dt_jinja_run *run, uint32_t origin)
{
    dt_jinja_value list = dt_value_list(run, DT_SHAPE_LIST, 0);

    list.origin = origin;
    return list;
}

void dt_jinja_append(dt_jinja_run *run, dt_jinja_value list, dt_jinja_value item)
{
    dt_jinja_list *items = dt_list_of(list);

    items->items =
        dt_jinja_room(run, items->items, items->count + 1, &items->capacity, sizeof(*items->items));
    items->items[items->count++] = item;
}

dt_jinja_value dt_jinja_new_dict(dt_jinja_run *run, uint32_t origin)
{
    return (dt_jinja_value){.kind = DT_JINJA_DICT,
                            .origin = origin,
                            .as.other = dt_jinja_alloc(run, sizeof(dt_jinja_dict))};
}

static void add_entry(dt_jinja_run *run, dt_jinja_dict *dict, dt_jinja_value key,
                      dt_jinja_value value)
{
    dict->entries =
        dt_jinja_room(run, dict->entries, dict->count + 1, &dict->capacity, sizeof(*dict->entries));
    dict->entries[dict->count++] = (dt_jinja_entry){key, value};
}

void dt_jinja_put(dt_jinja_run *run, dt_jinja_value dict, const char *key, dt_jinja_value item)
{
    add_entry(run, dt_dict_of(dict), dt_jinja_from_text(run, key, strlen(key), dict.origin), item);
}

dt_jinja_value dt_jinja_from_text(dt_jinja_run *run, const char *text, size_t length,
                                  uint32_t origin)
{
    return dt_jinja_string(dt_jinja_new_text(run->arena, text, length, origin));
}

dt_jinja_value dt_jinja_from_json(dt_jinja_run *run, const json_t *json, uint32_t origin)
{
    dt_jinja_value made = dt_jinja_none();
    const json_t *item;
    const char *key;
    size_t i;

    switch (json_typeof(json)) {
    case JSON_STRING:
        return dt_jinja_from_text(run, json_string_value(json), json_string_length(json), origin);
    case JSON_ARRAY:
        made = dt_value_list(run, DT_SHAPE_LIST, (int64_t)json_array_size(json));
        json_array_foreach((json_t *)json, i, item)
            dt_jinja_append(run, made, dt_jinja_from_json(run, item, origin));
        break;
    case JSON_OBJECT:
        made = dt_jinja_new_dict(run, origin);
        json_object_foreach((json_t *)json, key, item)
            dt_jinja_put(run, made, key, dt_jinja_from_json(run, item, origin));
        break;
    case JSON_INTEGER:
        made = dt_jinja_integer(json_integer_value(json));
        break;
    case JSON_REAL:
        made = dt_jinja_real(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        made = dt_jinja_from_bool(json_is_true(json));
        break;
    case JSON_NULL:
        break;
    }
    made.origin = origin;
    return made;
}

/* --- undefined values */

static dt_jinja_value undefined(dt_jinja_run *run, dt_jinja_lack lack)
{
    dt_jinja_lack *made = dt_jinja_alloc(run, sizeof(*made));

    *made = lack;
    return (dt_jinja_value){.kind = DT_JINJA_UNDEFINED, .as.other = made};
}

dt_jinja_value dt_value_undefined(dt_jinja_run *run, dt_jinja_value owner,
                                  const dt_jinja_text *name)
{
    return undefined(run, (dt_jinja_lack){.owner = dt_value_type(owner), .name = name});
}

dt_jinja_value dt_value_undefined_name(dt_jinja_run *run, dt_jinja_name name)
{
    return undefined(run, (dt_jinja_lack){.name = name});
}

dt_jinja_value dt_value_undefined_hint(dt_jinja_run *run, const char *hint)
{
    return undefined(run, (dt_jinja_lack){.hint = hint});
}

dt_status dt_value_refuse_undefined(const dt_jinja_run *run, dt_jinja_value value)
{
    const dt_jinja_lack *lack = value.as.other;
    int length = lack->name != NULL && lack->name->length < 200 ? (int)lack->name->length : 200;

    if (lack->hint != NULL)
        return dt_jinja_fail(run, "%s", lack->hint);
    if (lack->owner == NULL)
        return dt_jinja_fail(run, "'%.*s' is undefined", length, lack->name->data);
    return dt_jinja_fail(run, "'%s object' has no attribute '%.*s'", lack->owner, length,
                         lack->name->data);
}

/* --- truth and order */

bool dt_value_truth(dt_jinja_value value)
{
    switch (value.kind) {
    case DT_JINJA_UNDEFINED:
    case DT_JINJA_NONE:
    case DT_JINJA_MISSING:
        return false;
    case DT_JINJA_BOOL:
        return value.as.truth;
    case DT_JINJA_INTEGER:
        return value.as.integer != 0;
    case DT_JINJA_FLOAT:
        return value.as.real != 0; /* NaN is true */
    case DT_JINJA_STRING:
        return dt_text_of(value)->length > 0;
    case DT_JINJA_LIST:
        return value.shape == DT_SHAPE_GENERATOR || dt_list_of(value)->count > 0;
    case DT_JINJA_DICT:
        return dt_dict_of(value)->count > 0;
    default:
        return true;
    }
}

static bool is_number(dt_jinja_value value)
{
    return value.kind == DT_JINJA_BOOL || value.kind == DT_JINJA_INTEGER ||
           value.kind == DT_JINJA_FLOAT;
}

static int64_t integer_of(dt_jinja_value value)
{
    return value.kind == DT_JINJA_BOOL ? value.as.truth : value.as.integer;
}

/* Compares numbers. *out: -1, 0, 1; 2 if one of them is NaN. */
static int compare_numbers(dt_jinja_value a, dt_jinja_value b)
{
    if (a.kind != DT_JINJA_FLOAT && b.kind != DT_JINJA_FLOAT) {
        int64_t x = integer_of(a), y = integer_of(b);

        return (x > y) - (x < y);
    } else {
        double x = a.kind == DT_JINJA_FLOAT ? a.as.real : (double)integer_of(a);
        double y = b.kind == DT_JINJA_FLOAT ? b.as.real : (double)integer_of(b);

        return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
    }
}

/* Lists in lists that are compared; those that lie deeper count as different. */
enum { EQUAL_DEEPEST = 500 };

static bool equal(dt_jinja_value a, dt_jinja_value b, int deep);

static bool dicts_equal(const dt_jinja_dict *a, const dt_jinja_dict *b, int deep)
{
    if (a->count != b->count)
        return false;
    for (int64_t i = 0; i < a->count; i++) {
        const dt_jinja_entry *other = dt_dict_find(b, a->entries[i].key);

        if (other == NULL || !equal(a->entries[i].value, other->value, deep))
            return false;
    }
    return true;
}

static bool equal(dt_jinja_value a, dt_jinja_value b, int deep)
{
    if (is_number(a) && is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.kind != b.kind || deep == EQUAL_DEEPEST)
        return false;
    switch (a.kind) {
    case DT_JINJA_UNDEFINED:
    case DT_JINJA_NONE:
    case DT_JINJA_MISSING:
        return true;
    case DT_JINJA_STRING:
        return dt_text_equal(dt_text_of(a), dt_text_of(b));
    case DT_JINJA_LIST: {
        const dt_jinja_list *x = dt_list_of(a), *y = dt_list_of(b);

        if (x == y)
            return true;
        if (a.shape != b.shape || a.shape == DT_SHAPE_GENERATOR || x->count != y->count)
            return false;
        for (int64_t i = 0; i < x->count; i++)
            if (!equal(x->items[i], y->items[i], deep + 1))
                return false;
        return true;
    }
    case DT_JINJA_DICT:
        return dicts_equal(dt_dict_of(a), dt_dict_of(b), deep + 1);
    default:
        return a.as.other == b.as.other;
    }
}

bool dt_value_equal(dt_jinja_value a, dt_jinja_value b)
{
    return equal(a, b, 0);
}

dt_status dt_value_compare(int *out, dt_jinja_run *run, dt_jinja_value a, dt_jinja_value b)
{
    dt_status st;

    *out = 0;
    if (is_number(a) && is_number(b)) {
        *out = compare_numbers(a, b);
        return DT_OK;
    }
    if (a.kind == DT_JINJA_STRING && b.kind == DT_JINJA_STRING) {
        int order = dt_text_compare(dt_text_of(a), dt_text_of(b));

        *out = (order > 0) - (order < 0);
        return DT_OK;
    }
    if (a.kind == DT_JINJA_LIST && b.kind == DT_JINJA_LIST && a.shape == b.shape &&
        a.shape <= DT_SHAPE_TUPLE) {
        const dt_jinja_list *x = dt_list_of(a), *y = dt_list_of(b);

        for (int64_t i = 0; i < x->count && i < y->count; i++)
            if (!dt_value_equal(x->items[i], y->items[i])) {
                if ((st = dt_jinja_deepen(run)) == DT_OK) {
                    st = dt_value_compare(out, run, x->items[i], y->items[i]);
                    run->depth++;
                }
                return st;
            }
        *out = (x->count > y->count) - (x->count < y->count);
        return DT_OK;
    }
    if (a.kind == DT_JINJA_UNDEFINED || b.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, a.kind == DT_JINJA_UNDEFINED ? a : b);
    return dt_jinja_fail(run, "'%s' and '%s' cannot be ordered", dt_value_type(a),
                         dt_value_type(b));
}

/* --- dicts */

const dt_jinja_entry *dt_dict_find_text(const dt_jinja_dict *dict, const dt_jinja_text *key)
{
    for (int64_t i = 0; i < dict->count; i++)
        if (dict->entries[i].key.kind == DT_JINJA_STRING &&
            dt_text_equal(dt_text_of(dict->entries[i].key), key))
            return &dict->entries[i];
    return NULL;
}

const dt_jinja_entry *dt_dict_find(const dt_jinja_dict *dict, dt_jinja_value key)
{
    if (key.kind == DT_JINJA_STRING)
        return dt_dict_find_text(dict, dt_text_of(key));
    for (int64_t i = 0; i < dict->count; i++)
        if (dt_value_equal(dict->entries[i].key, key))
            return &dict->entries[i];
    return NULL;
}

dt_status dt_dict_set(dt_jinja_run *run, dt_jinja_dict *dict, dt_jinja_value key,
                      dt_jinja_value value)
{
    const dt_jinja_entry *known = dt_dict_find(dict, key);
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_spend(run, 1 + dict->count / 16));
    if (key.kind == DT_JINJA_DICT || (key.kind == DT_JINJA_LIST && key.shape == DT_SHAPE_LIST))
        return dt_jinja_fail(run, "a %s cannot be a key of a dict", dt_value_type(key));
    if (known != NULL)
        dict->entries[known - dict->entries].value = value;
    else
        add_entry(run, dict, key, value);
out:
    return st;
}

/* --- items */

static const dt_jinja_list *characters_of(dt_jinja_run *run, const dt_jinja_text *text)
{
    dt_jinja_value made = dt_value_list(run, DT_SHAPE_LIST, text->codes);

    for (size_t at = 0, next; at < text->length; at = next) {
        next = at + 1;
        while (next < text->length && ((unsigned char)text->data[next] & 0xc0) == 0x80)
            next++;
        dt_jinja_append(run, made, dt_jinja_string(dt_text_part(run, text, at, next)));
    }
    return dt_list_of(made);
}

dt_status dt_value_iterate(const dt_jinja_list **out, dt_jinja_run *run, dt_jinja_value value)
{
    static const dt_jinja_list empty;
    dt_status st = DT_OK;

    *out = &empty;
    if (value.kind == DT_JINJA_LIST) {
        dt_jinja_list *list = dt_list_of(value);

        DT_TRY(dt_jinja_spend(run, list->count));
        if (value.shape == DT_SHAPE_GENERATOR && list->consumed)
            return DT_OK;
        list->consumed = true;
        *out = list;
    } else if (value.kind == DT_JINJA_DICT) {
        const dt_jinja_dict *dict = dt_dict_of(value);
        dt_jinja_value keys = dt_value_list(run, DT_SHAPE_LIST, dict->count);

        DT_TRY(dt_jinja_spend(run, dict->count));
        for (int64_t i = 0; i < dict->count; i++)
            dt_jinja_append(run, keys, dict->entries[i].key);
        *out = dt_list_of(keys);
    } else if (value.kind == DT_JINJA_STRING) {
        DT_TRY(dt_jinja_spend(run, dt_text_of(value)->codes));
        *out = characters_of(run, dt_text_of(value));
    } else if (value.kind != DT_JINJA_UNDEFINED) {
        return dt_jinja_fail(run, "'%s' object is not iterable", dt_value_type(value));
    }
out:
    return st;
}

dt_status dt_value_length(int64_t *out, dt_jinja_run *run, dt_jinja_value value)
{
    *out = 0;
    if (value.kind == DT_JINJA_STRING)
        *out = dt_text_of(value)->codes;
    else if (value.kind == DT_JINJA_LIST && value.shape != DT_SHAPE_GENERATOR)
        *out = dt_list_of(value)->count;
    else if (value.kind == DT_JINJA_DICT)
        *out = dt_dict_of(value)->count;
    else if (value.kind == DT_JINJA_LOOP)
        *out = ((const dt_jinja_loop *)value.as.other)->items->count;
    else if (value.kind != DT_JINJA_UNDEFINED)
        return dt_jinja_fail(run, "object of type '%s' has no len()", dt_value_type(value));
    return DT_OK;
}

dt_status dt_value_contains(bool *out, dt_jinja_run *run, dt_jinja_value container,
                            dt_jinja_value item)
{
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    *out = false;
    if (container.kind == DT_JINJA_STRING) {
        const dt_jinja_text *text = dt_text_of(container);

        if (item.kind == DT_JINJA_UNDEFINED)
            return dt_value_refuse_undefined(run, item);
        if (item.kind != DT_JINJA_STRING)
            return dt_jinja_fail(run, "'in <string>' requires string as left operand, not %s",
                                 dt_value_type(item));
        DT_TRY(dt_jinja_spend(run, text->length / 64));
        *out = dt_text_find(text, dt_text_of(item), 0, text->length) >= 0;
        return DT_OK;
    }
    if (container.kind == DT_JINJA_DICT) {
        *out = dt_dict_find(dt_dict_of(container), item) != NULL;
        return dt_jinja_spend(run, dt_dict_of(container)->count / 16);
    }
    if (container.kind != DT_JINJA_LIST && container.kind != DT_JINJA_UNDEFINED)
        return dt_jinja_fail(run, "argument of type '%s' is not iterable",
                             dt_value_type(container));
    DT_TRY(dt_value_iterate(&items, run, container));
    for (int64_t i = 0; i < items->count && !*out; i++)
        *out = dt_value_equal(items->items[i], item);
out:
    return st;
}

/* --- slices */

static dt_status take_bound(int64_t *out, bool *given, const dt_jinja_run *run,
                            dt_jinja_value bound)
{
    *given = bound.kind == DT_JINJA_INTEGER || bound.kind == DT_JINJA_BOOL;
    *out = *given ? integer_of(bound) : 0;
    if (bound.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, bound);
    if (!*given && bound.kind != DT_JINJA_NONE && bound.kind != DT_JINJA_MISSING)
        return dt_jinja_fail(run, "slice indices must be integers or None, not %s",
                             dt_value_type(bound));
    return DT_OK;
}

/* Moves a bound into the range of a sequence, as Python does. */
static int64_t clamp(int64_t bound, bool given, int64_t otherwise, int64_t low, int64_t high,
                     int64_t length)
{
    if (!given)
        return otherwise;
    if (bound < 0)
        bound = bound < -length ? -1 : bound + length;
    return bound < low ? low : bound > high ? high : bound;
}

static dt_status slice_text(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                            int64_t from, int64_t to, int64_t step)
{
    const dt_jinja_list *characters;
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    if (step == 1) {
        size_t first = dt_text_byte_of(text, from),
               end = to > from ? dt_text_byte_of(text, to) : first;

        *out = dt_jinja_string(dt_text_part(run, text, first, end));
        return DT_OK;
    }
    DT_TRY(dt_jinja_spend(run, text->codes));
    characters = characters_of(run, text);
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        DT_TRY(dt_sink_add_text(run, &sink, dt_text_of(characters->items[i])));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

dt_status dt_value_slice(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value bounds[3])
{
    int64_t from, to, step, length;
    bool has_from, has_to, has_step;
    dt_status st = DT_OK;

    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    if (value.kind != DT_JINJA_STRING &&
        (value.kind != DT_JINJA_LIST || value.shape >= DT_SHAPE_GENERATOR)) {
        *out = dt_value_undefined_hint(run, "the value cannot be sliced");
        return DT_OK;
    }
    DT_TRY(take_bound(&from, &has_from, run, bounds[0]));
    DT_TRY(take_bound(&to, &has_to, run, bounds[1]));
    DT_TRY(take_bound(&step, &has_step, run, bounds[2]));
    DT_TRY(dt_value_length(&length, run, value));
    if (!has_step)
        step = 1;
    if (step == 0)
        return dt_jinja_fail(run, "slice step cannot be zero");
    if (step > length + 1 || step < -length - 1) /* no step reaches a second item */
        step = step > 0 ? length + 1 : -length - 1;
    if (step > 0) {
        from = clamp(from, has_from, 0, 0, length, length);
        to = clamp(to, has_to, length, 0, length, length);
    } else {
        from = clamp(from, has_from, length - 1, -1, length - 1, length);
        to = clamp(to, has_to, -1, -1, length - 1, length);
    }
    if (value.kind == DT_JINJA_STRING) {
        DT_TRY(dt_jinja_spend(run, dt_text_of(value)->length / 64));
        return slice_text(out, run, dt_text_of(value), from, to, step);
    }
    DT_TRY(dt_jinja_spend(run, length));
    *out = dt_value_list(run, value.shape, 0);
    out->origin = value.origin;
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        dt_jinja_append(run, *out, dt_list_of(value)->items[i]);
out:
    return st;
}
