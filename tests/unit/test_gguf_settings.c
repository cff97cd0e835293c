/* gguf: what llama.cpp cannot compute of a config.json is refused by the name of the setting; what it can is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "engine/gguf/gguf.h"

#define SIZES                                                                             \
    "\"vocab_size\": 61, \"hidden_size\": 32, \"num_hidden_layers\": 4,"                  \
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 48," \
    " \"max_position_embeddings\": 64, \"rope_theta\": 10000.0, \"bos_token_id\": null, "
#define LLAMA(type) "{" SIZES "\"model_type\": \"" type "\", \"hidden_act\": \"silu\"}"
#define GEMMA(type)                                                                         \
    "{" SIZES "\"model_type\": \"" type "\", \"hidden_activation\": \"gelu_pytorch_tanh\"," \
    " \"head_dim\": 16, \"query_pre_attn_scalar\": 16, \"sliding_window\": 8,"              \
    " \"tie_word_embeddings\": true, \"attn_logit_softcapping\": 50.0,"                     \
    " \"final_logit_softcapping\": 30.0}"

#define ROPE(type, more) "\"rope_scaling\": {\"rope_type\": \"" type "\", \"factor\": 2.0" more "}"
#define BASES(local)                                                       \
    "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 10000.0}," \
    " \"sliding_attention\": {\"rope_theta\": " local "}}"
#define WINDOW(tokens) "\"sliding_window\": " tokens
#define LAYERS(a, b)   "\"layer_types\": [\"" a "_attention\", \"" b "_attention\"]"

/* A tokenizer of bytes without merges. */
static const char tokenizer[] =
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []},"
    " \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}}";

static void put(const char *folder, const char *name, const char *text)
{
    dt_error err = DT_ERROR_INIT;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (dt_file_write_atomic(path, text, strlen(text), 0666, &err) != DT_OK)
        fail_msg("%s", err.message);
}

/* config.json: the object of a family, and more fields "a": 1, "b": 2. */
static void put_config(const char *folder, const char *family, const char *more)
{
    json_t *config = NULL, *changes = NULL;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "{%s}", more);
    assert_int_equal(dt_json_parse(&config, family, strlen(family), "family", NULL), DT_OK);
    assert_int_equal(dt_json_parse(&changes, text.data, text.length, "changes", NULL), DT_OK);
    json_object_update(config, changes);
    dt_strbuf_reset(&text);
    dt_json_write(&text, config);
    put(folder, "config.json", text.data);
    json_decref(config);
    json_decref(changes);
    dt_strbuf_release(&text);
}

/* refused: what the message names; NULL: nothing is refused. */
static void check(const char *family, const char *more, const char *refused)
{
    char folder[] = "/tmp/gguf-settings-XXXXXX";
    dt_error err = DT_ERROR_INIT;
    dt_status st;

    assert_non_null(mkdtemp(folder));
    put_config(folder, family, more);
    put(folder, "tokenizer.json", tokenizer);
    st = dt_gguf_check(folder, &err);
    assert_int_equal(dt_file_remove_tree(folder, NULL), DT_OK);
    if (refused == NULL && st != DT_OK)
        fail_msg("%s with %s is refused: %s", family, more, err.message);
    if (refused != NULL && (st != DT_ERR_RECIPE || strstr(err.message, refused) == NULL))
        fail_msg("%s with %s: '%s' does not name %s", family, more, err.message, refused);
}

static void test_a_value_that_is_not_computed_is_named(void **state)
{
    check(LLAMA("llama"), "", NULL);
    check(LLAMA("llama"), "\"attention_bias\": true, \"mlp_bias\": true", NULL);
    check(LLAMA("llama"), "\"hidden_act\": \"gelu\"", "'hidden_act'");
    check(LLAMA("qwen3"), "\"attention_bias\": true", "'attention_bias'");
    check(LLAMA("olmo2"), "\"attention_bias\": true", "'attention_bias'");
    check(LLAMA("smollm3"), "\"mlp_bias\": true", "'mlp_bias'");
    check(LLAMA("stablelm"), "\"use_parallel_residual\": true", "'use_parallel_residual'");
    check(GEMMA("gemma2"), "", NULL);
    check(GEMMA("gemma2"), "\"attn_logit_softcapping\": null", "'attn_logit_softcapping'");
    check(GEMMA("gemma2"), "\"tie_word_embeddings\": false", "'tie_word_embeddings'");
    check(GEMMA("gemma3_text"), "\"final_logit_softcapping\": null", NULL);
    check(GEMMA("gemma3_text"), "\"attention_bias\": true", "'attention_bias'");
    check(LLAMA("mpt"), "", "'mpt'");
    (void)state;
}

static void test_widths_of_heads_are_checked(void **state)
{
    check(LLAMA("llama"), "\"head_dim\": 16", NULL);
    check(LLAMA("qwen3"), "\"head_dim\": 16", NULL);
    check(LLAMA("qwen2"), "\"head_dim\": 8", NULL);
    check(LLAMA("qwen2"), "\"head_dim\": 16", "'head_dim'");
    check(LLAMA("olmo2"), "\"head_dim\": 16", "'head_dim'");
    check(LLAMA("phi3"), "\"head_dim\": 16", "'head_dim'");
    check(GEMMA("gemma2"), "\"query_pre_attn_scalar\": 8", "'query_pre_attn_scalar'");
    check(GEMMA("gemma2"), "\"num_hidden_layers\": 46, \"query_pre_attn_scalar\": 8", NULL);
    check(GEMMA("gemma3_text"), "\"num_hidden_layers\": 46, \"query_pre_attn_scalar\": 8",
          "'query_pre_attn_scalar'");
    check(GEMMA("gemma3_text"), "\"num_hidden_layers\": 62, \"query_pre_attn_scalar\": 8", NULL);
    (void)state;
}

static void test_windows_are_refused_where_there_are_none(void **state)
{
    check(LLAMA("mistral"), WINDOW("8"), "'sliding_window'");
    check(LLAMA("mistral"), WINDOW("64"), NULL);
    check(LLAMA("mistral"), WINDOW("null"), NULL);
    check(LLAMA("phi3"), WINDOW("8"), "'sliding_window'");
    check(LLAMA("qwen2"), WINDOW("8") ", \"use_sliding_window\": false", NULL);
    check(LLAMA("qwen2"), WINDOW("8") ", \"use_sliding_window\": true", "'sliding_window'");
    check(LLAMA("qwen3"), WINDOW("8") ", " LAYERS("full", "full"), NULL);
    check(LLAMA("qwen3"), WINDOW("8") ", " LAYERS("full", "sliding"), "'sliding_window'");
    check(GEMMA("gemma2"), LAYERS("full", "sliding"), NULL);
    check(GEMMA("gemma3_text"), WINDOW("null"), NULL);
    (void)state;
}

static void test_rotary_positions_are_checked(void **state)
{
    check(LLAMA("llama"), ROPE("dynamic", ""), "'dynamic'");
    check(LLAMA("llama"), ROPE("llama3", ", \"original_max_position_embeddings\": 32"), NULL);
    check(LLAMA("qwen2"), ROPE("llama3", ", \"original_max_position_embeddings\": 32"), "'llama3'");
    check(LLAMA("qwen2"), ROPE("yarn", ", \"beta_fast\": 32, \"beta_slow\": 1.0"), NULL);
    check(LLAMA("qwen2"), ROPE("yarn", ", \"beta_fast\": 16"), "'beta_fast'");
    check(LLAMA("qwen2"), ROPE("yarn", ", \"beta_slow\": 2"), "'beta_slow'");
    check(LLAMA("qwen2"), ROPE("yarn", ", \"truncate\": false"), "'truncate'");
    check(GEMMA("gemma3_text"), ROPE("yarn", ""), "'yarn'");
    check(GEMMA("gemma3_text"), ROPE("linear", ""), NULL);
    check(LLAMA("olmo3"), WINDOW("8") ", " BASES("10000.0"), NULL);
    check(LLAMA("olmo3"), WINDOW("8") ", " BASES("500.0"), "'sliding_attention'");
    check(LLAMA("smollm3"), "\"no_rope_layers\": [1, 1, 1, 0]", NULL);
    check(LLAMA("smollm3"), "\"no_rope_layers\": [1, 0, 1, 0]", "'no_rope_layers'");
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_value_that_is_not_computed_is_named),
        cmocka_unit_test(test_widths_of_heads_are_checked),
        cmocka_unit_test(test_windows_are_refused_where_there_are_none),
        cmocka_unit_test(test_rotary_positions_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
