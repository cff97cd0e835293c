/* vocabulary: the tokenizer and the chat template of a folder as keys of a GGUF file. */
#include <string.h>

#include "base/file.h"
#include "engine/gguf/gguf_int.h"

#define FILE_MOST ((size_t)256 << 20)

/* Types of tokens in a file. */
enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6
};

typedef struct vocabulary {
    json_t *tokenizer, *config; /* tokenizer.json, tokenizer_config.json (NULL: none) */
    const char **texts;         /* [count] by id; NULL: unused */
    size_t *lengths;
    int32_t *types;
    int64_t count;
    bool pieces; /* SentencePiece's BPE, else byte-level BPE */
    dt_gguf_pieces piece;
    const char *split;
    dt_arena *arena;
} vocabulary;

static dt_status read_model(vocabulary *v, dt_gguf_header *out, dt_error *err)
{
    const json_t *model = json_object_get(v->tokenizer, "model");
    const char *type = json_string_value(json_object_get(model, "type"));
    bool ignores = false;

    v->pieces = dt_gguf_is_pieces(v->tokenizer);
    if (v->pieces)
        return dt_gguf_read_pieces(&v->piece, out, v->tokenizer, v->count, err);
    if (type == NULL || strcmp(type, "BPE") == 0)
        v->split = dt_gguf_word_split(&ignores, v->tokenizer, v->arena);
    if (v->split == NULL)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "unsupported tokenizer.json%s (expected BPE with tokens for bytes, as Gemma and Llama "
            "2 "
            "have, or byte-level BPE that splits text as GPT-2, Llama 3, Qwen, tekken, GPT-4o, "
            "DeepSeek-V3 or SmolLM do)",
            ignores ? " with 'ignore_merges'" : "");
    if (json_is_object(json_object_get(v->tokenizer, "normalizer")))
        dt_gguf_note(out, "llama.cpp does not apply the tokenizer's normalizer, such as NFC");
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

static int32_t type_of(const vocabulary *v, const char *text)
{
    const char *unknown =
        json_string_value(json_object_get(json_object_get(v->tokenizer, "model"), "unk_token"));

    if (v->pieces && unknown != NULL && strcmp(text, unknown) == 0)
        return TOKEN_UNKNOWN;
    return v->pieces && strlen(text) == 6 && strncmp(text, "<0x", 3) == 0 ? TOKEN_BYTE
                                                                          : TOKEN_NORMAL;
}

static int32_t type_of_added(const vocabulary *v, const json_t *added, const char *text)
{
    if (v->pieces && (type_of(v, text) != TOKEN_NORMAL || dt_gguf_is_spaces(added)))
        return type_of(v, text);
    return json_is_true(json_object_get(added, "special")) ? TOKEN_CONTROL : TOKEN_USER;
}

/* Whether added tokens remove white space as llama.cpp has it for models whose name contains phi-3: after all but three,
 * which with a fourth have to be there. */
static bool strips_as_phi3(const vocabulary *v)
{
    static const char *const names[] = {"<unk>", "<s>", "<|endoftext|>", "</s>"};
    const json_t *vocab = json_object_get(json_object_get(v->tokenizer, "model"), "vocab"), *item;
    bool there[4] = {false};
    size_t i, k;

    for (k = 0; k < 4; k++)
        there[k] = json_object_get(vocab, names[k]) != NULL;
    json_array_foreach(json_object_get(v->tokenizer, "added_tokens"), i, item) {
        const char *text = json_string_value(json_object_get(item, "content"));

        for (k = 0; k < 4 && (text == NULL || strcmp(text, names[k]) != 0); k++)
            ;
        if (k < 4)
            there[k] = true;
        if (json_is_true(json_object_get(item, "lstrip")) ||
            json_is_true(json_object_get(item, "rstrip")) != (k >= 3))
            return false;
    }
    return there[0] && there[1] && there[2] && there[3];
}

static dt_status read_tokens(vocabulary *v, dt_gguf_header *out, dt_error *err)
{
    json_t *vocab = json_object_get(json_object_get(v->tokenizer, "model"), "vocab"), *item;
    const json_t *added = json_object_get(v->tokenizer, "added_tokens");
    const char *text, *strips = NULL;
    dt_status st = DT_OK;
    size_t i;

    out->strips = strips_as_phi3(v);
    json_object_foreach(vocab, text, item)
        DT_TRY(put(v, json_integer_value(item), text, strlen(text), type_of(v, text), err));
    json_array_foreach((json_t *)added, i, item) {
        text = json_string_value(json_object_get(item, "content"));
        if (text == NULL)
            continue;
        DT_TRY(put(v, json_integer_value(json_object_get(item, "id")), text, strlen(text),
                   type_of_added(v, item, text), err));
        if (json_is_true(json_object_get(item, "lstrip")) ||
            json_is_true(json_object_get(item, "rstrip")))
            strips = text;
    }
    if (strips != NULL && !out->strips)
        dt_gguf_note(out, dt_arena_printf(v->arena,
                                          "llama.cpp keeps white space next to added tokens such "
                                          "as '%.60s', which this tokenizer removes",
                                          strips));
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
    if (!v->pieces)
        return;
    dt_gguf_begin_array(out, "tokenizer.ggml.scores", DT_GGUF_FLOAT, (uint64_t)v->count);
    for (int64_t id = 0; id < v->count; id++)
        dt_gguf_add_item_float(out, v->piece.scores[id]);
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

static int64_t id_of_text(const vocabulary *v, const char *text)
{
    for (int64_t i = 0; text != NULL && i < v->count; i++)
        if (v->texts[i] != NULL && strcmp(v->texts[i], text) == 0)
            return i;
    return -1;
}

/* The id of tokenizer_config.json's token, else of config.json's id; -1: neither has one. */
static int64_t id_of(const vocabulary *v, const json_t *config, const char *token, const char *key)
{
    const json_t *value = json_object_get(v->config, token), *id = json_object_get(config, key);
    int64_t named = id_of_text(
        v, json_string_value(json_is_object(value) ? json_object_get(value, "content") : value));

    if (json_is_array(id))
        id = json_array_get(id, 0);
    return named >= 0 ? named : json_is_integer(id) ? json_integer_value(id) : -1;
}

/* What the template of a post-processor puts around each text. */
typedef struct around {
    int64_t before, after; /* ids; -1: none */
    int count;             /* of special tokens */
} around;

static void find_around(around *out, const vocabulary *v, const json_t *processor)
{
    const json_t *item, *special;
    bool text = false;
    size_t i;

    json_array_foreach(json_object_get(processor, "processors"), i, item)
        find_around(out, v, item);
    json_array_foreach(json_object_get(processor, "single"), i, item) {
        special = json_object_get(item, "SpecialToken");
        text = text || json_object_get(item, "Sequence") != NULL;
        if (special == NULL)
            continue;
        out->count++;
        *(text ? &out->after : &out->before) =
            id_of_text(v, json_string_value(json_object_get(special, "id")));
    }
}

/* The tokens at which a text ends besides the first: llama.cpp knows a turn's and a message's. */
static void add_ends(dt_gguf_header *out, const vocabulary *v, const json_t *config, int64_t eos)
{
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const json_t *ids = json_object_get(config, "eos_token_id"), *id;
    size_t i, used = 0;

    json_array_foreach((json_t *)ids, i, id) {
        if (json_integer_value(id) == eos || json_integer_value(id) < 0 ||
            json_integer_value(id) >= v->count)
            continue;
        if (used == sizeof(keys) / sizeof(keys[0])) {
            dt_gguf_note(out, "a GGUF file names three tokens that end a text; the model has more");
            return;
        }
        dt_gguf_add_u32(out, keys[used++], (uint32_t)json_integer_value(id));
    }
}

static dt_status add_special(dt_gguf_header *out, const vocabulary *v, const json_t *config,
                             dt_error *err)
{
    int64_t begin = id_of(v, config, "bos_token", "bos_token_id");
    int64_t eos = id_of(v, config, "eos_token", "eos_token_id");
    int64_t pad = id_of(v, config, "pad_token", "pad_token_id");
    int64_t unknown = v->pieces
                          ? id_of_text(v, json_string_value(json_object_get(
                                              json_object_get(v->tokenizer, "model"), "unk_token")))
                          : -1;
    around put = {.before = -1, .after = -1};

    find_around(&put, v, json_object_get(v->tokenizer, "post_processor"));
    if (put.count > (put.before >= 0) + (put.after >= 0) || (put.after >= 0 && put.after != eos))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the tokenizer puts tokens around each text that a GGUF file cannot have "
                       "(expected at most one before it, and its eos_token after it)");
    begin = put.before >= 0 ? put.before : begin;
    if (begin >= 0)
        dt_gguf_add_u32(out, "tokenizer.ggml.bos_token_id", (uint32_t)begin);
    if (eos >= 0)
        dt_gguf_add_u32(out, "tokenizer.ggml.eos_token_id", (uint32_t)eos);
    if (pad >= 0)
        dt_gguf_add_u32(out, "tokenizer.ggml.padding_token_id", (uint32_t)pad);
    if (unknown >= 0)
        dt_gguf_add_u32(out, "tokenizer.ggml.unknown_token_id", (uint32_t)unknown);
    add_ends(out, v, config, eos);
    dt_gguf_add_bool(out, "tokenizer.ggml.add_bos_token", put.before >= 0);
    dt_gguf_add_bool(out, "tokenizer.ggml.add_eos_token", put.after >= 0);
    if (v->pieces)
        dt_gguf_add_bool(out, "tokenizer.ggml.add_space_prefix", v->piece.prefix);
    return DT_OK;
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
    const char *path = dt_arena_printf(out->arena, "%s/tokenizer.json", folder);
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
    DT_TRY(read_model(&v, out, err));
    DT_TRY(read_tokens(&v, out, err));
    if (v.pieces) {
        dt_gguf_add_text(out, "tokenizer.ggml.model", "llama", 5);
        dt_gguf_add_text(out, "tokenizer.ggml.pre", "default", 7);
    } else {
        dt_gguf_add_text(out, "tokenizer.ggml.model", "gpt2", 4);
        dt_gguf_add_text(out, "tokenizer.ggml.pre", v.split, strlen(v.split));
    }
    add_tokens(out, &v);
    if (!v.pieces)
        add_merges(out, &v);
    DT_TRY(add_special(out, &v, config, err));
    DT_TRY(add_template(out, &v, folder, err));
out:
    json_decref(v.tokenizer);
    json_decref(v.config);
    return st;
}
