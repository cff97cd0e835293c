/* split: text cut into the words in which byte pairs are merged, as the tokenizers of GPT-2, Llama 3
 * and Qwen cut it.
 *
 * Each is an alternation that their tokenizer.json gives as a regular expression and that looks at
 * nothing before the place where it begins; written out, it costs a nanosecond a byte.
 *   gpt2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *           |\s*[\r\n]+|\s+(?!\S)|\s+
 *   qwen    the same with \p{N}
 *   cl100k  llama3's, but white space at the end of the text is one word, line breaks and all
 */
#ifndef DT_ENGINE_TOKENS_SPLIT_H
#define DT_ENGINE_TOKENS_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_split_kind {
    DT_SPLIT_NONE, /* all of it is one word */
    DT_SPLIT_GPT2,
    DT_SPLIT_LLAMA3,
    DT_SPLIT_QWEN,
    DT_SPLIT_CL100K
} dt_split_kind;

typedef struct dt_split {
    dt_split_kind kind;
    bool digits; /* every number (\p{N}) stands alone, before anything else is looked at */
} dt_split;

/* The regular expression as a tokenizer.json has it; false: it is none of the above. */
bool dt_split_find(dt_split_kind *out, const char *expression);
/* The other way; NULL: it has none. */
const char *dt_split_expression(dt_split_kind kind);

/* Bytes of the first word of text (valid UTF-8, not empty). */
size_t dt_split_next(const dt_split *split, const unsigned char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
