/* values: converts the value of a field from text or JSON into the recipe and back, by its row of the
 * table. */
#include "recipes/fields/values.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/text.h"

/* --- both forms. Each function checks the value against its field and writes a valid one into the record;
 * else it returns `code`, with a message of what was expected. */

/* --- numbers: 1_000, 3e-4, .5; not hexadecimal or "inf" */

bool dt_text_number(double *out, const char *text)
{
    char plain[64];
    size_t length = 0;
    bool digit = false;
    char *end;

    for (const char *at = text; *at != '\0'; at++) {
        bool between =
            at != text && isdigit((unsigned char)at[-1]) && isdigit((unsigned char)at[1]);

        if (*at == '_' && between)
            continue;
        if (strchr("+-.eE0123456789", *at) == NULL || length + 1 == sizeof(plain))
            return false;
        digit = digit || isdigit((unsigned char)*at);
        plain[length++] = *at;
    }
    plain[length] = '\0';
    if (!digit)
        return false;
    *out = strtod(plain, &end);
    return *end == '\0' && isfinite(*out);
}

/* --- times */

bool dt_text_duration(double *seconds, const char *text)
{
    static const struct {
        char letter;
        double seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t length = strlen(text);
    char number[64];

    if (dt_text_number(seconds, text))
        return true;
    if (length < 2 || length >= sizeof(number))
        return false;
    memcpy(number, text, length - 1);
    number[length - 1] = '\0';
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (text[length - 1] == units[i].letter && dt_text_number(seconds, number)) {
            *seconds *= units[i].seconds;
            return true;
        }
    return false;
}

bool dt_launcher_lost_seconds(double *seconds, const char *text)
{
    static const char stop_after[] = "stop_after ";

    *seconds = 0;
    if (strcmp(text, "continue") == 0)
        return true;
    return strncmp(text, stop_after, strlen(stop_after)) == 0 &&
           dt_text_duration(seconds, text + strlen(stop_after)) && *seconds > 0 &&
           *seconds <= DT_LAUNCHER_LOST_MAX_SECONDS;
}

/* --- text */

/* `shown` is the value for the message, quoted if it is text. */
static dt_status value_refuse(const dt_field *field, const char *shown, dt_status code,
                              dt_error *err)
{
    dt_strbuf expected;

    dt_strbuf_init(&expected);
    dt_field_expected(&expected, field);
    DT_FAIL(err, code, "'%s' is %s: expected %s", field->path, shown, expected.data);
    dt_strbuf_release(&expected);
    return code;
}

static dt_status refuse_text(const dt_field *field, const char *text, dt_status code, dt_error *err)
{
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_text_show_word(&shown, text);
    value_refuse(field, shown.data, code, err);
    dt_strbuf_release(&shown);
    return code;
}

/* --- typed setters: the only writers of a dt_recipe --- */

static void *value_place(void *record, const dt_field *field)
{
    return (char *)record + field->offset;
}

static dt_status value_set_number(void *record, const dt_field *field, double value, dt_status code,
                                  dt_error *err)
{
    char shown[32];

    if (field->low_open ? value > field->low : value >= field->low)
        if (field->high_open ? value < field->high : value <= field->high) {
            if (field->type == DT_FIELD_INT)
                *(int64_t *)value_place(record, field) = (int64_t)value;
            else
                *(double *)value_place(record, field) = value;
            return DT_OK;
        }
    snprintf(shown, sizeof(shown), "%.16g", value);
    return value_refuse(field, shown, code, err);
}

static dt_status value_set_bool(void *record, const dt_field *field, const char *text,
                                dt_status code, dt_error *err)
{
    bool value = strcmp(text, "true") == 0;

    if (!value && strcmp(text, "false") != 0)
        return refuse_text(field, text, code, err);
    *(bool *)value_place(record, field) = value;
    return DT_OK;
}

/* Returns the index of the choice, or -1. */
static int choice_index(const dt_field *field, const char *text)
{
    for (int i = 0; field->choices != NULL && field->choices[i] != NULL; i++)
        if (strcmp(field->choices[i], text) == 0)
            return i;
    return -1;
}

bool dt_field_has_choice(const dt_field *field, const char *text)
{
    return choice_index(field, text) >= 0;
}

static dt_status value_set_choice(void *record, const dt_field *field, const char *text,
                                  dt_status code, dt_error *err)
{
    int index = choice_index(field, text);

    if (index < 0)
        return refuse_text(field, text, code, err);
    *(int *)value_place(record, field) = index;
    return DT_OK;
}

static dt_status value_set_string(void *record, const dt_field *field, const char *text,
                                  dt_status code, dt_error *err)
{
    if (field->choices != NULL && text[0] != '\0' && choice_index(field, text) < 0)
        return refuse_text(field, text, code, err);
    *(const char **)value_place(record, field) = text;
    return DT_OK;
}

/* Checks the number of items of a list. */
static dt_status value_check_count(const dt_field *field, int64_t count, dt_status code,
                                   dt_error *err)
{
    char shown[48];

    if ((double)count >= field->low && (double)count <= field->high)
        return DT_OK;
    snprintf(shown, sizeof(shown), "a list of %lld", (long long)count);
    return value_refuse(field, shown, code, err);
}

static dt_status value_set_list(void *record, const dt_field *field, const char **items,
                                int64_t count, dt_status code, dt_error *err)
{
    dt_string_list *list = value_place(record, field);
    dt_status st = value_check_count(field, count, code, err);

    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++)
        if (items[i][0] == '\0' && !field->empties)
            return DT_FAIL(err, code, "'%s' contains an empty text: remove it, or fill it in",
                           field->path);
    list->items = items;
    list->count = count;
    return DT_OK;
}

/* --- from text --- */

/* Returns true for "010", "-007", "0_1", "010m": decimal in dtrun, octal in YAML 1.1. */
static bool has_leading_zero(const char *text)
{
    text += text[0] == '+' || text[0] == '-';
    return text[0] == '0' && (isdigit((unsigned char)text[1]) || text[1] == '_');
}

/* Names both readings: "write 10, or 8 for an octal number". */
static dt_status refuse_leading_zero(const dt_field *field, const char *text, dt_error *err)
{
    bool minus = text[0] == '-', octal = true;
    const char *digits = text + strspn(text, "+-0_");
    char number[64], *end, meant[64] = "";
    int length = 0;

    if (!isdigit((unsigned char)*digits)) /* the zero itself: "00", "00.5" */
        digits--;
    for (const char *at = digits; *at != '\0' && length < 62; at++)
        if (*at != '_') {
            octal = octal && *at >= '0' && *at <= '7';
            number[length++] = *at;
        }
    number[length] = '\0';
    if (octal && length > 1 && length < 19)
        snprintf(meant, sizeof(meant), ", or %s%lld for an octal number", minus ? "-" : "",
                 strtoll(number, &end, 8));
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s' is '%s': a leading zero means octal to some YAML parsers: write %s%s%s",
                   field->path, text, minus ? "-" : "", number, meant);
}

dt_status dt_field_set_text(void *record, const dt_field *field, const char *text, dt_error *err)
{
    double number;

    switch (field->type) {
    case DT_FIELD_INT:
    case DT_FIELD_NUMBER:
        if (field->zero_word != NULL && strcmp(text, field->zero_word) == 0)
            text = "0";
        if (!dt_text_number(&number, text) ||
            (field->type == DT_FIELD_INT && number != floor(number)))
            return refuse_text(field, text, DT_ERR_RECIPE, err);
        if (has_leading_zero(text))
            return refuse_leading_zero(field, text, err);
        return value_set_number(record, field, number, DT_ERR_RECIPE, err);
    case DT_FIELD_DURATION:
        if (!dt_text_duration(&number, text))
            return refuse_text(field, text, DT_ERR_RECIPE, err);
        if (has_leading_zero(text))
            return refuse_leading_zero(field, text, err);
        return value_set_number(record, field, number, DT_ERR_RECIPE, err);
    case DT_FIELD_BOOL:
        return value_set_bool(record, field, text, DT_ERR_RECIPE, err);
    case DT_FIELD_CHOICE:
        return value_set_choice(record, field, text, DT_ERR_RECIPE, err);
    case DT_FIELD_STRING:
    case DT_FIELD_STRINGS: /* handled by the reader */
    case DT_FIELD_MAPS:
        break;
    }
    DT_ASSERT(field->type == DT_FIELD_STRING);
    return value_set_string(record, field, text, DT_ERR_RECIPE, err);
}

dt_status dt_field_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_error *err)
{
    return value_set_list(record, field, items, count, DT_ERR_RECIPE, err);
}

static void set_default(void *record, const dt_field *field)
{
    const char *const *text = &field->fallback;

    if (field->type == DT_FIELD_MAPS) {
        return; /* none */
    } else if (field->type == DT_FIELD_STRINGS) {
        dt_string_list *list = value_place(record, field);

        if (*text == NULL || strcmp(*text, "[]") == 0)
            return;
        list->items = (const char **)text; /* a list of one; never written */
        list->count = 1;
    } else if (*text != NULL) {
        DT_ASSERT(dt_field_set_text(record, field, *text, NULL) == DT_OK);
    } else if (field->type == DT_FIELD_STRING) {
        *(const char **)value_place(record, field) = "";
    }
}

/* --- items of a list of maps --- */

void *dt_field_item(const dt_field *field, const dt_map_list *list, int64_t index)
{
    return (char *)list->items + (size_t)index * field->items->bytes;
}

void dt_field_new_items(dt_map_list *out, const dt_field *field, int64_t count, dt_arena *arena)
{
    const dt_field_table *items = field->items;

    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, items->bytes);
    out->count = count;
    memset(out->items, 0, (size_t)count * items->bytes);
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < items->count; k++)
            set_default(dt_field_item(field, out, i), &items->fields[k]);
}

dt_status dt_field_set_maps(void *record, const dt_field *field, const dt_map_list *maps,
                            dt_error *err)
{
    dt_status st = value_check_count(field, maps->count, DT_ERR_RECIPE, err);

    if (st == DT_OK)
        *(dt_map_list *)value_place(record, field) = *maps;
    return st;
}

void dt_recipe_init(dt_recipe *recipe)
{
    memset(recipe, 0, sizeof(*recipe));
    for (size_t i = 0; i < dt_fields_count; i++)
        set_default(recipe, &dt_fields[i]);
}

/* --- JSON */

static const char *json_kind(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* Sets an integer. One that a double cannot represent exactly is outside of every range. */
static dt_status set_int(void *record, const dt_field *field, int64_t value, dt_status code,
                         dt_error *err)
{
    char shown[32];

    if ((double)value >= field->low && (double)value <= field->high) {
        *(int64_t *)value_place(record, field) = value;
        return DT_OK;
    }
    snprintf(shown, sizeof(shown), "%lld", (long long)value);
    return value_refuse(field, shown, code, err);
}

static dt_status set_json_list(void *record, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    size_t count = json_array_size(value);
    const char **items = dt_arena_alloc_array(arena, count + 1, sizeof(*items));

    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(value, i));

        if (text == NULL)
            return value_refuse(field, "a list of other things", DT_ERR_CORRUPT, err);
        items[i] = dt_arena_strdup(arena, text);
    }
    return value_set_list(record, field, items, (int64_t)count, DT_ERR_CORRUPT, err);
}

static dt_status set_json_item(void *item, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    if (!json_is_object(value))
        return value_refuse(field, "a list of other things", DT_ERR_CORRUPT, err);
    for (size_t i = 0; i < field->items->count; i++) {
        const dt_field *of_item = &field->items->fields[i];
        const json_t *given = json_object_get(value, of_item->path);

        if (given != NULL)
            DT_TRY(dt_field_set_json(item, of_item, given, arena, err));
        else if (of_item->fallback == NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is missing", of_item->path);
    }
out:
    if (st != DT_OK)
        dt_error_prefix(err, "'%s'", field->path);
    return st;
}

static dt_status set_json_maps(void *record, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    int64_t count = (int64_t)json_array_size(value);
    dt_map_list maps;
    dt_status st = value_check_count(field, count, DT_ERR_CORRUPT, err);

    if (st != DT_OK)
        return st;
    dt_field_new_items(&maps, field, count, arena);
    for (int64_t i = 0; i < count; i++)
        DT_TRY(set_json_item(dt_field_item(field, &maps, i), field,
                             json_array_get(value, (size_t)i), arena, err));
    *(dt_map_list *)value_place(record, field) = maps;
out:
    return st;
}

dt_status dt_field_set_json(void *record, const dt_field *field, const json_t *value,
                            dt_arena *arena, dt_error *err)
{
    const char *text;

    switch (field->type) {
    case DT_FIELD_INT:
        if (json_is_integer(value))
            return set_int(record, field, json_integer_value(value), DT_ERR_CORRUPT, err);
        break;
    case DT_FIELD_BOOL:
        if (json_is_boolean(value))
            return value_set_bool(record, field, json_is_true(value) ? "true" : "false",
                                  DT_ERR_CORRUPT, err);
        break;
    case DT_FIELD_NUMBER:
    case DT_FIELD_DURATION:
        if (json_is_number(value))
            return value_set_number(record, field, json_number_value(value), DT_ERR_CORRUPT, err);
        break;
    case DT_FIELD_CHOICE:
        if (json_is_string(value))
            return value_set_choice(record, field, json_string_value(value), DT_ERR_UNSUPPORTED,
                                    err);
        break;
    case DT_FIELD_STRING:
        if (!json_is_string(value))
            break;
        text = dt_arena_strdup(arena, json_string_value(value));
        return value_set_string(record, field, text, DT_ERR_UNSUPPORTED, err);
    case DT_FIELD_STRINGS:
        if (json_is_array(value))
            return set_json_list(record, field, value, arena, err);
        break;
    case DT_FIELD_MAPS:
        if (json_is_array(value))
            return set_json_maps(record, field, value, arena, err);
        break;
    }
    return value_refuse(field, json_kind(value), DT_ERR_CORRUPT, err);
}

static const void *place_const(const void *record, const dt_field *field)
{
    return (const char *)record + field->offset;
}

static json_t *maps_to_json(const dt_map_list *maps, const dt_field *field)
{
    json_t *out = json_array();

    for (int64_t i = 0; i < maps->count; i++) {
        json_t *item = json_object();

        for (size_t k = 0; k < field->items->count; k++)
            json_object_set_new(
                item, field->items->fields[k].path,
                dt_field_to_json(dt_field_item(field, maps, i), &field->items->fields[k]));
        json_array_append_new(out, item);
    }
    return out;
}

json_t *dt_field_to_json(const void *record, const dt_field *field)
{
    const void *at = place_const(record, field);
    const dt_string_list *list = at;
    json_t *array;

    switch (field->type) {
    case DT_FIELD_INT:
        return json_integer(*(const int64_t *)at);
    case DT_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case DT_FIELD_NUMBER:
    case DT_FIELD_DURATION:
        return json_real(*(const double *)at);
    case DT_FIELD_CHOICE:
        return json_string(field->choices[*(const int *)at]);
    case DT_FIELD_STRING:
        return json_string(*(const char *const *)at);
    case DT_FIELD_MAPS:
        return maps_to_json(at, field);
    case DT_FIELD_STRINGS:
        break;
    }
    array = json_array();
    for (int64_t i = 0; i < list->count; i++)
        json_array_append_new(array, json_string(list->items[i]));
    return array;
}
