/* Pages that people read and copy: docs/recipe.md, the presets, the examples. */
#include <glob.h>
#include <string.h>

#include "base/file.h"
#include "recipes/doc/doc.h"
#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes_support.h"

static void test_the_reference_page_agrees_with_the_table(void **state)
{
    dt_strbuf expected, page;

    dt_strbuf_init(&expected);
    dt_strbuf_init(&page);
    dt_recipe_doc(&expected);
    assert_int_equal(dt_file_read(&page, "docs/recipe.md", 1 << 20, NULL), DT_OK);
    if (strcmp(expected.data, page.data) != 0)
        fail_msg("docs/recipe.md is out of date: dtrun-recipe-doc > docs/recipe.md");
    dt_strbuf_release(&expected);
    dt_strbuf_release(&page);
}

static void test_the_table_offers_every_preset_and_no_other(void **state)
{
    const dt_field *field = dt_field_find("model.preset");
    size_t count = 0;

    for (; field->choices[count] != NULL; count++)
        assert_non_null(dt_preset_find(field->choices[count]));
    assert_int_equal(count, dt_presets_count);
    assert_null(dt_preset_find(""));
}

/* Puts the weights that the example names in place. */
static void put_weights(dt_recipe_source *source)
{
    static const char *const sets[] = {"model.from=tests/golden/huggingface/gpt2",
                                       "batch.tokens=16"};

    if (strstr(source->text, "  from:") == NULL)
        return;
    source->sets = sets;
    source->sets_count = sizeof(sets) / sizeof(sets[0]);
}

static void test_every_example_is_a_good_recipe(void **state)
{
    glob_t found;

    assert_int_equal(glob("examples/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        dt_recipe_source source;
        reading r;

        reading_open(&r);
        dt_recipe_source_read(&source, found.gl_pathv[i], &r.arena, &r.err);
        assert_string_equal(r.err.message, "");
        put_weights(&source);
        dt_recipe_read(&r.recipe, &source, &r.arena, &r.err);
        assert_string_equal(r.err.message, "");
        assert_int_equal(source.text[0], '#'); /* begins with a comment that says what it is for */
        reading_close(&r);
    }
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_reference_page_agrees_with_the_table),
        cmocka_unit_test(test_the_table_offers_every_preset_and_no_other),
        cmocka_unit_test(test_every_example_is_a_good_recipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
