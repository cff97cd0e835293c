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
/* False if there is no tokenizer of that name. */
bool dt_bleu_words_find(dt_bleu_words *out, const char *name);

/* Append the words of a line, each followed by '\n', and return their number. */
size_t dt_bleu_words_split(dt_strbuf *out, dt_bleu_words words, const char *line, size_t length);

#endif
