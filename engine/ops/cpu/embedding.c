/* embedding: token ids to rows of numbers, and the lengths of rows of tokens.
 *
 * Backward   each thread owns some columns and processes all tokens, so that no two threads write the
 *            same element: no atomics, and the order of the sums does not depend on the thread count
 * Errors     DT_ERR_CORRUPT for a token outside the vocabulary
 */
#include "engine/ops/cpu/ops_int.h"

/* row_lengths: computes the length of each row of tokens without its padding. */

dt_status DT_CPU_NAME(row_lengths)(dt_device *device, dt_tensor *lengths, const dt_tensor *tokens,
                                   int32_t pad, dt_error *err)
{
    int64_t rows = tokens->dim[0], columns = tokens->dim[1];
    const int32_t *token = tokens->data;
    int32_t *out = lengths->data;

    DT_ASSERT(tokens->dtype == DT_I32 && tokens->ndim == 2 && lengths->dtype == DT_I32 &&
              dt_tensor_elems(lengths) == rows);
    for (int64_t i = 0; i < rows; i++) {
        int64_t length = columns;

        while (length > 1 && token[i * columns + length - 1] == pad)
            length--;
        out[i] = (int32_t)length;
    }
    return DT_OK;
}

/* The rows of the vocabulary in wte (ops.h). */
static dt_vocab_part part_of(const dt_vocab_part *part, const dt_tensor *wte)
{
    int64_t rows = dt_tensor_rows(wte);

    DT_ASSERT(part == NULL || part->count <= rows);
    return part != NULL ? *part : (dt_vocab_part){0, rows, rows};
}

/* The row of a token in wte; -1: it is in another part. */
static int64_t row_of(const dt_vocab_part *part, int32_t token)
{
    int64_t row = token - part->first;

    return row >= 0 && row < part->count ? row : -1;
}

static dt_status check_tokens(const dt_tensor *tokens, int64_t vocab, dt_error *err)
{
    const int32_t *token = tokens->data;
    int64_t n = dt_tensor_elems(tokens), bad = 0;

#pragma omp simd reduction(+ : bad)
    for (int64_t i = 0; i < n; i++)
        bad += token[i] < 0 || token[i] >= vocab;
    if (bad == 0)
        return DT_OK;
    for (int64_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= vocab)
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "token %d at position %lld of the batch is outside the vocabulary of "
                           "%lld: the data were made for another vocabulary",
                           (int)token[i], (long long)i, (long long)vocab);
    return DT_OK;
}

/* row = factor * word + place; place may be NULL. */
static void add_rows(float *row, const float *word, float factor, const float *place, int64_t c)
{
    if (place == NULL)
#pragma omp simd
        for (int64_t j = 0; j < c; j++)
            row[j] = factor * word[j];
    else
#pragma omp simd
        for (int64_t j = 0; j < c; j++)
            row[j] = factor * word[j] + place[j];
}

dt_status DT_CPU_NAME(embedding_forward)(dt_device *device, dt_tensor *out, const dt_tensor *tokens,
                                         const dt_tensor *wte, const dt_tensor *wpe, double scale,
                                         const dt_vocab_part *part, dt_error *err)
{
    dt_vocab_part held = part_of(part, wte);
    dt_status st = DT_OK;
    int64_t t_count = dt_tensor_cols(tokens), n = dt_tensor_elems(tokens);
    int64_t c = dt_tensor_cols(out), pad = dt_cpu_round_up(c, 16);
    const int32_t *token = tokens->data;
    bool places = wpe != NULL && wpe->data != NULL;
    float factor = (float)scale;
    dt_cpu_scratch scratch;

    DT_ASSERT(tokens->dtype == DT_I32 && dt_tensor_cols(wte) == c && dt_tensor_rows(out) == n);
    DT_ASSERT(!places || (dt_tensor_cols(wpe) == c && dt_tensor_rows(wpe) >= t_count));
    DT_TRY(dt_row_check(out, "embedding", err));
    DT_TRY(check_tokens(tokens, held.all, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * pad, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *c))
    {
        dt_cpu_share share = dt_cpu_share_mine(n, 1);
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = share.begin; i < share.end; i++) {
            int64_t at = row_of(&held, token[i]);
            const float *word = dt_row_read(wte, (at < 0 ? 0 : at) * c, c, mine);
            const float *place = places ? dt_row_read(wpe, i % t_count * c, c, mine + pad) : NULL;
            float *row = dt_row_open(out, i * c, mine + 2 * pad);

            add_rows(row, word, at < 0 ? 0.0f : factor, place, c);
            dt_row_close(out, i * c, c, row);
        }
    }
out:
    return st;
}

/* sums += factor * row. */
static void gather_row(float *restrict sums, const float *row, float factor, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        sums[j] += factor * row[j];
}

dt_status DT_CPU_NAME(embedding_backward)(dt_device *device, dt_tensor *dwte, dt_tensor *dwpe,
                                          const dt_tensor *dout, const dt_tensor *tokens,
                                          double scale, const dt_vocab_part *part, dt_error *err)
{
    dt_vocab_part held = part_of(part, dwte);
    dt_status st = DT_OK;
    int64_t t_count = dt_tensor_cols(tokens), n = dt_tensor_elems(tokens);
    int64_t c = dt_tensor_cols(dout);
    const int32_t *token = tokens->data;
    bool words = dwte->data != NULL, places = dwpe != NULL && dwpe->data != NULL;
    dt_cpu_scratch scratch;

    DT_ASSERT(dt_tensor_rows(dout) == n);
    DT_ASSERT(!words || (dwte->dtype == DT_F32 && dt_tensor_cols(dwte) == c));
    DT_ASSERT(!places || (dwpe->dtype == DT_F32 && dt_tensor_cols(dwpe) == c &&
                          dt_tensor_rows(dwpe) >= t_count));
    DT_TRY(dt_row_check(dout, "embedding", err));
    DT_TRY(check_tokens(tokens, held.all, err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, c, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, n *c))
    {
        dt_cpu_share share = dt_cpu_share_mine(c, 16);
        int64_t width = share.end - share.begin;
        float *mine = dt_cpu_scratch_mine(scratch);

        for (int64_t i = 0; i < n && width > 0; i++) {
            const float *row = dt_row_read(dout, i * c + share.begin, width, mine);
            int64_t at = row_of(&held, token[i]);

            if (words && at >= 0)
                gather_row((float *)dwte->data + at * c + share.begin, row, (float)scale, width);
            if (places)
                gather_row((float *)dwpe->data + i % t_count * c + share.begin, row, 1.0f, width);
        }
    }
out:
    return st;
}
