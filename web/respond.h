/* respond: a reply on its way to who asked: headers, a body at once or in parts.
 *
 * Threads  the connection's own; the last part is freed on it, too
 */
#ifndef DT_WEB_RESPOND_H
#define DT_WEB_RESPOND_H

#include <microhttpd.h>

#include "web/request.h"
#include "web/site.h"

/* A body whose parts are made as they are taken. */
typedef struct dt_web_parts dt_web_parts;

/* Takes the reply's stream and makes its first part at once: an error is still an answer then, and a small answer
 * whole; *out is NULL where that was all of it. */
dt_status dt_web_parts_begin(dt_web_parts **out, dt_web_site *site, dt_web_client *client,
                             dt_web_reply *reply, dt_store *store, dt_error *err);
/* Takes what the reply owns, and the parts (NULL: none). */
enum MHD_Result dt_web_respond(dt_web_site *site, struct MHD_Connection *connection,
                               dt_web_reply *reply, dt_web_parts *parts);

/* The client of a connection; NULL where it has none. */
dt_web_client *dt_web_guest_of(struct MHD_Connection *connection);
void dt_web_set_phase(dt_web_site *site, dt_web_client *client, dt_web_phase phase);

#endif
