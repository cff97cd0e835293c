/* answer: turns a request into its answer, on the connection's own thread, and sends it.
 *
 *   request -> gate (method, Host, Origin), head (malformed) -> route (one table) -> access (token) -> page
 *           -> answer.h
 */
#ifndef DT_WEB_ANSWER_H
#define DT_WEB_ANSWER_H

#include <microhttpd.h>

#include "web/command.h"
#include "web/listen.h"
#include "web/live.h"
#include "web/stores.h"
#include "web/web_int.h"

/* site: holds the state that the threads of a server share. */

typedef struct dt_web_site {
    const char *folder; /* of the store: runs/ID/ is in it */
    const char *token;  /* required for all but public routes; NULL: not required */
    dt_web_listener listener;
    dt_web_stores stores;
    dt_web_admission admission;
    dt_web_live live;
    dt_web_commands commands;
} dt_web_site;

/* respond: sends a reply: headers, and a body at once or in parts.
 *
 * Threads  the connection's own thread, which also frees the last part
 */

/* A body whose parts are made as the client reads them. */
typedef struct dt_web_parts dt_web_parts;

/* Queues the reply. Takes over what the reply owns, and the parts (NULL: none). */
enum MHD_Result dt_web_respond(dt_web_site *site, struct MHD_Connection *connection,
                               dt_web_reply *reply, dt_web_parts *parts);

/* Returns the client of a connection; NULL if it has none. */
dt_web_client *dt_web_client_of(struct MHD_Connection *connection);

/* MHD's callback with the URI as it came, before MHD parses its arguments: returns the fault of the URI, which MHD
 * passes on in *seen; NULL if the URI is accepted. */
void *dt_web_uri_seen(void *context, const char *uri, struct MHD_Connection *connection);

/* MHD's handler: called first with the headers, when the gate decides, then repeatedly until the body, if any, is
 * complete. The client is the connection's socket context. */
enum MHD_Result dt_web_answer(void *site, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen);

#endif
