/* access: lets only clients with the token see what the server serves.
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

/* Reads the token of `folder`, or creates it if missing. `renew`: replaces it, which invalidates all links and cookies.
 * A token file that other users can read, or that another user owns, is also replaced. */
dt_status dt_web_token_get(dt_web_token *out, const char *folder, bool renew, dt_error *err);

/* Compares in constant time. */
bool dt_web_token_is(const char *given, const char *token);

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

/* Decides whether a request may enter. token NULL: every request may. */
dt_web_entry dt_web_entry_of(const dt_web_access_request *access, const char *token);

#ifdef __cplusplus
}
#endif
#endif
