#include "recipes/read/writer.h"

#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/task_fields.h"
#include "recipes/fields/values.h"

/* Returns whether the optimizer's default of the field differs from the table's. */
static bool has_own_default(const dt_recipe *recipe, const char *path)
{
    const dt_optimizer_default *own = dt_optimizers[recipe->optimizer.kind].defaults;

    for (size_t i = 0; i < DT_OPTIMIZER_DEFAULTS && own[i].path != NULL; i++)
        if (strcmp(path, own[i].path) == 0)
            return true;
    return false;
}

/* Returns whether a field can be left out, which is necessary if fields exclude each other. A preset was
 * replaced by its dimensions, and the nodes of a hostfile are listed. */
static bool is_left_out(const dt_recipe *recipe, const dt_recipe *defaults, const dt_field *field)
{
    json_t *value, *usual;
    bool same;

    if (strcmp(field->path, "model.preset") == 0 || strcmp(field->path, "hostfile") == 0 ||
        dt_architecture_ignores(recipe->model.kind, field->path) ||
        (recipe->task == DT_TASK_COMMAND && !dt_field_is_of_task(field, DT_TASK_COMMAND)))
        return true;
    if (has_own_default(recipe, field->path))
        return false;
    value = dt_field_to_json(recipe, field);
    usual = dt_field_to_json(defaults, field);
    same = json_equal(value, usual) != 0 && field->type != DT_FIELD_NUMBER;
    same = same || (json_equal(value, usual) != 0 && field->fallback != NULL);
    json_decref(value);
    json_decref(usual);
    return same;
}

/* Puts the value at "a.b.c" into the nested maps of `root`. */
static void put(json_t *root, const char *path, json_t *value)
{
    const char *dot;

    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        json_t *next = json_object_getn(root, path, (size_t)(dot - path));

        if (next == NULL) {
            next = json_object();
            json_object_setn_new(root, path, (size_t)(dot - path), next);
        }
        root = next;
    }
    json_object_set_new(root, path, value);
}

void dt_recipe_write(dt_strbuf *out, const dt_recipe *recipe)
{
    json_t *root = json_pack("{s:i}", DT_RECIPE_VERSION_KEY, DT_RECIPE_VERSION);
    dt_recipe defaults;
    dt_strbuf text;

    dt_recipe_init(&defaults);
    for (size_t i = 0; i < dt_fields_count; i++)
        if (!is_left_out(recipe, &defaults, &dt_fields[i]))
            put(root, dt_fields[i].path, dt_field_to_json(recipe, &dt_fields[i]));
    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, root);
    dt_json_shorten(out, text.data);
    dt_strbuf_release(&text);
    json_decref(root);
}
