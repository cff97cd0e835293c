/* huggingface: config.json becomes fields of a recipe, and is written again; unknown fields are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "recipes/foreign/huggingface.h"

/* As saved by transformers, without the fields about generation. */
static const char gpt2[] =
    "{\"activation_function\": \"gelu_new\", \"architectures\": [\"GPT2LMHeadModel\"],"
    " \"attn_pdrop\": 0.1, \"bos_token_id\": 50256, \"embd_pdrop\": 0.1, \"eos_token_id\": 50256,"
    " \"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"model_type\": \"gpt2\","
    " \"n_ctx\": 1024, \"n_embd\": 768, \"n_head\": 12, \"n_inner\": null, \"n_layer\": 12,"
    " \"n_positions\": 1024, \"reorder_and_upcast_attn\": false, \"resid_pdrop\": 0.1,"
    " \"scale_attn_by_inverse_layer_idx\": false, \"scale_attn_weights\": true,"
    " \"summary_type\": \"cls_index\", \"task_specific_params\": {\"text-generation\": {}},"
    " \"torch_dtype\": \"float32\", \"transformers_version\": \"4.46.0\", \"use_cache\": true,"
    " \"vocab_size\": 50257}";

static json_t *parse(const char *text)
{
    json_t *json = NULL;

    assert_int_equal(dt_json_parse(&json, text, strlen(text), "test", NULL), DT_OK);
    return json;
}

static const char *value_of(const dt_huggingface_model *model, const char *path)
{
    for (size_t i = 0; i < model->count; i++)
        if (strcmp(model->values[i].path, path) == 0)
            return model->values[i].text;
    return "";
}

static void test_gpt2_is_read(void **state)
{
    json_t *config = parse(gpt2);
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_huggingface_read(&model, config, "config.json", &arena, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(model.kind, "gpt2");
    assert_string_equal(value_of(&model, "model.layers"), "12");
    assert_string_equal(value_of(&model, "model.embed"), "768");
    assert_string_equal(value_of(&model, "model.vocab"), "50257");
    assert_string_equal(value_of(&model, "model.activation"), "gelu_tanh");
    assert_string_equal(value_of(&model, "model.tied"), "true");
    assert_string_equal(value_of(&model, "batch.tokens"), "1024");
    json_decref(config);
    dt_arena_release(&arena);
}

/* Changes or adds one field of the file, which must then be refused. */
static void expect_refusal(const char *key, const char *value, const char *said)
{
    json_t *config = parse(gpt2), *changed = json_loads(value, JSON_DECODE_ANY, NULL);
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    assert_non_null(changed);
    json_object_set_new(config, key, changed);
    assert_int_equal(dt_huggingface_read(&model, config, "config.json", &arena, &err),
                     DT_ERR_RECIPE);
    if (strstr(err.message, said) == NULL || strstr(err.message, "'config.json'") == NULL)
        fail_msg("'%s' does not say '%s'", err.message, said);
    json_decref(config);
    dt_arena_release(&arena);
}

static void test_what_is_not_known_is_refused_by_name(void **state)
{
    expect_refusal("rope_scaling", "{}", "has 'rope_scaling', which dtrun does not know");
    expect_refusal("quantization_config", "{\"bits\": 4}", "'quantization_config'");
    expect_refusal("scale_attn_weights", "false", "'scale_attn_weights' is false");
    expect_refusal("layer_norm_epsilon", "0", "'layer_norm_epsilon'");
    expect_refusal("n_inner", "-1", "'n_inner'");
    expect_refusal("activation_function", "\"silu\"", "'activation_function' is \"silu\"");
    expect_refusal("model_type", "\"bert\"", "a model of type 'bert' is not supported");
    expect_refusal("model_type", "7", "has no 'model_type'");
    expect_refusal("n_layer", "null", "has no 'n_layer'");
    expect_refusal("n_layer", "-1", "'n_layer'");
    expect_refusal("n_layer", "1e300", "'n_layer'");
    expect_refusal("n_layer", "\"12\"", "'n_layer' is \"12\"");
    expect_refusal("add_cross_attention", "true", "'add_cross_attention' is true");
}

/* Reads config.json of Llama 3.2 with this line, as several versions write it. */
static void expect_llama(const char *rope)
{
    static const char rest[] =
        ", \"model_type\": \"llama\", \"hidden_size\": 2048, \"num_hidden_layers\": 16,"
        " \"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 8192,"
        " \"rms_norm_eps\": 1e-05, \"vocab_size\": 128256, \"tie_word_embeddings\": true,"
        " \"hidden_act\": \"silu\", \"attention_bias\": false, \"max_position_embeddings\": "
        "131072}";
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    json_t *config;
    dt_strbuf text;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "{%s%s", rope, rest);
    config = parse(text.data);
    if (dt_huggingface_read(&model, config, "config.json", &arena, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(model.kind, "llama");
    assert_string_equal(value_of(&model, "model.rope_theta"), "500000");
    assert_string_equal(value_of(&model, "model.rope_scaling"), "llama3");
    assert_string_equal(value_of(&model, "model.rope_factor"), "32");
    assert_string_equal(value_of(&model, "model.rope_original_tokens"), "8192");
    assert_string_equal(value_of(&model, "model.kv_heads"), "8");
    assert_string_equal(value_of(&model, "batch.tokens"), "");
    json_decref(config);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

static void test_llama_is_read_as_all_versions_write_it(void **state)
{
#define SCALING                                                              \
    "\"factor\": 32.0, \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0," \
    " \"original_max_position_embeddings\": 8192"
    expect_llama("\"rope_theta\": 500000.0, \"rope_scaling\": {" SCALING
                 ", \"rope_type\": \"llama3\"}");
    expect_llama("\"rope_theta\": 500000.0, \"rope_scaling\": {" SCALING ", \"type\": \"llama3\"}");
    expect_llama("\"rope_parameters\": {" SCALING
                 ", \"rope_type\": \"llama3\", \"rope_theta\": 500000.0}");
}

/* Reads a Llama with these lines; path, value, path, value ... NULL: what it must give. */
static void expect_rope(const char *rope, ...)
{
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    const char *path;
    json_t *config;
    dt_strbuf text;
    dt_arena arena;
    va_list values;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text,
                      "{%s, \"model_type\": \"llama\", \"hidden_size\": 48, \"vocab_size\": 131,"
                      " \"num_hidden_layers\": 2, \"num_attention_heads\": 4,"
                      " \"intermediate_size\": 80}",
                      rope);
    config = parse(text.data);
    if (dt_huggingface_read(&model, config, "config.json", &arena, &err) != DT_OK)
        fail_msg("%s", err.message);
    va_start(values, rope);
    while ((path = va_arg(values, const char *)) != NULL) {
        const char *wanted = va_arg(values, const char *);

        if (strcmp(value_of(&model, path), wanted) != 0)
            fail_msg("%s: %s is '%s', expected '%s'", rope, path, value_of(&model, path), wanted);
    }
    va_end(values);
    json_decref(config);
    dt_strbuf_release(&text);
    dt_arena_release(&arena);
}

/* As LlamaConfig of transformers 5.24 reads them. */
static void test_one_of_two_spellings_of_rotary_positions_counts(void **state)
{
    static const char theta[] = "model.rope_theta", kind[] = "model.rope_scaling";

    expect_rope("\"rope_parameters\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"},"
                " \"rope_theta\": 123.0",
                theta, "10000", kind, "none", NULL);
    expect_rope("\"rope_parameters\": {\"rope_type\": \"default\"}, \"rope_theta\": 123.0", theta,
                "123", kind, "none", NULL);
    expect_rope("\"rope_parameters\": {\"rope_theta\": 1e6, \"rope_type\": \"default\"},"
                " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.0}",
                theta, "10000", kind, "linear", "model.rope_factor", "2", NULL);
    expect_rope("\"rope_parameters\": {\"rope_theta\": 1e6, \"rope_type\": \"linear\","
                " \"factor\": 4.0}, \"rope_scaling\": null, \"rope_theta\": 5.0",
                theta, "1000000", kind, "linear", "model.rope_factor", "4", NULL);
    expect_rope("\"rope_parameters\": {\"rope_theta\": 1e6, \"rope_type\": \"linear\","
                " \"factor\": 4.0}, \"rope_scaling\": {}, \"rope_theta\": 5.0",
                theta, "1000000", kind, "linear", NULL);
    expect_rope(
        "\"rope_scaling\": {\"rope_type\": \"default\", \"type\": \"linear\", \"factor\": 2.0,"
        " \"rope_theta\": 77.0}, \"rope_theta\": 5.0",
        theta, "77", kind, "none", NULL);
}

static void test_gpt2_is_written_again(void **state)
{
    json_t *config = parse(gpt2), *written = NULL, *value;
    dt_error err = DT_ERROR_INIT;
    dt_recipe recipe;
    const char *key;

    dt_recipe_init(&recipe);
    recipe.model.layers = recipe.model.heads = 12;
    recipe.model.embed = 768;
    recipe.batch.tokens = 1024;
    if (dt_huggingface_write(&written, &recipe, 50257, config, &err) != DT_OK)
        fail_msg("%s", err.message);
    json_object_foreach(config, key, value)
        if (!json_equal(value, json_object_get(written, key)) && strcmp(key, "n_inner") != 0)
            fail_msg("'%s' is another", key);
    assert_true(json_is_true(json_object_get(written, "tie_word_embeddings")));
    json_decref(written);
    /* without an original file, and with a vocabulary that lacks the class's tokens */
    assert_int_equal(dt_huggingface_write(&written, &recipe, 65, NULL, &err), DT_OK);
    assert_true(json_is_null(json_object_get(written, "eos_token_id")));
    assert_int_equal(json_integer_value(json_object_get(written, "vocab_size")), 65);
    assert_string_equal(json_string_value(json_object_get(written, "activation_function")),
                        "gelu_new");
    json_decref(written);
    json_decref(config);
}

static void test_models_without_a_published_form_are_refused(void **state)
{
    dt_error err = DT_ERROR_INIT;
    const dt_published *family;
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.model.positions = DT_POSITIONS_SINUSOIDAL;
    assert_int_equal(dt_huggingface_family(&family, &recipe, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'model.positions'"));
    dt_recipe_init(&recipe);
    recipe.model.kind = DT_MODEL_MLP;
    dt_error_clear(&err);
    assert_int_equal(dt_huggingface_family(&family, &recipe, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'mlp'"));
}

/* --- the families of kind llama (tests/golden/families) */

static json_t *config_of(const char *family)
{
    json_t *config = NULL;
    char path[128];

    snprintf(path, sizeof(path), "tests/golden/families/%s/config.json", family);
    assert_int_equal(dt_json_read_foreign(&config, path, 1 << 20, NULL), DT_OK);
    return config;
}

/* A key "map.key" is in a nested object, which must exist. */
static void expect_family_refusal(const char *family, const char *key, const char *value,
                                  const char *said)
{
    json_t *config = config_of(family), *changed = json_loads(value, JSON_DECODE_ANY, NULL);
    json_t *object = config;
    dt_huggingface_model model;
    dt_error err = DT_ERROR_INIT;
    dt_arena arena;
    const char *dot;
    char map[64];

    dt_arena_init(&arena, 0);
    assert_non_null(changed);
    for (; (dot = strchr(key, '.')) != NULL; key = dot + 1) {
        snprintf(map, sizeof(map), "%.*s", (int)(dot - key), key);
        object = json_object_get(object, map);
        assert_non_null(object);
    }
    json_object_set_new(object, key, changed);
    assert_int_equal(dt_huggingface_read(&model, config, "config.json", &arena, &err),
                     DT_ERR_RECIPE);
    if (strstr(err.message, said) == NULL)
        fail_msg("%s with '%s': '%s' does not say '%s'", family, key, err.message, said);
    json_decref(config);
    dt_arena_release(&arena);
}

/* One switch more, or another value of one, than is computed. */
static void test_a_switch_that_is_not_computed_is_refused_by_name(void **state)
{
    expect_family_refusal("gemma2", "use_bidirectional_attention", "true",
                          "'use_bidirectional_attention' is true");
    expect_family_refusal("gemma2", "layer_types", "[\"full_attention\", \"chunked_attention\"]",
                          "'layer_types' is");
    expect_family_refusal("gemma2", "layer_types", "[\"full_attention\"]", "'layer_types' is");
    expect_family_refusal("gemma2", "hidden_activation", "\"relu\"", "'hidden_activation'");
    expect_family_refusal("gemma2", "query_pre_attn_scalar", "\"10\"", "'query_pre_attn_scalar'");
    expect_family_refusal("gemma2", "attn_logit_softcapping", "-1", "'attn_logit_softcapping'");
    expect_family_refusal("gemma3_text", "attn_logit_softcapping", "50.0",
                          "'attn_logit_softcapping' is 50");
    expect_family_refusal("gemma3_text", "rope_parameters.sliding_attention.rope_type",
                          "\"linear\"", "'rope_scaling.sliding_attention'");
    expect_family_refusal("gemma3_text", "num_experts", "8", "'num_experts'");
    expect_family_refusal("phi3", "rope_parameters.rope_type", "\"linear\"",
                          "'rope_scaling.rope_type' is \"linear\"");
    expect_family_refusal("phi3", "rope_parameters.short_factor", "[1.0, \"2\"]",
                          "'rope_scaling.short_factor'");
    expect_family_refusal("phi3", "rope_parameters.mrope_section", "[1, 1]",
                          "'rope_scaling.mrope_section'");
    expect_family_refusal("granite", "rope_parameters.partial_rotary_factor", "0.5",
                          "'partial_rotary_factor' is 0.5");
    expect_family_refusal("granite", "embedding_multiplier", "0", "'embedding_multiplier'");
    expect_family_refusal("olmo2", "clip_qkv", "8.0", "'clip_qkv'");
    expect_family_refusal("olmo2", "rope_parameters.rope_type", "\"proportional\"",
                          "'rope_scaling.rope_type' is \"proportional\"");
    expect_family_refusal("smollm3", "no_rope_layers", "[1, 2]", "'no_rope_layers' is [1,");
    expect_family_refusal("qwen3", "attention_bias", "1.5", "'attention_bias'");
    expect_family_refusal("mistral", "attention_sinks", "4", "'attention_sinks'");
    expect_family_refusal("llama", "qk_norm", "true", "'qk_norm'");
}

/* What a config.json that is written from a recipe, without an original, gives when it is read. */
static void expect_round_trip(const char *family)
{
    json_t *config = config_of(family), *written = NULL;
    dt_huggingface_model model, again;
    const dt_published *found;
    dt_error err = DT_ERROR_INIT;
    dt_recipe recipe;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_recipe_init(&recipe);
    recipe.batch.tokens = json_integer_value(json_object_get(config, "max_position_embeddings"));
    if (dt_huggingface_read(&model, config, "config.json", &arena, &err) != DT_OK)
        fail_msg("%s: %s", family, err.message);
    assert_int_equal(dt_field_set_text(&recipe, dt_field_find("model.kind"), model.kind, &err),
                     DT_OK);
    for (size_t i = 0; i < model.count; i++)
        if (dt_huggingface_set(&recipe, dt_field_find(model.values[i].path), model.values[i].text,
                               &arena, &err) != DT_OK)
            fail_msg("%s: %s", family, err.message);
    if (dt_huggingface_write(&written, &recipe, recipe.model.vocab, NULL, &err) != DT_OK ||
        dt_huggingface_read(&again, written, "written", &arena, &err) != DT_OK)
        fail_msg("%s: %s", family, err.message);
    assert_int_equal(again.count, model.count);
    for (size_t i = 0; i < model.count; i++)
        if (strcmp(model.values[i].text, value_of(&again, model.values[i].path)) != 0)
            fail_msg("%s: %s is '%s', and was '%s'", family, model.values[i].path,
                     value_of(&again, model.values[i].path), model.values[i].text);
    assert_string_equal(again.family->model_type, family);
    /* without its name: by the switches, unless another family computes the same */
    recipe.model.family = "";
    assert_int_equal(dt_huggingface_family(&found, &recipe, &err), DT_OK);
    recipe.model.family = "no_such_family";
    assert_int_equal(dt_huggingface_family(&found, &recipe, &err), DT_ERR_RECIPE);
    assert_non_null(strstr(err.message, "'no_such_family'"));
    json_decref(written);
    json_decref(config);
    dt_arena_release(&arena);
}

static void test_every_family_is_written_again(void **state)
{
    static const char *const families[] = {"stablelm", "olmo3",   "gemma",  "qwen3",
                                           "mistral",  "llama",   "phi3",   "granite",
                                           "olmo2",    "smollm3", "gemma2", "gemma3_text"};

    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        expect_round_trip(families[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2_is_read),
        cmocka_unit_test(test_what_is_not_known_is_refused_by_name),
        cmocka_unit_test(test_llama_is_read_as_all_versions_write_it),
        cmocka_unit_test(test_one_of_two_spellings_of_rotary_positions_counts),
        cmocka_unit_test(test_gpt2_is_written_again),
        cmocka_unit_test(test_models_without_a_published_form_are_refused),
        cmocka_unit_test(test_a_switch_that_is_not_computed_is_refused_by_name),
        cmocka_unit_test(test_every_family_is_written_again),
    };

    return cmocka_run_group_tests_name("recipes: huggingface", tests, NULL, NULL);
}
