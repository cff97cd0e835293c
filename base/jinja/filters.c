/* filters: the table of filters, and those that apply other filters and tests: map, select, reject. */
#include <string.h>

#include "base/jinja/jinja_int.h"

static dt_status map(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                     const dt_jinja_call *call);
static dt_status select_items(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              const dt_jinja_call *call);
static dt_status select_attributes(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                                   const dt_jinja_call *call);
static dt_status reject_items(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              const dt_jinja_call *call);
static dt_status reject_attributes(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                                   const dt_jinja_call *call);
static dt_status format(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_call *call);
static dt_filter_fn get_default, get_attribute;

typedef dt_status whole_fn(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_call *call);

typedef struct filter {
    const char *name, *params;
    int least;
    dt_filter_fn *apply;
    whole_fn *whole; /* instead of `apply`: gets the call as it is */
} filter;

/* clang-format off */
static const filter filters[] = {
    {"abs", "", 0, dt_filter_abs, NULL},
    {"attr", "name", 1, get_attribute, NULL},
    {"batch", "linecount, fill_with", 1, dt_filter_batch, NULL},
    {"capitalize", "", 0, dt_filter_capitalize, NULL},
    {"center", "width", 0, dt_filter_center, NULL},
    {"count", "", 0, dt_filter_length, NULL},
    {"d", "default_value, boolean", 0, get_default, NULL},
    {"default", "default_value, boolean", 0, get_default, NULL},
    {"dictsort", "case_sensitive, by, reverse", 0, dt_filter_dictsort, NULL},
    {"e", "", 0, dt_filter_escape, NULL},
    {"escape", "", 0, dt_filter_escape, NULL},
    {"first", "", 0, dt_filter_first, NULL},
    {"float", "default", 0, dt_filter_float, NULL},
    {"format", "", 0, NULL, format},
    {"groupby", "attribute, default, case_sensitive", 1, dt_filter_groupby, NULL},
    {"indent", "width, first, blank", 0, dt_filter_indent, NULL},
    {"int", "default, base", 0, dt_filter_int, NULL},
    {"items", "", 0, dt_filter_items, NULL},
    {"join", "d, attribute", 0, dt_filter_join, NULL},
    {"last", "", 0, dt_filter_last, NULL},
    {"length", "", 0, dt_filter_length, NULL},
    {"list", "", 0, dt_filter_list, NULL},
    {"lower", "", 0, dt_filter_lower, NULL},
    {"map", "", 0, NULL, map},
    {"max", "case_sensitive, attribute", 0, dt_filter_max, NULL},
    {"min", "case_sensitive, attribute", 0, dt_filter_min, NULL},
    {"reject", "", 0, NULL, reject_items},
    {"rejectattr", "", 0, NULL, reject_attributes},
    {"replace", "old, new, count", 2, dt_filter_replace, NULL},
    {"reverse", "", 0, dt_filter_reverse, NULL},
    {"round", "precision, method", 0, dt_filter_round, NULL},
    {"safe", "", 0, dt_filter_safe, NULL},
    {"select", "", 0, NULL, select_items},
    {"selectattr", "", 0, NULL, select_attributes},
    {"slice", "slices, fill_with", 1, dt_filter_slice, NULL},
    {"sort", "reverse, case_sensitive, attribute", 0, dt_filter_sort, NULL},
    {"string", "", 0, dt_filter_string, NULL},
    {"sum", "attribute, start", 0, dt_filter_sum, NULL},
    {"title", "", 0, dt_filter_title, NULL},
    {"tojson", "ensure_ascii, indent, separators, sort_keys", 0, dt_filter_tojson, NULL},
    {"trim", "chars", 0, dt_filter_trim, NULL},
    {"truncate", "length, killwords, end, leeway", 0, dt_filter_truncate, NULL},
    {"unique", "case_sensitive, attribute", 0, dt_filter_unique, NULL},
    {"upper", "", 0, dt_filter_upper, NULL},
    {"urlencode", "", 0, dt_filter_urlencode, NULL},
    {"wordcount", "", 0, dt_filter_wordcount, NULL},
};
/* clang-format on */

int dt_jinja_filter_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
        if (strlen(filters[i].name) == length && memcmp(filters[i].name, name, length) == 0)
            return (int)i;
    return -1;
}

bool dt_jinja_filter_is_known(const char *name, size_t length)
{
    static const char *const others[] = {"filesizeformat", "forceescape", "pprint",   "random",
                                         "striptags",      "urlize",      "wordwrap", "xmlattr"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strlen(others[i]) == length && memcmp(others[i], name, length) == 0)
            return true;
    return false;
}

dt_status dt_jinja_filter_apply(dt_jinja_value *out, dt_jinja_run *run, int index,
                                dt_jinja_value value, const dt_jinja_call *call)
{
    const filter *f = &filters[index];
    dt_jinja_value args[DT_JINJA_PARAMS];
    dt_status st = DT_OK;

    if (f->whole != NULL)
        return f->whole(out, run, value, call);
    DT_TRY(dt_jinja_bind(args, run, call, f->name, f->params, f->least));
    st = f->apply(out, run, value, args);
out:
    return st;
}

/* default_value, boolean */
static dt_status get_default(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                             const dt_jinja_value *args)
{
    *out = value;
    if (value.kind == DT_JINJA_UNDEFINED || (dt_value_truth(args[1]) && !dt_value_truth(value)))
        *out = args[0].kind != DT_JINJA_MISSING ? args[0]
                                                : dt_jinja_from_text(run, "", 0, DT_JINJA_TEMPLATE);
    return DT_OK;
}

/* An attribute, and not the entry of a dict. */
static dt_status get_attribute(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                               const dt_jinja_value *args)
{
    const dt_jinja_text *name;
    dt_status st = DT_OK;

    DT_TRY(dt_call_text(&name, run, args[0], NULL, "attr"));
    if (name == NULL)
        return dt_jinja_fail(run, "attr: expected str, got NoneType");
    DT_TRY(dt_value_attribute(out, run, value, name));
    if (value.kind == DT_JINJA_DICT && out->kind != DT_JINJA_METHOD)
        *out = dt_value_undefined(run, value, name);
out:
    return st;
}

static dt_status format(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_call *call)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;
    dt_jinja_value args;

    if (call->keyword_count > 0)
        return dt_jinja_fail(run, "unsupported: format with named values");
    DT_TRY(dt_value_to_text(&text, run, value));
    args = dt_value_list(run, DT_SHAPE_TUPLE, call->count);
    for (int64_t i = 0; i < call->count; i++)
        dt_jinja_append(run, args, call->positional[i]);
    DT_TRY(dt_text_format_percent(out, run, text, args));
out:
    return st;
}

/* --- filters that apply others */

static dt_status find_callee(int *out, const dt_jinja_run *run, dt_jinja_value name, bool test)
{
    const dt_jinja_text *text;

    if (name.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, name);
    if (name.kind != DT_JINJA_STRING)
        return dt_jinja_fail(run, "expected the name of a %s", test ? "test" : "filter");
    text = dt_text_of(name);
    *out = test ? dt_jinja_test_find(text->data, text->length)
                : dt_jinja_filter_find(text->data, text->length);
    if (*out < 0)
        return dt_jinja_fail(run, "No %s named '%.*s'.", test ? "test" : "filter",
                             text->length < 40 ? (int)text->length : 40, text->data);
    return DT_OK;
}

/* map(attribute=..., default=...), or map(filter, arguments) */
static dt_status map(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                     const dt_jinja_call *call)
{
    bool by_attribute = call->count == 0;
    dt_jinja_value args[DT_JINJA_PARAMS], item;
    const dt_jinja_list *items;
    dt_jinja_call rest = *call;
    dt_status st = DT_OK;
    int callee = -1;

    if (by_attribute) {
        DT_TRY(dt_jinja_bind(args, run, call, "map", "attribute, default", 1));
    } else {
        DT_TRY(find_callee(&callee, run, call->positional[0], false));
        rest.positional++;
        rest.count--;
    }
    *out = dt_value_list(run, DT_SHAPE_GENERATOR, 0);
    if (!dt_value_truth(value))
        return DT_OK;
    DT_TRY(dt_value_iterate(&items, run, value));
    DT_TRY(dt_jinja_deepen(run));
    for (int64_t i = 0; i < items->count; i++) {
        if (!by_attribute)
            DT_TRY(dt_jinja_filter_apply(&item, run, callee, items->items[i], &rest));
        else
            DT_TRY(dt_value_path(&item, run, items->items[i], args[0]));
        if (by_attribute && item.kind == DT_JINJA_UNDEFINED && args[1].kind != DT_JINJA_MISSING &&
            args[1].kind != DT_JINJA_NONE)
            item = args[1];
        dt_jinja_append(run, *out, item);
    }
    run->depth++;
out:
    return st;
}

/* select(test, arguments), and the others: by an attribute that is the first argument; not selected. */
static dt_status choose(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_call *call, bool by_attribute, bool selects)
{
    dt_jinja_value path = dt_jinja_missing(), item;
    const dt_jinja_list *items;
    dt_jinja_call rest = *call;
    dt_status st = DT_OK;
    int callee = -1;

    *out = dt_value_list(run, DT_SHAPE_GENERATOR, 0);
    if (by_attribute && rest.count == 0)
        return dt_jinja_fail(run, "Missing parameter for attribute name");
    if (!dt_value_truth(value))
        return DT_OK;
    if (by_attribute) {
        path = *rest.positional++;
        rest.count--;
    }
    if (rest.count > 0) {
        DT_TRY(find_callee(&callee, run, *rest.positional++, true));
        rest.count--;
    }
    DT_TRY(dt_value_iterate(&items, run, value));
    for (int64_t i = 0; i < items->count; i++) {
        bool holds;

        DT_TRY(dt_value_path(&item, run, items->items[i], path));
        holds = dt_value_truth(item);
        if (callee >= 0)
            DT_TRY(dt_jinja_test_apply(&holds, run, callee, item, &rest));
        if (holds == selects)
            dt_jinja_append(run, *out, items->items[i]);
    }
out:
    return st;
}

static dt_status select_items(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              const dt_jinja_call *call)
{
    return choose(out, run, value, call, false, true);
}

static dt_status select_attributes(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                                   const dt_jinja_call *call)
{
    return choose(out, run, value, call, true, true);
}

static dt_status reject_items(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              const dt_jinja_call *call)
{
    return choose(out, run, value, call, false, false);
}

static dt_status reject_attributes(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                                   const dt_jinja_call *call)
{
    return choose(out, run, value, call, true, false);
}
