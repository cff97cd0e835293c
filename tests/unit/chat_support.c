#include "tests/unit/chat_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

static const char *const control[] = {"<s>",
                                      "</s>",
                                      "<|im_start|>",
                                      "<|im_end|>",
                                      "<|start_header_id|>",
                                      "<|end_header_id|>",
                                      "<|eot_id|>",
                                      "<|user|>",
                                      "<|assistant|>",
                                      "<|system|>",
                                      "<|tool|>",
                                      "<|start|>",
                                      "<|end|>",
                                      "<|message|>",
                                      "<|channel|>",
                                      "<|call|>",
                                      "<|return|>"};
static const char *const markers[] = {"<tool_call>", "</tool_call>", "<think>", "</think>"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void add_token(json_t *file, const char *text, bool special)
{
    json_t *list = json_object_get(file, "added_tokens"), *known;
    json_int_t last = 0;
    const char *key;
    size_t i;

    json_array_foreach(list, i, known) {
        const char *its = json_string_value(json_object_get(known, "content"));

        if (strcmp(its, text) == 0)
            return;
        if (json_integer_value(json_object_get(known, "id")) > last)
            last = json_integer_value(json_object_get(known, "id"));
    }
    json_object_foreach(json_object_get(json_object_get(file, "model"), "vocab"), key, known)
        if (json_integer_value(known) > last)
            last = json_integer_value(known);
    json_array_append_new(list, json_pack("{sIsssbsbsbsbsb}", "id", last + 1, "content", text,
                                          "special", special, "normalized", 0, "lstrip", 0,
                                          "rstrip", 0, "single_word", 0));
}

dt_bpe *chat_tokenizer(void)
{
    dt_error err = DT_ERROR_INIT;
    json_t *file = NULL;
    dt_bpe *bpe;
    char *text;

    assert_int_equal(dt_json_read(&file, "tests/golden/tokens/qwen.json", 1 << 20, &err), DT_OK);
    if (!json_is_array(json_object_get(file, "added_tokens")))
        json_object_set_new(file, "added_tokens", json_array());
    for (size_t i = 0; i < COUNT(control); i++)
        add_token(file, control[i], true);
    for (size_t i = 0; i < COUNT(markers); i++)
        add_token(file, markers[i], false);
    text = json_dumps(file, 0);
    if (dt_bpe_parse(&bpe, text, strlen(text), "tokenizer.json", &err) != DT_OK)
        fail_msg("%s", err.message);
    free(text);
    json_decref(file);
    return bpe;
}

void chat_place_open(chat_place *out, const char *template)
{
    char folder[] = "/tmp/dtrun-chat-XXXXXX", path[300], file[300];
    static const char config[] = "{\"bos_token\": \"<s>\", \"eos_token\": {\"content\": \"</s>\"}}";
    dt_chat_source source = {.folder = folder, .file = path, .now = 1764331200};
    bool given = strncmp(template, "text:", 5) == 0;

    memset(out, 0, sizeof(*out));
    dt_arena_init(&out->arena, 0);
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/tokenizer_config.json", folder);
    assert_int_equal(dt_file_write_atomic(file, config, sizeof(config) - 1, 0600, NULL), DT_OK);
    snprintf(path, sizeof(path), given ? "%s/given.jinja" : "tests/golden/chat/%s.jinja",
             given ? folder : template);
    if (given)
        assert_int_equal(dt_file_write_atomic(path, template + 5, strlen(template + 5), 0600, NULL),
                         DT_OK);
    out->bpe = chat_tokenizer();
    if (dt_chat_open(&out->chat, &source, out->bpe, &out->err) != DT_OK)
        fail_msg("%s", out->err.message);
    assert_int_equal(dt_chat_encoder_open(&out->encoder, out->chat, &out->err), DT_OK);
    assert_int_equal(dt_file_remove_tree(folder, NULL), DT_OK);
}

void chat_place_close(chat_place *place)
{
    dt_chat_encoder_close(place->encoder);
    dt_chat_free(place->chat);
    dt_bpe_free(place->bpe);
    dt_arena_release(&place->arena);
}

dt_status chat_place_encode(dt_chat_row *out, chat_place *place, const char *line,
                            const dt_chat_options *options)
{
    char *text = strdup(line);
    json_t *json;
    dt_status st;

    for (char *at = text; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json = json_loads(text, 0, NULL);
    assert_non_null(json);
    dt_error_clear(&place->err);
    st = dt_chat_encode(out, place->encoder, json, options, &place->arena, &place->err);
    json_decref(json);
    free(text);
    return st;
}

int32_t chat_place_id(const chat_place *place, const char *token)
{
    size_t count;
    const dt_bpe_added *added = dt_bpe_get_added(&count, place->bpe);

    for (size_t i = 0; i < count; i++)
        if (strcmp(added[i].text, token) == 0)
            return added[i].id;
    fail_msg("no token %s", token);
    return -1;
}
