/* Shapes of fields that no or only new fields have: nested maps, lists of maps, defaults that
 * changed with a version, added fields. A table here replaces that of
 * recipes/fields/fields.c, so that all code driven by the table is tested. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/doc/doc.h"
#include "recipes/fields/values.h"
#include "recipes/read/reading.h"

typedef struct part {
    dt_string_list files;
    double weight;
    int64_t repeat;
    dt_map_list filters;
} part;

typedef struct filter {
    const char *by;
    bool keep;
} filter;

/* Members of dt_recipe with the type that the row needs. */
#define AT(member)    .offset = offsetof(dt_recipe, member)
#define IN(t, member) .offset = offsetof(t, member)
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

/* clang-format off */
static const dt_field of_filter[] = {
    {.path = "by", .type = DT_FIELD_STRING, IN(filter, by), .help = "what it looks at"},
    {.path = "keep", .type = DT_FIELD_BOOL, IN(filter, keep), .fallback = "true", .help = "or drops"},
};
static const dt_field_table filters = {of_filter, COUNT(of_filter), sizeof(filter)};
static const dt_field of_part[] = {
    {.path = "files", .type = DT_FIELD_STRINGS, IN(part, files), .low = 1, .high = 9, .paths = true, .help = "what is read"},
    {.path = "weight", .type = DT_FIELD_NUMBER, IN(part, weight), .low = 0, .high = 10, .fallback = "1", .help = "how often"},
    {.path = "repeat", .type = DT_FIELD_INT, IN(part, repeat), .low = 1, .high = 5, .fallback = "1", .help = "times"},
    {.path = "filters", .type = DT_FIELD_MAPS, IN(part, filters), .low = 0, .high = 3, .items = &filters, .fallback = "[]", .help = "in order"},
};
static const dt_field_table parts = {of_part, COUNT(of_part), sizeof(part)};

const dt_field dt_fields[] = {
    {.path = "clip", .type = DT_FIELD_NUMBER, AT(clip), .low = 0, .high = 9, .fallback = "2",
     .help = "has a default"},
    {.path = "mix.parts", .type = DT_FIELD_MAPS, AT(data.train), .low = 1, .high = 4, .items = &parts, .shorthand = true, .help = "what is mixed"},
    {.path = "mix.order.by.seed", .type = DT_FIELD_INT, AT(seed), .low = 0, .high = 99, .fallback = "7",
     .aliases = (const char *const[]){"mix_seed", NULL}, .help = "deep"},
    {.path = "mix.order.kind", .type = DT_FIELD_STRING, AT(name), .fallback = "random", .help = "an order"},
    {.path = "log.every", .type = DT_FIELD_INT, AT(log.every), .low = 1, .high = 99, .fallback = "3", .help = "how often"},
};
/* clang-format on */
const size_t dt_fields_count = COUNT(dt_fields);

typedef struct reading {
    dt_arena arena;
    dt_recipe recipe;
    dt_error err;
} reading;

static void open_reading(reading *r)
{
    *r = (reading){.err = DT_ERROR_INIT};
    dt_arena_init(&r->arena, 0);
    dt_recipe_init(&r->recipe);
}

static dt_status apply(reading *r, const char *text, const char *set)
{
    const dt_text_mark start = {"r.yaml", 1, 1};
    dt_problems problems;
    dt_origins origins = {0};
    dt_reading state = {.recipe = &r->recipe,
                        .problems = &problems,
                        .origins = &origins,
                        .arena = &r->arena,
                        .err = &r->err,
                        .folder = "/d"};
    dt_status st = DT_OK;
    dt_yaml_node *root;

    dt_problems_init(&problems, &r->arena);
    DT_TRY(dt_tree_parse(&root, text, &start, &r->arena, &r->err));
    DT_TRY(dt_reading_apply(&state, "", &root->mark, root));
    if (set != NULL)
        DT_TRY(dt_reading_set(&state, set));
    if (problems.errors > 0)
        DT_THROW(&r->err, DT_ERR_RECIPE, "%s", dt_problems_first(&problems)->message);
out:
    return st;
}

static dt_map_list parts_of(const reading *r)
{
    dt_map_list list;

    memcpy(&list, &r->recipe.data.train, sizeof(list));
    return list;
}

static const part *part_of(const reading *r, int64_t index)
{
    dt_map_list list = parts_of(r);

    return dt_field_item(dt_field_find("mix.parts"), &list, index);
}

static int64_t count_parts(const reading *r)
{
    return parts_of(r).count;
}

static const char deep[] = "mix:\n"
                           "  parts:\n"
                           "    - {files: a.txt, weight: 0.5}\n"
                           "    - files: [/b.txt, c.txt]\n"
                           "      filters: [{by: length}, {by: words, keep: false}]\n"
                           "  order: {by: {seed: 8}}\n";

static void expect_deep(const reading *r)
{
    const filter *second;

    assert_int_equal(count_parts(r), 2);
    assert_string_equal(part_of(r, 0)->files.items[0], "/d/a.txt");
    assert_true(part_of(r, 0)->weight == 0.5);
    assert_int_equal(part_of(r, 0)->repeat, 1);
    assert_int_equal(part_of(r, 0)->filters.count, 0);
    assert_string_equal(part_of(r, 1)->files.items[1], "/d/c.txt");
    assert_true(part_of(r, 1)->weight == 1);
    assert_int_equal(part_of(r, 1)->filters.count, 2);
    second = (const filter *)part_of(r, 1)->filters.items + 1;
    assert_string_equal(second->by, "words");
    assert_false(second->keep);
    assert_int_equal(r->recipe.seed, 8);
}

static void test_maps_in_lists_and_in_maps_are_read(void **state)
{
    reading r;

    open_reading(&r);
    assert_int_equal(apply(&r, deep, NULL), DT_OK);
    expect_deep(&r);
    dt_arena_release(&r.arena);
}

static void test_a_map_is_a_list_of_one_and_sets_reach_all(void **state)
{
    reading r;

    open_reading(&r);
    assert_int_equal(apply(&r, "mix: {parts: {files: x}}\n", "mix.order.by.seed=9"), DT_OK);
    assert_int_equal(count_parts(&r), 1);
    assert_int_equal(r.recipe.seed, 9);
    assert_int_equal(apply(&r, "mix: [{files: x}, {files: y}]\n", "mix_seed=4"), DT_OK);
    assert_int_equal(count_parts(&r), 2); /* a scalar sets the shorthand field of the map */
    assert_int_equal(r.recipe.seed, 4);
    assert_int_equal(apply(&r, deep, "mix.parts=[{files: z, repeat: 2}]"), DT_OK);
    assert_int_equal(count_parts(&r), 1);
    assert_int_equal(part_of(&r, 0)->repeat, 2);
    dt_arena_release(&r.arena);
}

static void test_errors_in_them_are_reported_at_their_position(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"mix: {parts: [{files: a, wieght: 1}]}\n",
         "r.yaml:1:26: unknown key 'wieght' in an item of 'mix.parts' (known here: files, weight, "
         "repeat, filters)"},
        {"mix: {parts: [{files: a}, {weight: 1}]}\n",
         "r.yaml:1:27: 'files' is missing in an item of 'mix.parts' (what is read)"},
        {"mix: {parts: [{files: a, repeat: 6}]}\n",
         "r.yaml:1:34: 'repeat' is 6: expected a whole number, 1 to 5"},
        {"mix: {parts: [{files: a, files: b}]}\n",
         "r.yaml:1:26: duplicate key 'files' (first at r.yaml:1:16)"},
        {"mix: {parts: [a]}\n",
         "r.yaml:1:15: 'mix.parts' is text: expected a list of maps, 1 to 4, "
         "of files, weight, repeat, filters"},
        {"mix: {parts: []}\n",
         "r.yaml:1:14: 'mix.parts' is a list of 0: expected a list of maps, 1 "
         "to 4, of files, weight, repeat, filters"},
        {"mix: {parts: [{files: a, filters: {by: x, colour: red}}]}\n",
         "r.yaml:1:43: unknown key 'colour' in an item of 'filters' (known here: by, keep)"},
        {"mix: {order: {by: {sed: 1}}}\n",
         "r.yaml:1:20: unknown key 'sed' (did you mean 'mix.order.by.seed'?)"},
        {"mix: {order: {by: {frobnicate: 1}}}\n",
         "r.yaml:1:20: unknown key 'frobnicate' (known here: seed)"},
        {"mix: {frobnicate: 1}\n",
         "r.yaml:1:7: unknown key 'frobnicate' (known here: parts, order)"},
        {"mix.order.by.seed: 1\n", "r.yaml:1:1: unknown key 'mix.order.by.seed' (write it as 'mix: "
                                   "{order: {by: {seed: ...}}}')"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        reading r;

        open_reading(&r);
        assert_int_equal(apply(&r, cases[i].text, NULL), DT_ERR_RECIPE);
        assert_string_equal(r.err.message, cases[i].message);
        dt_arena_release(&r.arena);
    }
}

static void test_the_json_has_them_and_comes_back(void **state)
{
    reading r, back;
    json_t *json;

    open_reading(&r);
    open_reading(&back);
    assert_int_equal(apply(&r, deep, NULL), DT_OK);
    json = dt_recipe_to_json(&r.recipe);
    assert_int_equal(dt_recipe_from_json(&back.recipe, json, &back.arena, &back.err), DT_OK);
    dt_arena_release(&r.arena); /* nothing is borrowed from it */
    expect_deep(&back);
    json_decref(json);
    dt_arena_release(&back.arena);
}

static dt_status from_text(reading *r, const char *text)
{
    json_t *json = NULL;
    dt_status st;

    dt_error_clear(&r->err);
    DT_TRY(dt_json_parse(&json, text, strlen(text), "t", &r->err));
    DT_TRY(dt_recipe_from_json(&r->recipe, json, &r->arena, &r->err));
out:
    json_decref(json);
    return st;
}

static void test_items_are_read_as_the_recipe_is(void **state)
{
    reading r;

    open_reading(&r);
    assert_int_equal(from_text(&r, "{\"mix\": {\"parts\": [{\"files\": [\"/a\"]}]}}"), DT_OK);
    assert_true(part_of(&r, 0)->weight == 1);
    assert_int_equal(from_text(&r, "{\"mix\": {\"parts\": [{\"files\": [\"/a\"], \"hue\": 1}]}}"),
                     DT_ERR_CORRUPT);
    assert_string_equal(r.err.message, "recipe: unknown key 'mix.parts.hue'");
    dt_error_clear(&r.err);
    assert_int_equal(from_text(&r, "{\"mix\": {\"parts\": [{\"weight\": 1}]}}"), DT_ERR_CORRUPT);
    assert_string_equal(r.err.message, "recipe: 'mix.parts': 'files' is missing");
    assert_int_equal(from_text(&r, "{\"mix\": {\"parts\": [3]}}"), DT_ERR_CORRUPT);
    assert_int_equal(from_text(&r, "{\"mix\": {\"parts\": {}}}"), DT_ERR_CORRUPT);
    dt_arena_release(&r.arena);
}

static void test_the_hash_covers_what_differs_from_the_defaults(void **state)
{
    char hash[33], other[33];
    reading r;

    open_reading(&r);
    assert_int_equal(apply(&r, deep, NULL), DT_OK);
    dt_recipe_hash(hash, &r.recipe);
    r.recipe.log.every = 4;
    dt_recipe_hash(other, &r.recipe);
    assert_string_not_equal(hash, other);
    r.recipe.log.every = 3; /* the default */
    dt_recipe_hash(other, &r.recipe);
    assert_string_equal(hash, other);
    dt_arena_release(&r.arena);
}

static void test_the_reference_page_has_them(void **state)
{
    dt_strbuf page;

    dt_strbuf_init(&page);
    dt_recipe_doc(&page);
    assert_non_null(strstr(page.data, "## mix.order.by\n"));
    assert_non_null(strstr(page.data, "| `parts` *short* | list of maps, or one | **required** |"));
    assert_non_null(strstr(page.data, "| `parts[].weight` | number, 0 to 10 | `1` | how often |"));
    assert_non_null(strstr(page.data, "| `parts[].filters[].keep` | true or false | `true` |"));
    assert_non_null(strstr(page.data, "| `mix.order.by.seed` | `mix_seed` |"));
    dt_strbuf_release(&page);
}

static void test_set_reaches_one_item(void **state)
{
    reading r;

    open_reading(&r);
    assert_int_equal(apply(&r, deep, "mix.parts[1].weight=3"), DT_OK);
    assert_true(part_of(&r, 1)->weight == 3);
    assert_true(part_of(&r, 0)->weight == 0.5);
    assert_string_equal(part_of(&r, 1)->files.items[1], "/d/c.txt");
    assert_int_equal(apply(&r, deep, "mix.parts[2].weight=3"), DT_ERR_RECIPE);
    assert_non_null(strstr(r.err.message, "'mix.parts' has 2 items"));
    dt_arena_release(&r.arena);
    open_reading(&r);
    assert_int_equal(apply(&r, deep, "mix.parts[0]=a.txt"), DT_ERR_RECIPE);
    assert_non_null(strstr(r.err.message, "files, weight, repeat, filters"));
    dt_arena_release(&r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_in_lists_and_in_maps_are_read),
        cmocka_unit_test(test_a_map_is_a_list_of_one_and_sets_reach_all),
        cmocka_unit_test(test_errors_in_them_are_reported_at_their_position),
        cmocka_unit_test(test_the_json_has_them_and_comes_back),
        cmocka_unit_test(test_items_are_read_as_the_recipe_is),
        cmocka_unit_test(test_the_hash_covers_what_differs_from_the_defaults),
        cmocka_unit_test(test_the_reference_page_has_them),
        cmocka_unit_test(test_set_reaches_one_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
