/* strbuf: builds a string that grows, also from text with references to the environment.
 *
 * Ownership  the struct is the caller's; `data` is always a C string, valid until the next call that adds
 * Errors     none to check: running out of memory ends the process (base/memory.h). Use arenas for bulk data
 */
#ifndef DT_BASE_STRBUF_H
#define DT_BASE_STRBUF_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_strbuf {
    char *data;
    size_t length, capacity;
} dt_strbuf;

void dt_strbuf_init(dt_strbuf *buf);
void dt_strbuf_release(dt_strbuf *buf);
void dt_strbuf_reset(dt_strbuf *buf); /* makes it empty, keeps the memory */
void dt_strbuf_add(dt_strbuf *buf, const void *bytes, size_t length);
/* Appends `length` uninitialized bytes, and returns where the caller must write them. */
char *dt_strbuf_extend(dt_strbuf *buf, size_t length);
void dt_strbuf_add_str(dt_strbuf *buf, const char *text);
void dt_strbuf_add_char(dt_strbuf *buf, char c);
void dt_strbuf_add_fmt(dt_strbuf *buf, const char *fmt, ...) DT_PRINTF(2, 3);
void dt_strbuf_remove_front(dt_strbuf *buf, size_t length);
/* Returns the string, which the caller frees; the buffer is empty afterwards. */
char *dt_strbuf_detach(dt_strbuf *buf);

/* env_expand: replaces "${env:NAME}" and "${env:NAME:-default}" by values of this process's environment.
 *
 * Recipes keep references to secrets as they are written; the code that uses the value expands it.
 */

/* Resets `out` and writes the expanded text. An empty variable counts as unset. DT_ERR_RECIPE: a reference is
 * malformed, or its variable is not set and has no default; the message says which. */
dt_status dt_env_expand(dt_strbuf *out, const char *text, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
