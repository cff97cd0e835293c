/* learn: trains a byte pair encoding (Sennrich, Haddow and Birch, "Neural machine translation of rare words with
 * subword units", 2016; on bytes as in GPT-2).
 *
 * Repeatedly merges the most frequent pair of neighbours within words, or of equally frequent pairs the one with the
 * lowest first id, then second id, until there are `vocab` tokens or no pair occurs `least_count` times. The merges
 * equal those of the trainer of Hugging Face's `tokenizers` for the same words, alphabet and special tokens, in any
 * order of the words.
 *
 * Time     a merge costs in proportion to the words that it changes: each pair has a list of its words, and the counts
 *          in a heap of pairs are updated only when they reach the top
 * Memory   about 12 bytes per byte of the different words
 */
#ifndef DT_RUNNER_CORPUS_LEARN_H
#define DT_RUNNER_CORPUS_LEARN_H

#include "engine/tokens/write.h"
#include "runner/corpus/words.h"

typedef struct dt_learn_options {
    int64_t vocab; /* number of tokens, including the special ones and the 256 bytes */
    int64_t least_count;
    void (*tell)(const char *text); /* progress, a line at a time; may be NULL */
} dt_learn_options;

/* Adds merges to a begun draft. The caller frees *merges, to which the draft points. */
dt_status dt_learn_merges(dt_bpe_draft *draft, dt_bpe_merge **merges, const dt_words *words,
                          const dt_learn_options *options, dt_error *err);

#endif
