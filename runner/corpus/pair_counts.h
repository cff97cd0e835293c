/* pair_counts: counts how often each pair of tokens occurs within words, and finds the words of a pair and the most
 * frequent pair, with a heap whose counts are updated when they reach the top. */
#ifndef DT_RUNNER_CORPUS_PAIR_COUNTS_H
#define DT_RUNNER_CORPUS_PAIR_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/tokens/pairs.h"

typedef struct dt_pair_count {
    int64_t count;   /* number of occurrences, weighted by the count of the word */
    uint32_t *words; /* words that contain the pair, or did so earlier; can contain duplicates */
    uint32_t words_count, words_capacity;
    bool grown; /* the count has grown since the last dt_pair_counts_settle */
} dt_pair_count;

/* An entry of the heap, with the pair's count at the time when it was added. */
typedef struct dt_pair_candidate {
    int64_t count;
    uint64_t key;  /* dt_pair_key */
    int32_t which; /* index in `pairs` */
} dt_pair_candidate;

typedef struct dt_pair_counts {
    dt_pairs index; /* maps two tokens to an index in `pairs` */
    dt_pair_count *pairs;
    int32_t count, capacity;
    dt_pair_candidate *heap;
    size_t heap_count, heap_capacity;
    uint64_t *grown; /* keys */
    size_t grown_count, grown_capacity;
} dt_pair_counts;

dt_status dt_pair_counts_init(dt_pair_counts *out, dt_error *err);
void dt_pair_counts_release(dt_pair_counts *counts); /* accepts a zeroed struct */

/* Changes the count of a pair in a word. */
dt_status dt_pair_counts_add(dt_pair_counts *counts, int32_t first, int32_t second, int64_t change,
                             uint32_t word, dt_error *err);
/* Call after additions, before dt_pair_counts_best. */
void dt_pair_counts_settle(dt_pair_counts *counts);
/* Removes the most frequent pair from the heap, of equal ones that with the lowest tokens; false: no pair occurs. */
bool dt_pair_counts_best(dt_pair_candidate *out, dt_pair_counts *counts);

#endif
