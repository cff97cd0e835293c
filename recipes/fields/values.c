#include "recipes/fields/values.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/durations.h"
#include "recipes/fields/text.h"
#include "recipes/fields/values_int.h"

dt_status dt_value_refuse(const dt_field *field, const char *shown, dt_status code, dt_error *err)
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
    dt_value_refuse(field, shown.data, code, err);
    dt_strbuf_release(&shown);
    return code;
}

/* --- typed setters: the only writers of a dt_recipe --- */

void *dt_value_place(void *record, const dt_field *field)
{
    return (char *)record + field->offset;
}

dt_status dt_value_set_number(void *record, const dt_field *field, double value, dt_status code,
                              dt_error *err)
{
    char shown[32];

    if (field->low_open ? value > field->low : value >= field->low)
        if (field->high_open ? value < field->high : value <= field->high) {
            if (field->type == DT_FIELD_INT)
                *(int64_t *)dt_value_place(record, field) = (int64_t)value;
            else
                *(double *)dt_value_place(record, field) = value;
            return DT_OK;
        }
    snprintf(shown, sizeof(shown), "%.16g", value);
    return dt_value_refuse(field, shown, code, err);
}

dt_status dt_value_set_bool(void *record, const dt_field *field, const char *text, dt_status code,
                            dt_error *err)
{
    bool value = strcmp(text, "true") == 0;

    if (!value && strcmp(text, "false") != 0)
        return refuse_text(field, text, code, err);
    *(bool *)dt_value_place(record, field) = value;
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

dt_status dt_value_set_choice(void *record, const dt_field *field, const char *text, dt_status code,
                              dt_error *err)
{
    int index = choice_index(field, text);

    if (index < 0)
        return refuse_text(field, text, code, err);
    *(int *)dt_value_place(record, field) = index;
    return DT_OK;
}

dt_status dt_value_set_string(void *record, const dt_field *field, const char *text, dt_status code,
                              dt_error *err)
{
    if (field->choices != NULL && text[0] != '\0' && choice_index(field, text) < 0)
        return refuse_text(field, text, code, err);
    *(const char **)dt_value_place(record, field) = text;
    return DT_OK;
}

dt_status dt_value_check_count(const dt_field *field, int64_t count, dt_status code, dt_error *err)
{
    char shown[48];

    if ((double)count >= field->low && (double)count <= field->high)
        return DT_OK;
    snprintf(shown, sizeof(shown), "a list of %lld", (long long)count);
    return dt_value_refuse(field, shown, code, err);
}

dt_status dt_value_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_status code, dt_error *err)
{
    dt_string_list *list = dt_value_place(record, field);
    dt_status st = dt_value_check_count(field, count, code, err);

    if (st != DT_OK)
        return st;
    for (int64_t i = 0; i < count; i++)
        if (items[i][0] == '\0')
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
        return dt_value_set_number(record, field, number, DT_ERR_RECIPE, err);
    case DT_FIELD_DURATION:
        if (!dt_text_duration(&number, text))
            return refuse_text(field, text, DT_ERR_RECIPE, err);
        if (has_leading_zero(text))
            return refuse_leading_zero(field, text, err);
        return dt_value_set_number(record, field, number, DT_ERR_RECIPE, err);
    case DT_FIELD_BOOL:
        return dt_value_set_bool(record, field, text, DT_ERR_RECIPE, err);
    case DT_FIELD_CHOICE:
        return dt_value_set_choice(record, field, text, DT_ERR_RECIPE, err);
    case DT_FIELD_STRING:
    case DT_FIELD_STRINGS: /* handled by the reader */
    case DT_FIELD_MAPS:
        break;
    }
    DT_ASSERT(field->type == DT_FIELD_STRING);
    return dt_value_set_string(record, field, text, DT_ERR_RECIPE, err);
}

dt_status dt_field_set_list(void *record, const dt_field *field, const char **items, int64_t count,
                            dt_error *err)
{
    return dt_value_set_list(record, field, items, count, DT_ERR_RECIPE, err);
}

static void set_default(void *record, const dt_field *field)
{
    const char *const *text = &field->fallback;

    if (field->type == DT_FIELD_MAPS) {
        return; /* none */
    } else if (field->type == DT_FIELD_STRINGS) {
        dt_string_list *list = dt_value_place(record, field);

        if (*text == NULL || strcmp(*text, "[]") == 0)
            return;
        list->items = (const char **)text; /* a list of one; never written */
        list->count = 1;
    } else if (*text != NULL) {
        DT_ASSERT(dt_field_set_text(record, field, *text, NULL) == DT_OK);
    } else if (field->type == DT_FIELD_STRING) {
        *(const char **)dt_value_place(record, field) = "";
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
    dt_status st = dt_value_check_count(field, maps->count, DT_ERR_RECIPE, err);

    if (st == DT_OK)
        *(dt_map_list *)dt_value_place(record, field) = *maps;
    return st;
}

void dt_recipe_init(dt_recipe *recipe)
{
    memset(recipe, 0, sizeof(*recipe));
    for (size_t i = 0; i < dt_fields_count; i++)
        set_default(recipe, &dt_fields[i]);
}
