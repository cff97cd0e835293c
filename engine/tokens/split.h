/* split: cuts text into the words that a model sees, as the pre-tokenizers of published tokenizers do.
 *
 * A split has stages, each of which cuts the pieces of the stage before it at the places where its pattern
 * matches: a match is a piece, and so is what lies between two matches. A pattern is one of those that are
 * written out here, which costs a nanosecond a byte, or a set of characters (split_set.h).
 *   gpt2      's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   llama3    (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *             |\s*[\r\n]+|\s+(?!\S)|\s+
 *   qwen      the same with \p{N}
 *   cl100k    llama3's, but white space at the end of the text is one word, line breaks and all
 *   o200k     words of upper-case, then lower-case letters, with their contraction; marks are letters, and a
 *             slash belongs to the punctuation before it. GPT-4o's and Llama 4's
 *   deepseek  the last stage of DeepSeek-V3's: ASCII punctuation joins ASCII letters, marks are letters
 */
#ifndef DT_ENGINE_TOKENS_SPLIT_H
#define DT_ENGINE_TOKENS_SPLIT_H

#include "base/arena.h"
#include "engine/tokens/split_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_SPLIT_STAGES 8

typedef enum dt_split_kind {
    DT_SPLIT_GPT2,
    DT_SPLIT_LLAMA3,
    DT_SPLIT_QWEN,
    DT_SPLIT_CL100K,
    DT_SPLIT_O200K,
    DT_SPLIT_DEEPSEEK,
    DT_SPLIT_SET
} dt_split_kind;

typedef struct dt_split_stage {
    dt_split_kind kind;
    dt_split_set set; /* SET only */
} dt_split_stage;

/* Without stages all of the text is one word. */
typedef struct dt_split {
    dt_split_stage stages[DT_SPLIT_STAGES];
    int count;
} dt_split;

/* Adds the stage of a regular expression as a tokenizer.json has it. DT_ERR_UNSUPPORTED: the pattern is not
 * known, or there are too many stages. `arena` keeps what belongs to it. */
dt_status dt_split_add(dt_split *split, dt_arena *arena, const char *expression, dt_error *err);
dt_status dt_split_add_kind(dt_split *split, dt_split_kind kind, dt_error *err);
/* The reverse; NULL: the kind has no expression. */
const char *dt_split_expression(dt_split_kind kind);

/* Whether a word never reaches over a line break that stands between printable ASCII and an ASCII letter. */
bool dt_split_cuts_lines(const dt_split *split);

/* The words of one text (valid UTF-8), from left to right. */
typedef struct dt_splitter {
    const dt_split *split;
    /* of the text, and of each stage's current piece */
    const unsigned char *ends[DT_SPLIT_STAGES + 1];
} dt_splitter;

void dt_splitter_begin(dt_splitter *splitter, const dt_split *split, const char *text,
                       size_t length);
/* The end of the word that begins at `at`: first at the text, then at the end of the word before. */
const unsigned char *dt_splitter_next(dt_splitter *splitter, const unsigned char *at);

#ifdef __cplusplus
}
#endif
#endif
