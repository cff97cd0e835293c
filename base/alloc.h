/* alloc: allocates small objects, and ends the process if the system has no memory for them.
 *
 * A process that ends this way is started again from its journal and lock. Sizes from outside (a file, a request, a
 * line of another program) are checked against a limit first, so that no input ends the process.
 *
 * Ownership  free() releases what these functions return
 * Errors     none to check. Tensors and other large buffers of the engine are allocated without these functions, and
 *            report DT_ERR_NOMEM: a rank must say that a model does not fit
 */
#ifndef DT_BASE_ALLOC_H
#define DT_BASE_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *dt_malloc(size_t bytes);
void *dt_calloc(size_t count, size_t elem_bytes);
/* Resizes an array to `count` elements; new ones are uninitialized. */
void *dt_realloc(void *memory, size_t count, size_t elem_bytes);
char *dt_strdup(const char *text);

/* Prints "out of memory: cannot allocate N bytes" and aborts. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void dt_out_of_memory(size_t bytes);

/* Returns count * elem_bytes; aborts if the product overflows. */
size_t dt_array_bytes(size_t count, size_t elem_bytes);

#ifdef __cplusplus
}
#endif
#endif
