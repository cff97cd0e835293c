#include "recipes/values.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/durations.h"
#include "recipes/text.h"

#include "base/banned.h"

/* --- the table --- */

const dt_field *dt_field_find(const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (dt_fields[i].path[0] == path[0] && strcmp(dt_fields[i].path, path) == 0)
            return &dt_fields[i];
    return NULL;
}

static bool is_alias(const dt_field *field, const char *path)
{
    size_t length = dt_field_group_length(field);
    const char *key = path;

    if (length != 0 && strncmp(path, field->path, length + 1) == 0)
        key += length + 1;
    for (size_t i = 0; field->aliases != NULL && field->aliases[i] != NULL; i++)
        if (strcmp(field->aliases[i], key) == 0)
            return true;
    return false;
}

const char *dt_field_unalias(const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (is_alias(&dt_fields[i], path))
            return dt_fields[i].path;
    return path;
}

size_t dt_field_group_length(const dt_field *field)
{
    const char *dot = strrchr(field->path, '.');

    return dot != NULL ? (size_t)(dot - field->path) : 0;
}

bool dt_field_in_group(const dt_field *field, const char *group)
{
    size_t length = dt_field_group_length(field);

    return length != 0 && strlen(group) == length && memcmp(group, field->path, length) == 0;
}

bool dt_field_below(const dt_field *field, const char *map)
{
    size_t length = strlen(map);

    return length == 0 || (strncmp(field->path, map, length) == 0 && field->path[length] == '.');
}

bool dt_field_is_map(const char *path)
{
    for (size_t i = 0; path[0] != '\0' && i < dt_fields_count; i++)
        if (dt_field_below(&dt_fields[i], path))
            return true;
    return false;
}

/* --- what a field takes, in words --- */

void dt_field_range(dt_strbuf *out, const dt_field *field)
{
    if (field->type != DT_FIELD_INT && field->type != DT_FIELD_NUMBER &&
        field->type != DT_FIELD_DURATION)
        return;
    if (field->low_open)
        dt_strbuf_add_fmt(out, "above %.16g, up to %.16g", field->low, field->high);
    else
        dt_strbuf_add_fmt(out, "%.16g to %s%.16g", field->low, field->high_open ? "below " : "",
                          field->high);
    if (field->type == DT_FIELD_DURATION)
        dt_strbuf_add_str(out, " seconds");
    if (field->unit != NULL)
        dt_strbuf_add_fmt(out, " %s", field->unit);
}

void dt_field_expected(dt_strbuf *out, const dt_field *field)
{
    switch (field->type) {
    case DT_FIELD_INT:
        dt_strbuf_add_str(out, "a whole number, ");
        break;
    case DT_FIELD_NUMBER:
        dt_strbuf_add_str(out, "a number, ");
        break;
    case DT_FIELD_BOOL:
        dt_strbuf_add_str(out, "'true' or 'false'");
        break;
    case DT_FIELD_DURATION:
        dt_strbuf_add_str(out, "seconds, or a time like '90s', '10m', '2h' or '1d', ");
        break;
    case DT_FIELD_STRINGS:
        dt_strbuf_add_fmt(out, "a list of text, %.16g to %.16g items", field->low, field->high);
        break;
    case DT_FIELD_MAPS:
        dt_strbuf_add_fmt(out, "a list of maps, %.16g to %.16g, of", field->low, field->high);
        for (size_t i = 0; i < field->items->count; i++)
            dt_strbuf_add_fmt(out, "%s %s", i != 0 ? "," : "", field->items->fields[i].path);
        break;
    case DT_FIELD_STRING:
    case DT_FIELD_CHOICE:
        if (field->choices == NULL)
            dt_strbuf_add_str(out, "text");
        else if (field->choices[1] != NULL)
            dt_strbuf_add_str(out, "one of ");
        for (size_t i = 0; field->choices != NULL && field->choices[i] != NULL; i++)
            dt_strbuf_add_fmt(out, "%s'%s'", i != 0 ? ", " : "", field->choices[i]);
    }
    dt_field_range(out, field);
    if (field->zero_word != NULL)
        dt_strbuf_add_fmt(out, ", or '%s' for 0", field->zero_word);
}

/* `shown` is the value as a message repeats it, quoted where it is text. */
static dt_status refuse(const dt_field *field, const char *shown, dt_status code, dt_error *err)
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
    refuse(field, shown.data, code, err);
    dt_strbuf_release(&shown);
    return code;
}

/* --- typed setters: the only writers of a dt_recipe --- */

static void *place(void *record, const dt_field *field)
{
    return (char *)record + field->offset;
}

static const void *place_const(const void *record, const dt_field *field)
{
    return (const char *)record + field->offset;
}

static dt_status set_number(void *record, const dt_field *field, double value, dt_status code,
                            dt_error *err)
{
    char shown[32];

    if (field->low_open ? value > field->low : value >= field->low)
        if (field->high_open ? value < field->high : value <= field->high) {
            if (field->type == DT_FIELD_INT)
                *(int64_t *)place(record, field) = (int64_t)value;
            else
                *(double *)place(record, field) = value;
            return DT_OK;
        }
    snprintf(shown, sizeof(shown), "%.16g", value);
    return refuse(field, shown, code, err);
}

/* A whole number outside of what a double holds exactly is outside of every range. */
static dt_status set_int(void *record, const dt_field *field, int64_t value, dt_status code,
                         dt_error *err)
{
    char shown[32];

    if ((double)value >= field->low && (double)value <= field->high) {
        *(int64_t *)place(record, field) = value;
        return DT_OK;
    }
    snprintf(shown, sizeof(shown), "%lld", (long long)value);
    return refuse(field, shown, code, err);
}

static dt_status set_bool(void *record, const dt_field *field, const char *text, dt_status code,
                          dt_error *err)
{
    bool value = strcmp(text, "true") == 0;

    if (!value && strcmp(text, "false") != 0)
        return refuse_text(field, text, code, err);
    *(bool *)place(record, field) = value;
    return DT_OK;
}

/* Index of the choice, or -1. */
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

static dt_status set_choice(void *record, const dt_field *field, const char *text, dt_status code,
                            dt_error *err)
{
    int index = choice_index(field, text);

    if (index < 0)
        return refuse_text(field, text, code, err);
    *(int *)place(record, field) = index;
    return DT_OK;
}

static dt_status set_string(void *record, const dt_field *field, const char *text, dt_status code,
                            dt_error *err)
{
    if (field->choices != NULL && text[0] != '\0' && choice_index(field, text) < 0)
        return refuse_text(field, text, code, err);
    *(const char **)place(record, field) = text;
    return DT_OK;
}

static dt_status check_count(const dt_field *field, int64_t count, dt_status code, dt_error *err)
{
    char shown[48];

    if ((double)count >= field->low && (double)count <= field->high)
        return DT_OK;
    snprintf(shown, sizeof(shown), "a list of %lld", (long long)count);
    return refuse(field, shown, code, err);
}

static dt_status set_list(void *record, const dt_field *field, const char **items, int64_t count,
                          dt_status code, dt_error *err)
{
    dt_string_list *list = place(record, field);
    dt_status st = check_count(field, count, code, err);

    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++)
        if (items[i][0] == '\0')
            return DT_FAIL(err, code, "'%s' holds an empty text: remove it, or fill it in",
                           field->path);
    list->items = items;
    list->count = count;
    return DT_OK;
}

/* --- from text --- */

/* "010", "-007", "0_1", "010m": ten here, eight to readers of YAML 1.1. */
static bool has_leading_zero(const char *text)
{
    text += text[0] == '+' || text[0] == '-';
    return text[0] == '0' && (isdigit((unsigned char)text[1]) || text[1] == '_');
}

/* Names both readings: "write 10, or 8 where octal was meant". */
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
        snprintf(meant, sizeof(meant), ", or %s%lld if octal was meant", minus ? "-" : "",
                 strtoll(number, &end, 8));
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s' is '%s': with a leading zero it is another number to some readers of "
                   "YAML: write %s%s%s",
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
        return set_number(record, field, number, DT_ERR_RECIPE, err);
    case DT_FIELD_DURATION:
        if (!dt_text_duration(&number, text))
            return refuse_text(field, text, DT_ERR_RECIPE, err);
        if (has_leading_zero(text))
            return refuse_leading_zero(field, text, err);
        return set_number(record, field, number, DT_ERR_RECIPE, err);
    case DT_FIELD_BOOL:
        return set_bool(record, field, text, DT_ERR_RECIPE, err);
    case DT_FIELD_CHOICE:
        return set_choice(record, field, text, DT_ERR_RECIPE, err);
    case DT_FIELD_STRING:
    case DT_FIELD_STRINGS: /* the reader makes a list of one */
    case DT_FIELD_MAPS:
        break;
    }
    DT_ASSERT(field->type == DT_FIELD_STRING);
    return set_string(record, field, text, DT_ERR_RECIPE, err);
}

dt_status dt_field_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_error *err)
{
    return set_list(record, field, items, count, DT_ERR_RECIPE, err);
}

const char *const *dt_field_default(const dt_field *field, int64_t version)
{
    const dt_field_before *before = field->before;

    while (before != NULL && before->version != 0 && before->version < version)
        before++;
    return before != NULL && before->version != 0 ? &before->text : &field->fallback;
}

static void set_default(void *record, const dt_field *field, const char *const *text)
{
    if (field->type == DT_FIELD_MAPS) {
        return; /* none */
    } else if (field->type == DT_FIELD_STRINGS) {
        dt_string_list *list = place(record, field);

        if (*text == NULL || strcmp(*text, "[]") == 0)
            return;
        list->items = (const char **)text; /* a list of one; never written */
        list->count = 1;
    } else if (*text != NULL) {
        DT_ASSERT(dt_field_set_text(record, field, *text, NULL) == DT_OK);
    } else if (field->type == DT_FIELD_STRING) {
        *(const char **)place(record, field) = "";
    }
}

/* --- items of a list of maps --- */

const dt_field *dt_field_find_item(const dt_field_table *items, const char *key)
{
    for (size_t i = 0; i < items->count; i++)
        if (strcmp(items->fields[i].path, key) == 0)
            return &items->fields[i];
    return NULL;
}

void *dt_field_item(const dt_field *field, const dt_map_list *list, int64_t index)
{
    return (char *)list->items + (size_t)index * field->items->bytes;
}

dt_status dt_field_new_items(dt_map_list *out, const dt_field *field, int64_t count,
                             dt_arena *arena, dt_error *err)
{
    const dt_field_table *items = field->items;

    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, items->bytes);
    out->count = count;
    if (out->items == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for '%s'", field->path);
    memset(out->items, 0, (size_t)count * items->bytes);
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < items->count; k++)
            set_default(dt_field_item(field, out, i), &items->fields[k],
                        &items->fields[k].fallback);
    return DT_OK;
}

dt_status dt_field_set_maps(void *record, const dt_field *field, const dt_map_list *maps,
                            dt_error *err)
{
    dt_status st = check_count(field, maps->count, DT_ERR_RECIPE, err);

    if (st == DT_OK)
        *(dt_map_list *)place(record, field) = *maps;
    return st;
}

void dt_recipe_init_version(dt_recipe *recipe, int64_t version)
{
    memset(recipe, 0, sizeof(*recipe));
    for (size_t i = 0; i < dt_fields_count; i++)
        set_default(recipe, &dt_fields[i], dt_field_default(&dt_fields[i], version));
}

void dt_recipe_init(dt_recipe *recipe)
{
    dt_recipe_init_version(recipe, DT_RECIPE_VERSION);
}

/* --- from and to JSON --- */

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

static dt_status set_json_list(void *record, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    size_t count = json_array_size(value);
    const char **items = dt_arena_alloc_array(arena, count + 1, sizeof(*items));

    if (items == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for '%s'", field->path);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(value, i));

        if (text == NULL)
            return refuse(field, "a list of other things", DT_ERR_CORRUPT, err);
        items[i] = dt_arena_strdup(arena, text);
        if (items[i] == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for '%s'", field->path);
    }
    return set_list(record, field, items, (int64_t)count, DT_ERR_CORRUPT, err);
}

static dt_status set_json_item(void *item, const dt_field *field, const json_t *value,
                               dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    if (!json_is_object(value))
        return refuse(field, "a list of other things", DT_ERR_CORRUPT, err);
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
    dt_status st = check_count(field, count, DT_ERR_CORRUPT, err);

    if (st != DT_OK)
        return st;
    DT_TRY(dt_field_new_items(&maps, field, count, arena, err));
    for (int64_t i = 0; i < count; i++)
        DT_TRY(set_json_item(dt_field_item(field, &maps, i), field,
                             json_array_get(value, (size_t)i), arena, err));
    *(dt_map_list *)place(record, field) = maps;
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
            return set_bool(record, field, json_is_true(value) ? "true" : "false", DT_ERR_CORRUPT,
                            err);
        break;
    case DT_FIELD_NUMBER:
    case DT_FIELD_DURATION:
        if (json_is_number(value))
            return set_number(record, field, json_number_value(value), DT_ERR_CORRUPT, err);
        break;
    case DT_FIELD_CHOICE:
        if (json_is_string(value))
            return set_choice(record, field, json_string_value(value), DT_ERR_UNSUPPORTED, err);
        break;
    case DT_FIELD_STRING:
        if (!json_is_string(value))
            break;
        text = dt_arena_strdup(arena, json_string_value(value));
        if (text == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for '%s'", field->path);
        return set_string(record, field, text, DT_ERR_UNSUPPORTED, err);
    case DT_FIELD_STRINGS:
        if (json_is_array(value))
            return set_json_list(record, field, value, arena, err);
        break;
    case DT_FIELD_MAPS:
        if (json_is_array(value))
            return set_json_maps(record, field, value, arena, err);
        break;
    }
    return refuse(field, json_kind(value), DT_ERR_CORRUPT, err);
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
