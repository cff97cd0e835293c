/* huggingface_model: reads a BPE model from a tokenizer.json: its tokens and merges. */
#include <string.h>

#include "engine/tokens/bpe_int.h"

static const char where[] = "model";

/* Adds a token; byte-level tokens are converted to the bytes they stand for. A token with a
 * character that stands for no byte cannot result from text: it is found only by its id. */
static dt_status add_token(dt_bpe *bpe, const char *text, const json_t *id, dt_strbuf *scratch,
                           dt_error *err)
{
    size_t length = strlen(text);

    if (!json_is_integer(id))
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': token '%.80s': expected an integer id", where,
                       text);
    dt_strbuf_reset(scratch);
    if (bpe->byte_level && length > 0 && dt_byte_map_decode(scratch, text, length))
        return dt_vocab_add(&bpe->vocab, json_integer_value(id), scratch->data, scratch->length,
                            true, err);
    return dt_vocab_add(&bpe->vocab, json_integer_value(id), text, length, !bpe->byte_level, err);
}

static dt_status read_vocab(dt_bpe *bpe, const json_t *vocab, dt_error *err)
{
    dt_status st = DT_OK;
    const char *text;
    dt_strbuf scratch;
    json_t *id;

    dt_strbuf_init(&scratch);
    if (!json_is_object(vocab) || json_object_size(vocab) == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'vocab': expected an object of tokens", where);
    json_object_foreach((json_t *)vocab, text, id)
        DT_TRY(add_token(bpe, text, id, &scratch, err));
out:
    dt_strbuf_release(&scratch);
    return st;
}

void dt_bpe_find_bytes(dt_bpe *bpe)
{
    for (int byte = 0; byte < 256; byte++) {
        char text[8] = {(char)byte};
        size_t length = 1;
        dt_strbuf name;

        dt_strbuf_init(&name);
        if (!bpe->byte_level) {
            dt_strbuf_add_fmt(&name, "<0x%02X>", (unsigned)byte);
            memcpy(text, name.data, length = name.length);
        }
        bpe->bytes[byte] = dt_vocab_find(&bpe->vocab, text, length);
        dt_strbuf_release(&name);
    }
}

/* --- merges */

/* Finds the id of a token as the file spells it. */
static dt_status find_part(int32_t *out, const json_t *vocab, const char *text, int64_t index,
                           dt_error *err)
{
    const json_t *id = json_object_get(vocab, text);

    if (id == NULL)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s': merge %lld needs '%.80s', which is not in the vocabulary", where,
                       (long long)index, text);
    *out = (int32_t)json_integer_value(id);
    return DT_OK;
}

typedef struct merge_text {
    dt_strbuf first, second, both;
} merge_text;

/* Splits a merge: ["a", "b"], or "a b" in older files. Returns false for another form. */
static bool split_merge(merge_text *out, const json_t *merge)
{
    const char *text = json_string_value(merge), *space, *first, *second;

    dt_strbuf_reset(&out->first);
    dt_strbuf_reset(&out->second);
    dt_strbuf_reset(&out->both);
    if (text != NULL) {
        space = strchr(text, ' ');
        if (space == NULL || strchr(space + 1, ' ') != NULL)
            return false;
        dt_strbuf_add(&out->first, text, (size_t)(space - text));
        second = space + 1;
    } else {
        first = json_string_value(json_array_get(merge, 0));
        second = json_string_value(json_array_get(merge, 1));
        if (json_array_size(merge) != 2 || first == NULL || second == NULL)
            return false;
        dt_strbuf_add_str(&out->first, first);
    }
    dt_strbuf_add_str(&out->second, second);
    dt_strbuf_add(&out->both, out->first.data, out->first.length);
    dt_strbuf_add_str(&out->both, second);
    return true;
}

static dt_status add_merge(dt_bpe *bpe, const json_t *vocab, const json_t *merge, int64_t index,
                           merge_text *text, dt_error *err)
{
    int32_t left = 0, right = 0, made = 0;
    dt_status st = DT_OK;

    if (!split_merge(text, merge))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': merge %lld: expected two tokens", where,
                 (long long)index);
    DT_TRY(find_part(&left, vocab, text->first.data, index, err));
    DT_TRY(find_part(&right, vocab, text->second.data, index, err));
    DT_TRY(find_part(&made, vocab, text->both.data, index, err));
    DT_TRY(dt_pairs_put(&bpe->merges, left, right, (uint32_t)index, made, err));
out:
    return st;
}

static dt_status read_merges(dt_bpe *bpe, const json_t *vocab, const json_t *merges, dt_error *err)
{
    dt_status st = DT_OK;
    const json_t *merge;
    merge_text text;
    size_t i;

    dt_strbuf_init(&text.first);
    dt_strbuf_init(&text.second);
    dt_strbuf_init(&text.both);
    if (!json_is_array(merges))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'merges': expected a list", where);
    json_array_foreach((json_t *)merges, i, merge)
        DT_TRY(add_merge(bpe, vocab, merge, (int64_t)i, &text, err));
out:
    dt_strbuf_release(&text.first);
    dt_strbuf_release(&text.second);
    dt_strbuf_release(&text.both);
    return st;
}

/* --- the model */

/* Refuses a setting that would change the ids, unless it is null, empty or 0. */
static dt_status check_unset(const json_t *model, const char *key, dt_error *err)
{
    const json_t *value = json_object_get(model, key);
    const char *text = json_string_value(value);

    if (value == NULL || json_is_null(value) || (text != NULL && text[0] == '\0') ||
        (json_is_number(value) && json_number_value(value) == 0))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED, "'%s': '%s' is set, and is not supported", where, key);
}

static dt_status read_unknown(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    const json_t *text = json_object_get(model, "unk_token"), *id = NULL;

    if (text == NULL || json_is_null(text))
        return DT_OK;
    if (json_is_string(text))
        id = json_object_get(json_object_get(model, "vocab"), json_string_value(text));
    if (id == NULL)
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': 'unk_token' is not in the vocabulary", where);
    bpe->unknown = (int32_t)json_integer_value(id);
    return DT_OK;
}

dt_status dt_bpe_read_model(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    static const char *const unset[] = {"dropout", "continuing_subword_prefix",
                                        "end_of_word_suffix"};
    const char *type = json_string_value(json_object_get(model, "type"));
    const json_t *vocab = json_object_get(model, "vocab");
    dt_status st = DT_OK;

    if (type != NULL && strcmp(type, "Unigram") == 0)
        return dt_bpe_read_unigram(bpe, model, err);
    if (type != NULL && strcmp(type, "BPE") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "unsupported model '%.80s' (expected BPE or Unigram)",
                 type);
    DT_TRY(dt_bpe_check_keys(model, where, keys, err));
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++)
        DT_TRY(check_unset(model, unset[i], err));
    DT_TRY(dt_bpe_get_bool(&bpe->fuse_unknown, model, "fuse_unk", false, where, err));
    DT_TRY(dt_bpe_get_bool(&bpe->byte_fallback, model, "byte_fallback", false, where, err));
    DT_TRY(dt_bpe_get_bool(&bpe->ignore_merges, model, "ignore_merges", false, where, err));
    DT_TRY(read_vocab(bpe, vocab, err));
    dt_bpe_find_bytes(bpe);
    for (int code = 0; code < 128; code++)
        bpe->ascii[code] = dt_vocab_find(&bpe->vocab, &(char){(char)code}, 1);
    DT_TRY(read_unknown(bpe, model, err));
    DT_TRY(read_merges(bpe, vocab, json_object_get(model, "merges"), err));
out:
    return st;
}
