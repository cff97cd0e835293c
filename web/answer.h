/* answer: turns a request into its answer, on the connection's own thread.
 *
 *   request -> gate (method, Host, Origin), head (malformed) -> route (one table) -> access (token) -> page
 *           -> respond.h
 */
#ifndef DT_WEB_ANSWER_H
#define DT_WEB_ANSWER_H

#include <microhttpd.h>

/* MHD's callback with the URI as it came, before MHD parses its arguments: returns the fault of the URI, which MHD
 * passes on in *seen; NULL if the URI is accepted. */
void *dt_web_uri_seen(void *context, const char *uri, struct MHD_Connection *connection);

/* MHD's handler: called first with the headers, when the gate decides, then repeatedly until the body, if any, is
 * complete. The client is the connection's socket context. */
enum MHD_Result dt_web_answer(void *site, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen);

#endif
