#include "engine/data/stream.h"

#include <stdlib.h>
#include <string.h>

dt_status dt_token_stream_init(dt_token_stream *out, int64_t pieces, dt_error *err)
{
    memset(out, 0, sizeof(*out));
    out->pieces = calloc((size_t)pieces + 1, sizeof(*out->pieces));
    if (out->pieces == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a list of %lld files", (long long)pieces);
    return DT_OK;
}

void dt_token_stream_release(dt_token_stream *stream)
{
    for (int64_t i = 0; i < stream->piece_count; i++) {
        dt_mapping_close(&stream->pieces[i].mapping);
        free(stream->pieces[i].memory);
    }
    free(stream->pieces);
    memset(stream, 0, sizeof(*stream));
}

void dt_token_stream_add(dt_token_stream *stream, const dt_token_piece *piece)
{
    dt_token_piece *added = &stream->pieces[stream->piece_count++];

    *added = *piece;
    added->start = stream->count;
    stream->count += piece->count;
}

static int64_t token_at(const dt_token_piece *piece, int64_t index)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (piece->width_bytes) {
    case 1:
        return piece->tokens[index];
    case 2:
        memcpy(&two, piece->tokens + index * 2, sizeof(two));
        return two;
    case 8: /* a value beyond every vocabulary must stay so */
        memcpy(&eight, piece->tokens + index * 8, sizeof(eight));
        return eight <= INT64_MAX ? (int64_t)eight : INT64_MAX;
    default:
        memcpy(&four, piece->tokens + index * 4, sizeof(four));
        return four;
    }
}

/* The piece that contains token number `at`. */
static const dt_token_piece *piece_of(const dt_token_stream *stream, int64_t at)
{
    int64_t low = 0, high = stream->piece_count - 1;

    while (low < high) {
        int64_t middle = (low + high + 1) / 2;

        if (stream->pieces[middle].start <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return &stream->pieces[low];
}

/* How many of `count` tokens from `at` are in this piece. */
static int64_t run_length(const dt_token_piece *piece, int64_t at, int64_t count)
{
    int64_t left = piece->start + piece->count - at;

    return left < count ? left : count;
}

void dt_token_stream_read(int32_t *out, const dt_token_stream *stream, int64_t start, int64_t count)
{
    DT_ASSERT(start >= 0 && count >= 0 && start <= stream->count - count);
    while (count > 0) {
        const dt_token_piece *piece = piece_of(stream, start);
        int64_t run = run_length(piece, start, count);

        for (int64_t i = 0; i < run; i++)
            out[i] = (int32_t)(uint32_t)token_at(piece, start - piece->start + i);
        out += run;
        start += run;
        count -= run;
    }
}

dt_status dt_token_stream_check(const dt_token_stream *stream, int64_t start, int64_t count,
                                int64_t limit, dt_error *err)
{
    DT_ASSERT(start >= 0 && count >= 0 && start <= stream->count - count);
    while (count > 0) {
        const dt_token_piece *piece = piece_of(stream, start);
        int64_t run = run_length(piece, start, count);

        for (int64_t i = 0; i < run; i++) {
            int64_t token = token_at(piece, start - piece->start + i);

            if (token >= limit)
                return DT_FAIL(
                    err, DT_ERR_RECIPE,
                    "'%s': token number %lld is %lld, and the vocabulary has %lld; set "
                    "model.vocab to the tokenizer's, or data.tokens to the file's format",
                    piece->path, (long long)(start - piece->start + i), (long long)token,
                    (long long)limit);
        }
        start += run;
        count -= run;
    }
    return DT_OK;
}

int64_t dt_token_stream_max(const dt_token_stream *stream)
{
    int64_t largest = -1;

    for (int64_t k = 0; k < stream->piece_count; k++) {
        const dt_token_piece *piece = &stream->pieces[k];

        for (int64_t i = 0; i < piece->count; i++) {
            int64_t token = token_at(piece, i);
            if (token > largest)
                largest = token;
        }
    }
    return largest;
}
