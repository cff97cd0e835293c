#include "engine/tokens/tokens_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double unknown_penalty = 10;

/* --- the tree */

typedef struct piece {
    const unsigned char *bytes;
    size_t length;
    int32_t id;
} piece;

/* The pieces first .. end - 1, whose bytes start with the path to one node. */
typedef struct span {
    size_t first, end;
} span;

static int by_bytes(const void *a, const void *b)
{
    const piece *left = a, *right = b;
    size_t shorter = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->bytes, right->bytes, shorter);

    return order != 0 ? order : left->length < right->length ? -1 : left->length > right->length;
}

static dt_status list_pieces(piece **out, size_t *count, size_t *bytes, const dt_vocab *vocab,
                             dt_error *err)
{
    *out = malloc(((size_t)vocab->size + 1) * sizeof(**out));
    *count = *bytes = 0;
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld pieces", (long long)vocab->size);
    for (int64_t id = 0; id < vocab->size; id++) {
        size_t length;
        const char *text = dt_vocab_text(vocab, id, &length);

        if (text == NULL || length == 0 || dt_vocab_find(vocab, text, length) != id)
            continue;
        (*out)[(*count)++] = (piece){(const unsigned char *)text, length, (int32_t)id};
        *bytes += length;
    }
    qsort(*out, *count, sizeof(**out), by_bytes);
    return DT_OK;
}

/* Adds the children of a node, one for each byte that its pieces have at `depth`. */
static void add_children(dt_unigram *u, span *spans, const piece *pieces, size_t node, size_t depth)
{
    span rest = spans[node];

    u->children[node] = (uint32_t)u->nodes;
    if (rest.first < rest.end && pieces[rest.first].length == depth)
        u->ids[node] = pieces[rest.first++].id;
    while (rest.first < rest.end) {
        size_t child = u->nodes++, end = rest.first + 1;
        uint8_t byte = pieces[rest.first].bytes[depth];

        while (end < rest.end && pieces[end].bytes[depth] == byte)
            end++;
        u->bytes[child] = byte;
        u->ids[child] = -1;
        spans[child] = (span){rest.first, end};
        rest.first = end;
    }
}

static dt_status add_nodes(dt_unigram *u, const piece *pieces, size_t count, size_t bytes,
                           dt_error *err)
{
    span *spans = malloc((bytes + 1) * sizeof(*spans));
    size_t depth = 0, level_end = 1;

    u->bytes = malloc(bytes + 1);
    u->children = malloc((bytes + 2) * sizeof(*u->children));
    u->ids = malloc((bytes + 1) * sizeof(*u->ids));
    if (spans == NULL || u->bytes == NULL || u->children == NULL || u->ids == NULL) {
        free(spans);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu pieces", count);
    }
    spans[0] = (span){0, count};
    u->bytes[0] = 0;
    u->ids[0] = -1;
    u->nodes = 1;
    for (size_t node = 0; node < u->nodes; node++) {
        if (node == level_end) {
            depth++;
            level_end = u->nodes;
        }
        add_children(u, spans, pieces, node, depth);
    }
    u->children[u->nodes] = (uint32_t)u->nodes;
    for (uint32_t child = u->children[0]; child < u->children[1]; child++)
        u->root[u->bytes[child]] = child;
    free(spans);
    return DT_OK;
}

dt_status dt_unigram_build(dt_unigram *out, const dt_vocab *vocab, double *scores, dt_error *err)
{
    size_t count = 0, bytes = 0;
    piece *pieces = NULL;
    double lowest = INFINITY;
    dt_status st = DT_OK;

    *out = (dt_unigram){.scores = scores};
    for (int64_t id = 0; id < vocab->size; id++)
        lowest = scores[id] < lowest ? scores[id] : lowest;
    out->unknown_score = lowest - unknown_penalty;
    DT_TRY(list_pieces(&pieces, &count, &bytes, vocab, err));
    if (bytes >= UINT32_MAX)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "the pieces have %zu bytes (expected fewer than 4 GB)",
                 bytes);
    DT_TRY(add_nodes(out, pieces, count, bytes, err));
out:
    free(pieces);
    return st;
}

void dt_unigram_release(dt_unigram *unigram)
{
    free(unigram->bytes);
    free(unigram->children);
    free(unigram->ids);
    free(unigram->scores);
    *unigram = (dt_unigram){0};
}

/* --- a word */

/* Returns the child for this byte; 0 if there is none. */
static inline uint32_t child_of(const dt_unigram *u, uint32_t node, uint8_t byte)
{
    uint32_t low = u->children[node], high = u->children[node + 1];

    while (high - low > 8) {
        uint32_t middle = low + (high - low) / 2;

        if (u->bytes[middle] <= byte)
            low = middle;
        else
            high = middle;
    }
    for (; low < high; low++)
        if (u->bytes[low] == byte)
            return low;
    return 0;
}

static inline size_t character_length(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

static inline void offer(dt_unigram_place *to, double score, size_t length, int32_t id)
{
    if (to->length == 0 || score > to->score)
        *to = (dt_unigram_place){score, (uint32_t)length, id};
}

dt_status dt_unigram_segment(dt_unigram_memory *memory, const dt_unigram *unigram,
                             const unsigned char *word, size_t length, dt_error *err)
{
    dt_unigram_place *places;
    dt_status st = DT_OK;

    if (length >= memory->room) {
        dt_unigram_memory_release(memory);
        memory->places = malloc((length + 1) * sizeof(*memory->places));
        if (memory->places == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for a word of %zu bytes", length);
        memory->room = length + 1;
    }
    places = memory->places;
    for (size_t i = 0; i <= length; i++)
        places[i] = (dt_unigram_place){.score = 0};
    for (size_t at = 0, step; at < length; at += step) {
        double score = places[at].score;
        uint32_t node = unigram->root[word[at]];
        bool is_known = false;

        step = character_length(word[at]);
        for (size_t end = at + 1; node != 0; end++) {
            int32_t id = unigram->ids[node];

            if (id >= 0) {
                offer(&places[end], score + unigram->scores[id], end - at, id);
                is_known = is_known || end - at == step;
            }
            node = end < length ? child_of(unigram, node, word[end]) : 0;
        }
        if (!is_known)
            offer(&places[at + step], score + unigram->unknown_score, step, -1);
    }
out:
    return st;
}

void dt_unigram_memory_release(dt_unigram_memory *memory)
{
    free(memory->places);
    *memory = (dt_unigram_memory){0};
}
