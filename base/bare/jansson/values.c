/* Values: made, counted, compared, freed. Arrays and objects are in containers.c. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bare/jansson/jansson_int.h"
#include "base/error.h"

#include "base/banned.h"

void *dt_json_memory(void *old, size_t bytes)
{
    void *new = realloc(old, bytes);

    DT_ASSERT(new != NULL);
    return new;
}

json_t *dt_json_value_new(json_type type)
{
    json_t *json = dt_json_memory(NULL, sizeof(*json));

    *json = (json_t){.type = type, .references = 1};
    return json;
}

json_t *json_object(void)
{
    return dt_json_value_new(JSON_OBJECT);
}

json_t *json_array(void)
{
    return dt_json_value_new(JSON_ARRAY);
}

json_t *json_stringn(const char *bytes, size_t length)
{
    json_t *json;

    if (bytes == NULL || !dt_json_utf8_valid(bytes, length))
        return NULL;
    json = dt_json_value_new(JSON_STRING);
    json->as.string.bytes = dt_json_memory(NULL, length + 1);
    memcpy(json->as.string.bytes, bytes, length);
    json->as.string.bytes[length] = '\0';
    json->as.string.length = length;
    return json;
}

json_t *json_string(const char *text)
{
    return text != NULL ? json_stringn(text, strlen(text)) : NULL;
}

json_t *json_sprintf(const char *format, ...)
{
    va_list args, again;
    json_t *json;
    char *text;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    DT_ASSERT(length >= 0);
    text = dt_json_memory(NULL, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    json = json_string(text);
    free(text);
    return json;
}

json_t *json_integer(json_int_t value)
{
    json_t *json = dt_json_value_new(JSON_INTEGER);

    json->as.integer = value;
    return json;
}

json_t *json_real(double value)
{
    json_t *json;

    if (!isfinite(value))
        return NULL;
    json = dt_json_value_new(JSON_REAL);
    json->as.real = value;
    return json;
}

json_t *json_true(void)
{
    static json_t value = {.type = JSON_TRUE};

    return &value;
}

json_t *json_false(void)
{
    static json_t value = {.type = JSON_FALSE};

    return &value;
}

json_t *json_null(void)
{
    static json_t value = {.type = JSON_NULL};

    return &value;
}

static bool is_constant(const json_t *json)
{
    return json->type >= JSON_TRUE;
}

json_t *json_incref(json_t *json)
{
    if (json != NULL && !is_constant(json))
        __atomic_add_fetch(&json->references, 1, __ATOMIC_RELAXED);
    return json;
}

void json_decref(json_t *json)
{
    if (json == NULL || is_constant(json) ||
        __atomic_sub_fetch(&json->references, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (json->type == JSON_STRING) {
        free(json->as.string.bytes);
    } else if (json->type == JSON_ARRAY) {
        for (size_t i = 0; i < json->as.array.count; i++)
            json_decref(json->as.array.items[i]);
        free(json->as.array.items);
    } else if (json->type == JSON_OBJECT) {
        dt_json_members_free(json);
    }
    free(json);
}

json_t *json_deep_copy(const json_t *json)
{
    json_t *copy;

    if (json == NULL)
        return NULL;
    switch (json->type) {
    case JSON_OBJECT:
        copy = json_object();
        for (size_t i = 0; i < json->as.object.count; i++)
            json_object_set_new(copy, json->as.object.members[i]->key,
                                json_deep_copy(json->as.object.members[i]->value));
        return copy;
    case JSON_ARRAY:
        copy = json_array();
        for (size_t i = 0; i < json->as.array.count; i++)
            json_array_append_new(copy, json_deep_copy(json->as.array.items[i]));
        return copy;
    case JSON_STRING:
        return json_stringn(json->as.string.bytes, json->as.string.length);
    case JSON_INTEGER:
        return json_integer(json->as.integer);
    case JSON_REAL:
        return json_real(json->as.real);
    default:
        return (json_t *)json;
    }
}

int json_equal(const json_t *a, const json_t *b)
{
    bool equal = true;

    if (a == NULL || b == NULL || a->type != b->type)
        return 0;
    switch (a->type) {
    case JSON_OBJECT:
        equal = a->as.object.count == b->as.object.count;
        for (size_t i = 0; equal && i < a->as.object.count; i++)
            equal = json_equal(a->as.object.members[i]->value,
                               json_object_get(b, a->as.object.members[i]->key));
        return equal;
    case JSON_ARRAY:
        equal = a->as.array.count == b->as.array.count;
        for (size_t i = 0; equal && i < a->as.array.count; i++)
            equal = json_equal(a->as.array.items[i], b->as.array.items[i]);
        return equal;
    case JSON_STRING:
        return a->as.string.length == b->as.string.length &&
               memcmp(a->as.string.bytes, b->as.string.bytes, a->as.string.length) == 0;
    case JSON_INTEGER:
        return a->as.integer == b->as.integer;
    case JSON_REAL:
        return a->as.real == b->as.real;
    default:
        return 1;
    }
}

json_type json_type_of(const json_t *json)
{
    return json->type;
}

bool json_has_type(const json_t *json, json_type type)
{
    return json != NULL && json->type == type;
}

const char *json_string_value(const json_t *json)
{
    return json_is_string(json) ? json->as.string.bytes : NULL;
}

size_t json_string_length(const json_t *json)
{
    return json_is_string(json) ? json->as.string.length : 0;
}

json_int_t json_integer_value(const json_t *json)
{
    return json_is_integer(json) ? json->as.integer : 0;
}

double json_real_value(const json_t *json)
{
    return json_is_real(json) ? json->as.real : 0;
}

double json_number_value(const json_t *json)
{
    return json_is_integer(json) ? (double)json->as.integer : json_real_value(json);
}
