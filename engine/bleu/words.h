/* words: what of a line is a word, as the tokenizers of sacreBLEU have it.
 *
 * 13a        mteval-v13a's: four HTML entities are read, punctuation stands alone, but '.' and ',' between
 *            digits; a dash after a digit stands alone
 * none       what lies between spaces
 * char       each character by itself, without spaces
 *
 * Spaces are those of Unicode that Python's str.split() knows. A byte that is no UTF-8 is a character of
 * its own, where sacreBLEU refuses the file.
 */
#ifndef DT_ENGINE_BLEU_WORDS_H
#define DT_ENGINE_BLEU_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

typedef enum dt_bleu_words {
    DT_BLEU_WORDS_13A,
    DT_BLEU_WORDS_NONE,
    DT_BLEU_WORDS_CHAR,
} dt_bleu_words;

const char *dt_bleu_words_name(dt_bleu_words words);
/* False where there is none of that name. */
bool dt_bleu_words_find(dt_bleu_words *out, const char *name);

/* Appends the words of a line, each with one byte '\n' behind it, and returns how many they are. */
size_t dt_bleu_words_split(dt_strbuf *out, dt_bleu_words words, const char *line, size_t length);

#endif
