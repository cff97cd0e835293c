/* memory: allocates small objects, and memory that is freed all at once. */
#ifndef DT_BASE_MEMORY_H
#define DT_BASE_MEMORY_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* alloc: allocates small objects, and ends the process if the system has no memory for them.
 *
 * A process that ends this way is started again from its journal and lock. Sizes from outside (a file, a request, a
 * line of another program) are checked against a limit first, so that no input ends the process.
 *
 * Ownership  free() releases what these functions return
 * Errors     none to check. Tensors and other large buffers of the engine are allocated without these functions, and
 *            report DT_ERR_NOMEM: a rank must say that a model does not fit
 */

void *dt_malloc(size_t bytes);
void *dt_calloc(size_t count, size_t elem_bytes);
/* Resizes an array to `count` elements; new ones are uninitialized. */
void *dt_realloc(void *memory, size_t count, size_t elem_bytes);
char *dt_strdup(const char *text);

/* array_room: a growing array, which begins as NULL with a capacity of 0.
 *
 * Each function returns the array `items` with room for `count` elements, moved if needed. The capacity doubles, from
 * 16 elements, so that adding n elements one by one copies fewer than 2 n:
 *
 *     list->items = dt_array_room(list->items, list->count + 1, &list->capacity, sizeof(*list->items));
 *     list->items[list->count++] = item;
 */

/* Aborts without memory. New elements are uninitialized. free() releases the array. */
void *dt_array_room(void *items, int64_t count, int64_t *capacity, size_t elem_bytes);
/* The same for a large table. Returns NULL without memory; then the array and its capacity are unchanged.
 * count >= 1. */
void *dt_array_try_room(void *items, int64_t count, int64_t *capacity, size_t elem_bytes);

/* Prints "out of memory: cannot allocate N bytes" and aborts. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void dt_out_of_memory(size_t bytes);

/* arena: allocates memory that is freed all at once.
 *
 * Ownership  allocations live until the arena is reset or released; none is freed alone
 * Threads    one arena, one thread
 * Errors     none to check: running out of memory ends the process
 * Invariant  reset keeps the blocks, so that a loop that resets stops allocating after its first
 *            pass
 */

typedef struct dt_arena_block dt_arena_block;

typedef struct dt_arena {
    dt_arena_block *first, *current;
    size_t block_bytes; /* size of a new block; a larger request gets its own */
} dt_arena;

/* block_bytes 0 means 64 KiB. */
void dt_arena_init(dt_arena *arena, size_t block_bytes);
void dt_arena_release(dt_arena *arena); /* accepts an arena of zero bytes */
void dt_arena_reset(dt_arena *arena);

/* Allocates zeroed memory, aligned to 16 bytes. */
void *dt_arena_alloc(dt_arena *arena, size_t bytes);
void *dt_arena_alloc_array(dt_arena *arena, size_t count, size_t elem_bytes);
/* dt_array_room for an array in the arena. New elements are zeroed. */
void *dt_arena_array_room(dt_arena *arena, void *items, int64_t count, int64_t *capacity,
                          size_t elem_bytes);
char *dt_arena_strdup(dt_arena *arena, const char *text);
char *dt_arena_strndup(dt_arena *arena, const char *text, size_t length);
char *dt_arena_printf(dt_arena *arena, const char *fmt, ...) DT_PRINTF(2, 3);
char *dt_arena_vprintf(dt_arena *arena, const char *fmt, va_list args) DT_PRINTF(2, 0);

#ifdef __cplusplus
}
#endif

#endif
