/* listen: the address that a person gives, and the socket that listens there.
 *
 * Addresses are "HOST:PORT" with HOST localhost, 127.x.y.z or [::1], or "unix:PATH", a socket of
 * mode 0600, which is removed when it is closed; one that nobody listens at any more makes way.
 * Errors  DT_ERR_USAGE for one that is not understood or not loopback, DT_ERR_BUSY where the port
 *         or the socket is taken, DT_ERR_IO
 */
#ifndef DT_WEB_LISTEN_H
#define DT_WEB_LISTEN_H

#include <stddef.h>

#include "base/error.h"

typedef struct dt_web_listener {
    int fd;
    int port;         /* the real one, where 0 was asked for */
    char address[48]; /* as it stands in a URL: "127.0.0.1", "[::1]"; "" of a Unix socket */
    char path[108];   /* of a Unix socket; "" else */
} dt_web_listener;

dt_status dt_web_listen(dt_web_listener *out, const char *text, dt_error *err);
void dt_web_listener_close(dt_web_listener *listener);
/* "http://127.0.0.1:8642/" or "unix:PATH" */
void dt_web_listener_url(char *out, size_t size, const dt_web_listener *listener);

#endif
