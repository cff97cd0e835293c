/* documents: reads the documents of .txt, .jsonl and .csv files. One string of a JSON object is read
 * without building the object, because lines of JSON are read by the gigabyte. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/json.h"
#include "runner/corpus/corpus.h"
#include "runner/corpus/corpus_int.h"

enum { DEEPEST = 64, DIGITS_MOST = 15 };

typedef struct cursor {
    const unsigned char *at, *end;
    const char *key;
    size_t key_length;
    int depth;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* Moves past `byte` and the white space before it; false: another byte follows. */
static bool take(cursor *c, unsigned char byte)
{
    skip_space(c);
    if (c->at == c->end || *c->at != byte)
        return false;
    c->at++;
    return true;
}

/* --- strings */

/* Returns a number with the top bit of each byte set where `eight` has a byte below `below` (at most 0x80), or one that
 * is `same`. Bytes above a set one can be wrong: only the lowest counts. */
static uint64_t below_or_same(uint64_t eight, unsigned char below, unsigned char same)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t other = eight ^ ones * same;

    return ((eight - ones * below) | (other - ones)) & ~eight & tops;
}

/* Returns the number of bytes before the first quote, backslash or control character. */
static size_t plain_length(const unsigned char *at, const unsigned char *end)
{
    const unsigned char *start = at;

    for (; end - at >= 8; at += 8) {
        uint64_t eight, found;

        memcpy(&eight, at, 8);
        found = below_or_same(eight, 0x20, '"') | below_or_same(eight, 0, '\\');
        if (found != 0)
            return (size_t)(at - start) + (size_t)__builtin_ctzll(found) / 8;
    }
    while (at < end && *at >= 0x20 && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - start);
}

/* Reads the four digits of \u0041; false: others follow. */
static bool read_unit(cursor *c, uint32_t *unit)
{
    *unit = 0;
    if (c->end - c->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        unsigned char digit = *c->at++, lower = digit | 0x20;

        if (digit >= '0' && digit <= '9')
            *unit = *unit << 4 | (uint32_t)(digit - '0');
        else if (lower >= 'a' && lower <= 'f')
            *unit = *unit << 4 | (uint32_t)(lower - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* Reads a character after "\u", which can be two surrogates. */
static bool read_code(cursor *c, uint32_t *code)
{
    uint32_t low;

    if (!read_unit(c, code))
        return false;
    if (*code < 0xd800 || *code >= 0xe000)
        return true;
    if (*code >= 0xdc00 || c->end - c->at < 2 || c->at[0] != '\\' || c->at[1] != 'u')
        return false;
    c->at += 2;
    if (!read_unit(c, &low) || low < 0xdc00 || low >= 0xe000)
        return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Reads what follows a backslash. */
static bool read_escape(cursor *c, dt_strbuf *out)
{
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char text[DT_UTF8_MAX];
    const char *letter;
    uint32_t code;

    if (c->at == c->end)
        return false;
    if (*c->at == 'u') {
        c->at++;
        if (!read_code(c, &code))
            return false;
        if (out != NULL)
            dt_strbuf_add(out, text, dt_utf8_encode(text, code));
        return true;
    }
    letter = memchr(letters, *c->at++, sizeof(letters) - 1);
    if (letter != NULL && out != NULL)
        dt_strbuf_add_char(out, bytes[letter - letters]);
    return letter != NULL;
}

/* Reads a string; appends it to `out` unless that is NULL. */
static bool read_string(cursor *c, dt_strbuf *out)
{
    if (!take(c, '"'))
        return false;
    for (;;) {
        size_t plain = plain_length(c->at, c->end);

        if (out != NULL)
            dt_strbuf_add(out, c->at, plain);
        c->at += plain;
        if (c->at == c->end || *c->at < 0x20)
            return false;
        if (*c->at++ == '"')
            return true;
        if (!read_escape(c, out))
            return false;
    }
}

/* --- other values */

static int skip_digits(cursor *c)
{
    const unsigned char *start = c->at;

    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at - start < 1000 ? (int)(c->at - start) : 1000;
}

/* Skips a number that surely fits: few digits before the point, and no exponent. */
static bool skip_number(cursor *c)
{
    bool zero;
    int digits;

    if (*c->at == '-')
        c->at++;
    zero = c->at < c->end && *c->at == '0';
    digits = skip_digits(c);
    if (digits == 0 || digits > DIGITS_MOST || (zero && digits > 1))
        return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        digits = skip_digits(c);
    }
    return digits > 0 && (c->at == c->end || (*c->at | 0x20) != 'e');
}

static bool skip_word(cursor *c, const char *word)
{
    size_t length = strlen(word);

    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool skip_value(cursor *c);

static bool skip_member(cursor *c)
{
    return read_string(c, NULL) && take(c, ':') && skip_value(c);
}

/* Skips the values between brackets, of which the first one is at the cursor. */
static bool skip_list(cursor *c, unsigned char close, bool (*skip)(cursor *c))
{
    bool good = true;

    c->at++;
    if (++c->depth > DEEPEST)
        return false;
    if (!take(c, close)) {
        do
            good = skip(c);
        while (good && take(c, ','));
        good = good && take(c, close);
    }
    c->depth--;
    return good;
}

static bool skip_value(cursor *c)
{
    skip_space(c);
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '"':
        return read_string(c, NULL);
    case '{':
        return skip_list(c, '}', skip_member);
    case '[':
        return skip_list(c, ']', skip_value);
    case 't':
        return skip_word(c, "true");
    case 'f':
        return skip_word(c, "false");
    case 'n':
        return skip_word(c, "null");
    default:
        return skip_number(c);
    }
}

/* --- the object */

/* Reads a key without escapes, which jansson would have to decode. */
static bool read_key(cursor *c, bool *is_key)
{
    size_t length;

    if (!take(c, '"'))
        return false;
    length = plain_length(c->at, c->end);
    *is_key = length == c->key_length && memcmp(c->at, c->key, length) == 0;
    c->at += length;
    if (c->at == c->end || *c->at != '"')
        return false;
    c->at++;
    return take(c, ':');
}

bool dt_json_line_text(dt_strbuf *out, const char *line, size_t length, const char *key)
{
    const unsigned char *bytes = (const unsigned char *)line;
    cursor c = {.at = bytes, .end = bytes + length, .key = key, .key_length = strlen(key)};
    bool found = false, is_key;

    dt_strbuf_reset(out);
    if (!take(&c, '{') || dt_utf8_valid_length(line, length) < length)
        return false;
    do {
        if (!read_key(&c, &is_key) || (is_key && found))
            return false;
        found = found || is_key;
        if (!(is_key ? read_string(&c, out) : skip_value(&c)))
            return false;
    } while (take(&c, ','));
    if (!found || !take(&c, '}'))
        return false;
    skip_space(&c);
    return c.at == c.end;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

dt_corpus_kind dt_corpus_kind_of(const char *path)
{
    if (ends_with(path, ".jsonl") || ends_with(path, ".json"))
        return DT_CORPUS_JSONL;
    return ends_with(path, ".csv") ? DT_CORPUS_CSV : DT_CORPUS_TEXT;
}

bool dt_documents_too_broken(int64_t broken, int64_t lines)
{
    return broken > 10 && broken > lines / 1000;
}

static void count_broken(dt_documents *out, const char *why)
{
    if (out->broken == 0)
        snprintf(out->broken_why, sizeof(out->broken_why), "%.79s", why);
    if (out->broken < DT_BROKEN_NAMED)
        out->broken_lines[out->broken] = out->lines;
    out->broken++;
}

static dt_status add_document(dt_documents *out, const char *text, size_t length,
                              dt_document_fn *add, void *context, dt_error *err)
{
    if (length == 0)
        return DT_OK;
    out->documents++;
    out->bytes += (int64_t)length;
    return add(context, text, length, err);
}

/* --- JSON lines */

static bool is_blank(const char *text, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    return length == 0;
}

static dt_status parse_line(dt_documents *out, const char *line, size_t length, const char *field,
                            dt_document_fn *add, void *context, dt_error *err)
{
    json_error_t problem;
    json_t *object = json_loadb(line, length, JSON_ALLOW_NUL, &problem);
    const json_t *text = json_object_get(object, field);
    dt_status st = DT_OK;

    if (object == NULL)
        count_broken(out, problem.text);
    else if (!json_is_string(text))
        count_broken(out, text == NULL ? "the field is missing" : "the field is not a string");
    else
        st =
            add_document(out, json_string_value(text), json_string_length(text), add, context, err);
    json_decref(object);
    return st;
}

static dt_status read_lines(dt_documents *out, const char *text, size_t length, const char *field,
                            dt_document_fn *add, void *context, dt_error *err)
{
    const char *end = text + length, *next;
    dt_status st = DT_OK;
    dt_strbuf value;

    dt_strbuf_init(&value);
    for (const char *line = text; line < end && st == DT_OK; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));

        next = stop != NULL ? stop + 1 : end;
        out->lines++;
        if (dt_json_line_text(&value, line, (size_t)(next - line), field))
            st = add_document(out, value.data, value.length, add, context, err);
        else if (!is_blank(line, (size_t)(next - line)))
            st = parse_line(out, line, (size_t)(next - line), field, add, context, err);
    }
    dt_strbuf_release(&value);
    return st;
}

/* --- csv */

size_t dt_csv_record(const char *text, size_t length)
{
    bool quoted = false;

    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == '\n' && !quoted)
            return i + 1;
    }
    return length;
}

/* Appends the field at *at, and moves *at past its comma; false after the last field. A quote inside quotes is
 * doubled. */
static bool next_field(dt_strbuf *out, const char *text, size_t length, size_t *at)
{
    bool quoted = false;

    if (*at > length)
        return false;
    for (; *at < length; ++*at) {
        char c = text[*at];

        if (c == '"' && quoted && *at + 1 < length && text[*at + 1] == '"')
            dt_strbuf_add_char(out, text[++*at]);
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            break;
        else
            dt_strbuf_add_char(out, c);
    }
    ++*at;
    return true;
}

static size_t without_break(const char *text, size_t length)
{
    if (length > 0 && text[length - 1] == '\n')
        length--;
    if (length > 0 && text[length - 1] == '\r')
        length--;
    return length;
}

int64_t dt_csv_column(const char *text, size_t length, const char *name)
{
    int64_t column = 0, found = -1;
    dt_strbuf field;
    size_t at = 0;

    dt_strbuf_init(&field);
    length = without_break(text, dt_csv_record(text, length));
    for (; found < 0 && next_field(&field, text, length, &at); column++) {
        if (strcmp(field.data, name) == 0)
            found = column;
        dt_strbuf_reset(&field);
    }
    dt_strbuf_release(&field);
    return found;
}

bool dt_csv_field(dt_strbuf *out, const char *text, size_t length, int64_t column)
{
    size_t at = 0;

    for (int64_t i = 0; i <= column; i++) {
        dt_strbuf_reset(out);
        if (!next_field(out, text, length, &at))
            return false;
    }
    return true;
}

static dt_status read_record(dt_documents *out, const char *text, size_t length, int64_t column,
                             dt_strbuf *field, dt_document_fn *add, void *context, dt_error *err)
{
    if (!dt_csv_field(field, text, length, column)) {
        count_broken(out, "it has too few fields");
        return DT_OK;
    }
    return add_document(out, field->data, field->length, add, context, err);
}

static dt_status read_records(dt_documents *out, const char *text, size_t length, int64_t column,
                              dt_document_fn *add, void *context, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf field;

    dt_strbuf_init(&field);
    while (length > 0 && st == DT_OK) {
        size_t record = dt_csv_record(text, length), inner = without_break(text, record);

        out->lines++;
        if (inner > 0)
            st = read_record(out, text, inner, column, &field, add, context, err);
        text += record;
        length -= record;
    }
    dt_strbuf_release(&field);
    return st;
}

dt_status dt_documents_read(dt_documents *out, dt_corpus_kind kind, const char *text, size_t length,
                            const char *field, int64_t column, dt_document_fn *add, void *context,
                            dt_error *err)
{
    switch (kind) {
    case DT_CORPUS_JSONL:
        return read_lines(out, text, length, field, add, context, err);
    case DT_CORPUS_CSV:
        return read_records(out, text, length, column, add, context, err);
    default:
        return add_document(out, text, length, add, context, err);
    }
}
