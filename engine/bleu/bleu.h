/* bleu: how near translations are to references, as sacreBLEU's corpus BLEU has it.
 *
 * Score      n-grams of one to four words, those that match clipped by the reference's, with the brevity
 *            penalty; orders that match nothing smoothed by `exp` (the k-th counts as 1 / 2^k matches). A
 *            corpus without a single match, or without a word of four-grams, scores 0. Between 0 and 100
 * Counts     are whole numbers: those of parts of a corpus add up to those of the whole in any order, and
 *            all that the score is made of is in them
 * Words      words.h. One reference a line, case kept
 * Errors     DT_ERR_NOMEM
 */
#ifndef DT_ENGINE_BLEU_BLEU_H
#define DT_ENGINE_BLEU_BLEU_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/bleu/words.h"

enum { DT_BLEU_ORDERS = 4 };

typedef struct dt_bleu_counts {
    int64_t matched[DT_BLEU_ORDERS], made[DT_BLEU_ORDERS]; /* n-grams of the translations */
    int64_t length, reference_length;                      /* in words */
} dt_bleu_counts;

typedef struct dt_bleu {
    double score, precisions[DT_BLEU_ORDERS]; /* in percent */
    double brevity;                           /* 1 where the translations are long enough */
} dt_bleu;

/* Adds one line and its reference. */
dt_status dt_bleu_add(dt_bleu_counts *counts, dt_bleu_words words, const char *line, size_t length,
                      const char *reference, size_t reference_length, dt_error *err);

dt_bleu dt_bleu_of(const dt_bleu_counts *counts);

#endif
