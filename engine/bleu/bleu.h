/* bleu: computes BLEU of translations against references, like sacreBLEU's corpus BLEU.
 *
 * Score      n-grams of one to four words, matches clipped by the reference's counts, with the brevity
 *            penalty; orders without a match are smoothed by `exp` (the k-th counts as 1 / 2^k matches). A
 *            corpus without a single match, or without any four-gram, scores 0. Between 0 and 100
 * Counts     are integers: the counts of parts of a corpus can be added in any order, and the score is
 *            computed from counts alone
 * Words      words.h. One reference per line, case-sensitive
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
    /* of the translations: matched and total n-grams */
    int64_t matched[DT_BLEU_ORDERS], made[DT_BLEU_ORDERS];
    int64_t length, reference_length; /* lengths of both sides in words */
} dt_bleu_counts;

typedef struct dt_bleu {
    double score, precisions[DT_BLEU_ORDERS]; /* score and precisions in percent */
    /* brevity penalty; 1 if the translations are long enough */
    double brevity;
} dt_bleu;

/* Add one line and its reference. */
dt_status dt_bleu_add(dt_bleu_counts *counts, dt_bleu_words words, const char *line, size_t length,
                      const char *reference, size_t reference_length, dt_error *err);

dt_bleu dt_bleu_of(const dt_bleu_counts *counts);

#endif
