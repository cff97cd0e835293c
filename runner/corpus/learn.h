/* learn: byte pairs merged by how often they occur (Sennrich, Haddow and Birch, "Neural machine
 * translation of rare words with subword units", 2016; on bytes as GPT-2 has it).
 *
 * Of all pairs of neighbours within words the one that occurs most becomes a token, of several such the one
 * whose first number, then whose second, is lowest, until there are `vocab` tokens or no pair occurs
 * `least_count` times. The merges are those of the trainer of Hugging Face's `tokenizers`, given the same
 * words, alphabet and special tokens; how the words are ordered does not count.
 *
 * Time     a heap of pairs with their counts, brought up to date when they come to its top, and for each
 *          pair the words that it is in: a merge costs the words that it changes
 * Memory   some 12 bytes a byte of different words
 */
#ifndef DT_RUNNER_CORPUS_LEARN_H
#define DT_RUNNER_CORPUS_LEARN_H

#include "engine/tokens/write.h"
#include "runner/corpus/words.h"

typedef struct dt_learn_options {
    int64_t vocab; /* tokens wanted, the special ones and the 256 bytes among them */
    int64_t least_count;
    void (*tell)(const char *text); /* progress, a line at a time; may be NULL */
} dt_learn_options;

/* Adds to a draft that has begun. *merges: the caller frees them; the draft points to them. */
dt_status dt_learn_merges(dt_bpe_draft *draft, dt_bpe_merge **merges, const dt_words *words,
                          const dt_learn_options *options, dt_error *err);

#endif
