/* format: "..." % values, and the simple fields of str.format. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/jinja/jinja_int.h"

enum { WIDTH_MOST = 1000, NUMBER_MOST = 1400 };

/* "%-5.2f": what stands between '%' and its letter. */
typedef struct field {
    bool left, zero, plus, space, alternate;
    int width, precision; /* precision -1: none */
    char letter;
} field;

/* Reads a field after its '%'. Returns where it ends; NULL if it is not supported. */
static const char *read_field(field *out, const char *at, const char *end)
{
    *out = (field){.precision = -1};
    for (; at < end && strchr("-0+ #", *at) != NULL; at++) {
        out->left = out->left || *at == '-';
        out->zero = out->zero || *at == '0';
        out->plus = out->plus || *at == '+';
        out->space = out->space || *at == ' ';
        out->alternate = out->alternate || *at == '#';
    }
    for (; at < end && isdigit((unsigned char)*at) && out->width < WIDTH_MOST; at++)
        out->width = out->width * 10 + *at - '0';
    if (at < end && *at == '.') {
        out->precision = 0;
        for (at++; at < end && isdigit((unsigned char)*at) && out->precision < WIDTH_MOST; at++)
            out->precision = out->precision * 10 + *at - '0';
    }
    if (at == end || out->width >= WIDTH_MOST || out->precision >= WIDTH_MOST || out->alternate)
        return NULL;
    out->letter = *at;
    return strchr("srdixXoeEfFgG%", *at) != NULL ? at + 1 : NULL;
}

static dt_status pad(dt_jinja_run *run, dt_jinja_sink *sink, int64_t count)
{
    dt_status st = DT_OK;

    for (; count > 0; count--)
        DT_TRY(dt_sink_add(run, sink, " ", 1, DT_JINJA_TEMPLATE));
out:
    return st;
}

static dt_status add_text(dt_jinja_run *run, dt_jinja_sink *sink, const field *f,
                          dt_jinja_value value)
{
    dt_jinja_sink shown = {.length = 0};
    const dt_jinja_text *text;
    dt_status st = DT_OK;

    DT_TRY(f->letter == 'r' ? dt_value_repr(run, &shown, value)
                            : dt_value_print(run, &shown, value));
    text = dt_sink_text(run, &shown);
    if (f->precision >= 0)
        text = dt_text_part(run, text, 0, dt_text_byte_of(text, f->precision));
    DT_TRY(pad(run, sink, f->left ? 0 : f->width - (int64_t)text->codes));
    DT_TRY(dt_sink_add_text(run, sink, text));
    DT_TRY(pad(run, sink, f->left ? f->width - (int64_t)text->codes : 0));
out:
    return st;
}

static dt_status add_number(dt_jinja_run *run, dt_jinja_sink *sink, const field *f,
                            dt_jinja_value value)
{
    char pattern[64], number[NUMBER_MOST], precision[16] = "";
    bool real = strchr("eEfFgG", f->letter) != NULL;
    double as_real = value.kind == DT_JINJA_FLOAT  ? value.as.real
                     : value.kind == DT_JINJA_BOOL ? value.as.truth
                                                   : (double)value.as.integer;
    int64_t integer = value.kind == DT_JINJA_BOOL ? value.as.truth : value.as.integer;

    if (value.kind != DT_JINJA_BOOL && value.kind != DT_JINJA_INTEGER &&
        value.kind != DT_JINJA_FLOAT)
        return dt_jinja_fail(run, "%%%c format: a real number is required, not %s", f->letter,
                             dt_value_type(value));
    if (!real && value.kind == DT_JINJA_FLOAT) {
        if (!(as_real > -9e18 && as_real < 9e18) || (f->letter != 'd' && f->letter != 'i'))
            return dt_jinja_fail(run, "%%%c format: an integer is required, not float", f->letter);
        integer = (int64_t)as_real;
    }
    if (!real && integer < 0 && f->letter != 'd' && f->letter != 'i')
        return dt_jinja_fail(run, "unsupported: %%%c of a negative number", f->letter);
    if (f->precision >= 0)
        snprintf(precision, sizeof(precision), ".%d", f->precision);
    snprintf(pattern, sizeof(pattern), "%%%s%s%s%s%d%s%s%c", f->left ? "-" : "",
             f->zero && !f->left ? "0" : "", f->plus ? "+" : "", f->space && !f->plus ? " " : "",
             f->width > 0 ? f->width : 1, precision, real ? "" : PRId64, f->letter);
    if (!real) /* PRId64 ends with the letter d */
        snprintf(pattern + strlen(pattern) - 2, 2, "%c", f->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (real)
        snprintf(number, sizeof(number), pattern, as_real);
    else
        snprintf(number, sizeof(number), pattern, integer);
#pragma GCC diagnostic pop
    return dt_sink_add(run, sink, number, strlen(number), value.origin);
}

dt_status dt_text_format_percent(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                                 dt_jinja_value values)
{
    bool tuple = values.kind == DT_JINJA_LIST && values.shape == DT_SHAPE_TUPLE;
    const dt_jinja_value *items = tuple ? dt_list_of(values)->items : &values;
    int64_t count = tuple ? dt_list_of(values)->count : 1, used = 0;
    const char *data = text->data, *end = data + text->length;
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    for (const char *at = data; at < end;) {
        const char *sign = memchr(at, '%', (size_t)(end - at)), *next;
        dt_jinja_value value = dt_jinja_none();
        field f;

        DT_TRY(dt_sink_add_part(run, &sink, text, (size_t)(at - data),
                                (size_t)((sign != NULL ? sign : end) - data)));
        if (sign == NULL)
            break;
        next = read_field(&f, sign + 1, end);
        if (next == NULL)
            return dt_jinja_fail(run, "unsupported format '%.*s'",
                                 end - sign < 8 ? (int)(end - sign) : 8, sign);
        at = next;
        if (f.letter == '%') {
            DT_TRY(dt_sink_add_part(run, &sink, text, (size_t)(sign - data),
                                    (size_t)(sign - data) + 1));
            continue;
        }
        if (used == count)
            return dt_jinja_fail(run, "not enough arguments for format string");
        value = items[used++];
        DT_TRY(f.letter == 's' || f.letter == 'r' ? add_text(run, &sink, &f, value)
                                                  : add_number(run, &sink, &f, value));
    }
    if (used < count && (tuple || (values.kind != DT_JINJA_DICT && values.kind != DT_JINJA_LIST)))
        return dt_jinja_fail(run, "not all arguments converted during string formatting");
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

/* --- str.format */

static dt_status find_value(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_call *call,
                            const char *name, size_t length, int64_t *automatic)
{
    int64_t index = 0;

    if (length == 0)
        index = (*automatic)++;
    else if (isdigit((unsigned char)name[0]))
        for (size_t i = 0; i < length && index < call->count; i++) {
            if (!isdigit((unsigned char)name[i]))
                return dt_jinja_fail(run, "unsupported field '{%.*s}'", (int)length, name);
            index = index * 10 + name[i] - '0';
        }
    else {
        for (int64_t i = 0; i < call->keyword_count; i++) {
            const dt_jinja_text *key = dt_text_of(call->keywords[i].key);

            if (key->length == length && memcmp(key->data, name, length) == 0) {
                *out = call->keywords[i].value;
                return DT_OK;
            }
        }
        return dt_jinja_fail(run, "unsupported field '{%.*s}'", length < 40 ? (int)length : 40,
                             name);
    }
    if (index >= call->count)
        return dt_jinja_fail(run, "Replacement index %lld out of range for positional args tuple",
                             (long long)index);
    *out = call->positional[index];
    return DT_OK;
}

dt_status dt_text_format_fields(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                                const dt_jinja_call *call)
{
    const char *data = text->data, *end = data + text->length, *close;
    dt_jinja_sink sink = {.length = 0};
    int64_t automatic = 0;
    dt_status st = DT_OK;
    dt_jinja_value value;

    for (const char *at = data, *from; at < end;) {
        for (from = at; at < end && *at != '{' && *at != '}'; at++)
            ;
        DT_TRY(dt_sink_add_part(run, &sink, text, (size_t)(from - data), (size_t)(at - data)));
        if (at == end)
            break;
        if (at + 1 < end && at[1] == *at) { /* {{ or }} */
            DT_TRY(
                dt_sink_add_part(run, &sink, text, (size_t)(at - data), (size_t)(at - data) + 1));
            at += 2;
            continue;
        }
        close = *at == '{' ? memchr(at, '}', (size_t)(end - at)) : NULL;
        if (close == NULL)
            return dt_jinja_fail(run, "a single '%c' in a format string", *at);
        DT_TRY(find_value(&value, run, call, at + 1, (size_t)(close - at) - 1, &automatic));
        DT_TRY(dt_value_print(run, &sink, value));
        at = close + 1;
    }
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}
