/* access: refuses malformed requests, requests from other sites, and clients without the token.
 *
 * Purpose  every user of a machine can connect to its loopback ports, while the run store is private (0600)
 *
 * The token is 128 random bits in a file of the state folder, mode 0600. The file is kept, so that links and cookies
 * survive a restart of the server. A link with the token opens a page: the server moves the token into a cookie that
 * scripts and other sites cannot read (HttpOnly, SameSite=Strict), and redirects to the address without it. A program
 * sends it as "Authorization: Bearer TOKEN". A token in the address is accepted for pages only, since addresses are
 * logged in many places.
 */
#ifndef DT_WEB_ACCESS_H
#define DT_WEB_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEB_TOKEN_DIGITS 32
#define DT_WEB_TOKEN_FILE   "serve.token" /* in the state folder */

typedef struct dt_web_token {
    char text[DT_WEB_TOKEN_DIGITS + 1];
} dt_web_token;

/* Reads the token of `folder` in the file of this name, or creates it if missing. `renew`: replaces it, which invalidates all links and cookies.
 * A token file that other users can read, or that another user owns, is also replaced. */
dt_status dt_web_token_get(dt_web_token *out, const char *folder, const char *file, bool renew,
                           dt_error *err);
/* Returns false if the file has no token that only this user can read. */
bool dt_web_token_read(dt_web_token *out, const char *folder, const char *file);

typedef enum dt_web_entry {
    DT_WEB_ENTER,
    DT_WEB_SET_COOKIE, /* a link was opened: set the cookie, redirect to the address without token */
    DT_WEB_ANONYMOUS,  /* 401: no token was sent */
    DT_WEB_WRONG_TOKEN /* 403: a wrong token was sent */
} dt_web_entry;

typedef struct dt_web_access_request {
    bool open;        /* the resource is public */
    bool page;        /* a page for people, which a link may open */
    const char *link; /* "token" in the address; this and the next two: NULL if missing */
    const char *authorization;
    const char *cookie;
} dt_web_access_request;

#define DT_WEB_WRITE_TOKEN_FILE "serve.write-token" /* the token of `dtrun serve --write` */

/* Decides whether a request may enter. token NULL: every request may. */
dt_web_entry dt_web_entry_of(const dt_web_access_request *access, const char *token);

/* gate: checks every request before it is routed, and refuses by default.
 *
 * Purpose  pages of other sites in a browser must not read this one. The browser sends such requests from this
 *          machine, so that the client's address is no help; but it always sends the name of the server that it
 *          addresses (Host), and the site of the page that makes the request (Origin).
 * Rules    GET or HEAD, else 405 (a change passes as GET: below); Host names this machine and the port, else 403; Origin absent or that same place,
 *          else 403
 *          On a Unix socket (port 0) the port is that of the proxy in front: any, but Origin must
 *          equal Host.
 */

/* Returns 0 to pass, else the HTTP status, with *reason a sentence for the answer. host, origin NULL: header absent.
 * (The head, below, refuses requests that have one of them twice.) */
int dt_web_gate(const char *method, const char *host, const char *origin, int port,
                const char *address, const char **reason);

/* head: checks the head of a request where the HTTP library accepts what RFC 9112 forbids.
 *
 * Purpose  two programs that read one head differently can be played off against each other: a proxy before this
 *          server, and this server. Malformed heads are therefore refused, never repaired.
 * Rules    URI: no NUL byte, encoded or not, no control character and no blank; DT_WEB_ARGUMENTS_MAX arguments and
 *          DT_WEB_URI_BYTES_MAX bytes at most
 *          Headers: names are tokens, values hold neither CR nor LF; those that this server acts on come once;
 *          there is no body. A NUL byte in a value cannot be seen: the library passes on what precedes it
 */

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

#define DT_WEB_MAY_HAVE_BODY (1u << 31)

/* NULL if the header is accepted. *seen is 0 before the first header of a request, or DT_WEB_MAY_HAVE_BODY. */
const dt_web_head_fault *dt_web_header_fault(unsigned *seen, const char *name, size_t name_bytes,
                                             const char *value, size_t value_bytes);

/* changes: checks the head of a POST request, which a server with --write accepts.
 *
 * Purpose  a page of another site must not change anything with the cookie of this one. Browsers send forms and plain
 *          texts to any site without asking; a JSON type they send elsewhere only after a preflight (OPTIONS), which is
 *          refused. They always name the site of the page (Origin, Sec-Fetch-Site)
 * Rules    Content-Type is application/json and nothing else (415); Content-Length is there (411) and at most
 *          DT_WEB_BODY_BYTES_MAX (413); Sec-Fetch-Site, if present, is same-origin, and a request with a cookie has it or
 *          an Origin, which the gate has compared (403)
 */

#define DT_WEB_BODY_BYTES_MAX ((size_t)192 << 10) /* a note in which JSON escapes every byte */

typedef struct dt_web_change_head {
    const char *type, *length, *origin, *site; /* headers; NULL: absent */
    bool cookie;                               /* a cookie of this server was sent */
} dt_web_change_head;

/* NULL if the head is accepted. */
const dt_web_head_fault *dt_web_change_fault(const dt_web_change_head *head);

#ifdef __cplusplus
}
#endif

#endif
