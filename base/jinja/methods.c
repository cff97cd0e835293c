/* methods: the methods of str. */
#include <string.h>

#include "base/jinja/jinja_int.h"

typedef dt_status method_fn(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                            const dt_jinja_value *args);

static const dt_jinja_text nothing = {.data = ""};

/* --- stripping */

static dt_status strip(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                       const dt_jinja_value *args, bool left, bool right)
{
    const dt_jinja_text *characters, *made;
    dt_status st = DT_OK;

    DT_TRY(dt_call_text(&characters, run, args[0], NULL, "strip"));
    DT_TRY(dt_text_strip(&made, run, self, characters, left, right));
    *out = dt_jinja_string(made);
out:
    return st;
}

static dt_status strip_both(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                            const dt_jinja_value *args)
{
    return strip(out, run, self, args, true, true);
}

static dt_status strip_left(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                            const dt_jinja_value *args)
{
    return strip(out, run, self, args, true, false);
}

static dt_status strip_right(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                             const dt_jinja_value *args)
{
    return strip(out, run, self, args, false, true);
}

static dt_status remove_prefix(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                               const dt_jinja_value *args)
{
    const dt_jinja_text *part;
    dt_status st = DT_OK;
    bool has;

    DT_TRY(dt_call_text(&part, run, args[0], &nothing, "removeprefix"));
    has = self->length >= part->length && memcmp(self->data, part->data, part->length) == 0;
    *out = dt_jinja_string(dt_text_part(run, self, has ? part->length : 0, self->length));
out:
    return st;
}

static bool ends_with(const dt_jinja_text *text, const dt_jinja_text *part, size_t from, size_t to)
{
    return to >= from && to - from >= part->length &&
           memcmp(text->data + to - part->length, part->data, part->length) == 0;
}

static dt_status remove_suffix(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                               const dt_jinja_value *args)
{
    const dt_jinja_text *part;
    dt_status st = DT_OK;

    DT_TRY(dt_call_text(&part, run, args[0], &nothing, "removesuffix"));
    *out = dt_jinja_string(dt_text_part(
        run, self, 0, self->length - (ends_with(self, part, 0, self->length) ? part->length : 0)));
out:
    return st;
}

/* --- splitting */

static void reverse(dt_jinja_list *list)
{
    for (int64_t i = 0; i < list->count / 2; i++) {
        dt_jinja_value item = list->items[i];

        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = item;
    }
}

/* Splits at white space, at most `most` times from the left, or from the right. What is left after that keeps the
 * white space at its other side. */
static void split_spaces(dt_jinja_value list, dt_jinja_run *run, const dt_jinja_text *text,
                         int64_t most, bool right)
{
    size_t from = 0, to = text->length, at, used;

    for (int64_t count = 0;; count++) {
        while (!right && from < to && (used = dt_space_at(text->data, to, from)) > 0)
            from += used;
        while (right && to > from && (used = dt_space_before(text->data, to)) > 0)
            to -= used;
        if (from == to)
            return;
        if (count >= most) {
            dt_text_add_part(run, list, text, from, to);
            return;
        }
        at = right ? to : from;
        while (!right && at < to && dt_space_at(text->data, to, at) == 0)
            at++;
        while (right && at > from && dt_space_before(text->data, at) == 0)
            at--;
        dt_text_add_part(run, list, text, right ? at : from, right ? to : at);
        from = right ? from : at;
        to = right ? at : to;
    }
}

static void split_at(dt_jinja_value list, dt_jinja_run *run, const dt_jinja_text *text,
                     const dt_jinja_text *separator, int64_t most, bool right)
{
    size_t from = 0, to = text->length;

    for (; most > 0; most--) {
        int64_t at = right ? dt_text_find_last(text, separator, from, to)
                           : dt_text_find(text, separator, from, to);

        if (at < 0)
            break;
        if (right) {
            dt_text_add_part(run, list, text, (size_t)at + separator->length, to);
            to = (size_t)at;
        } else {
            dt_text_add_part(run, list, text, from, (size_t)at);
            from = (size_t)at + separator->length;
        }
    }
    dt_text_add_part(run, list, text, from, to);
}

static dt_status split(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                       const dt_jinja_value *args, bool right)
{
    const dt_jinja_text *separator;
    dt_status st = DT_OK;
    int64_t most;

    DT_TRY(dt_call_text(&separator, run, args[0], NULL, "split"));
    DT_TRY(dt_call_integer(&most, run, args[1], -1, "split"));
    DT_TRY(dt_jinja_spend(run, self->length / 8));
    if (most < 0)
        most = INT64_MAX;
    if (separator != NULL && separator->length == 0)
        return dt_jinja_fail(run, "empty separator");
    *out = dt_value_list(run, DT_SHAPE_LIST, 0);
    if (separator != NULL)
        split_at(*out, run, self, separator, most, right);
    else
        split_spaces(*out, run, self, most, right);
    if (right)
        reverse(dt_list_of(*out));
out:
    return st;
}

static dt_status split_left(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                            const dt_jinja_value *args)
{
    return split(out, run, self, args, false);
}

static dt_status split_right(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                             const dt_jinja_value *args)
{
    return split(out, run, self, args, true);
}

static dt_status split_lines(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                             const dt_jinja_value *args)
{
    return dt_text_lines(out, run, self, dt_value_truth(args[0]));
}

static dt_status partition(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                           const dt_jinja_value *args, bool right)
{
    const dt_jinja_text *part;
    dt_status st = DT_OK;
    size_t first, last;
    int64_t at;

    DT_TRY(dt_call_text(&part, run, args[0], &nothing, "partition"));
    if (part->length == 0)
        return dt_jinja_fail(run, "empty separator");
    at = right ? dt_text_find_last(self, part, 0, self->length)
               : dt_text_find(self, part, 0, self->length);
    first = at >= 0 ? (size_t)at : right ? 0 : self->length;
    last = at >= 0 ? first + part->length : first;
    *out = dt_value_list(run, DT_SHAPE_TUPLE, 3);
    dt_text_add_part(run, *out, self, 0, first);
    dt_text_add_part(run, *out, self, first, last);
    dt_text_add_part(run, *out, self, last, self->length);
out:
    return st;
}

static dt_status partition_left(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                                const dt_jinja_value *args)
{
    return partition(out, run, self, args, false);
}

static dt_status partition_right(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                                 const dt_jinja_value *args)
{
    return partition(out, run, self, args, true);
}

/* --- searching */

/* Gives the bytes of self[args[0]:args[1]]. Returns false in `in` if the start is after the end of the text. */
static dt_status take_range(size_t *from, size_t *to, bool *in, const dt_jinja_run *run,
                            const dt_jinja_text *self, const dt_jinja_value *args)
{
    int64_t first, last;
    dt_status st = DT_OK;

    DT_TRY(dt_call_integer(&first, run, args[0], 0, "find"));
    DT_TRY(dt_call_integer(&last, run, args[1], self->codes, "find"));
    first = first < 0 ? first + self->codes : first;
    last = last < 0 ? last + self->codes : last;
    *in = first <= (int64_t)self->codes;
    *from = dt_text_byte_of(self, first < 0 ? 0 : first);
    *to = last < 0 ? 0 : dt_text_byte_of(self, last);
    *in = *in && *from <= *to;
out:
    return st;
}

static dt_status find(int64_t *out, dt_jinja_run *run, const dt_jinja_text *self,
                      const dt_jinja_value *args, bool last)
{
    const dt_jinja_text *part;
    dt_status st = DT_OK;
    size_t from, to;
    bool in;

    DT_TRY(dt_call_text(&part, run, args[0], &nothing, "find"));
    DT_TRY(take_range(&from, &to, &in, run, self, args + 1));
    DT_TRY(dt_jinja_spend(run, self->length / 64));
    *out = !in    ? -1
           : last ? dt_text_find_last(self, part, from, to)
                  : dt_text_find(self, part, from, to);
    if (*out >= 0)
        *out = dt_text_index_of(self, (size_t)*out);
out:
    return st;
}

static dt_status find_first(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                            const dt_jinja_value *args)
{
    *out = dt_jinja_integer(0);
    return find(&out->as.integer, run, self, args, false);
}

static dt_status find_last(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                           const dt_jinja_value *args)
{
    *out = dt_jinja_integer(0);
    return find(&out->as.integer, run, self, args, true);
}

static dt_status index_of(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                          const dt_jinja_value *args)
{
    dt_status st = find_first(out, run, self, args);

    return st == DT_OK && out->as.integer < 0 ? dt_jinja_fail(run, "substring not found") : st;
}

static dt_status last_index_of(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                               const dt_jinja_value *args)
{
    dt_status st = find_last(out, run, self, args);

    return st == DT_OK && out->as.integer < 0 ? dt_jinja_fail(run, "substring not found") : st;
}

static dt_status count(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                       const dt_jinja_value *args)
{
    const dt_jinja_text *part;
    dt_status st = DT_OK;
    int64_t found = 0;
    size_t from, to;
    bool in;

    DT_TRY(dt_call_text(&part, run, args[0], &nothing, "count"));
    DT_TRY(take_range(&from, &to, &in, run, self, args + 1));
    DT_TRY(dt_jinja_spend(run, self->length / 16));
    if (in && part->length == 0)
        found = dt_text_index_of(self, to) - dt_text_index_of(self, from) + 1;
    else if (in)
        for (int64_t at; (at = dt_text_find(self, part, from, to)) >= 0; found++)
            from = (size_t)at + part->length;
    *out = dt_jinja_integer(found);
out:
    return st;
}

/* args[0]: a str, or a tuple of them. */
static dt_status tests_end(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                           const dt_jinja_value *args, bool at_end)
{
    bool tuple = args[0].kind == DT_JINJA_LIST && args[0].shape == DT_SHAPE_TUPLE, in;
    const dt_jinja_value *parts = tuple ? dt_list_of(args[0])->items : args;
    int64_t parts_count = tuple ? dt_list_of(args[0])->count : 1;
    const dt_jinja_text *part;
    dt_status st = DT_OK;
    size_t from, to;

    *out = dt_jinja_from_bool(false);
    DT_TRY(take_range(&from, &to, &in, run, self, args + 1));
    DT_TRY(dt_jinja_spend(run, parts_count));
    for (int64_t i = 0; i < parts_count; i++) {
        if (parts[i].kind == DT_JINJA_NONE)
            return dt_jinja_fail(
                run, "startswith first arg must be str or a tuple of str, not NoneType");
        DT_TRY(dt_call_text(&part, run, parts[i], &nothing, "startswith"));
        if (!in || to - from < part->length)
            continue;
        if (at_end ? ends_with(self, part, from, to)
                   : memcmp(self->data + from, part->data, part->length) == 0)
            *out = dt_jinja_from_bool(true);
    }
out:
    return st;
}

static dt_status starts(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                        const dt_jinja_value *args)
{
    return tests_end(out, run, self, args, false);
}

static dt_status ends(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                      const dt_jinja_value *args)
{
    return tests_end(out, run, self, args, true);
}

/* --- making */

static dt_status replace(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                         const dt_jinja_value *args)
{
    const dt_jinja_text *old, *by, *made;
    dt_status st = DT_OK;
    int64_t most;

    DT_TRY(dt_call_text(&old, run, args[0], NULL, "replace"));
    DT_TRY(dt_call_text(&by, run, args[1], NULL, "replace"));
    DT_TRY(dt_call_integer(&most, run, args[2], -1, "replace"));
    if (old == NULL || by == NULL)
        return dt_jinja_fail(run, "'replace': expected str, got NoneType");
    DT_TRY(dt_text_replace(&made, run, self, old, by, most));
    *out = dt_jinja_string(made);
out:
    return st;
}

static dt_status join(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                      const dt_jinja_value *args)
{
    dt_jinja_sink sink = {.length = 0};
    const dt_jinja_list *items;
    dt_status st = DT_OK;

    DT_TRY(dt_value_iterate(&items, run, args[0]));
    for (int64_t i = 0; i < items->count; i++) {
        if (items->items[i].kind != DT_JINJA_STRING)
            return dt_jinja_fail(run, "sequence item %lld: expected str instance, %s found",
                                 (long long)i, dt_value_type(items->items[i]));
        if (i > 0)
            DT_TRY(dt_sink_add_text(run, &sink, self));
        DT_TRY(dt_sink_add_text(run, &sink, dt_text_of(items->items[i])));
    }
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* where: -1 text at the left, 0 in the middle, 1 at the right. */
static dt_status justify(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                         const dt_jinja_value *args, int where)
{
    const dt_jinja_text *with, *made;
    dt_status st = DT_OK;
    int64_t width, left;

    DT_TRY(dt_call_integer(&width, run, args[0], 0, "width"));
    DT_TRY(dt_call_text(&with, run, args[1], NULL, "width"));
    left = where == 0 ? dt_text_fill_left(width, self->codes) : where < 0 ? 0 : width - self->codes;
    DT_TRY(dt_text_fill(&made, run, self, left, where > 0 ? 0 : width - self->codes - left, with));
    *out = dt_jinja_string(made);
out:
    return st;
}

static dt_status center(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                        const dt_jinja_value *args)
{
    return justify(out, run, self, args, 0);
}

static dt_status left_justify(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                              const dt_jinja_value *args)
{
    return justify(out, run, self, args, -1);
}

static dt_status right_justify(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                               const dt_jinja_value *args)
{
    return justify(out, run, self, args, 1);
}

static dt_status zero_fill(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *self,
                           const dt_jinja_value *args)
{
    static const dt_jinja_text zero = {.data = "0", .length = 1, .codes = 1};
    size_t sign = self->length > 0 && strchr("+-", self->data[0]) != NULL;
    dt_jinja_sink sink = {.length = 0};
    const dt_jinja_text *digits;
    dt_status st = DT_OK;
    int64_t width;

    DT_TRY(dt_call_integer(&width, run, args[0], 0, "zfill"));
    DT_TRY(dt_sink_add_part(run, &sink, self, 0, sign));
    DT_TRY(dt_text_fill(&digits, run, dt_text_part(run, self, sign, self->length),
                        width - self->codes, 0, &zero));
    DT_TRY(dt_sink_add_text(run, &sink, digits));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* --- the table */

/* The kind of a method: CALLS has a function of its own, the others share one each. */
typedef enum action { CALLS, CHANGES_CASE, TESTS_CLASS, FORMATS, UNSUPPORTED } action;

typedef struct text_method {
    const char *name, *params;
    int least;
    method_fn *call;
    action does;
    int what; /* a dt_text_case, or a dt_text_class */
} text_method;

/* clang-format off */
static const text_method methods[] = {
    {"capitalize", "", 0, NULL, CHANGES_CASE, DT_CASE_CAPITALIZE},
    {"casefold", "", 0, NULL, UNSUPPORTED, 0},
    {"center", "width, fillchar", 1, center, CALLS, 0},
    {"count", "sub, start, end", 1, count, CALLS, 0},
    {"encode", "", 0, NULL, UNSUPPORTED, 0},
    {"endswith", "suffix, start, end", 1, ends, CALLS, 0},
    {"expandtabs", "", 0, NULL, UNSUPPORTED, 0},
    {"find", "sub, start, end", 1, find_first, CALLS, 0},
    {"format", "", 0, NULL, FORMATS, 0},
    {"format_map", "", 0, NULL, UNSUPPORTED, 0},
    {"index", "sub, start, end", 1, index_of, CALLS, 0},
    {"isalnum", "", 0, NULL, TESTS_CLASS, DT_TEXT_ALNUM},
    {"isalpha", "", 0, NULL, TESTS_CLASS, DT_TEXT_ALPHA},
    {"isascii", "", 0, NULL, UNSUPPORTED, 0},
    {"isdecimal", "", 0, NULL, UNSUPPORTED, 0},
    {"isdigit", "", 0, NULL, TESTS_CLASS, DT_TEXT_DIGIT},
    {"isidentifier", "", 0, NULL, UNSUPPORTED, 0},
    {"islower", "", 0, NULL, TESTS_CLASS, DT_TEXT_LOWER},
    {"isnumeric", "", 0, NULL, UNSUPPORTED, 0},
    {"isprintable", "", 0, NULL, UNSUPPORTED, 0},
    {"isspace", "", 0, NULL, TESTS_CLASS, DT_TEXT_SPACE},
    {"istitle", "", 0, NULL, UNSUPPORTED, 0},
    {"isupper", "", 0, NULL, TESTS_CLASS, DT_TEXT_UPPER},
    {"join", "iterable", 1, join, CALLS, 0},
    {"ljust", "width, fillchar", 1, left_justify, CALLS, 0},
    {"lower", "", 0, NULL, CHANGES_CASE, DT_CASE_LOWER},
    {"lstrip", "chars", 0, strip_left, CALLS, 0},
    {"maketrans", "", 0, NULL, UNSUPPORTED, 0},
    {"partition", "sep", 1, partition_left, CALLS, 0},
    {"removeprefix", "prefix", 1, remove_prefix, CALLS, 0},
    {"removesuffix", "suffix", 1, remove_suffix, CALLS, 0},
    {"replace", "old, new, count", 2, replace, CALLS, 0},
    {"rfind", "sub, start, end", 1, find_last, CALLS, 0},
    {"rindex", "sub, start, end", 1, last_index_of, CALLS, 0},
    {"rjust", "width, fillchar", 1, right_justify, CALLS, 0},
    {"rpartition", "sep", 1, partition_right, CALLS, 0},
    {"rsplit", "sep, maxsplit", 0, split_right, CALLS, 0},
    {"rstrip", "chars", 0, strip_right, CALLS, 0},
    {"split", "sep, maxsplit", 0, split_left, CALLS, 0},
    {"splitlines", "keepends", 0, split_lines, CALLS, 0},
    {"startswith", "prefix, start, end", 1, starts, CALLS, 0},
    {"strip", "chars", 0, strip_both, CALLS, 0},
    {"swapcase", "", 0, NULL, CHANGES_CASE, DT_CASE_SWAP},
    {"title", "", 0, NULL, CHANGES_CASE, DT_CASE_TITLE},
    {"translate", "", 0, NULL, UNSUPPORTED, 0},
    {"upper", "", 0, NULL, CHANGES_CASE, DT_CASE_UPPER},
    {"zfill", "width", 1, zero_fill, CALLS, 0},
};
/* clang-format on */

int dt_text_method_find(const dt_jinja_text *name)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (dt_text_is(name, methods[i].name))
            return (int)i;
    return -1;
}

dt_status dt_text_method_call(dt_jinja_value *out, dt_jinja_run *run, int index,
                              dt_jinja_value self, const dt_jinja_call *call)
{
    const text_method *method = &methods[index];
    dt_jinja_value args[DT_JINJA_PARAMS];
    const dt_jinja_text *made;
    dt_status st = DT_OK;

    if (method->does == UNSUPPORTED)
        return dt_jinja_fail(run, "unsupported: the method '%s' of str", method->name);
    if (self.shape == DT_SHAPE_SAFE && call->count + call->keyword_count > 0)
        return dt_jinja_fail(run, "unsupported: '%s' of the result of 'safe' or 'escape'",
                             method->name);
    if (method->does == FORMATS)
        return dt_text_format_fields(out, run, dt_text_of(self), call);
    DT_TRY(dt_jinja_bind(args, run, call, method->name, method->params, method->least));
    if (method->does == CALLS)
        return method->call(out, run, dt_text_of(self), args);
    DT_TRY(dt_jinja_spend(run, dt_text_of(self)->length / 8));
    if (method->does == TESTS_CLASS) {
        *out = dt_jinja_from_bool(dt_text_has_class(dt_text_of(self), (dt_text_class)method->what));
        return DT_OK;
    }
    DT_TRY(dt_text_change_case(&made, run, dt_text_of(self), (dt_text_case)method->what));
    *out = dt_jinja_string(made);
out:
    return st;
}
