/* row_parts: makes the choices and the answer of a task's row from the fields of a benchmark's row. */
#include <ctype.h>
#include <string.h>

#include "engine/evaluation/evaluation.h"
#include "runner/benchmarks/benchmarks_int.h"

dt_status dt_conversion_refuse(const dt_conversion *c, const char *field, const char *expected)
{
    return json_object_get(c->from, field) == NULL
               ? DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s' is missing (expected %s)", c->where, field,
                         expected)
               : DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s': expected %s", c->where, field, expected);
}

static void replace(dt_strbuf *io, const char *part, const char *by)
{
    size_t length = strlen(part);
    dt_strbuf made;

    dt_strbuf_init(&made);
    for (const char *at = io->data, *next; at != NULL; at = next) {
        next = strstr(at, part);
        dt_strbuf_add(&made, at, next != NULL ? (size_t)(next - at) : strlen(at));
        if (next != NULL) {
            dt_strbuf_add_str(&made, by);
            next += length;
        }
    }
    dt_strbuf_release(io);
    *io = made;
}

static void remove_brackets(dt_strbuf *io)
{
    const char *at = io->data, *close;
    dt_strbuf made;

    dt_strbuf_init(&made);
    while (*at != '\0') {
        close = *at == '[' ? at + strcspn(at, "]\n") : "";
        if (*close == ']')
            at = close + 1;
        else
            dt_strbuf_add_char(&made, *at++);
    }
    dt_strbuf_release(io);
    *io = made;
}

/* A copy of `text` without the marks of WikiHow. New reference. */
json_t *dt_conversion_clean(const char *text)
{
    dt_strbuf clean;
    json_t *out;

    dt_strbuf_init(&clean);
    dt_evaluation_add_stripped(&clean, text, strlen(text));
    replace(&clean, " [title]", ". ");
    remove_brackets(&clean);
    replace(&clean, "  ", " ");
    out = json_stringn(clean.data, clean.length);
    dt_strbuf_release(&clean);
    return out;
}

/* Adds a choice, or refuses it. */
dt_status dt_conversion_add_choice(dt_conversion *c, const json_t *value, bool clean,
                                   const char *field)
{
    const char *text = json_string_value(value);
    json_t *choice;

    if (text == NULL)
        return dt_conversion_refuse(c, field, "text");
    choice = clean ? dt_conversion_clean(text) : json_string(text);
    json_array_append_new(json_object_get(c->to, "choices"), choice);
    return json_string_length(choice) > 0
               ? DT_OK
               : DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s': the text of a choice is empty", c->where,
                         field);
}

dt_status dt_conversion_add_list(dt_conversion *c, const json_t *list, bool clean,
                                 const char *field)
{
    dt_status st = DT_OK;

    if (!json_is_array(list) || json_array_size(list) < 2)
        return dt_conversion_refuse(c, field, "a list of two or more texts");
    for (size_t i = 0; i < json_array_size(list) && st == DT_OK; i++)
        st = dt_conversion_add_choice(c, json_array_get(list, i), clean, field);
    return st;
}

/* Returns the number that a whole number or a text of digits is; -1: another value. */
json_int_t dt_conversion_number(const json_t *value)
{
    const char *text = json_string_value(value);

    if (json_is_integer(value))
        return json_integer_value(value);
    if (text == NULL || strlen(text) != 1 || !isdigit((unsigned char)text[0]))
        return -1;
    return text[0] - '0';
}

dt_status dt_conversion_refuse_label(const dt_conversion *c, const char *field,
                                     const char *expected)
{
    const json_t *value = json_object_get(c->from, field);
    bool none = value == NULL || json_is_null(value) ||
                (json_is_string(value) && json_string_length(value) == 0) ||
                (json_is_integer(value) && json_integer_value(value) == -1);

    return none ? DT_FAIL(c->err, DT_ERR_USAGE, "%s: '%s' is missing, empty or -1: %s", c->where,
                          field, c->unlabelled)
                : dt_conversion_refuse(c, field, expected);
}

/* Adds the index of the right choice. letters: or its letter. */
dt_status dt_conversion_add_index(dt_conversion *c, const char *field, size_t count, bool letters)
{
    const json_t *value = json_object_get(c->from, field);
    const char *text = json_string_value(value);
    json_int_t index = dt_conversion_number(value);
    char expected[64];

    if (letters && text != NULL && text[0] >= 'A' && text[0] < 'A' + (int)count && text[1] == '\0')
        index = text[0] - 'A';
    if (index >= 0 && index < (json_int_t)count) {
        json_object_set_new(c->to, "answer", json_integer(index));
        return DT_OK;
    }
    snprintf(expected, sizeof(expected), letters ? "A to %c, or 0 to %zu" : "%c to %zu",
             letters ? 'A' + (int)count - 1 : '0', count - 1);
    return dt_conversion_refuse_label(c, field, expected);
}
