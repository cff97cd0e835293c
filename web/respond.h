/* respond: sends a reply: headers, and a body at once or in parts.
 *
 * Threads  the connection's own thread, which also frees the last part
 */
#ifndef DT_WEB_RESPOND_H
#define DT_WEB_RESPOND_H

#include <microhttpd.h>

#include "web/request.h"
#include "web/site.h"

/* A body whose parts are made as the client reads them. */
typedef struct dt_web_parts dt_web_parts;

/* Takes over the reply's stream and makes its first part, so that an error can still be sent as the answer. *out is
 * NULL if the first part is the whole answer. */
dt_status dt_web_parts_begin(dt_web_parts **out, dt_web_site *site, dt_web_client *client,
                             dt_web_reply *reply, dt_store *store, dt_error *err);
/* Queues the reply. Takes over what the reply owns, and the parts (NULL: none). */
enum MHD_Result dt_web_respond(dt_web_site *site, struct MHD_Connection *connection,
                               dt_web_reply *reply, dt_web_parts *parts);

/* Returns the client of a connection; NULL if it has none. */
dt_web_client *dt_web_client_of(struct MHD_Connection *connection);
void dt_web_set_phase(dt_web_site *site, dt_web_client *client, dt_web_phase phase);

#endif
