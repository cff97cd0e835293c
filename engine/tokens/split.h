/* split: cuts text into words for the model, as the pre-tokenizers of published tokenizers do.
 *
 * A split has stages. Each stage cuts the pieces of the stage before it where its pattern matches: a match is a
 * piece, and the text between two matches is a piece. A pattern is either one of those below, which are
 * implemented in C, for ASCII also on masks of 64 bytes (tokens_int.h), or a set of characters (dt_split_set).
 *   gpt2      's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   llama3    (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *             |\s*[\r\n]+|\s+(?!\S)|\s+
 *   qwen      as llama3, with \p{N} instead of \p{N}{1,3}
 *   cl100k    as llama3, but white space at the end of the text is one word, even with line breaks in it
 *   qwen3.5   as qwen, but marks count as letters
 *   tekken    as o200k, with \p{N} instead of \p{N}{1,3}, and without contractions; Mistral's since 2024
 *   o200k     words of upper-case, then lower-case letters, with their contraction; marks count as letters, and
 *             slashes after punctuation belong to it. Used by GPT-4o and Llama 4
 *   deepseek  the last stage of DeepSeek-V3: ASCII punctuation joins the ASCII letters after it, marks count as
 *             letters
 */
#ifndef DT_ENGINE_TOKENS_SPLIT_H
#define DT_ENGINE_TOKENS_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* split_set: matches patterns of one set of characters, such as `\s?\p{L}+`, `[\r\n]`, `\p{N}{1,3}`, `\s+$`.
 *
 * Form     SET | SET+ | SET{1,N} | SET+$, each after an optional SET?
 * SET      a character, \s, \p{X}, or [...] of those and of ranges; X is L, N, P, S, M or Ll
 * Errors   none: dt_split_set_parse returns false for a pattern of another form
 */

typedef struct dt_code_range {
    uint32_t first, last;
} dt_code_range;

typedef struct dt_code_set {
    unsigned classes;            /* dt_code_class */
    const dt_code_range *ranges; /* ascending */
    int count;
    bool ascii[128];
} dt_code_set;

typedef struct dt_split_set {
    dt_code_set before; /* the set of the optional first character; empty: there is none */
    dt_code_set of;
    int most;            /* largest number of characters in a match */
    bool joins_previous; /* a match belongs to the text before it, and ends the piece */
    bool at_end;         /* matches only at the end of the piece */
} dt_split_set;

/* Parses a SET at *at, and moves *at behind it. Returns false for another text, or without memory. */
bool dt_code_set_parse(dt_code_set *out, dt_arena *arena, const char **at);
bool dt_code_set_has(const dt_code_set *set, uint32_t code);
/* A set of one character that ends pieces. */
void dt_split_set_after(dt_split_set *out, dt_arena *arena, uint32_t code);

/* Parses a pattern. Returns false if the pattern has another form, or if the arena has no memory
 * for its ranges. */
bool dt_split_set_parse(dt_split_set *out, dt_arena *arena, const char *pattern);

/* Returns whether the pattern matches exactly one line break. */
bool dt_split_set_is_line_break(const dt_split_set *set);

/* Returns whether the pattern is `\p{N}`. */
bool dt_split_set_is_number(const dt_split_set *set);

/* Returns the end of the piece that starts at `at`: a match, or the text before the next match. */
const unsigned char *dt_split_set_piece(const dt_split_set *set, const unsigned char *at,
                                        const unsigned char *end);

#define DT_SPLIT_STAGES 8

typedef enum dt_split_kind {
    DT_SPLIT_GPT2,
    DT_SPLIT_LLAMA3,
    DT_SPLIT_QWEN,
    DT_SPLIT_QWEN35,
    DT_SPLIT_TEKKEN,
    DT_SPLIT_CL100K,
    DT_SPLIT_O200K,
    DT_SPLIT_DEEPSEEK,
    DT_SPLIT_SET
} dt_split_kind;

typedef struct dt_split_stage {
    dt_split_kind kind;
    dt_split_set set; /* SET only */
} dt_split_stage;

/* The stages of a split; without stages, the whole text is one word. */
typedef struct dt_split {
    dt_split_stage stages[DT_SPLIT_STAGES];
    int count;
} dt_split;

/* Adds a stage that ends a piece after each occurrence of a character (MergedWithPrevious). */
dt_status dt_split_add_after(dt_split *split, dt_arena *arena, uint32_t code, dt_error *err);
/* Adds a stage for a regular expression in the spelling of a tokenizer.json. DT_ERR_UNSUPPORTED:
 * the pattern is not supported, or there are too many stages. The stage's data is allocated in
 * `arena`. */
dt_status dt_split_add(dt_split *split, dt_arena *arena, const char *expression, dt_error *err);
dt_status dt_split_add_kind(dt_split *split, dt_split_kind kind, dt_error *err);
/* Returns the regular expression of a kind; NULL if the kind has none. */
const char *dt_split_expression(dt_split_kind kind);

/* Returns whether no word spans a line break between printable ASCII and an ASCII letter. */
bool dt_split_cuts_lines(const dt_split *split);

/* Iterates over the words of a text (valid UTF-8) from left to right. */
typedef struct dt_splitter {
    const dt_split *split;
    int blocks; /* dt_split_block_kind */
    /* the end of the text, then that of each stage's current piece */
    const unsigned char *ends[DT_SPLIT_STAGES + 1];
} dt_splitter;

void dt_splitter_begin(dt_splitter *splitter, const dt_split *split, const char *text,
                       size_t length);
/* Returns the end of the word that starts at `at`: the start of the text, or the end of the
 * previous word. */
const unsigned char *dt_splitter_next(dt_splitter *splitter, const unsigned char *at);
#define DT_SPLIT_BLOCK 64
/* Returns many word ends at once: bit i is set if a word ends before at[i], i < DT_SPLIT_BLOCK. No end
 * before the highest bit is left out. 0: only dt_splitter_next can find the end. */
uint64_t dt_splitter_block(const dt_splitter *splitter, const unsigned char *at);

#ifdef __cplusplus
}
#endif

#endif
