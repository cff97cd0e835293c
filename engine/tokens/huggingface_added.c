#include <string.h>

#include "engine/tokens/bpe_int.h"

static const char where[] = "added_tokens";

typedef struct entry {
    const char *content;
    int64_t id;
    dt_added_token token;
    bool normalized, single_word;
} entry;

static dt_status read_entry(entry *out, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    dt_status st = DT_OK;
    bool special;

    *out = (entry){0};
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_text(&out->content, json, "content", where, err));
    DT_TRY(dt_json_get_int(&out->id, json, "id", where, err));
    DT_TRY(dt_bpe_get_bool(&out->token.lstrip, json, "lstrip", false, where, err));
    DT_TRY(dt_bpe_get_bool(&out->token.rstrip, json, "rstrip", false, where, err));
    DT_TRY(dt_bpe_get_bool(&special, json, "special", false, where, err));
    DT_TRY(dt_bpe_get_bool(&out->normalized, json, "normalized", !special, where, err));
    DT_TRY(dt_bpe_get_bool(&out->single_word, json, "single_word", false, where, err));
    if (out->content[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': token %lld is empty", where, (long long)out->id);
    if (out->single_word)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': '%.80s' has 'single_word', which is not supported",
                 where, out->content);
    out->token.id = (int32_t)out->id;
out:
    return st;
}

/* Returns the id of a text in the model's vocabulary; -1 if it has none. `vocab` is the file's
 * vocabulary, needed because a BPE model may spell bytes in another way than dt_vocab. */
static int64_t number_in_model(const dt_bpe *bpe, const json_t *vocab, const char *text)
{
    const json_t *id = json_object_get(vocab, text);

    if (bpe->is_unigram)
        return dt_vocab_find(&bpe->vocab, text, strlen(text));
    return id != NULL ? json_integer_value(id) : -1;
}

/* Adds a token to the vocabulary. If the model has the same token, both must have the same id. */
static dt_status add_to_vocab(dt_bpe *bpe, const entry *added, const json_t *vocab, dt_error *err)
{
    int64_t id = number_in_model(bpe, vocab, added->content);

    if (id < 0)
        return dt_vocab_add(&bpe->vocab, added->id, added->content, strlen(added->content), false,
                            err);
    if (id != added->id)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s': '%.80s' has the id %lld, but %lld in the vocabulary", where,
                       added->content, (long long)added->id, (long long)id);
    return DT_OK;
}

static dt_status add_entry(dt_bpe *bpe, const entry *added, dt_strbuf *scratch, dt_error *err)
{
    dt_status st = DT_OK;

    if (!added->normalized)
        return dt_added_put(&bpe->raw, added->content, strlen(added->content), &added->token, err);
    dt_strbuf_reset(scratch);
    DT_TRY(dt_bpe_normalize(scratch, bpe, added->content, strlen(added->content), true, err));
    if (scratch->length > 0)
        DT_TRY(dt_added_put(&bpe->normalized, scratch->data, scratch->length, &added->token, err));
out:
    return st;
}

dt_status dt_bpe_read_added(dt_bpe *bpe, const json_t *list, const json_t *vocab, dt_error *err)
{
    dt_status st = DT_OK;
    const json_t *item;
    dt_strbuf scratch;
    entry added;
    size_t i;

    dt_strbuf_init(&scratch);
    if (list != NULL && !json_is_null(list) && !json_is_array(list))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': expected a list", where);
    json_array_foreach((json_t *)list, i, item) {
        DT_TRY(read_entry(&added, item, err));
        DT_TRY(add_to_vocab(bpe, &added, vocab, err));
        DT_TRY(add_entry(bpe, &added, &scratch, err));
        /* a line break may become a space in the normalizer, before such a token is searched */
        bpe->drops_breaks = bpe->drops_breaks || added.token.rstrip;
        bpe->reaches_over_breaks = bpe->reaches_over_breaks || added.token.lstrip ||
                                   strpbrk(added.content, added.normalized ? " \n" : "\n") != NULL;
    }
out:
    dt_strbuf_release(&scratch);
    return st;
}
