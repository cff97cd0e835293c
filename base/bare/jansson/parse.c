/* Reading: one pass over the bytes, down into arrays and objects. `at` is behind what was read
 * last, and so it is the place that an error tells. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bare/jansson/jansson_int.h"
#include "base/bare/jansson/parse_string.h"

#include "base/banned.h"

#define MAX_BYTES ((size_t)1 << 30)

static json_t *parse_value(dt_json_parser *p);

bool dt_json_refuse(dt_json_parser *p, const char *why)
{
    json_error_t *error = p->error;

    if (error == NULL || p->refused)
        return false;
    p->refused = true;
    *error = (json_error_t){.line = 1, .position = (int)(p->at - p->text)};
    for (const char *c = p->text; c < p->at; c++) {
        if (*c == '\n') {
            error->line++;
            error->column = 0;
        } else if (((unsigned char)*c & 0xc0) != 0x80) { /* the first byte of a character */
            error->column++;
        }
    }
    snprintf(error->source, sizeof(error->source), "<buffer>");
    snprintf(error->text, sizeof(error->text), "%s", why);
    return false;
}

static void skip_space(dt_json_parser *p)
{
    while (p->at < p->end && *p->at != '\0' && strchr(" \t\r\n", *p->at) != NULL)
        p->at++;
}

/* The next character that means something, read; 0 at the end. */
static char next(dt_json_parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at++ : '\0';
}

static bool is_digit(const dt_json_parser *p)
{
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static bool skip_digits(dt_json_parser *p)
{
    if (!is_digit(p))
        return dt_json_refuse(p, "expected a digit");
    while (is_digit(p))
        p->at++;
    return true;
}

static bool skip_one_of(dt_json_parser *p, const char *characters)
{
    if (p->at == p->end || *p->at == '\0' || strchr(characters, *p->at) == NULL)
        return false;
    p->at++;
    return true;
}

static json_t *make_number(dt_json_parser *p, const char *text, bool real)
{
    json_int_t whole;
    double value;

    errno = 0;
    if (real) {
        value = strtod(text, NULL);
        if (!isfinite(value))
            dt_json_refuse(p, "number out of range");
        return json_real(value);
    }
    whole = strtoll(text, NULL, 10);
    if (errno == ERANGE) {
        dt_json_refuse(p, "whole number out of range");
        return NULL;
    }
    return json_integer(whole);
}

/* `at` is at the sign or the first digit. */
static json_t *parse_number(dt_json_parser *p)
{
    const char *start = p->at;
    bool real = false;
    json_t *json;
    char *text;

    skip_one_of(p, "-");
    if (is_digit(p) && *p->at == '0') {
        p->at++;
        if (is_digit(p)) {
            dt_json_refuse(p, "a number starts with 0");
            return NULL;
        }
    } else if (!skip_digits(p)) {
        return NULL;
    }
    if (skip_one_of(p, ".")) {
        real = true;
        if (!skip_digits(p))
            return NULL;
    }
    if (skip_one_of(p, "eE")) {
        real = true;
        skip_one_of(p, "+-");
        if (!skip_digits(p))
            return NULL;
    }
    text = dt_json_memory(NULL, (size_t)(p->at - start) + 1); /* strtod wants its end */
    memcpy(text, start, (size_t)(p->at - start));
    text[p->at - start] = '\0';
    json = make_number(p, text, real);
    free(text);
    return json;
}

static json_t *parse_word(dt_json_parser *p)
{
    const char *start = p->at;
    size_t length;

    while (p->at < p->end && ((*p->at >= 'a' && *p->at <= 'z') || (*p->at >= 'A' && *p->at <= 'Z')))
        p->at++;
    length = (size_t)(p->at - start);
    if (length == 4 && memcmp(start, "true", 4) == 0)
        return json_true();
    if (length == 5 && memcmp(start, "false", 5) == 0)
        return json_false();
    if (length == 4 && memcmp(start, "null", 4) == 0)
        return json_null();
    if (length == 0 && p->at < p->end)
        p->at += dt_json_utf8_length(p->at, (size_t)(p->end - p->at));
    dt_json_refuse(p, length != 0 ? "unknown word" : "expected a value");
    return NULL;
}

static json_t *parse_text(dt_json_parser *p)
{
    json_t *json = NULL;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_json_parse_string(p, &text))
        json = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return json;
}

static bool parse_member(dt_json_parser *p, json_t *object)
{
    bool good = false;
    dt_strbuf key;

    dt_strbuf_init(&key);
    if (!dt_json_parse_string(p, &key))
        goto out;
    if (memchr(key.data, '\0', key.length) != NULL) {
        dt_json_refuse(p, "a key holds \\u0000");
        goto out;
    }
    if ((p->flags & JSON_REJECT_DUPLICATES) != 0 && json_object_get(object, key.data) != NULL) {
        dt_json_refuse(p, "the key is there twice");
        goto out;
    }
    if (next(p) != ':')
        dt_json_refuse(p, "expected ':'");
    else
        good = json_object_set_new(object, key.data, parse_value(p)) == 0;
out:
    dt_strbuf_release(&key);
    return good;
}

/* Behind the opening bracket; what is half read goes with the container. */
static bool parse_members(dt_json_parser *p, json_t *object)
{
    char c = next(p);

    if (c == '}')
        return true;
    for (;;) {
        if (c != '"')
            return dt_json_refuse(p, "expected a string, a key");
        if (!parse_member(p, object))
            return false;
        c = next(p);
        if (c == '}')
            return true;
        if (c != ',')
            return dt_json_refuse(p, "expected ',' or '}'");
        c = next(p);
    }
}

static bool parse_items(dt_json_parser *p, json_t *array)
{
    skip_space(p);
    if (skip_one_of(p, "]"))
        return true;
    for (;;) {
        char c;

        if (json_array_append_new(array, parse_value(p)) != 0)
            return false;
        c = next(p);
        if (c == ']')
            return true;
        if (c != ',')
            return dt_json_refuse(p, "expected ',' or ']'");
    }
}

static json_t *parse_container(dt_json_parser *p, json_t *json,
                               bool (*parse)(dt_json_parser *p, json_t *json))
{
    if (parse(p, json))
        return json;
    json_decref(json);
    return NULL;
}

static json_t *parse_value(dt_json_parser *p)
{
    json_t *json;

    skip_space(p);
    if (++p->depth > MAX_DEPTH) {
        dt_json_refuse(p, "too deep");
        return NULL;
    }
    if (skip_one_of(p, "{"))
        json = parse_container(p, json_object(), parse_members);
    else if (skip_one_of(p, "["))
        json = parse_container(p, json_array(), parse_items);
    else if (skip_one_of(p, "\""))
        json = parse_text(p);
    else if (is_digit(p) || (p->at < p->end && *p->at == '-'))
        json = parse_number(p);
    else
        json = parse_word(p);
    p->depth--;
    return json;
}

json_t *json_loadb(const char *bytes, size_t length, size_t flags, json_error_t *error)
{
    dt_json_parser p = {
        .text = bytes, .at = bytes, .end = bytes + length, .flags = flags, .error = error};
    json_t *json;

    if (length > MAX_BYTES) {
        dt_json_refuse(&p, "too long");
        return NULL;
    }
    json = parse_value(&p);
    if (json == NULL)
        return NULL;
    if ((flags & JSON_DECODE_ANY) == 0 && !json_is_object(json) && !json_is_array(json)) {
        dt_json_refuse(&p, "expected an object or an array");
    } else {
        skip_space(&p);
        if (p.at == p.end)
            return json;
        p.at++;
        dt_json_refuse(&p, "expected the end");
    }
    json_decref(json);
    return NULL;
}

json_t *json_loads(const char *text, size_t flags, json_error_t *error)
{
    return json_loadb(text, strlen(text), flags, error);
}
