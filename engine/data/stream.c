/* stream: the tokens of all files, and the documents in them. */
#include "engine/data/stream.h"

#include <stdlib.h>
#include <string.h>

/* --- tokens */

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

/* Move the first `count` tokens of the piece to head, and the rest to tail. */
static void divide_piece(dt_token_stream *head, dt_token_stream *tail, dt_token_piece piece,
                         int64_t count)
{
    dt_token_piece rest = piece;

    rest.tokens += count * piece.width_bytes;
    rest.count -= count;
    piece.count = count;
    if (count > 0) {
        dt_token_stream_add(head, &piece);
        rest.mapping = (dt_mapping){0};
        rest.memory = NULL;
    }
    if (rest.count > 0)
        dt_token_stream_add(tail, &rest);
}

dt_status dt_token_stream_divide(dt_token_stream *head, dt_token_stream *tail,
                                 dt_token_stream *stream, const int64_t files[],
                                 const int64_t kept[], int64_t parts, dt_error *err)
{
    const dt_token_piece *piece = stream->pieces;
    dt_status st = DT_OK;

    *tail = (dt_token_stream){0};
    DT_TRY(dt_token_stream_init(head, stream->piece_count, err));
    DT_TRY(dt_token_stream_init(tail, stream->piece_count, err));
    for (int64_t i = 0; i < parts; i++) {
        int64_t left = kept[i];

        for (int64_t f = 0; f < files[i]; f++, piece++) {
            int64_t count = left < piece->count ? left : piece->count;

            left -= count;
            divide_piece(head, tail, *piece, count);
        }
    }
    free(stream->pieces);
    *stream = (dt_token_stream){0};
out:
    if (st != DT_OK)
        dt_token_stream_release(head);
    return st;
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

/* --- sequences of whole documents */

#define AT_ONCE ((int64_t)1 << 14) /* tokens read from the stream at once */

typedef struct packing {
    dt_packs *out;
    int64_t room;               /* capacity of out->starts */
    int64_t tokens;             /* T: maximum tokens of a sequence */
    int64_t sequence, document; /* start of the current sequence and of the current document */
} packing;

/* Add the sequence that starts where the last one ends. */
static dt_status add(packing *p, int64_t end, dt_error *err)
{
    dt_packs *out = p->out;
    int64_t *larger;

    larger = dt_array_try_room(out->starts, out->count + 2, &p->room, sizeof(*larger));
    if (larger == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to pack %lld sequences",
                       (long long)out->count);
    out->starts = larger;
    out->starts[++out->count] = end;
    p->sequence = end;
    return DT_OK;
}

/* Place the document that ends before token `end` in the sequence where it fits. */
static dt_status place(packing *p, int64_t end, dt_error *err)
{
    dt_status st = DT_OK;

    if (end - p->sequence > p->tokens && p->sequence < p->document)
        DT_TRY(add(p, p->document, err));
    while (end - p->sequence > p->tokens)
        DT_TRY(add(p, p->sequence + p->tokens, err));
    p->document = end;
out:
    return st;
}

dt_status dt_packs_make(dt_packs *out, const dt_token_stream *stream, int64_t first, int64_t count,
                        int64_t tokens, int32_t end, dt_error *err)
{
    packing p = {.out = out, .room = 64, .tokens = tokens, .sequence = first, .document = first};
    int32_t *read = malloc((size_t)AT_ONCE * sizeof(*read));
    dt_status st = DT_OK;

    *out = (dt_packs){.starts = malloc((size_t)p.room * sizeof(*out->starts))};
    if (read == NULL || out->starts == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to pack documents");
    out->starts[0] = first;
    for (int64_t at = 0, some; at < count; at += some) {
        some = count - at < AT_ONCE ? count - at : AT_ONCE;
        dt_token_stream_read(read, stream, first + at, some);
        for (int64_t i = 0; i < some; i++)
            if (read[i] == end)
                DT_TRY(place(&p, first + at + i + 1, err));
    }
    DT_TRY(place(&p, first + count, err)); /* text after the last end of a document */
    if (p.sequence < first + count)
        DT_TRY(add(&p, first + count, err));
out:
    free(read);
    return st;
}

dt_status dt_packs_join(dt_packs *out, dt_packs *more, dt_error *err)
{
    int64_t count = out->count + more->count;
    int64_t *larger = realloc(out->starts, ((size_t)count + 1) * sizeof(*larger));

    if (larger == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to pack %lld sequences", (long long)count);
    memcpy(larger + out->count, more->starts, ((size_t)more->count + 1) * sizeof(*larger));
    *out = (dt_packs){count, larger};
    dt_packs_release(more);
    return DT_OK;
}

void dt_packs_release(dt_packs *packs)
{
    free(packs->starts);
    memset(packs, 0, sizeof(*packs));
}

/* --- documents within a sample */

dt_status dt_documents_end(int32_t *out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                           int64_t vocab, dt_error *err)
{
    int64_t given = recipe->data.end_of_text;

    *out = DT_DOCUMENTS_CROSSED;
    if (recipe->data.cross_documents)
        return DT_OK;
    if (given >= 0 && vocab > 0 && given >= vocab)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.end_of_text is %lld, but the vocabulary has %lld tokens: set it to "
                       "the id of the token that ends documents",
                       (long long)given, (long long)vocab);
    if (given < 0 && tokenizer != NULL)
        given = dt_tokenizer_end_of_text(tokenizer);
    if (given < 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.cross_documents is false, but it is unknown where documents end: set "
                       "data.end_of_text to the id of the token that ends each document, or set "
                       "data.tokenizer to a tokenizer that has such a token");
    *out = (int32_t)given;
    return DT_OK;
}

void dt_documents_mark(int32_t *targets, int32_t *starts, int32_t *positions, const int32_t *tokens,
                       int64_t count, int32_t end)
{
    int64_t start = 0;

    for (int64_t t = 0; t < count; t++) {
        starts[t] = (int32_t)start;
        positions[t] = (int32_t)(t - start);
        if (tokens[t] == end) {
            targets[t] = -1;
            start = t + 1;
        }
    }
}
