/* The presets against the models that they are named after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipes/fields.h"
#include "recipes/memory.h"
#include "recipes/presets.h"
#include "recipes/values.h"

/* As published, with the padding to a multiple of 128 on top. fairseq's model has a head of its own
 * and no learned positions. */
static void test_every_preset_has_its_published_number_of_parameters(void **state)
{
    static const struct {
        const char *preset;
        int64_t published, padding_rows;
    } cases[] = {
        {"gpt2-small", 124439808, 47},
        {"gpt2-medium", 354823168, 47},
        {"gpt2-large", 774030080, 47},
        {"gpt2-xl", 1557611200, 47},
        {"transformer_lm_gpt2_small", 354823168 - 1024 * 1024 + 50257 * 1024, 2 * 47},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const dt_preset *preset = dt_preset_find(cases[i].preset);
        const dt_memory_ranks one = {1, 1};
        dt_memory memory;
        dt_recipe recipe;

        dt_recipe_init(&recipe);
        recipe.model.vocab = 50257;
        recipe.batch.tokens = 1024;
        assert_non_null(preset);
        for (size_t v = 0; v < DT_PRESET_VALUES && preset->values[v].path != NULL; v++)
            assert_int_equal(dt_field_set_text(&recipe, dt_field_find(preset->values[v].path),
                                               preset->values[v].text, NULL),
                             DT_OK);
        dt_memory_estimate(&memory, &recipe, 0, &one);
        assert_int_equal(memory.parameter_count,
                         cases[i].published + cases[i].padding_rows * recipe.model.embed);
        assert_int_equal(recipe.model.activation,
                         i < 4 ? DT_ACTIVATION_GELU_TANH : DT_ACTIVATION_GELU);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_preset_has_its_published_number_of_parameters),
    };

    return cmocka_run_group_tests_name("recipes: presets", tests, NULL, NULL);
}
