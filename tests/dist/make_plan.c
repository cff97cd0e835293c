/* make_plan: writes the plan of a test run.
 *
 *   make_plan OUT.json CHECKPOINTS|/dev/null [resume=DIR] [device=NAME] [from=DIR] FIELD=VALUE...
 *
 * Every field starts at its default; a VALUE is JSON if it parses as such, else a string. The
 * recipe passes the same checks as one that the engine reads. NAME ("cuda:0") is the device of
 * every rank; the default is "cpu". from: a folder of weights to start from.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "recipes/fields/fields.h"
#include "recipes/foreign/weights.h"
#include "recipes/plan/plan.h"

static dt_status set_field(json_t *recipe, const char *path, const char *text, dt_error *err)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL), *at = recipe;
    const char *dot;
    char key[64];

    while (at != NULL && (dot = strchr(path, '.')) != NULL) {
        snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
        at = json_object_get(at, key);
        path = dot + 1;
    }
    if (at == NULL || json_object_get(at, path) == NULL) {
        json_decref(value);
        return DT_FAIL(err, DT_ERR_USAGE, "no field '%s' in a recipe", path);
    }
    json_object_set_new(at, path, value != NULL ? value : json_string(text));
    return DT_OK;
}

static dt_status make(int argc, char **argv, dt_error *err)
{
    const char *resume_from = "", *device = NULL, *from = NULL;
    json_t *recipe_json, *plan_json = NULL;
    dt_recipe recipe;
    dt_arena arena;
    dt_strbuf text;
    dt_plan plan;
    dt_status st = DT_OK;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_recipe_init(&recipe);
    recipe_json = dt_recipe_to_json(&recipe);
    DT_TRY(set_field(recipe_json, "name", "test", err));
    for (int i = 3; i < argc; i++) {
        char *equals = strchr(argv[i], '=');

        if (equals == NULL)
            DT_THROW(err, DT_ERR_USAGE, "'%s': expected FIELD=VALUE", argv[i]);
        *equals = '\0';
        if (strcmp(argv[i], "resume") == 0)
            resume_from = equals + 1;
        else if (strcmp(argv[i], "device") == 0)
            device = equals + 1;
        else if (strcmp(argv[i], "from") == 0)
            from = equals + 1;
        else
            DT_TRY(set_field(recipe_json, argv[i], equals + 1, err));
    }
    DT_TRY(dt_recipe_from_json(&recipe, recipe_json, &arena, err));
    DT_TRY(dt_plan_make(&plan, &recipe, 1, &arena, err));
    if (from != NULL)
        DT_TRY(dt_weights_find(&plan.weights, from, &arena, err));
    plan.run = "test";
    plan.attempt = 1;
    plan.directory = argv[2];
    plan.resume_from = resume_from;
    for (int64_t r = 0; device != NULL && r < plan.world_size; r++)
        plan.ranks[r].device = device;
    plan_json = dt_plan_to_json(&plan);
    dt_json_write_pretty(&text, plan_json);
    DT_TRY(dt_file_write_atomic(argv[1], text.data, text.length, 0600, err));
out:
    json_decref(plan_json);
    json_decref(recipe_json);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
    return st;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;

    if (argc < 3)
        return 2;
    if (make(argc, argv, &err) == DT_OK)
        return 0;
    fprintf(stderr, "make_plan: %s\n", err.message);
    return 1;
}
