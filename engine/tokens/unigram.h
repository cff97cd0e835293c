/* unigram: finds the most probable pieces of a word.
 *
 * Each piece has a score, the logarithm of its probability. Of all ways to cut a word into pieces the one with the
 * largest sum of scores counts; a character that is not a piece is unknown, with a score 10 below the lowest one.
 * Sums are made from the left, and of two equal ones the earlier counts, as in the library `tokenizers`.
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

/* A tree of bytes, level by level: the children of a node follow one another, ascending by byte. */
typedef struct dt_unigram {
    uint8_t *bytes;     /* [nodes] */
    uint32_t *children; /* [nodes + 1]: the first child; the next node's is the end */
    int32_t *ids;       /* [nodes]: the piece that ends here; -1: none does */
    uint32_t root[256]; /* the child of the root; 0: none */
    size_t nodes;
    double *scores; /* [ids] */
    double unknown_score;
} dt_unigram;

/* The piece that ends at a byte of the word on the best way there. */
typedef struct dt_unigram_place {
    double score;
    uint32_t length; /* 0: no way leads here */
    int32_t id;      /* -1: an unknown character */
} dt_unigram_place;

/* Scratch memory; zeroed before its first use. */
typedef struct dt_unigram_memory {
    dt_unigram_place *places;
    size_t room;
} dt_unigram_memory;

/* Takes the tokens of the vocabulary that can be found by their bytes. Takes ownership of scores[id] of all ids, also
 * on failure. */
dt_status dt_unigram_build(dt_unigram *out, const dt_vocab *vocab, double *scores, dt_error *err);
void dt_unigram_release(dt_unigram *unigram); /* accepts a zeroed one */

/* Writes into memory->places[1 .. length] the best way to each byte, which leads back from the last one by `length`.
 * DT_ERR_NOMEM. */
dt_status dt_unigram_segment(dt_unigram_memory *memory, const dt_unigram *unigram,
                             const unsigned char *word, size_t length, dt_error *err);
void dt_unigram_memory_release(dt_unigram_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
