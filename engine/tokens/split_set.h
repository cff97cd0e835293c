/* split_set: matches patterns of one set of characters, such as `\s?\p{L}+`, `[\r\n]`, `\p{N}{1,3}`, `\s+$`.
 *
 * Form     SET | SET+ | SET{1,N} | SET+$, each after an optional SET?
 * SET      a character, \s, \p{X}, or [...] of those and of ranges; X is L, N, P, S, M or Ll
 * Errors   none: dt_split_set_parse returns false for a pattern of another form
 */
#ifndef DT_ENGINE_TOKENS_SPLIT_SET_H
#define DT_ENGINE_TOKENS_SPLIT_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    int most;    /* largest number of characters in a match */
    bool at_end; /* matches only at the end of the piece */
} dt_split_set;

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

#ifdef __cplusplus
}
#endif
#endif
