/* words: counts the words of a corpus, as a tokenizer splits text.
 *
 * A table with open addressing, at most half full. A word longer than DT_WORD_MAX, as in text
 * without spaces, is counted in pieces.
 * Memory   48 bytes for each different word, and its bytes
 * Threads  one per table
 */
#ifndef DT_RUNNER_CORPUS_WORDS_H
#define DT_RUNNER_CORPUS_WORDS_H

#include <stdint.h>

#include "base/strbuf.h"
#include "engine/tokens/split.h"

#define DT_WORD_MAX ((size_t)1 << 16) /* bytes */

typedef struct dt_word {
    uint64_t start; /* in words->bytes */
    uint32_t length, hash;
    int64_t count; /* 0: the slot is empty */
} dt_word;

typedef struct dt_words {
    dt_strbuf bytes;
    dt_word *slots;
    uint64_t used, mask;
} dt_words;

void dt_words_init(dt_words *out);
void dt_words_release(dt_words *words); /* accepts a zeroed struct */

void dt_words_add(dt_words *words, const char *word, size_t length, int64_t count);
/* Adds all words of a text. DT_ERR_USAGE, with the byte, if it is not UTF-8. */
dt_status dt_words_add_text(dt_words *words, const dt_split *split, const char *text, size_t length,
                            dt_error *err);
/* Adds all words of another table. */
void dt_words_add_all(dt_words *words, const dt_words *other);

static inline const char *dt_word_text(const dt_words *words, const dt_word *word)
{
    return words->bytes.data + word->start;
}

#endif
