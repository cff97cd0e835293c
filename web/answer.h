/* answer: from a request to its answer, on the connection's own thread.
 *
 *   request -> gate (method, Host, Origin) -> route (one table) -> access (token) -> page
 *           -> headers -> answer
 */
#ifndef DT_WEB_ANSWER_H
#define DT_WEB_ANSWER_H

#include <microhttpd.h>

#include "web/admission.h"
#include "web/listen.h"
#include "web/stores.h"

typedef struct dt_web_site {
    const char *folder; /* of the store: runs/ID/ lies below it */
    const char *token;  /* who knows it may see more than what is for everybody; NULL: all may */
    dt_web_listener listener;
    dt_web_stores stores;
    dt_web_admission admission;
} dt_web_site;

/* MHD's handler: called once with the headers, which is when the gate decides; then again until
 * the body, if any, is through. The client is the connection's socket context. */
enum MHD_Result dt_web_answer(void *site, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **seen);

/* The client of a connection; NULL where it has none. */
dt_web_client *dt_web_guest_of(struct MHD_Connection *connection);

#endif
