/* field_list: prints the table of recipe fields as JSON, for the test of all fields. */
#include <stdio.h>

#include "recipes/fields/fields.h"

static json_t *choices_of(const dt_field *field)
{
    json_t *list = json_array();

    for (const char *const *choice = field->choices; choice != NULL && *choice != NULL; choice++)
        json_array_append_new(list, json_string(*choice));
    return list;
}

int main(void)
{
    static const char *const types[] = {
        [DT_FIELD_STRING] = "string",     [DT_FIELD_INT] = "int",
        [DT_FIELD_NUMBER] = "number",     [DT_FIELD_BOOL] = "bool",
        [DT_FIELD_DURATION] = "duration", [DT_FIELD_CHOICE] = "choice",
        [DT_FIELD_STRINGS] = "strings",   [DT_FIELD_MAPS] = "maps"};
    json_t *all = json_array();

    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];

        json_array_append_new(all, json_pack("{s:s, s:s, s:s?, s:o}", "path", field->path, "type",
                                             types[field->type], "default", field->fallback,
                                             "choices", choices_of(field)));
    }
    json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return putchar('\n') == EOF || fflush(stdout) != 0;
}
