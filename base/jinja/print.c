/* print: str() and repr() of Python, and its JSON (json.dumps). */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/jinja/jinja_int.h"

/* --- numbers */

void dt_real_print(char out[DT_REAL_MOST], double real)
{
    char digits[DT_REAL_MOST - 8], *exponent;
    int precision, power;

    if (isnan(real) || isinf(real)) {
        snprintf(out, DT_REAL_MOST, "%s", isnan(real) ? "nan" : real < 0 ? "-inf" : "inf");
        return;
    }
    for (precision = 0; precision < 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*e", precision, real);
        if (strtod(digits, NULL) == real)
            break;
    }
    exponent = strchr(digits, 'e');
    power = (int)strtol(exponent + 1, NULL, 10);
    if (power < -4 || power >= 16) {
        *exponent = '\0';
        snprintf(out, DT_REAL_MOST, "%se%c%02d", digits, power < 0 ? '-' : '+', abs(power) % 1000);
    } else {
        int decimals = precision - power;

        snprintf(out, DT_REAL_MOST, "%.*f", decimals > 1 ? decimals : 1, real);
    }
}

/* Writes a number as str() does. */
static void print_number(char out[DT_REAL_MOST], dt_jinja_value value)
{
    if (value.kind == DT_JINJA_FLOAT)
        dt_real_print(out, value.as.real);
    else
        snprintf(out, DT_REAL_MOST, "%" PRId64, value.as.integer);
}

static dt_status add(dt_jinja_run *run, dt_jinja_sink *sink, const char *text, uint32_t origin)
{
    return dt_sink_add(run, sink, text, strlen(text), origin);
}

/* Gives the origins of the first and the last byte, which quotes around the text get. */
static void end_origins(uint32_t *first, uint32_t *last, const dt_jinja_text *text)
{
    *first = text->length > 0 ? dt_text_origin_at(text, 0) : text->origin;
    *last = text->length > 0 ? dt_text_origin_at(text, text->length - 1) : text->origin;
}

/* --- repr */

/* Writes a character of a string as repr() shows it. Returns its bytes. */
static size_t escape_code(char out[12], uint32_t code, char quote)
{
    static const char named[] = "\\\n\r\t", letters[] = "\\nrt";
    const char *known = code < 0x80 && code != 0 ? strchr(named, (char)code) : NULL;

    if (known != NULL)
        return (size_t)snprintf(out, 12, "\\%c", letters[known - named]);
    if (code == (unsigned char)quote)
        return (size_t)snprintf(out, 12, "\\%c", quote);
    if (dt_code_is_printable(code))
        return dt_utf8_encode(out, code);
    return (size_t)snprintf(out, 12,
                            code < 0x100     ? "\\x%02x"
                            : code < 0x10000 ? "\\u%04x"
                                             : "\\U%08x",
                            code);
}

static dt_status repr_text(dt_jinja_run *run, dt_jinja_sink *sink, const dt_jinja_text *text)
{
    char quote = memchr(text->data, '\'', text->length) != NULL &&
                         memchr(text->data, '"', text->length) == NULL
                     ? '"'
                     : '\'';
    dt_status st = DT_OK;
    uint32_t first, last;
    char shown[12];
    size_t used;

    end_origins(&first, &last, text);
    DT_TRY(dt_sink_add(run, sink, &quote, 1, first | DT_JINJA_PRINTED));
    for (size_t at = 0; at < text->length; at += used) {
        uint32_t code;

        used = dt_utf8_decode(&code, (const unsigned char *)text->data + at, text->length - at);
        if (used == 0) {
            used = 1;
            code = 0xfffd;
        }
        DT_TRY(dt_sink_add(run, sink, shown, escape_code(shown, code, quote),
                           dt_text_origin_at(text, at) | DT_JINJA_PRINTED));
    }
    DT_TRY(dt_sink_add(run, sink, &quote, 1, last | DT_JINJA_PRINTED));
out:
    return st;
}

static dt_status repr_dict(dt_jinja_run *run, dt_jinja_sink *sink, const dt_jinja_dict *dict,
                           uint32_t origin)
{
    dt_status st = DT_OK;

    DT_TRY(add(run, sink, "{", origin));
    for (int64_t i = 0; i < dict->count; i++) {
        DT_TRY(add(run, sink, i > 0 ? ", " : "", origin));
        DT_TRY(dt_value_repr(run, sink, dict->entries[i].key));
        DT_TRY(add(run, sink, ": ", origin));
        DT_TRY(dt_value_repr(run, sink, dict->entries[i].value));
    }
    DT_TRY(add(run, sink, "}", origin));
out:
    return st;
}

static dt_status repr_list(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value)
{
    const dt_jinja_list *list = dt_list_of(value);
    bool tuple = value.shape == DT_SHAPE_TUPLE;
    dt_status st = DT_OK;

    DT_TRY(add(run, sink, tuple ? "(" : "[", value.origin));
    for (int64_t i = 0; i < list->count; i++) {
        DT_TRY(add(run, sink, i > 0 ? ", " : "", value.origin));
        DT_TRY(dt_value_repr(run, sink, list->items[i]));
    }
    DT_TRY(add(run, sink, !tuple ? "]" : list->count == 1 ? ",)" : ")", value.origin));
out:
    return st;
}

/* Prints containers and simple values; not strings. */
static dt_status print_other(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value)
{
    char number[DT_REAL_MOST];
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_spend(run, 1));
    switch (value.kind) {
    case DT_JINJA_NONE:
        return add(run, sink, "None", value.origin);
    case DT_JINJA_BOOL:
        return add(run, sink, value.as.truth ? "True" : "False", value.origin);
    case DT_JINJA_INTEGER:
    case DT_JINJA_FLOAT:
        print_number(number, value);
        return add(run, sink, number, value.origin);
    case DT_JINJA_LIST:
    case DT_JINJA_DICT:
        if (value.kind == DT_JINJA_LIST && value.shape > DT_SHAPE_TUPLE)
            return dt_jinja_fail(run, "unsupported: printing a %s itself", dt_value_type(value));
        DT_TRY(dt_jinja_deepen(run));
        st = value.kind == DT_JINJA_LIST ? repr_list(run, sink, value)
                                         : repr_dict(run, sink, dt_dict_of(value), value.origin);
        run->depth++;
        break;
    default:
        return dt_jinja_fail(run, "unsupported: printing a %s itself", dt_value_type(value));
    }
out:
    return st;
}

dt_status dt_value_repr(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value)
{
    if (value.kind == DT_JINJA_STRING)
        return repr_text(run, sink, dt_text_of(value));
    if (value.kind == DT_JINJA_UNDEFINED)
        return add(run, sink, "Undefined", DT_JINJA_TEMPLATE);
    return print_other(run, sink, value);
}

dt_status dt_value_print(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value)
{
    if (value.kind == DT_JINJA_STRING)
        return dt_sink_add_text(run, sink, dt_text_of(value));
    return value.kind == DT_JINJA_UNDEFINED ? DT_OK : print_other(run, sink, value);
}

dt_status dt_value_to_text(const dt_jinja_text **out, dt_jinja_run *run, dt_jinja_value value)
{
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    if (value.kind == DT_JINJA_STRING) {
        *out = dt_text_of(value);
        return DT_OK;
    }
    DT_TRY(dt_value_print(run, &sink, value));
    *out = dt_sink_text(run, &sink);
out:
    return st;
}

/* --- JSON */

typedef struct writer {
    dt_jinja_run *run;
    dt_jinja_sink *sink;
    const dt_jinja_json_style *style;
} writer;

/* Writes a character as an escape; 0: it stays as it is. */
static size_t escape_json(char out[16], uint32_t code, bool ascii)
{
    static const char named[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    const char *known = code < 0x80 && code != 0 ? strchr(named, (char)code) : NULL;

    if (known != NULL)
        return (size_t)snprintf(out, 16, "\\%c", letters[known - named]);
    if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000 && code != 0x7f))
        return (size_t)snprintf(out, 16, "\\u%04x", code);
    if (ascii && code >= 0x10000)
        return (size_t)snprintf(out, 16, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
                                0xdc00 + ((code - 0x10000) & 0x3ff));
    return 0;
}

static dt_status write_text(const writer *w, const dt_jinja_text *text)
{
    size_t plain = 0, used;
    dt_status st = DT_OK;
    uint32_t first, last;
    char escape[16];

    end_origins(&first, &last, text);
    DT_TRY(dt_sink_add(w->run, w->sink, "\"", 1, first));
    for (size_t at = 0; at < text->length; at += used) {
        unsigned char c = (unsigned char)text->data[at];
        uint32_t code = c;
        size_t length;

        used = 1;
        if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x80 || !w->style->ascii))
            continue;
        if (c >= 0x80 && (used = dt_utf8_decode(&code, (const unsigned char *)text->data + at,
                                                text->length - at)) == 0)
            used = 1;
        length = escape_json(escape, code, w->style->ascii);
        DT_TRY(dt_sink_add_part(w->run, w->sink, text, plain, at));
        DT_TRY(dt_sink_add(w->run, w->sink, escape, length, dt_text_origin_at(text, at)));
        plain = at + used;
    }
    DT_TRY(dt_sink_add_part(w->run, w->sink, text, plain, text->length));
    DT_TRY(dt_sink_add(w->run, w->sink, "\"", 1, last));
out:
    return st;
}

static dt_status write_part(const writer *w, const dt_jinja_text *text, const char *otherwise,
                            uint32_t origin)
{
    return text != NULL ? dt_sink_add(w->run, w->sink, text->data, text->length, origin)
                        : add(w->run, w->sink, otherwise, origin);
}

static dt_status break_line(const writer *w, int level, uint32_t origin)
{
    dt_status st = DT_OK;

    if (w->style->indent == NULL)
        return DT_OK;
    DT_TRY(add(w->run, w->sink, "\n", origin));
    for (int i = 0; i < level; i++)
        DT_TRY(
            dt_sink_add(w->run, w->sink, w->style->indent->data, w->style->indent->length, origin));
out:
    return st;
}

static dt_status write_value(const writer *w, dt_jinja_value value, int level);

static dt_status write_list(const writer *w, dt_jinja_value value, int level)
{
    const dt_jinja_list *list = dt_list_of(value);
    dt_status st = DT_OK;

    if (list->count == 0)
        return add(w->run, w->sink, "[]", value.origin);
    DT_TRY(add(w->run, w->sink, "[", value.origin));
    for (int64_t i = 0; i < list->count; i++) {
        if (i > 0)
            DT_TRY(write_part(w, w->style->between, w->style->indent != NULL ? "," : ", ",
                              value.origin));
        DT_TRY(break_line(w, level + 1, value.origin));
        DT_TRY(write_value(w, list->items[i], level + 1));
    }
    DT_TRY(break_line(w, level, value.origin));
    DT_TRY(add(w->run, w->sink, "]", value.origin));
out:
    return st;
}

static dt_status write_key(const writer *w, dt_jinja_value key, uint32_t origin)
{
    char number[DT_REAL_MOST];

    switch (key.kind) {
    case DT_JINJA_STRING:
        return write_text(w, dt_text_of(key));
    case DT_JINJA_INTEGER:
    case DT_JINJA_FLOAT:
        print_number(number, key);
        break;
    case DT_JINJA_BOOL:
    case DT_JINJA_NONE:
        snprintf(number, sizeof(number), "%s",
                 key.kind == DT_JINJA_NONE ? "null"
                 : key.as.truth            ? "true"
                                           : "false");
        break;
    default:
        return dt_jinja_fail(w->run, "keys must be str, int, float, bool or None, not %s",
                             dt_value_type(key));
    }
    return dt_sink_add(w->run, w->sink, number, strlen(number), origin);
}

static int by_key(const void *a, const void *b)
{
    return dt_text_compare(dt_text_of(((const dt_jinja_entry *)a)->key),
                           dt_text_of(((const dt_jinja_entry *)b)->key));
}

/* Returns the entries in the order of their keys; all keys must be strings. */
static dt_status sort_entries(const dt_jinja_dict **out, const writer *w, const dt_jinja_dict *dict)
{
    dt_jinja_dict *sorted = dt_jinja_alloc(w->run, sizeof(*sorted));

    sorted->count = dict->count;
    sorted->entries = dt_jinja_alloc_array(w->run, (size_t)dict->count, sizeof(*sorted->entries));
    memcpy(sorted->entries, dict->entries, (size_t)dict->count * sizeof(*sorted->entries));
    for (int64_t i = 0; i < dict->count; i++)
        if (dict->entries[i].key.kind != DT_JINJA_STRING)
            return dt_jinja_fail(w->run, "unsupported: sort_keys with keys that are not strings");
    qsort(sorted->entries, (size_t)dict->count, sizeof(*sorted->entries), by_key);
    *out = sorted;
    return DT_OK;
}

static dt_status write_dict(const writer *w, dt_jinja_value value, int level)
{
    const dt_jinja_dict *dict = dt_dict_of(value);
    dt_status st = DT_OK;

    if (dict->count == 0)
        return add(w->run, w->sink, "{}", value.origin);
    if (w->style->sorted)
        DT_TRY(sort_entries(&dict, w, dict));
    DT_TRY(add(w->run, w->sink, "{", value.origin));
    for (int64_t i = 0; i < dict->count; i++) {
        if (i > 0)
            DT_TRY(write_part(w, w->style->between, w->style->indent != NULL ? "," : ", ",
                              value.origin));
        DT_TRY(break_line(w, level + 1, value.origin));
        if (dict->entries[i].key.kind == DT_JINJA_STRING) {
            DT_TRY(write_key(w, dict->entries[i].key, value.origin));
        } else {
            DT_TRY(add(w->run, w->sink, "\"", value.origin));
            DT_TRY(write_key(w, dict->entries[i].key, value.origin));
            DT_TRY(add(w->run, w->sink, "\"", value.origin));
        }
        DT_TRY(write_part(w, w->style->after_key, ": ", value.origin));
        DT_TRY(write_value(w, dict->entries[i].value, level + 1));
    }
    DT_TRY(break_line(w, level, value.origin));
    DT_TRY(add(w->run, w->sink, "}", value.origin));
out:
    return st;
}

static dt_status write_number(const writer *w, dt_jinja_value value)
{
    char number[DT_REAL_MOST];

    print_number(number, value);
    if (value.kind == DT_JINJA_FLOAT && !isfinite(value.as.real))
        snprintf(number, sizeof(number), "%s",
                 isnan(value.as.real) ? "NaN"
                 : value.as.real < 0  ? "-Infinity"
                                      : "Infinity");
    return add(w->run, w->sink, number, value.origin);
}

static dt_status write_value(const writer *w, dt_jinja_value value, int level)
{
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_spend(w->run, 1));
    switch (value.kind) {
    case DT_JINJA_NONE:
        return add(w->run, w->sink, "null", value.origin);
    case DT_JINJA_BOOL:
        return add(w->run, w->sink, value.as.truth ? "true" : "false", value.origin);
    case DT_JINJA_INTEGER:
    case DT_JINJA_FLOAT:
        return write_number(w, value);
    case DT_JINJA_STRING:
        return write_text(w, dt_text_of(value));
    case DT_JINJA_LIST:
    case DT_JINJA_DICT:
        if (value.kind == DT_JINJA_LIST && value.shape > DT_SHAPE_TUPLE)
            break;
        DT_TRY(dt_jinja_deepen(w->run));
        st =
            value.kind == DT_JINJA_LIST ? write_list(w, value, level) : write_dict(w, value, level);
        w->run->depth++;
        return st;
    default:
        break;
    }
    st = dt_jinja_fail(w->run, "Object of type %s is not JSON serializable", dt_value_type(value));
out:
    return st;
}

dt_status dt_value_print_json(dt_jinja_run *run, dt_jinja_sink *sink, dt_jinja_value value,
                              const dt_jinja_json_style *style)
{
    writer w = {run, sink, style};

    return write_value(&w, value, 0);
}
