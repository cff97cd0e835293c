/* The presets compared with the models that they are named after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipes/cost/memory.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"

/* Published sizes, plus padding to a multiple of 128. fairseq's model has a separate head and no
 * learned positions. */
static void apply(dt_recipe *recipe, const char *name)
{
    const dt_preset *preset = dt_preset_find(name);

    dt_recipe_init(recipe);
    assert_non_null(preset);
    for (size_t v = 0; v < DT_PRESET_VALUES && preset->values[v].path != NULL; v++)
        assert_int_equal(dt_field_set_text(recipe, dt_field_find(preset->values[v].path),
                                           preset->values[v].text, NULL),
                         DT_OK);
}

static void test_every_gpt2_preset_has_its_published_number_of_parameters(void **state)
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
        const dt_memory_ranks one = {.world_size = 1, .replicas = 1};
        dt_memory memory;
        dt_recipe recipe;

        apply(&recipe, cases[i].preset);
        recipe.model.vocab = 50257;
        recipe.batch.tokens = 1024;
        dt_memory_estimate(&memory, &recipe, 0, &one);
        assert_int_equal(memory.parameter_count,
                         cases[i].published + cases[i].padding_rows * recipe.model.embed);
        assert_int_equal(recipe.model.activation,
                         i < 4 ? DT_ACTIVATION_GELU_TANH : DT_ACTIVATION_GELU);
    }
}

/* The parameters of the published weights, counting a tied head once; their vocabularies need no padding. */
static void test_every_llama_preset_has_its_published_number_of_parameters(void **state)
{
    static const struct {
        const char *preset;
        int64_t vocab, published;
    } cases[] = {
        {"smollm2-135m", 49152, 134515008},    {"smollm2-360m", 49152, 361821120},
        {"tinyllama-1.1b", 32000, 1100048384}, {"llama3.2-1b", 128256, 1235814400},
        {"llama3-8b", 128256, 8030261248},     {"qwen2.5-0.5b", 151936, 494032768},
        {"qwen3-0.6b", 151936, 596049920},     {"qwen3-8b", 151936, 8190735360},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const dt_memory_ranks one = {.world_size = 1, .replicas = 1};
        dt_memory memory;
        dt_recipe recipe;

        apply(&recipe, cases[i].preset);
        recipe.model.vocab = cases[i].vocab;
        assert_int_equal(recipe.model.kind, DT_MODEL_LLAMA);
        dt_memory_estimate(&memory, &recipe, 0, &one);
        assert_int_equal(memory.parameter_count, cases[i].published);
    }
}

/* iwslt_de_en: the number that fairseq's page on IWSLT'14 gives, for 8848 German and 6632
 * English words, with separate head and embedding. The others: 12 E + 16 D squares of the width,
 * F as given, biases and norms, with 32768 joint words and one shared matrix. */
static void test_every_preset_of_translation_has_its_number_of_parameters(void **state)
{
    static const struct {
        const char *preset;
        int64_t source, target;
        bool shared;
        int64_t parameters, padding_rows;
    } cases[] = {
        {"transformer_iwslt_de_en", 8848, 6632, false, 42864640, 112 + 2 * 24},
        {"transformer_base", 32768, 32768, true, 44138496 + 32768 * 512, 0},
        {"transformer_big", 32768, 32768, true, 176357376 + 32768 * 1024, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const dt_memory_ranks one = {.world_size = 1, .replicas = 1};
        dt_memory memory;
        dt_recipe recipe;

        apply(&recipe, cases[i].preset);
        recipe.model.vocab = cases[i].target;
        recipe.model.source_vocab = cases[i].source;
        recipe.model.shared_embeddings = cases[i].shared;
        assert_int_equal(recipe.model.kind, DT_MODEL_TRANSFORMER);
        dt_memory_estimate(&memory, &recipe, 0, &one);
        assert_int_equal(memory.parameter_count,
                         cases[i].parameters + cases[i].padding_rows * recipe.model.embed);
    }
    assert_int_equal(dt_presets_count, 5 + 8 + sizeof(cases) / sizeof(cases[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_gpt2_preset_has_its_published_number_of_parameters),
        cmocka_unit_test(test_every_llama_preset_has_its_published_number_of_parameters),
        cmocka_unit_test(test_every_preset_of_translation_has_its_number_of_parameters),
    };

    return cmocka_run_group_tests_name("recipes: presets", tests, NULL, NULL);
}
