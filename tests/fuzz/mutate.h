/* mutate: makes one change of an input, at a random byte or along its structure: words, numbers,
 * lines, contents of brackets, binary numbers. It does not know what text means: a word replaces a
 * word, a line replaces a line of equal indentation, so that a reader gets further than its first
 * refusal.
 */
#ifndef DT_TESTS_FUZZ_MUTATE_H
#define DT_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define FUZZ_INPUT_MAX_BYTES \
    ((size_t)16 << 10) /* many short inputs are better than few long ones */

/* Returns a number below `limit`; 0 if that is 0. Advances the seed, which is never 0. */
size_t fuzz_below(uint64_t *seed, size_t limit);

/* `other`: the file from which pieces are taken. The same seed makes the same change. */
void fuzz_mutate(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed);

#endif
