/* ways: each input takes one of several entry points into the code, so that an input does not cost
 * the time of all of them. The choice depends only on the input. Files of the corpus take all entry
 * points, because one of them once failed.
 */
#ifndef DT_TESTS_FUZZ_WAYS_H
#define DT_TESTS_FUZZ_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_ways {
    size_t first, end; /* entry points to take: first, first + 1, ... before end */
} fuzz_ways;

fuzz_ways fuzz_ways_of(const uint8_t *bytes, size_t size, size_t count);

/* Whether all entry points are taken, until it is called again. For driver.c. */
void fuzz_ways_take_all(bool all);

#endif
