/* text_filters: filters of texts and numbers, and tojson. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

static dt_status change_case(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                             dt_text_case to)
{
    const dt_jinja_text *text, *made;
    dt_status st = DT_OK;

    DT_TRY(dt_value_to_text(&text, run, value));
    DT_TRY(dt_jinja_spend(run, text->length / 8));
    DT_TRY(dt_text_change_case(&made, run, text, to));
    *out = dt_jinja_string(made);
out:
    return st;
}

dt_status dt_filter_upper(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    (void)args;
    return change_case(out, run, value, DT_CASE_UPPER);
}

dt_status dt_filter_lower(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    (void)args;
    return change_case(out, run, value, DT_CASE_LOWER);
}

dt_status dt_filter_title(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    (void)args;
    return change_case(out, run, value, DT_CASE_WORDS);
}

dt_status dt_filter_capitalize(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                               const dt_jinja_value *args)
{
    (void)args;
    return change_case(out, run, value, DT_CASE_CAPITALIZE);
}

dt_status dt_filter_string(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;

    (void)args;
    DT_TRY(dt_value_to_text(&text, run, value));
    *out = dt_jinja_string(text);
out:
    return st;
}

dt_status dt_filter_safe(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args)
{
    dt_status st = dt_filter_string(out, run, value, args);

    out->shape = DT_SHAPE_SAFE;
    return st;
}

dt_status dt_filter_escape(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    static const char special[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    dt_jinja_sink sink = {.length = 0};
    const dt_jinja_text *text;
    dt_status st = DT_OK;
    size_t plain = 0;

    (void)args;
    if (value.kind == DT_JINJA_STRING && value.shape == DT_SHAPE_SAFE) {
        *out = value;
        return DT_OK;
    }
    DT_TRY(dt_value_to_text(&text, run, value));
    for (size_t at = 0; at < text->length; at++) {
        const char *found = text->data[at] == '\0' ? NULL : strchr(special, text->data[at]);

        if (found == NULL)
            continue;
        DT_TRY(dt_sink_add_part(run, &sink, text, plain, at));
        DT_TRY(dt_sink_add(run, &sink, names[found - special], strlen(names[found - special]),
                           dt_text_origin_at(text, at)));
        plain = at + 1;
    }
    DT_TRY(dt_sink_add_part(run, &sink, text, plain, text->length));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
    out->shape = DT_SHAPE_SAFE;
out:
    return st;
}

/* chars */
dt_status dt_filter_trim(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                         const dt_jinja_value *args)
{
    const dt_jinja_text *text, *characters;
    dt_status st = DT_OK;

    DT_TRY(dt_value_to_text(&text, run, value));
    DT_TRY(dt_call_text(&characters, run, args[0], NULL, "trim"));
    DT_TRY(dt_text_strip(&text, run, text, characters, true, true));
    *out = dt_jinja_string(text);
out:
    return st;
}

/* old, new, count */
dt_status dt_filter_replace(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                            const dt_jinja_value *args)
{
    const dt_jinja_text *text, *old, *by;
    dt_status st = DT_OK;
    int64_t most;

    DT_TRY(dt_value_to_text(&text, run, value));
    DT_TRY(dt_value_to_text(&old, run, args[0]));
    DT_TRY(dt_value_to_text(&by, run, args[1]));
    DT_TRY(dt_call_integer(&most, run, args[2], -1, "replace"));
    DT_TRY(dt_text_replace(&text, run, text, old, by, most));
    *out = dt_jinja_string(text);
out:
    return st;
}

static dt_status need_text(const dt_jinja_text **out, const dt_jinja_run *run, dt_jinja_value value,
                           const char *what)
{
    *out = NULL;
    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    if (value.kind != DT_JINJA_STRING)
        return dt_jinja_fail(run, "'%s': expected str, got %s", what, dt_value_type(value));
    *out = dt_text_of(value);
    return DT_OK;
}

/* Returns a text of spaces, or the given one. */
static dt_status indentation(const dt_jinja_text **out, dt_jinja_run *run, dt_jinja_value width,
                             int64_t otherwise)
{
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;
    int64_t count;

    if (width.kind == DT_JINJA_STRING) {
        *out = dt_text_of(width);
        return DT_OK;
    }
    DT_TRY(dt_call_integer(&count, run, width, otherwise, "indent"));
    for (; count > 0; count--)
        DT_TRY(dt_sink_add(run, &sink, " ", 1, DT_JINJA_TEMPLATE));
    *out = dt_sink_text(run, &sink);
out:
    return st;
}

/* width, first, blank */
dt_status dt_filter_indent(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    bool first = dt_value_truth(args[1]), blank = dt_value_truth(args[2]);
    const dt_jinja_text *text, *indent;
    dt_jinja_sink whole = {.length = 0}, sink = {.length = 0};
    const dt_jinja_list *items;
    dt_status st = DT_OK;
    dt_jinja_value lines;

    DT_TRY(need_text(&text, run, value, "indent"));
    DT_TRY(indentation(&indent, run, args[0], 4));
    /* a line break is added, so that a text that ends with one keeps it */
    DT_TRY(dt_sink_add_text(run, &whole, text));
    DT_TRY(dt_sink_add(run, &whole, "\n", 1, DT_JINJA_TEMPLATE));
    DT_TRY(dt_text_lines(&lines, run, dt_sink_text(run, &whole), true));
    items = dt_list_of(lines);
    for (int64_t i = 0; i < items->count; i++) {
        const dt_jinja_text *line = dt_text_of(items->items[i]), *bare;
        dt_jinja_value one;
        uint32_t origin = line->length > 0 ? dt_text_origin_at(line, line->length - 1) : 0;

        DT_TRY(dt_text_lines(&one, run, line, false)); /* without its end */
        bare = dt_list_of(one)->count > 0 ? dt_text_of(dt_list_of(one)->items[0]) : line;
        if (i > 0 ? blank || bare->length > 0 : first)
            DT_TRY(dt_sink_add_text(run, &sink, indent));
        DT_TRY(dt_sink_add_text(run, &sink, bare));
        if (i + 1 < items->count) /* every kind of line break becomes "\n" */
            DT_TRY(dt_sink_add(run, &sink, "\n", 1, origin));
    }
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* length, killwords, end, leeway */
dt_status dt_filter_truncate(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                             const dt_jinja_value *args)
{
    static const dt_jinja_text dots = {.data = "...", .length = 3, .codes = 3},
                               space = {.data = " ", .length = 1, .codes = 1};
    const dt_jinja_text *text, *end;
    dt_jinja_sink sink = {.length = 0};
    int64_t length, leeway, cut, at;
    dt_status st = DT_OK;

    DT_TRY(need_text(&text, run, value, "truncate"));
    DT_TRY(dt_call_integer(&length, run, args[0], 255, "truncate"));
    DT_TRY(dt_call_text(&end, run, args[2], &dots, "truncate"));
    DT_TRY(dt_call_integer(&leeway, run, args[3], 5, "truncate"));
    if (length < (int64_t)end->codes || leeway < 0)
        return dt_jinja_fail(run, "truncate: expected length >= %u and leeway >= 0", end->codes);
    *out = value;
    if ((int64_t)text->codes <= length || (int64_t)text->codes - length <= leeway)
        return DT_OK;
    cut = (int64_t)dt_text_byte_of(text, length - end->codes);
    at = dt_value_truth(args[1]) ? -1 : dt_text_find_last(text, &space, 0, (size_t)cut);
    DT_TRY(dt_sink_add_part(run, &sink, text, 0, (size_t)(at >= 0 ? at : cut)));
    DT_TRY(dt_sink_add_text(run, &sink, end));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* Counts runs of word characters; characters beyond ASCII count as letters. */
dt_status dt_filter_wordcount(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              const dt_jinja_value *args)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;
    int64_t words = 0;
    bool in = false;

    (void)args;
    DT_TRY(dt_value_to_text(&text, run, value));
    for (size_t at = 0; at < text->length; at++) {
        unsigned char c = (unsigned char)text->data[at];
        bool word =
            isalnum(c) || c == '_' || (c >= 0x80 && dt_space_at(text->data, text->length, at) == 0);

        words += word && !in;
        in = word;
    }
    *out = dt_jinja_integer(words);
out:
    return st;
}

/* width */
dt_status dt_filter_center(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    const dt_jinja_text *text;
    dt_status st = DT_OK;
    int64_t width, left;

    DT_TRY(dt_value_to_text(&text, run, value));
    DT_TRY(dt_call_integer(&width, run, args[0], 80, "center"));
    left = dt_text_fill_left(width, text->codes);
    DT_TRY(dt_text_fill(&text, run, text, left, width - text->codes - left, NULL));
    *out = dt_jinja_string(text);
out:
    return st;
}

/* Only of a string. */
dt_status dt_filter_urlencode(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                              const dt_jinja_value *args)
{
    dt_jinja_sink sink = {.length = 0};
    const dt_jinja_text *text;
    dt_status st = DT_OK;
    char code[4];

    (void)args;
    if (value.kind == DT_JINJA_LIST || value.kind == DT_JINJA_DICT)
        return dt_jinja_fail(run, "unsupported: urlencode of a %s", dt_value_type(value));
    DT_TRY(dt_value_to_text(&text, run, value));
    for (size_t at = 0; at < text->length; at++) {
        unsigned char c = (unsigned char)text->data[at];
        bool plain = isalnum(c) || (c != '\0' && strchr("_.-~/", c) != NULL);

        snprintf(code, sizeof(code), plain ? "%c" : "%%%02X", c);
        DT_TRY(dt_sink_add(run, &sink, code, strlen(code), dt_text_origin_at(text, at)));
    }
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* --- numbers */

/* Reads a text as Python's int() or float() does: white space around it, single underscores between digits. */
static bool read_number(char *digits, size_t size, const dt_jinja_text *text)
{
    size_t from = 0, to = text->length, used, count = 0;

    while (from < to && (used = dt_space_at(text->data, to, from)) > 0)
        from += used;
    while (to > from && (used = dt_space_before(text->data, to)) > 0)
        to -= used;
    if (to - from == 0 || to - from >= size)
        return false;
    for (size_t at = from; at < to; at++) {
        if (text->data[at] == '_') {
            if (at == from || at + 1 == to || !isalnum((unsigned char)text->data[at - 1]) ||
                !isalnum((unsigned char)text->data[at + 1]))
                return false;
            continue;
        }
        if ((unsigned char)text->data[at] >= 0x80 || text->data[at] == '\0')
            return false;
        digits[count++] = text->data[at];
    }
    digits[count] = '\0';
    return true;
}

static bool read_real(double *out, const dt_jinja_text *text)
{
    char digits[128], *stop;

    if (!read_number(digits, sizeof(digits), text) || strpbrk(digits, "xX") != NULL ||
        isspace((unsigned char)digits[0]))
        return false;
    *out = strtod(digits, &stop);
    return *stop == '\0';
}

static bool read_integer(int64_t *out, const dt_jinja_text *text, int base, bool *large)
{
    char digits[128], *at = digits, *stop;
    bool minus;

    *large = false;
    if (!read_number(digits, sizeof(digits), text))
        return false;
    minus = *at == '-';
    at += *at == '-' || *at == '+';
    if (base == 0 && at[0] == '0' && at[1] != '\0' && isdigit((unsigned char)at[1]))
        return strspn(at, "0") == strlen(at); /* "012" is not a number of base 0 */
    if (at[0] == '0' && ((tolower((unsigned char)at[1]) == 'b' && (base == 2 || base == 0)) ||
                         (tolower((unsigned char)at[1]) == 'o' && (base == 8 || base == 0)))) {
        base = tolower((unsigned char)at[1]) == 'b' ? 2 : 8;
        at += 2;
    }
    if (!isalnum((unsigned char)*at))
        return false;
    errno = 0;
    *out = strtoll(at, &stop, base);
    if (minus)
        *out = -*out;
    *large = errno == ERANGE;
    return *stop == '\0';
}

/* default, base */
dt_status dt_filter_int(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_value *args)
{
    dt_status st = DT_OK;
    bool large = false;
    double real = NAN;
    int64_t base, integer = 0;

    DT_TRY(dt_call_integer(&base, run, args[1], 10, "int"));
    if (base != 0 && (base < 2 || base > 36))
        return dt_jinja_fail(run, "int: the base must be 0 or 2 to 36");
    *out = args[0].kind == DT_JINJA_MISSING ? dt_jinja_integer(0) : args[0];
    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    if (value.kind == DT_JINJA_BOOL || value.kind == DT_JINJA_INTEGER) {
        *out = dt_jinja_integer(value.kind == DT_JINJA_BOOL ? value.as.truth : value.as.integer);
        out->origin = value.origin;
        return DT_OK;
    }
    if (value.kind == DT_JINJA_STRING) {
        if (read_integer(&integer, dt_text_of(value), (int)base, &large) && !large) {
            *out = dt_jinja_integer(integer);
            return DT_OK;
        }
        if (large)
            return dt_jinja_fail(run, "an integer of more than 64 bits");
        if (!read_real(&real, dt_text_of(value)))
            return DT_OK;
    } else if (value.kind == DT_JINJA_FLOAT) {
        real = value.as.real;
    }
    if (isfinite(real)) {
        if (!(real > -9.2e18 && real < 9.2e18))
            return dt_jinja_fail(run, "an integer of more than 64 bits");
        *out = dt_jinja_integer((int64_t)real);
    }
out:
    return st;
}

/* default */
dt_status dt_filter_float(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    double real;

    *out = args[0].kind == DT_JINJA_MISSING ? dt_jinja_real(0) : args[0];
    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    if (value.kind == DT_JINJA_FLOAT)
        *out = value;
    else if (value.kind == DT_JINJA_BOOL || value.kind == DT_JINJA_INTEGER)
        *out =
            dt_jinja_real(value.kind == DT_JINJA_BOOL ? value.as.truth : (double)value.as.integer);
    else if (value.kind == DT_JINJA_STRING && read_real(&real, dt_text_of(value)))
        *out = dt_jinja_real(real);
    return DT_OK;
}

dt_status dt_filter_abs(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                        const dt_jinja_value *args)
{
    bool minus = (value.kind == DT_JINJA_INTEGER && value.as.integer < 0) ||
                 (value.kind == DT_JINJA_FLOAT && value.as.real < 0);

    (void)args;
    return dt_value_negate(out, run, value, minus);
}

/* precision, method */
dt_status dt_filter_round(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                          const dt_jinja_value *args)
{
    static const dt_jinja_text nearest = {.data = "common", .length = 6, .codes = 6};
    const dt_jinja_text *method;
    dt_status st = DT_OK;
    int64_t precision;
    char shown[400];
    double real, scale;

    DT_TRY(dt_call_integer(&precision, run, args[0], 0, "round"));
    DT_TRY(dt_call_text(&method, run, args[1], &nearest, "round"));
    if (value.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, value);
    if (value.kind != DT_JINJA_FLOAT && value.kind != DT_JINJA_INTEGER)
        return dt_jinja_fail(run, "round: expected a number, got %s", dt_value_type(value));
    if (precision < 0 || precision > 30)
        return dt_jinja_fail(run, "unsupported: round to %lld digits", (long long)precision);
    real = value.kind == DT_JINJA_FLOAT ? value.as.real : (double)value.as.integer;
    if (dt_text_is(method, "common")) {
        *out = value; /* an integer stays one */
        if (value.kind == DT_JINJA_INTEGER)
            return DT_OK;
        snprintf(shown, sizeof(shown), "%.*f", (int)precision, real); /* half to even, as Python */
        *out = dt_jinja_real(strtod(shown, NULL));
        return DT_OK;
    }
    if (!dt_text_is(method, "ceil") && !dt_text_is(method, "floor"))
        return dt_jinja_fail(run, "method must be common, ceil or floor");
    scale = pow(10, (double)precision);
    *out = dt_jinja_real((dt_text_is(method, "ceil") ? ceil(real * scale) : floor(real * scale)) /
                         scale);
out:
    return st;
}

/* ensure_ascii, indent, separators, sort_keys: transformers' tojson */
dt_status dt_filter_tojson(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value value,
                           const dt_jinja_value *args)
{
    dt_jinja_json_style style = {.ascii = dt_value_truth(args[0]),
                                 .sorted = dt_value_truth(args[3])};
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    if (args[1].kind != DT_JINJA_MISSING && args[1].kind != DT_JINJA_NONE)
        DT_TRY(indentation(&style.indent, run, args[1], 0));
    if (args[2].kind == DT_JINJA_LIST && dt_list_of(args[2])->count == 2) {
        DT_TRY(need_text(&style.between, run, dt_list_of(args[2])->items[0], "separators"));
        DT_TRY(need_text(&style.after_key, run, dt_list_of(args[2])->items[1], "separators"));
    } else if (args[2].kind != DT_JINJA_MISSING && args[2].kind != DT_JINJA_NONE) {
        return dt_jinja_fail(run, "tojson: expected two separators");
    }
    DT_TRY(dt_value_print_json(run, &sink, value, &style));
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}
