/* strbuf: a string that grows.
 *
 * Ownership  init/release on caller's memory; `data` is always a C string, valid until the next
 *            call that adds
 * Errors     there is no error to check: running out of memory ends the process (a few kilobytes
 *            of text are not where a trainer survives it; bulk data goes through arenas)
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
void dt_strbuf_reset(dt_strbuf *buf); /* to the empty string, memory kept */
void dt_strbuf_add(dt_strbuf *buf, const void *bytes, size_t length);
/* So many bytes more, which the caller writes where it says. */
char *dt_strbuf_extend(dt_strbuf *buf, size_t length);
void dt_strbuf_add_str(dt_strbuf *buf, const char *text);
void dt_strbuf_add_char(dt_strbuf *buf, char c);
void dt_strbuf_add_fmt(dt_strbuf *buf, const char *fmt, ...) DT_PRINTF(2, 3);
void dt_strbuf_remove_front(dt_strbuf *buf, size_t length);
/* Hands the string to the caller, who frees it; the buffer is empty again. */
char *dt_strbuf_detach(dt_strbuf *buf);

#ifdef __cplusplus
}
#endif
#endif
