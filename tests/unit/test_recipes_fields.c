/* The table of fields, and the resolved recipe as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/fields/values.h"

/* Fills every default, and a valid value where there is none. */
static void fill(dt_recipe *recipe)
{
    static const char *train[] = {"/data/a.txt", "/data/\xc3\xa9.txt"};

    dt_recipe_init(recipe);
    recipe->name = "one";
    recipe->model.layers = 2;
    recipe->model.heads = 3;
    recipe->model.embed = 12;
    recipe->data.train.items = train;
    recipe->data.train.count = 2;
    recipe->schedule.steps = 100;
}

static void test_every_row_is_complete_and_has_its_own_place(void **state)
{
    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];

        assert_non_null(field->path);
        assert_non_null(field->help);
        assert_ptr_equal(dt_field_find(field->path), field);
        assert_int_not_equal(field->help[strlen(field->help) - 1], '.');
        assert_true(field->offset < sizeof(dt_recipe));
        if (field->type == DT_FIELD_INT || field->type == DT_FIELD_NUMBER)
            assert_true(field->low < field->high);
        if (field->type == DT_FIELD_CHOICE)
            assert_non_null(field->choices);
        if (field->derived != NULL)
            assert_null(field->fallback);
        if (field->number_means != NULL)
            assert_non_null(dt_field_find(field->number_means));
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(field->offset, dt_fields[j].offset);
    }
}

static void test_an_alias_means_one_field_and_is_not_a_key(void **state)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        for (const char *const *alias = dt_fields[i].aliases; alias != NULL && *alias != NULL;
             alias++) {
            assert_string_equal(dt_field_unalias(*alias), dt_fields[i].path);
            assert_null(dt_field_find(*alias));
            assert_false(dt_field_is_map(*alias));
        }
}

static void test_rows_of_a_map_stand_together(void **state)
{
    for (size_t i = 1; i < dt_fields_count; i++) {
        size_t length = dt_field_group_length(&dt_fields[i]);

        if (length == 0 || strncmp(dt_fields[i - 1].path, dt_fields[i].path, length + 1) == 0)
            continue;
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(strncmp(dt_fields[j].path, dt_fields[i].path, length + 1), 0);
    }
}

static void test_the_json_comes_back_as_the_same_recipe(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_recipe recipe, back;
    char hash[33], back_hash[33];
    dt_arena arena;
    json_t *json;

    dt_arena_init(&arena, 0);
    fill(&recipe);
    recipe.optimizer.lr = 0.1 + 0.2; /* needs all its digits */
    recipe.precision.kind = DT_PRECISION_BF16;
    recipe.optimizer.nesterov = true;
    recipe.time_limit_seconds = 5400;
    json = dt_recipe_to_json(&recipe);
    assert_int_equal(dt_recipe_from_json(&back, json, &arena, &err), DT_OK);
    json_decref(json);
    assert_string_equal(back.name, "one");
    assert_true(back.optimizer.lr == 0.1 + 0.2);
    assert_int_equal(back.precision.kind, DT_PRECISION_BF16);
    assert_true(back.optimizer.nesterov);
    assert_true(back.time_limit_seconds == 5400);
    assert_int_equal(back.data.train.count, 2);
    assert_string_equal(back.data.train.items[1], "/data/\xc3\xa9.txt");
    assert_int_equal(back.schedule.steps, 100);
    dt_recipe_hash(hash, &recipe);
    dt_recipe_hash(back_hash, &back);
    assert_string_equal(hash, back_hash);
    assert_int_equal(strlen(hash), 32);
    dt_arena_release(&arena);
}

static void test_the_json_survives_being_written_and_parsed(void **state)
{
    dt_recipe recipe, back;
    char hash[33], back_hash[33];
    dt_arena arena;
    dt_strbuf text;
    json_t *json, *parsed;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    fill(&recipe);
    recipe.seed = 9007199254740991;
    recipe.optimizer.eps = 1.0 / 3;
    json = dt_recipe_to_json(&recipe);
    dt_json_write(&text, json);
    assert_int_equal(dt_json_parse(&parsed, text.data, text.length, "t", NULL), DT_OK);
    assert_int_equal(dt_recipe_from_json(&back, parsed, &arena, NULL), DT_OK);
    dt_recipe_hash(hash, &recipe);
    dt_recipe_hash(back_hash, &back);
    assert_string_equal(hash, back_hash);
    json_decref(json);
    json_decref(parsed);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

static void test_the_hash_changes_with_every_number(void **state)
{
    char hash[33], other[33];
    dt_recipe recipe;

    fill(&recipe);
    dt_recipe_hash(hash, &recipe);
    for (size_t i = 0; i < dt_fields_count; i++) {
        dt_recipe changed = recipe;
        char *at = (char *)&changed + dt_fields[i].offset;

        if (dt_fields[i].type == DT_FIELD_INT)
            ++*(int64_t *)at;
        else if (dt_fields[i].type == DT_FIELD_NUMBER || dt_fields[i].type == DT_FIELD_DURATION)
            *(double *)at += 1e-3;
        else if (dt_fields[i].type == DT_FIELD_BOOL)
            *(bool *)at = !*(bool *)at;
        else
            continue;
        dt_recipe_hash(other, &changed);
        assert_string_not_equal(hash, other);
    }
}

static void expect_corrupt(json_t *json, const char *message)
{
    dt_error err = DT_ERROR_INIT;
    dt_recipe back;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_int_equal(dt_recipe_from_json(&back, json, &arena, &err), DT_ERR_CORRUPT);
    assert_string_equal(err.message, message);
    json_decref(json);
    dt_arena_release(&arena);
}

static json_t *good_json(void)
{
    dt_recipe recipe;

    fill(&recipe);
    return dt_recipe_to_json(&recipe);
}

/* Returns the object that contains the field, and the field's key in it. */
static json_t *object_of(json_t *json, const dt_field *field, const char **key)
{
    size_t length = dt_field_group_length(field);
    char map[64];

    *key = field->path;
    if (length == 0)
        return json;
    snprintf(map, sizeof(map), "%.*s", (int)length, field->path);
    *key += length + 1;
    return json_object_get(json, map);
}

static void test_a_missing_field_has_its_default_or_is_damage(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_recipe recipe, back;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    fill(&recipe);
    for (size_t i = 0; i < dt_fields_count; i++) {
        const dt_field *field = &dt_fields[i];
        json_t *json = good_json(), *given, *want, *object;
        const char *key = NULL;
        char message[96];

        object = object_of(json, field, &key);
        assert_int_equal(json_object_del(object, key), 0);
        if (field->fallback == NULL) {
            snprintf(message, sizeof(message), "recipe: '%s' is missing", field->path);
            expect_corrupt(json, message);
            continue;
        }
        assert_int_equal(dt_recipe_from_json(&back, json, &arena, &err), DT_OK);
        given = dt_field_to_json(&back, field);
        want = dt_field_to_json(&recipe, field); /* fill() leaves these at their defaults */
        if (strcmp(field->path, "schedule.steps") != 0)
            assert_true(json_equal(given, want));
        json_decref(given);
        json_decref(want);
        json_decref(json);
    }
    dt_arena_release(&arena);
}

static void test_a_map_that_is_missing_is_all_defaults(void **state)
{
    json_t *json = good_json();
    dt_recipe back;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    json_object_del(json, "checkpoint");
    json_object_del(json, "recipe");
    assert_int_equal(dt_recipe_from_json(&back, json, &arena, NULL), DT_OK);
    assert_int_equal(back.checkpoint.keep, 2);
    json_decref(json);
    dt_arena_release(&arena);
}

static void test_an_unknown_key_is_refused(void **state)
{
    json_t *json = good_json();

    json_object_set_new(json_object_get(json, "batch"), "size", json_integer(1));
    expect_corrupt(json, "recipe: unknown key 'batch.size'");
    json = good_json();
    json_object_set_new(json, "colour", json_pack("{s:i}", "red", 1));
    expect_corrupt(json, "recipe: unknown key 'colour'");
}

static void test_what_another_build_wrote_is_unsupported(void **state)
{
    dt_error err = DT_ERROR_INIT;
    json_t *json = good_json();
    dt_recipe back;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    json_object_set_new(json_object_get(json, "strategy"), "kind", json_string("tp"));
    assert_int_equal(dt_recipe_from_json(&back, json, &arena, &err), DT_ERR_UNSUPPORTED);
    assert_string_equal(err.message,
                        "recipe: 'strategy.kind' is 'tp': expected one of 'dp', 'ddp', 'fsdp'");
    dt_error_clear(&err);
    json_object_set_new(json, "recipe", json_integer(DT_RECIPE_VERSION + 1));
    assert_int_equal(dt_recipe_from_json(&back, json, &arena, &err), DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "another dtrun wrote it (version"));
    json_decref(json);
    dt_arena_release(&arena);
}

/* A later version must give a recipe the same hash as 0.1.0. */
static void test_the_hash_of_a_recipe_stays(void **state)
{
    dt_recipe recipe;
    char hash[33];

    fill(&recipe);
    dt_recipe_hash(hash, &recipe);
    assert_string_equal(hash, "a9b163a0d0902337c7925f446959a77d");
}

/* Builds before 'tensor' was a map wrote it as a number. */
static void test_a_value_instead_of_a_map_is_that_of_its_shorthand(void **state)
{
    json_t *json = good_json();
    dt_recipe recipe;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    json_object_set_new(json, "tensor", json_integer(2));
    assert_int_equal(dt_recipe_from_json(&recipe, json, &arena, NULL), DT_OK);
    assert_int_equal(recipe.tensor.size, 2);
    assert_false(recipe.tensor.across_nodes);
    json_decref(json);
    dt_arena_release(&arena);
}

static void test_damaged_json_is_refused(void **state)
{
    json_t *json;

    expect_corrupt(json_array(), "recipe: expected an object");
    json = good_json();
    json_object_set_new(json, "recipe", json_integer(0));
    expect_corrupt(json, "recipe: 'recipe' is 0 (expected a version, from 1)");
    json = good_json();
    json_object_set_new(json, "failure", json_integer(1));
    expect_corrupt(json, "recipe: 'failure': expected an object");
    json = good_json();
    json_object_set_new(json, "tensor", json_string("two"));
    expect_corrupt(json, "recipe: 'tensor.size' is text: expected a whole number, 1 to 1024 ranks");
    json = good_json();
    json_object_set_new(json, "ranks", json_integer(0));
    expect_corrupt(json, "recipe: 'ranks' is 0: expected a whole number, 1 to 1024 per node");
    json = good_json();
    json_object_set_new(json, "ranks", json_real(1));
    expect_corrupt(json,
                   "recipe: 'ranks' is a number: expected a whole number, 1 to 1024 per node");
    json = good_json();
    json_object_set_new(json, "clip", json_null());
    expect_corrupt(json, "recipe: 'clip' is null: expected a number, 0 to 1000000");
    json = good_json();
    json_object_set_new(json_object_get(json, "data"), "train", json_array());
    expect_corrupt(json, "recipe: 'data.train' is a list of 0: expected a list of text, 1 to 10000 "
                         "items");
    json = good_json();
    json_object_set_new(json_object_get(json, "data"), "train", json_pack("[i]", 1));
    expect_corrupt(json, "recipe: 'data.train' is a list of other things: expected a list of text, "
                         "1 to 10000 items");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_is_complete_and_has_its_own_place),
        cmocka_unit_test(test_an_alias_means_one_field_and_is_not_a_key),
        cmocka_unit_test(test_rows_of_a_map_stand_together),
        cmocka_unit_test(test_the_json_comes_back_as_the_same_recipe),
        cmocka_unit_test(test_the_json_survives_being_written_and_parsed),
        cmocka_unit_test(test_the_hash_changes_with_every_number),
        cmocka_unit_test(test_a_missing_field_has_its_default_or_is_damage),
        cmocka_unit_test(test_a_map_that_is_missing_is_all_defaults),
        cmocka_unit_test(test_an_unknown_key_is_refused),
        cmocka_unit_test(test_what_another_build_wrote_is_unsupported),
        cmocka_unit_test(test_the_hash_of_a_recipe_stays),
        cmocka_unit_test(test_a_value_instead_of_a_map_is_that_of_its_shorthand),
        cmocka_unit_test(test_damaged_json_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
