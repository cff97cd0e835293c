/* bleu: computes BLEU of translations against references, and splits lines into words for it, both like
 * sacreBLEU.
 *
 * Score      n-grams of one to four words, matches clipped by the reference's counts, with the brevity
 *            penalty; orders without a match are smoothed by `exp` (the k-th counts as 1 / 2^k matches). A
 *            corpus without a single match, or without any four-gram, scores 0. Between 0 and 100
 * Counts     are integers: the counts of parts of a corpus can be added in any order, and the score is
 *            computed from counts alone
 * Words      as dt_bleu_words says. One reference per line, case-sensitive
 * Errors     DT_ERR_NOMEM
 */
#ifndef DT_ENGINE_BLEU_BLEU_H
#define DT_ENGINE_BLEU_BLEU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

/* words: splits a line into words, like the tokenizers of sacreBLEU.
 *
 * 13a        mteval-v13a: decodes four HTML entities; separates punctuation, except '.' and ',' between
 *            digits; separates a hyphen after a digit
 * none       splits at spaces
 * char       each character by itself, without spaces
 *
 * Spaces are those that Python's str.split() knows. A byte that is not UTF-8 is a character of
 * its own, whereas sacreBLEU refuses the file.
 */

typedef enum dt_bleu_words {
    DT_BLEU_WORDS_13A,
    DT_BLEU_WORDS_NONE,
    DT_BLEU_WORDS_CHAR,
} dt_bleu_words;

const char *dt_bleu_words_name(dt_bleu_words words);
/* False if there is no tokenizer of that name. */
bool dt_bleu_words_find(dt_bleu_words *out, const char *name);

/* Append the words of a line, each followed by '\n', and return their number. */
size_t dt_bleu_words_split(dt_strbuf *out, dt_bleu_words words, const char *line, size_t length);

enum { DT_BLEU_ORDERS = 4 };

typedef struct dt_bleu_counts {
    /* n-grams of the translations: matched and total */
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
