/* mutate: one change of an input, blind or along what it is made of: words, numbers, lines, what
 * brackets hold, binary numbers. What text means is not known here: a word takes the place of a word,
 * a line that of a line as deep, so that a reader gets further than its first refusal.
 */
#ifndef DT_TESTS_FUZZ_MUTATE_H
#define DT_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define FUZZ_INPUT_MAX_BYTES ((size_t)16 << 10) /* short inputs are many inputs */

/* Below `limit`; 0 where that is 0. Moves the seed on, which is never 0. */
size_t fuzz_below(uint64_t *seed, size_t limit);

/* `other`: where pieces are taken from. The same seed makes the same change. */
void fuzz_mutate(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed);

#endif
