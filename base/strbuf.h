/* strbuf: builds a string that grows.
 *
 * Ownership  the struct is the caller's; `data` is always a C string, valid until the next call that adds
 * Errors     none to check: running out of memory ends the process (base/alloc.h). Use arenas for bulk data
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

#ifdef __cplusplus
}
#endif
#endif
