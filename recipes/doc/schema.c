#include "recipes/doc/doc.h"

#include <string.h>

#include "base/strbuf.h"
#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes/read/reader.h"
#include "recipes/read/reading.h"

static json_t *reference_to(const char *name)
{
    dt_strbuf path;
    json_t *ref;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "#/$defs/%s", name);
    ref = json_pack("{s:s}", "$ref", path.data);
    dt_strbuf_release(&path);
    return ref;
}

/* Patterns used by several fields. Some YAML parsers read 1e-4 and 20_000 as text. */
static json_t *definitions(void)
{
    json_t *all = json_object();

    json_object_set_new(
        all, "number",
        json_pack("{s:s, s:s}", "type", "string", "pattern",
                  "^[-+]?([0-9][0-9_]*\\.?[0-9_]*|\\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$"));
    json_object_set_new(
        all, "duration",
        json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-9]+(\\.[0-9]*)?[smhd]$"));
    json_object_set_new(all, "reference",
                        json_pack("{s:s, s:s, s:s}", "description", "of the environment", "type",
                                  "string", "pattern",
                                  "\\$\\{env:[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}"));
    json_object_set_new(all, "text",
                        json_pack("{s:[s, s, s]}", "type", "string", "number", "boolean"));
    return all;
}

static json_t *map_of(const dt_field_table *items);

/* --- values of fields --- */

static json_t *number_schema(const dt_field *field)
{
    bool whole = field->type == DT_FIELD_INT;
    json_t *schema = json_pack("{s:s}", "type", whole ? "integer" : "number");

    json_object_set_new(schema, field->low_open ? "exclusiveMinimum" : "minimum",
                        whole ? json_integer((json_int_t)field->low) : json_real(field->low));
    json_object_set_new(schema, field->high_open ? "exclusiveMaximum" : "maximum",
                        whole ? json_integer((json_int_t)field->high) : json_real(field->high));
    return schema;
}

static json_t *choices_schema(const dt_field *field)
{
    json_t *words = json_array();

    for (size_t i = 0; field->choices[i] != NULL; i++)
        json_array_append_new(words, json_string(field->choices[i]));
    return json_pack("{s:o}", "enum", words);
}

/* Returns the schema of {host: gpu-a, gpus: 4} in `nodes`. */
static json_t *node_schema(void)
{
    return json_pack("{s:s, s:{s:o, s:{s:s}, s:{s:s}, s:{s:s}}, s:[s], s:b}", "type", "object",
                     "properties", "host", reference_to("text"), "gpus", "type", "integer",
                     "first_gpu", "type", "integer", "ranks", "type", "integer", "required", "host",
                     "additionalProperties", 0);
}

/* Adds one item, or a list of items. */
static void add_list(json_t *ways, const dt_field *field)
{
    json_t *item = field->type == DT_FIELD_MAPS ? map_of(field->items) : reference_to("text");

    if (field == dt_field_find("nodes"))
        item = json_pack("{s:[o, o]}", "anyOf", item, node_schema());
    json_array_append(ways, item);
    if (field->assignments)
        json_array_append_new(ways, json_pack("{s:s, s:o}", "type", "object",
                                              "additionalProperties", reference_to("text")));
    json_array_append_new(ways, json_pack("{s:s, s:o, s:I, s:I}", "type", "array", "items", item,
                                          "minItems", (json_int_t)field->low, "maxItems",
                                          (json_int_t)field->high));
}

/* Returns all ways to write the field: [{...}, ...]. */
static json_t *ways_of(const dt_field *field)
{
    json_t *ways = json_array();

    if (field->type == DT_FIELD_STRINGS || field->type == DT_FIELD_MAPS) {
        add_list(ways, field);
        return ways;
    }
    if (field->choices != NULL)
        json_array_append_new(ways, choices_schema(field));
    else if (field->type == DT_FIELD_STRING)
        json_array_append_new(ways, reference_to("text"));
    else if (field->type == DT_FIELD_BOOL)
        json_array_append_new(ways, json_pack("{s:s}", "type", "boolean"));
    else
        json_array_append_new(ways, number_schema(field));
    if (field->type == DT_FIELD_INT || field->type == DT_FIELD_NUMBER ||
        field->type == DT_FIELD_DURATION)
        json_array_append_new(ways, reference_to("number"));
    if (field->type == DT_FIELD_DURATION)
        json_array_append_new(ways, reference_to("duration"));
    if (field->zero_word != NULL)
        json_array_append_new(ways, json_pack("{s:s}", "const", field->zero_word));
    json_array_append_new(ways, reference_to("reference"));
    return ways;
}

static void describe(json_t *schema, const dt_field *field)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, field->help);
    if (field->unit != NULL)
        dt_strbuf_add_fmt(&text, " (%s)", field->unit);
    if (field->derived != NULL)
        dt_strbuf_add_fmt(&text, "; left out: %s", field->derived);
    json_object_set_new(schema, "description", json_string(text.data));
    dt_strbuf_release(&text);
}

static json_t *field_schema(const dt_field *field, bool of_recipe)
{
    json_t *schema = json_pack("{s:o}", "anyOf", ways_of(field));
    dt_recipe defaults;

    describe(schema, field);
    if (!of_recipe || field->fallback == NULL)
        return schema;
    dt_recipe_init(&defaults);
    json_object_set_new(schema, "default", dt_field_to_json(&defaults, field));
    return schema;
}

/* --- maps --- */

/* Adds the field under its name and its aliases. */
static void add_field(json_t *properties, json_t *top, const dt_field *field, bool of_recipe)
{
    size_t length = of_recipe ? dt_field_group_length(field) : 0;
    json_t *schema = field_schema(field, of_recipe), *other;

    json_object_set(properties, field->path + (length > 0 ? length + 1 : 0), schema);
    for (size_t i = 0; field->aliases != NULL && field->aliases[i] != NULL; i++) {
        other = json_copy(schema);
        json_object_set_new(other, "deprecated", json_true());
        json_object_set_new(other, "description",
                            json_sprintf("another name of '%s'", field->path));
        json_object_set(properties, field->aliases[i], other);
        if (top != NULL && top != properties)
            json_object_set(top, field->aliases[i], other);
        json_decref(other);
    }
    json_decref(schema);
}

/* Returns an object with these properties, or the value of its shorthand. Takes the reference. */
static json_t *with_shorthand(json_t *properties, const char *group)
{
    json_t *ways = json_array();

    json_array_append_new(ways, json_pack("{s:s, s:o, s:b}", "type", "object", "properties",
                                          properties, "additionalProperties", 0));
    for (size_t i = 0; i < dt_fields_count; i++) {
        json_t *more;

        if (!dt_fields[i].shorthand || !dt_field_in_group(&dt_fields[i], group))
            continue;
        more = ways_of(&dt_fields[i]);
        json_array_extend(ways, more);
        json_decref(more);
    }
    return json_pack("{s:o}", "anyOf", ways);
}

/* Returns the map `group` of the recipe ("": the whole recipe) as {name: schema}; names that are also valid
 * at the top are added to `top`. */
static json_t *properties_of(const char *group, json_t *top)
{
    json_t *properties = json_object();
    size_t skip = group[0] != '\0' ? strlen(group) + 1 : 0;

    if (top == NULL)
        top = properties;
    for (size_t i = 0; i < dt_fields_count; i++) {
        const char *key = dt_fields[i].path + skip;
        size_t length = strcspn(key, ".");
        dt_strbuf below;

        if (group[0] != '\0' ? dt_field_in_group(&dt_fields[i], group)
                             : dt_field_group_length(&dt_fields[i]) == 0)
            add_field(properties, top, &dt_fields[i], true);
        if (!dt_field_below(&dt_fields[i], group) || key[length] != '.')
            continue;
        dt_strbuf_init(&below);
        dt_strbuf_add(&below, dt_fields[i].path, skip + length);
        if (json_object_get(properties, below.data + skip) == NULL)
            json_object_set_new(properties, below.data + skip,
                                with_shorthand(properties_of(below.data, top), below.data));
        dt_strbuf_release(&below);
    }
    return properties;
}

/* Returns the schema of a map in a list. */
static json_t *map_of(const dt_field_table *items)
{
    json_t *properties = json_object();

    for (size_t i = 0; i < items->count; i++)
        add_field(properties, NULL, &items->fields[i], false);
    return json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                     "additionalProperties", 0);
}

/* --- the recipe --- */

static json_t *version_schema(void)
{
    return json_pack("{s:s, s:s, s:i, s:i}", "description",
                     "the version of the recipe language that the file was written for", "type",
                     "integer", "minimum", 1, "maximum", DT_RECIPE_VERSION);
}

static json_t *extends_schema(void)
{
    return json_pack(
        "{s:s, s:[{s:s}, {s:s, s:{s:s}}]}", "description",
        "recipe files in this folder, or model presets, that this recipe is applied on top of",
        "anyOf", "type", "string", "type", "array", "items", "type", "string");
}

static json_t *sweep_schema(void)
{
    return json_pack("{s:s, s:s, s:i, s:{s:s, s:i}}", "description",
                     "fields by path, each with the list of its values", "type", "object",
                     "minProperties", 1, "additionalProperties", "type", "array", "minItems", 1);
}

json_t *dt_recipe_schema(void)
{
    json_t *properties = properties_of("", NULL);
    json_t *schema = json_object();

    json_object_set_new(properties, DT_RECIPE_VERSION_KEY, version_schema());
    json_object_set_new(properties, DT_RECIPE_EXTENDS_KEY, extends_schema());
    json_object_set_new(properties, DT_RECIPE_SWEEP_KEY, sweep_schema());
    json_object_set_new(schema, "$schema",
                        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(schema, "title", json_string("a recipe of dtrun"));
    json_object_set_new(schema, "type", json_string("object"));
    json_object_set_new(schema, "properties", properties);
    json_object_set_new(schema, "additionalProperties", json_false());
    json_object_set_new(schema, "$defs", definitions());
    return schema;
}
