/* memory: small objects that the process cannot do without, and arenas. */
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- small objects */

void dt_out_of_memory(size_t bytes)
{
    fprintf(stderr, "out of memory: cannot allocate %zu bytes\n", bytes);
    abort();
}

/* Returns count * elem_bytes; aborts if the product overflows. */
static size_t array_bytes(size_t count, size_t elem_bytes)
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
    return existing(calloc(count, elem_bytes), array_bytes(count, elem_bytes));
}

void *dt_realloc(void *memory, size_t count, size_t elem_bytes)
{
    size_t bytes = array_bytes(count, elem_bytes);

    return existing(realloc(memory, bytes), bytes);
}

char *dt_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;

    return memcpy(dt_malloc(bytes), text, bytes);
}

/* --- growing arrays */

#define ARRAY_ELEMS_FIRST 16

/* Returns the next capacity that holds `count` elements. */
static int64_t next_capacity(int64_t count, int64_t capacity)
{
    int64_t next = capacity < ARRAY_ELEMS_FIRST ? ARRAY_ELEMS_FIRST : capacity;

    DT_ASSERT(count >= 0 && count <= INT64_MAX / 4);
    while (next < count || next == capacity)
        next *= 2;
    return next;
}

void *dt_array_room(void *items, int64_t count, int64_t *capacity, size_t elem_bytes)
{
    if (count <= *capacity)
        return items;
    *capacity = next_capacity(count, *capacity);
    return dt_realloc(items, (size_t)*capacity, elem_bytes);
}

void *dt_array_try_room(void *items, int64_t count, int64_t *capacity, size_t elem_bytes)
{
    int64_t next;
    void *moved;

    if (count <= *capacity)
        return items;
    next = next_capacity(count, *capacity);
    if (elem_bytes != 0 && (size_t)next > SIZE_MAX / elem_bytes)
        return NULL;
    moved = realloc(items, (size_t)next * elem_bytes);
    if (moved != NULL)
        *capacity = next;
    return moved;
}

/* --- arenas: a list of blocks, filled from the first */

struct dt_arena_block {
    dt_arena_block *next;
    size_t used, capacity; /* bytes of payload */
    _Alignas(16) unsigned char payload[];
};

#define DEFAULT_BLOCK_BYTES ((size_t)64 << 10)

static size_t align_up(size_t n, size_t to)
{
    return (n + to - 1) & ~(to - 1);
}

void dt_arena_init(dt_arena *arena, size_t block_bytes)
{
    arena->first = arena->current = NULL;
    arena->block_bytes = block_bytes != 0 ? block_bytes : DEFAULT_BLOCK_BYTES;
}

void dt_arena_release(dt_arena *arena)
{
    dt_arena_block *block = arena->first;

    while (block != NULL) {
        dt_arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->first = arena->current = NULL;
}

void dt_arena_reset(dt_arena *arena)
{
    for (dt_arena_block *block = arena->first; block != NULL; block = block->next)
        block->used = 0;
    arena->current = arena->first;
}

static void *take(dt_arena *arena, size_t bytes, size_t align)
{
    dt_arena_block *block = arena->current;
    void *memory;

    if (bytes > SIZE_MAX / 4)
        dt_out_of_memory(bytes);
    while (block != NULL && align_up(block->used, align) + bytes > block->capacity)
        block = block->next;
    if (block == NULL) {
        size_t want = arena->block_bytes != 0 ? arena->block_bytes : DEFAULT_BLOCK_BYTES;
        dt_arena_block **tail = &arena->first;

        if (bytes > want)
            want = bytes;
        block = dt_malloc(sizeof(*block) + want);
        *block = (dt_arena_block){.capacity = want};
        while (*tail != NULL)
            tail = &(*tail)->next;
        *tail = block;
    }
    /* A skipped block stays skipped until the next reset: gaps in it are not searched. */
    arena->current = block;
    block->used = align_up(block->used, align);
    memory = block->payload + block->used;
    block->used += bytes;
    memset(memory, 0, bytes);
    return memory;
}

void *dt_arena_alloc(dt_arena *arena, size_t bytes)
{
    return take(arena, bytes, 16);
}

void *dt_arena_alloc_array(dt_arena *arena, size_t count, size_t elem_bytes)
{
    return take(arena, array_bytes(count, elem_bytes), 16);
}

void *dt_arena_array_room(dt_arena *arena, void *items, int64_t count, int64_t *capacity,
                          size_t elem_bytes)
{
    int64_t held = *capacity;
    void *moved;

    if (count <= held)
        return items;
    *capacity = next_capacity(count, held);
    moved = dt_arena_alloc_array(arena, (size_t)*capacity, elem_bytes);
    if (held > 0)
        memcpy(moved, items, (size_t)held * elem_bytes);
    return moved;
}

char *dt_arena_strndup(dt_arena *arena, const char *text, size_t length)
{
    char *copy = take(arena, length + 1, 1);

    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *dt_arena_strdup(dt_arena *arena, const char *text)
{
    return dt_arena_strndup(arena, text, strlen(text));
}

char *dt_arena_vprintf(dt_arena *arena, const char *fmt, va_list args)
{
    va_list again;
    char *text;
    int length;

    va_copy(again, args);
    length = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    DT_ASSERT(length >= 0);
    text = take(arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, fmt, args);
    return text;
}

char *dt_arena_printf(dt_arena *arena, const char *fmt, ...)
{
    va_list args;
    char *text;

    va_start(args, fmt);
    text = dt_arena_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}
