/* access: who may see what is served: who knows the token.
 *
 * Purpose  every user of a machine reaches its loopback ports, while the run store is 0600
 * The token is 128 random bits in a file of the state folder, mode 0600, which is kept, so that
 * links and cookies outlive the server. A link with it opens the page: it becomes a cookie that no
 * script and no other site gets (HttpOnly, SameSite=Strict), and leaves the address at once. A
 * program sends it as "Authorization: Bearer TOKEN"; in the address of anything but a page it does
 * not count, for addresses are kept in many places.
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

/* The token of `folder`, made where there is none. `anew`: another one, which ends all links and
 * cookies. One that others may read or that is not ours is not taken, but made anew. */
dt_status dt_web_token_get(dt_web_token *out, const char *folder, bool anew, dt_error *err);

/* In a time that says nothing of where they differ. */
bool dt_web_token_is(const char *given, const char *token);

typedef enum dt_web_entry {
    DT_WEB_ENTER,
    DT_WEB_WELCOME,   /* a link was opened: cookie, and on to the same place without the token */
    DT_WEB_ANONYMOUS, /* 401: nothing was shown */
    DT_WEB_MISTAKEN   /* 403: what was shown is not the token */
} dt_web_entry;

typedef struct dt_web_knock {
    bool open;        /* what is asked for is for everybody */
    bool page;        /* a person's page, which a link may lead to */
    const char *link; /* "token" of the address; these three NULL where there is none */
    const char *authorization;
    const char *cookie;
} dt_web_knock;

/* token NULL: everybody may enter. */
dt_web_entry dt_web_entry_of(const dt_web_knock *knock, const char *token);

#ifdef __cplusplus
}
#endif
#endif
