/* vocabulary: the tokenizer and the chat template of a folder as keys of a GGUF file. */
#include <string.h>

#include "base/file.h"
#include "engine/gguf/gguf_int.h"

#define FILE_MOST ((size_t)256 << 20)

/* Types of tokens in a file. */
enum { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_USER = 4, TOKEN_UNUSED = 5 };

typedef struct vocabulary {
    json_t *tokenizer, *config; /* tokenizer.json, tokenizer_config.json (NULL: none) */
    const char **texts;         /* [count] by id; NULL: unused */
    size_t *lengths;
    int32_t *types;
    int64_t count;
    dt_arena *arena;
} vocabulary;

/* --- how words are split */

/* Returns the name of the split in GGUF files, or NULL. */
static const char *split_of(const json_t *pre)
{
    static const struct {
        const char *part, *name; /* of the expression */
    } splits[] = {{"\\p{N}{1,3}", "llama-bpe"}, {"\\p{N}|", "qwen2"}};
    const char *type = json_string_value(json_object_get(pre, "type")), *regex;
    const json_t *list = json_object_get(pre, "pretokenizers"), *item;
    const char *found = NULL;
    size_t i;

    if (type == NULL)
        return NULL;
    if (strcmp(type, "ByteLevel") == 0)
        return json_is_false(json_object_get(pre, "use_regex")) ||
                       json_is_true(json_object_get(pre, "add_prefix_space"))
                   ? NULL
                   : "gpt-2";
    if (strcmp(type, "Split") == 0) {
        regex = json_string_value(json_object_get(json_object_get(pre, "pattern"), "Regex"));
        for (size_t k = 0; regex != NULL && k < sizeof(splits) / sizeof(splits[0]); k++)
            if (strstr(regex, splits[k].part) != NULL)
                return splits[k].name;
        return NULL;
    }
    if (strcmp(type, "Digits") == 0)
        return json_is_true(json_object_get(pre, "individual_digits")) ? "smollm" : NULL;
    if (strcmp(type, "Sequence") == 0)
        json_array_foreach((json_t *)list, i, item)
            if (found == NULL)
                found = split_of(item);
    return found;
}

static dt_status check_model(const char **split, const vocabulary *v, const char *folder,
                             dt_error *err)
{
    const json_t *model = json_object_get(v->tokenizer, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    bool bytes = json_is_true(json_object_get(model, "byte_fallback"));

    *split = split_of(json_object_get(v->tokenizer, "pre_tokenizer"));
    if ((type != NULL && strcmp(type, "BPE") != 0) || bytes || *split == NULL)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "--to gguf writes byte-level BPE that splits text as GPT-2, Llama 3, Qwen or "
            "SmolLM do, and '%s/tokenizer.json' is another tokenizer",
            folder);
    return DT_OK;
}

/* --- tokens */

static dt_status put(vocabulary *v, int64_t id, const char *text, size_t length, int32_t type,
                     dt_error *err)
{
    if (id < 0 || id >= v->count)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the tokenizer has the id %lld, and the model has %lld tokens",
                       (long long)id, (long long)v->count);
    v->texts[id] = text;
    v->lengths[id] = length;
    v->types[id] = type;
    return DT_OK;
}

static dt_status read_tokens(vocabulary *v, dt_error *err)
{
    json_t *vocab = json_object_get(json_object_get(v->tokenizer, "model"), "vocab"), *item;
    const json_t *added = json_object_get(v->tokenizer, "added_tokens");
    const char *text;
    dt_status st = DT_OK;
    size_t i;

    json_object_foreach(vocab, text, item)
        DT_TRY(put(v, json_integer_value(item), text, strlen(text), TOKEN_NORMAL, err));
    json_array_foreach((json_t *)added, i, item) {
        text = json_string_value(json_object_get(item, "content"));
        DT_TRY(put(v, json_integer_value(json_object_get(item, "id")), text != NULL ? text : "",
                   text != NULL ? strlen(text) : 0,
                   json_is_true(json_object_get(item, "special")) ? TOKEN_CONTROL : TOKEN_USER,
                   err));
    }
out:
    return st;
}

static void add_tokens(dt_gguf_header *out, const vocabulary *v)
{
    char unused[32];

    dt_gguf_begin_array(out, "tokenizer.ggml.tokens", DT_GGUF_TEXT, (uint64_t)v->count);
    for (int64_t id = 0; id < v->count; id++) {
        snprintf(unused, sizeof(unused), "[PAD%lld]", (long long)id);
        if (v->texts[id] != NULL)
            dt_gguf_add_item(out, v->texts[id], v->lengths[id]);
        else
            dt_gguf_add_item(out, unused, strlen(unused));
    }
    dt_gguf_begin_array(out, "tokenizer.ggml.token_type", DT_GGUF_I32, (uint64_t)v->count);
    for (int64_t id = 0; id < v->count; id++)
        dt_gguf_add_item_i32(out, v->texts[id] != NULL ? v->types[id] : TOKEN_UNUSED);
}

/* A merge is "a b", or a list of two. */
static void add_merges(dt_gguf_header *out, const vocabulary *v)
{
    const json_t *merges = json_object_get(json_object_get(v->tokenizer, "model"), "merges");
    const json_t *merge;
    dt_strbuf text;
    size_t i;

    dt_strbuf_init(&text);
    dt_gguf_begin_array(out, "tokenizer.ggml.merges", DT_GGUF_TEXT, json_array_size(merges));
    json_array_foreach((json_t *)merges, i, merge) {
        dt_strbuf_reset(&text);
        if (json_is_string(merge)) {
            dt_strbuf_add(&text, json_string_value(merge), json_string_length(merge));
        } else {
            dt_strbuf_add_str(&text, json_string_value(json_array_get(merge, 0)));
            dt_strbuf_add_char(&text, ' ');
            dt_strbuf_add_str(&text, json_string_value(json_array_get(merge, 1)));
        }
        dt_gguf_add_item(out, text.data, text.length);
    }
    dt_strbuf_release(&text);
}

/* --- special tokens */

/* The id of tokenizer_config.json's token, else of config.json's id; -1: neither has one. */
static int64_t id_of(const vocabulary *v, const json_t *config, const char *token, const char *key)
{
    const json_t *value = json_object_get(v->config, token), *id = json_object_get(config, key);
    const char *text =
        json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);

    for (int64_t i = 0; text != NULL && i < v->count; i++)
        if (v->texts[i] != NULL && strcmp(v->texts[i], text) == 0)
            return i;
    if (json_is_array(id))
        id = json_array_get(id, 0);
    return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* Whether a post-processor puts a special token before each text. */
static bool begins(const json_t *processor)
{
    const json_t *single = json_object_get(processor, "single"), *item;
    size_t i;

    json_array_foreach((json_t *)json_object_get(processor, "processors"), i, item)
        if (begins(item))
            return true;
    return json_object_get(json_array_get(single, 0), "SpecialToken") != NULL;
}

static void add_special(dt_gguf_header *out, const vocabulary *v, const json_t *config)
{
    static const struct {
        const char *token, *id, *key;
    } rows[] = {{"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id"},
                {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id"},
                {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id"}};
    int64_t id;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        id = id_of(v, config, rows[i].token, rows[i].id);
        if (id >= 0)
            dt_gguf_add_u32(out, rows[i].key, (uint32_t)id);
    }
    dt_gguf_add_bool(out, "tokenizer.ggml.add_bos_token",
                     begins(json_object_get(v->tokenizer, "post_processor")));
}

static dt_status add_template(dt_gguf_header *out, const vocabulary *v, const char *folder,
                              dt_error *err)
{
    const char *path = dt_arena_printf(v->arena, "%s/chat_template.jinja", folder);
    const json_t *inside = json_object_get(v->config, "chat_template");
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_file_exists(path)) {
        DT_TRY(dt_file_read(&text, path, FILE_MOST, err));
        dt_gguf_add_text(out, "tokenizer.chat_template", text.data, text.length);
    } else if (json_is_string(inside)) {
        dt_gguf_add_text(out, "tokenizer.chat_template", json_string_value(inside),
                         json_string_length(inside));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_gguf_add_vocabulary(dt_gguf_header *out, const char *folder, int64_t vocab,
                                 const json_t *config, dt_error *err)
{
    const char *path = dt_arena_printf(out->arena, "%s/tokenizer.json", folder), *split;
    const char *more = dt_arena_printf(out->arena, "%s/tokenizer_config.json", folder);
    vocabulary v = {.count = vocab, .arena = out->arena};
    dt_status st = DT_OK;

    if (!dt_file_exists(path))
        DT_THROW(err, DT_ERR_RECIPE,
                 "the run has no tokenizer.json, which a GGUF file needs: it was trained on token "
                 "ids, or its tokens are of another form");
    DT_TRY(dt_json_read_foreign(&v.tokenizer, path, FILE_MOST, err));
    if (dt_file_exists(more))
        DT_TRY(dt_json_read_foreign(&v.config, more, FILE_MOST, err));
    v.texts = dt_arena_alloc_array(out->arena, (size_t)vocab, sizeof(v.texts[0]));
    v.lengths = dt_arena_alloc_array(out->arena, (size_t)vocab, sizeof(v.lengths[0]));
    v.types = dt_arena_alloc_array(out->arena, (size_t)vocab, sizeof(v.types[0]));
    memset(v.texts, 0, (size_t)vocab * sizeof(v.texts[0]));
    DT_TRY(check_model(&split, &v, folder, err));
    DT_TRY(read_tokens(&v, err));
    dt_gguf_add_text(out, "tokenizer.ggml.model", "gpt2", 4);
    dt_gguf_add_text(out, "tokenizer.ggml.pre", split, strlen(split));
    add_tokens(out, &v);
    add_merges(out, &v);
    add_special(out, &v, config);
    DT_TRY(add_template(out, &v, folder, err));
out:
    json_decref(v.tokenizer);
    json_decref(v.config);
    return st;
}
