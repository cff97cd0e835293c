/* head: checks the head of a request where the HTTP library accepts what RFC 9112 forbids.
 *
 * Purpose  two programs that read one head differently can be played off against each other: a proxy before this
 *          server, and this server. Malformed heads are therefore refused, never repaired.
 * Rules    URI: no NUL byte, encoded or not, no control character and no blank; DT_WEB_ARGUMENTS_MAX arguments and
 *          DT_WEB_URI_BYTES_MAX bytes at most
 *          Headers: names are tokens, values hold neither CR nor LF; those that this server acts on come once;
 *          there is no body. A NUL byte in a value cannot be seen: the library passes on what precedes it
 */
#ifndef DT_WEB_HEAD_H
#define DT_WEB_HEAD_H

#include <stddef.h>

#define DT_WEB_ARGUMENTS_MAX 500
#define DT_WEB_URI_BYTES_MAX ((size_t)32 << 10)

typedef struct dt_web_head_fault {
    int status;         /* 400 or 414 */
    const char *reason; /* a sentence for the answer */
} dt_web_head_fault;

/* NULL if the URI is accepted. `uri` is the text between method and version, not decoded. */
const dt_web_head_fault *dt_web_uri_fault(const char *uri);

/* The fault of a URI in which a NUL byte came. */
extern const dt_web_head_fault dt_web_nul_in_uri;

/* NULL if the header is accepted. *seen is 0 before the first header of a request. */
const dt_web_head_fault *dt_web_header_fault(unsigned *seen, const char *name, size_t name_bytes,
                                             const char *value, size_t value_bytes);

#endif
