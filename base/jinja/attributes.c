/* attributes: obj.name and obj[key]: methods, attributes of loops, entries and items. */
#include <ctype.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

/* Attributes of lists and dicts. Those that would change the value are refused, as in Jinja's sandbox. */
typedef enum container_method {
    DICT_GET,
    DICT_ITEMS,
    DICT_KEYS,
    DICT_VALUES,
    COPY,
    LIST_COUNT,
    LIST_INDEX,
    CHANGES,
    UNSUPPORTED
} container_method;

typedef struct attribute {
    const char *name;
    container_method method;
} attribute;

static const attribute dict_methods[] = {
    {"get", DICT_GET},    {"items", DICT_ITEMS},     {"keys", DICT_KEYS}, {"values", DICT_VALUES},
    {"copy", COPY},       {"fromkeys", UNSUPPORTED}, {"clear", CHANGES},  {"pop", CHANGES},
    {"popitem", CHANGES}, {"setdefault", CHANGES},   {"update", CHANGES}, {NULL, CHANGES}};
static const attribute list_methods[] = {
    {"count", LIST_COUNT}, {"index", LIST_INDEX}, {"copy", COPY},       {"append", CHANGES},
    {"clear", CHANGES},    {"pop", CHANGES},      {"reverse", CHANGES}, {"insert", CHANGES},
    {"sort", CHANGES},     {"extend", CHANGES},   {"remove", CHANGES},  {NULL, CHANGES}};

static const attribute *table_of(dt_jinja_value value)
{
    if (value.kind == DT_JINJA_DICT)
        return dict_methods;
    return value.kind == DT_JINJA_LIST && value.shape <= DT_SHAPE_TUPLE ? list_methods : NULL;
}

static dt_jinja_value method_of(dt_jinja_run *run, dt_jinja_value self, int index)
{
    dt_jinja_method *made = dt_jinja_alloc(run, sizeof(*made));

    *made = (dt_jinja_method){.self = self, .index = index};
    return (dt_jinja_value){.kind = DT_JINJA_METHOD, .as.other = made};
}

static dt_jinja_value unsafe(dt_jinja_run *run, dt_jinja_value value, const dt_jinja_text *name)
{
    return dt_value_undefined_hint(
        run, dt_arena_printf(run->arena, "access to attribute '%.*s' of '%s' object is unsafe.",
                             name->length < 100 ? (int)name->length : 100, name->data,
                             dt_value_type(value)));
}

/* --- loops */

static dt_jinja_value function_of(const dt_jinja_value *loop, dt_jinja_function function)
{
    return (dt_jinja_value){
        .kind = DT_JINJA_FUNCTION, .shape = (uint8_t)function, .as.other = loop->as.other};
}

/* Gives an attribute of a loop. Returns false if it has none of this name. */
static bool loop_attribute(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_text *name)
{
    const dt_jinja_loop *loop = value.as.other;
    int64_t count = loop->items->count, at = loop->index0;

    if (dt_text_is(name, "index"))
        *out = dt_jinja_integer(at + 1);
    else if (dt_text_is(name, "index0"))
        *out = dt_jinja_integer(at);
    else if (dt_text_is(name, "first"))
        *out = dt_jinja_from_bool(at == 0);
    else if (dt_text_is(name, "last"))
        *out = dt_jinja_from_bool(at == count - 1);
    else if (dt_text_is(name, "length"))
        *out = dt_jinja_integer(count);
    else if (dt_text_is(name, "revindex"))
        *out = dt_jinja_integer(count - at);
    else if (dt_text_is(name, "revindex0"))
        *out = dt_jinja_integer(count - at - 1);
    else if (dt_text_is(name, "depth"))
        *out = dt_jinja_integer(loop->depth0 + 1);
    else if (dt_text_is(name, "depth0"))
        *out = dt_jinja_integer(loop->depth0);
    else if (dt_text_is(name, "previtem"))
        *out = at > 0 ? loop->items->items[at - 1]
                      : dt_value_undefined_hint(run, "the loop has no previous item");
    else if (dt_text_is(name, "nextitem"))
        *out = at + 1 < count ? loop->items->items[at + 1]
                              : dt_value_undefined_hint(run, "the loop has no next item");
    else if (dt_text_is(name, "cycle"))
        *out = function_of(&value, DT_FUNCTION_CYCLE);
    else if (dt_text_is(name, "changed"))
        *out = function_of(&value, DT_FUNCTION_CHANGED);
    else
        return false;
    return true;
}

/* --- lookup */

/* Gives an attribute that the type has. Returns false if it has none of this name. */
static bool own_attribute(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_text *name)
{
    const attribute *table = table_of(value);
    int index;

    if (name->length > 1 && name->data[0] == '_' && name->data[1] == '_') {
        static const char *const known[] = {"__class__",   "__doc__",  "__init__", "__len__",
                                            "__getitem__", "__iter__", "__dict__"};

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if (dt_text_is(name, known[i])) {
                *out = unsafe(run, value, name);
                return true;
            }
        return false;
    }
    if (value.kind == DT_JINJA_STRING) {
        index = dt_text_method_find(name);
        if (index < 0)
            return false;
        *out = method_of(run, value, index);
        return true;
    }
    if (value.kind == DT_JINJA_LOOP)
        return loop_attribute(out, run, value, name);
    if (value.kind == DT_JINJA_NAMESPACE) {
        const dt_jinja_entry *entry = dt_dict_find_text(dt_dict_of(value), name);

        if (entry != NULL)
            *out = entry->value;
        return entry != NULL;
    }
    for (index = 0; table != NULL && table[index].name != NULL; index++)
        if (dt_text_is(name, table[index].name)) {
            *out = table[index].method == CHANGES ? unsafe(run, value, name)
                                                  : method_of(run, value, index);
            return true;
        }
    return false;
}

/* Takes steps for the search in a long dict, or for the place of a character in a long text. */
static dt_status spend_search(dt_jinja_run *run, dt_jinja_value value)
{
    if (value.kind == DT_JINJA_DICT)
        return dt_jinja_spend(run, dt_dict_of(value)->count / 16);
    return value.kind == DT_JINJA_STRING && dt_text_of(value)->codes < dt_text_of(value)->length
               ? dt_jinja_spend(run, dt_text_of(value)->length / 64)
               : DT_OK;
}

dt_status dt_value_attribute(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                             const dt_jinja_text *name)
{
    const dt_jinja_entry *entry;
    dt_status st = DT_OK;

    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    DT_TRY(spend_search(run, value));
    if (own_attribute(out, run, value, name))
        return DT_OK;
    entry = value.kind == DT_JINJA_DICT ? dt_dict_find_text(dt_dict_of(value), name) : NULL;
    *out = entry != NULL ? entry->value : dt_value_undefined(run, value, name);
out:
    return st;
}

static dt_jinja_value item_at(dt_jinja_run *run, dt_jinja_value value, int64_t index)
{
    if (value.kind == DT_JINJA_STRING) {
        const dt_jinja_text *text = dt_text_of(value);

        index = index < 0 ? index + (int64_t)text->codes : index;
        if (index >= 0 && index < (int64_t)text->codes)
            return dt_jinja_string(dt_text_part(run, text, dt_text_byte_of(text, index),
                                                dt_text_byte_of(text, index + 1)));
    } else {
        const dt_jinja_list *list = dt_list_of(value);

        index = index < 0 ? index + list->count : index;
        if (index >= 0 && index < list->count)
            return list->items[index];
    }
    return dt_value_undefined_hint(run,
                                   dt_arena_printf(run->arena, "'%s object' has no element %lld",
                                                   dt_value_type(value), (long long)index));
}

dt_status dt_value_item(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        dt_jinja_value key)
{
    const dt_jinja_entry *entry;
    dt_status st = DT_OK;

    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    DT_TRY(spend_search(run, value));
    if (value.kind == DT_JINJA_DICT) {
        entry = dt_dict_find(dt_dict_of(value), key);
        if (entry != NULL) {
            *out = entry->value;
            return DT_OK;
        }
    } else if ((key.kind == DT_JINJA_INTEGER || key.kind == DT_JINJA_BOOL) &&
               (value.kind == DT_JINJA_STRING ||
                (value.kind == DT_JINJA_LIST && value.shape <= DT_SHAPE_RANGE))) {
        *out = item_at(run, value, key.kind == DT_JINJA_BOOL ? key.as.truth : key.as.integer);
        return DT_OK;
    }
    if (key.kind == DT_JINJA_STRING) {
        if (!own_attribute(out, run, value, dt_text_of(key)))
            *out = dt_value_undefined(run, value, dt_text_of(key));
        return DT_OK;
    }
    *out = dt_value_undefined_hint(
        run, dt_arena_printf(run->arena, "'%s object' has no such element", dt_value_type(value)));
out:
    return st;
}

/* Gives one part of a path: whole numbers are indexes. */
static dt_status follow(dt_jinja_value *item, dt_jinja_run *run, const dt_jinja_text *path,
                        size_t from, size_t to)
{
    bool number = to > from;
    int64_t index = 0;

    for (size_t i = from; i < to; i++) {
        number = number && isdigit((unsigned char)path->data[i]) && index < 100000000;
        index = number ? index * 10 + path->data[i] - '0' : 0;
    }
    return dt_value_item(item, run, *item,
                         number ? dt_jinja_integer(index)
                                : dt_jinja_string(dt_text_part(run, path, from, to)));
}

dt_status dt_value_path(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value item,
                        dt_jinja_value path)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;

    *out = item;
    if (path.kind == DT_JINJA_MISSING || path.kind == DT_JINJA_NONE)
        return DT_OK;
    if (path.kind != DT_JINJA_STRING)
        return dt_value_item(out, run, item, path);
    text = dt_text_of(path);
    for (size_t from = 0, to; from <= text->length; from = to + 1) {
        for (to = from; to < text->length && text->data[to] != '.'; to++)
            ;
        DT_TRY(follow(out, run, text, from, to));
    }
out:
    return st;
}

/* --- calls */

static dt_jinja_value view_of(dt_jinja_run *run, const dt_jinja_dict *dict, container_method what)
{
    dt_jinja_value list = dt_value_list(run, DT_SHAPE_VIEW, dict->count);

    for (int64_t i = 0; i < dict->count; i++) {
        dt_jinja_value item = what == DICT_KEYS ? dict->entries[i].key : dict->entries[i].value;

        if (what == DICT_ITEMS) {
            item = dt_value_list(run, DT_SHAPE_TUPLE, 2);
            dt_jinja_append(run, item, dict->entries[i].key);
            dt_jinja_append(run, item, dict->entries[i].value);
        }
        dt_jinja_append(run, list, item);
    }
    return list;
}

static dt_status call_dict(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value self,
                           const attribute *method, const dt_jinja_call *call)
{
    const dt_jinja_dict *dict = dt_dict_of(self);
    dt_jinja_value args[DT_JINJA_PARAMS];
    const dt_jinja_entry *entry;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_bind(args, run, call, method->name,
                         method->method == DICT_GET ? "key, default" : "",
                         method->method == DICT_GET));
    DT_TRY(dt_jinja_spend(run, 1 + (method->method == DICT_GET ? dict->count / 16 : dict->count)));
    if (method->method == DICT_GET) {
        entry = dt_dict_find(dict, args[0]);
        *out = entry != NULL                      ? entry->value
               : args[1].kind != DT_JINJA_MISSING ? args[1]
                                                  : dt_jinja_none();
    } else {
        *out = method->method == COPY ? self : view_of(run, dict, method->method);
    }
out:
    return st;
}

static dt_status call_list(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value self,
                           const attribute *method, const dt_jinja_call *call)
{
    const dt_jinja_list *list = dt_list_of(self);
    dt_jinja_value args[DT_JINJA_PARAMS];
    dt_status st = DT_OK;
    int64_t count = 0;

    DT_TRY(dt_jinja_spend(run, list->count));
    DT_TRY(dt_jinja_bind(args, run, call, method->name, method->method == COPY ? "" : "value",
                         method->method != COPY));
    *out = self;
    if (method->method == COPY)
        return DT_OK;
    for (int64_t i = 0; i < list->count; i++) {
        if (!dt_value_equal(list->items[i], args[0]))
            continue;
        count++;
        if (method->method == LIST_INDEX) {
            *out = dt_jinja_integer(i);
            return DT_OK;
        }
    }
    if (method->method == LIST_INDEX)
        return dt_jinja_fail(run, "the value is not in the list");
    *out = dt_jinja_integer(count);
out:
    return st;
}

dt_status dt_jinja_method_call(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value method,
                               const dt_jinja_call *call)
{
    const dt_jinja_method *m = method.as.other;
    const attribute *table = table_of(m->self);

    if (m->self.kind == DT_JINJA_STRING)
        return dt_text_method_call(out, run, m->index, m->self, call);
    if (table[m->index].method == UNSUPPORTED)
        return dt_jinja_fail(run, "unsupported: the method '%s' of dict", table[m->index].name);
    return m->self.kind == DT_JINJA_DICT ? call_dict(out, run, m->self, &table[m->index], call)
                                         : call_list(out, run, m->self, &table[m->index], call);
}
