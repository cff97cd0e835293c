/* huggingface_unigram: reads a Unigram model from a tokenizer.json: its pieces with the logarithms
 * of their probabilities. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tokens/bpe_int.h"

static const char where[] = "model";

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
            where, (long long)id);
    *score = as_the_library_reads(*score);
    return DT_OK;
}

/* Adds the pieces from last to first, so that of equal pieces the last one is found, as in the
 * library. */
static dt_status read_vocab(dt_bpe *bpe, double **scores, const json_t *vocab, dt_error *err)
{
    int64_t count = (int64_t)json_array_size(vocab);
    dt_status st = DT_OK;
    const char *text;

    if (count == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'vocab': expected a list of pieces with their scores",
                 where);
    if (count > DT_VOCAB_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'vocab' has %lld pieces (expected at most %lld)",
                 where, (long long)count, (long long)DT_VOCAB_MAX);
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

static dt_status read_unknown(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    const json_t *id = json_object_get(model, "unk_id");

    if (id == NULL || json_is_null(id))
        return DT_OK;
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= bpe->vocab.size)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s': 'unk_id' is not the id of a piece (expected null, or 0 to %lld)",
                       where, (long long)bpe->vocab.size - 1);
    bpe->unknown = (int32_t)json_integer_value(id);
    return DT_OK;
}

dt_status dt_bpe_read_unigram(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    static const char *const keys[] = {"type", "unk_id", "vocab", "byte_fallback", NULL};
    double *scores = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(model, where, keys, err));
    if (bpe->byte_level)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Unigram after the pre_tokenizer ByteLevel", where);
    DT_TRY(dt_bpe_get_bool(&bpe->byte_fallback, model, "byte_fallback", false, where, err));
    DT_TRY(read_vocab(bpe, &scores, json_object_get(model, "vocab"), err));
    dt_bpe_find_bytes(bpe);
    DT_TRY(read_unknown(bpe, model, err));
    st = dt_unigram_build(&bpe->unigram, &bpe->vocab, scores, err);
    scores = NULL; /* now owned by the tree */
    bpe->is_unigram = st == DT_OK;
out:
    free(scores);
    return st;
}
