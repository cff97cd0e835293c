/* pair_counts: how often each pair of tokens occurs within words, which words have it, and which pair occurs
 * most: a heap whose counts are brought up to date when they come to its top. */
#ifndef DT_RUNNER_CORPUS_PAIR_COUNTS_H
#define DT_RUNNER_CORPUS_PAIR_COUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/tokens/pairs.h"

typedef struct dt_pair_count {
    int64_t count;   /* of its places, each as often as its word occurs */
    uint32_t *words; /* that have or had it; one may be in the list again */
    uint32_t words_count, words_capacity;
    bool grown; /* since the last dt_pair_counts_settle */
} dt_pair_count;

/* What the heap holds: the count that the pair had when it was put there. */
typedef struct dt_pair_candidate {
    int64_t count;
    uint64_t key;  /* dt_pair_key */
    int32_t which; /* in pairs */
} dt_pair_candidate;

typedef struct dt_pair_counts {
    dt_pairs index; /* two tokens → in pairs */
    dt_pair_count *pairs;
    int32_t count, capacity;
    dt_pair_candidate *heap;
    size_t heap_count, heap_capacity;
    uint64_t *grown; /* keys */
    size_t grown_count, grown_capacity;
} dt_pair_counts;

dt_status dt_pair_counts_init(dt_pair_counts *out, dt_error *err);
void dt_pair_counts_release(dt_pair_counts *counts); /* accepts a zeroed one */

/* More of a pair, or with a negative change fewer, in a word. */
dt_status dt_pair_counts_add(dt_pair_counts *counts, int32_t first, int32_t second, int64_t change,
                             uint32_t word, dt_error *err);
/* After additions, before the best is asked for. */
dt_status dt_pair_counts_settle(dt_pair_counts *counts, dt_error *err);
/* The pair that occurs most, of several the one with the lowest tokens; it leaves the heap. false: none
 * occurs. */
bool dt_pair_counts_best(dt_pair_candidate *out, dt_pair_counts *counts);

#endif
