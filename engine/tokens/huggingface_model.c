/* huggingface_model: reads the model of a tokenizer.json, BPE or Unigram, and has the checks of fields that
 * all parts use. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokens/tokens_int.h"

/* --- fields */

dt_status dt_bpe_check_keys(const json_t *object, const char *where, const char *const *keys,
                            dt_error *err)
{
    const char *key;
    json_t *value;
    int i;

    if (!json_is_object(object))
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': expected an object", where);
    json_object_foreach((json_t *)object, key, value) {
        for (i = 0; keys[i] != NULL && strcmp(keys[i], key) != 0;)
            i++;
        if (keys[i] == NULL)
            return DT_FAIL(err, DT_ERR_UNSUPPORTED, "'%s': unsupported key '%.80s'", where, key);
    }
    return DT_OK;
}

dt_status dt_bpe_get_type(const char **out, const json_t *object, const char *where, dt_error *err)
{
    *out = json_string_value(json_object_get(object, "type"));
    return *out != NULL
               ? DT_OK
               : DT_FAIL(err, DT_ERR_CORRUPT, "'%s': expected an object with 'type'", where);
}

dt_status dt_bpe_get_bool(bool *out, const json_t *object, const char *key, bool fallback,
                          const char *where, dt_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = value == NULL || json_is_null(value) ? fallback : json_is_true(value);
    return value == NULL || json_is_null(value) || json_is_boolean(value)
               ? DT_OK
               : DT_FAIL(err, DT_ERR_CORRUPT, "'%s': '%s': expected true or false", where, key);
}

dt_status dt_bpe_get_text(const char **out, const json_t *object, const char *key,
                          const char *where, dt_error *err)
{
    *out = json_string_value(json_object_get(object, key));
    return *out != NULL ? DT_OK
                        : DT_FAIL(err, DT_ERR_CORRUPT, "'%s': '%s': expected a text", where, key);
}

dt_status dt_bpe_read_each(dt_bpe *bpe, const json_t *json, const char *where, const char *list,
                           dt_bpe_read_fn *read, dt_error *err)
{
    const char *const keys[] = {"type", list, NULL};
    dt_status st = DT_OK;
    const json_t *part, *parts;
    const char *type;
    size_t i;

    if (json == NULL || json_is_null(json))
        return DT_OK;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    if (strcmp(type, "Sequence") != 0)
        return read(bpe, json, true, err);
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    parts = json_object_get(json, list);
    if (!json_is_array(parts))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': '%s': expected a list", where, list);
    json_array_foreach((json_t *)parts, i, part)
        DT_TRY(read(bpe, part, json_array_size(parts) == 1, err));
out:
    return st;
}

/* huggingface_unigram: reads a Unigram model from a tokenizer.json: its pieces with the logarithms
 * of their probabilities. */

static const char unigram_where[] = "model";

/* --- scores
 *
 * The library `tokenizers` parses a number with a division that is rounded twice, so that the result can differ by
 * one unit of the last place. Segmentations with the same pieces in another order have the same probability, and the
 * last place decides between them. The code here computes the number as the library does, from its digits: files
 * have the fewest digits that identify a number.
 */

static double power_of_ten(int exponent)
{
    char text[16];

    snprintf(text, sizeof(text), "1e%d", exponent);
    return strtod(text, NULL);
}

/* Returns the digits of "1.25e-03" as 125 in *digits, and their exponent; false if `count` digits
 * do not identify the value. */
static bool read_digits(uint64_t *digits, int *exponent, double value, int count)
{
    char text[40];

    snprintf(text, sizeof(text), "%.*e", count - 1, value);
    *digits = 0;
    for (const char *at = text; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            *digits = *digits * 10 + (uint64_t)(*at - '0');
    *exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10) - (count - 1);
    return strtod(text, NULL) == value;
}

static double as_the_library_reads(double score)
{
    double value = fabs(score), read;
    uint64_t digits = 0;
    int exponent = 0;

    for (int count = 15; !read_digits(&digits, &exponent, value, count) && count < 17;)
        count++;
    for (; digits > 0 && digits % 10 == 0; exponent++)
        digits /= 10;
    read = (double)digits;
    for (; exponent < -308; exponent += 308)
        read /= 1e308;
    read = exponent < 0 ? read / power_of_ten(-exponent) : read * power_of_ten(exponent);
    return score < 0 ? -read : read;
}

/* --- the model */

static dt_status read_piece(const char **text, double *score, const json_t *vocab, int64_t id,
                            dt_error *err)
{
    const json_t *piece = json_array_get(vocab, (size_t)id);
    const json_t *number = json_array_get(piece, 1);

    *text = json_string_value(json_array_get(piece, 0));
    *score = json_number_value(number);
    if (json_array_size(piece) != 2 || *text == NULL || !json_is_number(number) ||
        !isfinite(*score))
        return DT_FAIL(
            err, DT_ERR_CORRUPT,
            "'%s': 'vocab', item %lld: expected a piece and its finite score, as [\"the\", -3.5]",
            unigram_where, (long long)id);
    *score = as_the_library_reads(*score);
    return DT_OK;
}

/* Adds the pieces from last to first, so that of equal pieces the last one is found, as in the
 * library. */
static dt_status read_pieces(dt_bpe *bpe, double **scores, const json_t *vocab, dt_error *err)
{
    int64_t count = (int64_t)json_array_size(vocab);
    dt_status st = DT_OK;
    const char *text;

    if (count == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'vocab': expected a list of pieces with their scores",
                 unigram_where);
    if (count > DT_VOCAB_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'vocab' has %lld pieces (expected at most %lld)",
                 unigram_where, (long long)count, (long long)DT_VOCAB_MAX);
    *scores = malloc((size_t)count * sizeof(**scores));
    if (*scores == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld pieces", (long long)count);
    for (int64_t id = count - 1; id >= 0; id--) {
        DT_TRY(read_piece(&text, &(*scores)[id], vocab, id, err));
        DT_TRY(dt_vocab_add(&bpe->vocab, id, text, strlen(text),
                            dt_vocab_find(&bpe->vocab, text, strlen(text)) < 0, err));
    }
out:
    return st;
}

static dt_status read_unknown_piece(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    const json_t *id = json_object_get(model, "unk_id");

    if (id == NULL || json_is_null(id))
        return DT_OK;
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= bpe->vocab.size)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s': 'unk_id' is not the id of a piece (expected null, or 0 to %lld)",
                       unigram_where, (long long)bpe->vocab.size - 1);
    bpe->unknown = (int32_t)json_integer_value(id);
    return DT_OK;
}

static void bpe_find_bytes(dt_bpe *bpe);

static dt_status bpe_read_unigram(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    static const char *const keys[] = {"type", "unk_id", "vocab", "byte_fallback", NULL};
    double *scores = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(model, unigram_where, keys, err));
    if (bpe->byte_level)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Unigram after the pre_tokenizer ByteLevel", unigram_where);
    DT_TRY(dt_bpe_get_bool(&bpe->byte_fallback, model, "byte_fallback", false, unigram_where, err));
    DT_TRY(read_pieces(bpe, &scores, json_object_get(model, "vocab"), err));
    bpe_find_bytes(bpe);
    DT_TRY(read_unknown_piece(bpe, model, err));
    st = dt_unigram_build(&bpe->unigram, &bpe->vocab, scores, err);
    scores = NULL; /* now owned by the tree */
    bpe->is_unigram = st == DT_OK;
out:
    free(scores);
    return st;
}

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

dt_status dt_bpe_read_vocab(dt_bpe *bpe, const json_t *vocab, dt_error *err)
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

/* fills `bytes` from the vocabulary */
static void bpe_find_bytes(dt_bpe *bpe)
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

dt_status dt_bpe_read_unknown(dt_bpe *bpe, const json_t *model, dt_error *err)
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
        return bpe_read_unigram(bpe, model, err);
    if (type != NULL && strcmp(type, "BPE") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "unsupported model '%.80s' (expected BPE, Unigram or WordPiece)", type);
    DT_TRY(dt_bpe_check_keys(model, where, keys, err));
    for (size_t i = 0; i < sizeof(unset) / sizeof(unset[0]); i++)
        DT_TRY(check_unset(model, unset[i], err));
    DT_TRY(dt_bpe_get_bool(&bpe->fuse_unknown, model, "fuse_unk", false, where, err));
    DT_TRY(dt_bpe_get_bool(&bpe->byte_fallback, model, "byte_fallback", false, where, err));
    DT_TRY(dt_bpe_get_bool(&bpe->ignore_merges, model, "ignore_merges", false, where, err));
    DT_TRY(dt_bpe_read_vocab(bpe, vocab, err));
    bpe_find_bytes(bpe);
    for (int code = 0; code < 128; code++)
        bpe->ascii[code] = dt_vocab_find(&bpe->vocab, &(char){(char)code}, 1);
    DT_TRY(dt_bpe_read_unknown(bpe, model, err));
    DT_TRY(read_merges(bpe, vocab, json_object_get(model, "merges"), err));
out:
    return st;
}
