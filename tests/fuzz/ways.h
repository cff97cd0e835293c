/* ways: one input, one of several ways into the code, so that a way costs an input and not every input
 * all of them. Which one depends on the input alone; files of the corpus, which are there because of a
 * way that once failed, take all.
 */
#ifndef DT_TESTS_FUZZ_WAYS_H
#define DT_TESTS_FUZZ_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_ways {
    size_t first, end; /* to be taken: first, first + 1, ... before end */
} fuzz_ways;

fuzz_ways fuzz_ways_of(const uint8_t *bytes, size_t size, size_t count);

/* Whether all ways are taken, until it is told otherwise. For driver.c. */
void fuzz_ways_take_all(bool all);

#endif
