/* unigram: finds the most probable segmentation of a word into pieces.
 *
 * Each piece has a score, the logarithm of its probability. The segmentation with the largest sum of scores wins; a
 * character that is not a piece is unknown, with a score 10 below the lowest one. Sums are computed from left to
 * right, and of two equal sums the one found first wins, as in the library `tokenizers`.
 *
 * Time     length * bytes of the longest piece
 * Memory   16 bytes for each byte of the longest word, kept until release
 */
#ifndef DT_ENGINE_TOKENS_UNIGRAM_H
#define DT_ENGINE_TOKENS_UNIGRAM_H

#include "engine/tokens/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tree of bytes in breadth-first order: the children of a node are contiguous, ascending by
 * byte. */
typedef struct dt_unigram {
    uint8_t *bytes;     /* [nodes] */
    uint32_t *children; /* [nodes + 1]: first child; the end is the first child of node + 1 */
    int32_t *ids;       /* [nodes]: the piece that ends here; -1: none */
    uint32_t root[256]; /* the root's child for each byte; 0: none */
    size_t nodes;
    double *scores; /* [ids] */
    double unknown_score;
} dt_unigram;

/* The last piece of the best segmentation of the word up to a byte. */
typedef struct dt_unigram_place {
    double score;
    uint32_t length; /* 0: no segmentation ends here */
    int32_t id;      /* -1: an unknown character */
} dt_unigram_place;

/* Scratch memory; zeroed before its first use. */
typedef struct dt_unigram_memory {
    dt_unigram_place *places;
    size_t room;
} dt_unigram_memory;

/* Builds the tree from the tokens of the vocabulary that can be found by their bytes. Takes
 * ownership of `scores`, which has an element for every id, also on failure. */
dt_status dt_unigram_build(dt_unigram *out, const dt_vocab *vocab, double *scores, dt_error *err);
void dt_unigram_release(dt_unigram *unigram); /* accepts a zeroed one */

/* Writes the best segmentations to memory->places: places[i] is the last piece of the first i
 * bytes, for i = 1 .. length. Following `length` back from the end gives all pieces. DT_ERR_NOMEM
 * on failure. */
dt_status dt_unigram_segment(dt_unigram_memory *memory, const dt_unigram *unigram,
                             const unsigned char *word, size_t length, dt_error *err);
void dt_unigram_memory_release(dt_unigram_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
