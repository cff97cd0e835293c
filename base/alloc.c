#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dt_out_of_memory(size_t bytes)
{
    fprintf(stderr, "out of memory: cannot allocate %zu bytes\n", bytes);
    abort();
}

size_t dt_array_bytes(size_t count, size_t elem_bytes)
{
    if (elem_bytes != 0 && count > SIZE_MAX / elem_bytes)
        dt_out_of_memory(SIZE_MAX);
    return count * elem_bytes;
}

/* An empty object may be NULL, as malloc(0) may. */
static void *existing(void *memory, size_t bytes)
{
    if (memory == NULL && bytes != 0)
        dt_out_of_memory(bytes);
    return memory;
}

void *dt_malloc(size_t bytes)
{
    return existing(malloc(bytes), bytes);
}

void *dt_calloc(size_t count, size_t elem_bytes)
{
    return existing(calloc(count, elem_bytes), dt_array_bytes(count, elem_bytes));
}

void *dt_realloc(void *memory, size_t count, size_t elem_bytes)
{
    size_t bytes = dt_array_bytes(count, elem_bytes);

    return existing(realloc(memory, bytes), bytes);
}

char *dt_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;

    return memcpy(dt_malloc(bytes), text, bytes);
}
