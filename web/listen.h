/* listen: parses the address of --listen, and opens the listening socket.
 *
 * Addresses are "HOST:PORT" with HOST localhost, 127.x.y.z or [::1], or "unix:PATH", a socket of mode 0600, which is
 * removed when it is closed; a stale socket file without a listener is replaced.
 * Errors  DT_ERR_USAGE: malformed address, or not loopback; DT_ERR_BUSY: the port or socket is in use; DT_ERR_IO
 */
#ifndef DT_WEB_LISTEN_H
#define DT_WEB_LISTEN_H

#include <stddef.h>

#include "base/error.h"

typedef struct dt_web_listener {
    int fd;
    int port;         /* the actual one if 0 was requested */
    char address[48]; /* as in a URL: "127.0.0.1", "[::1]"; "" for a Unix socket */
    char path[108];   /* of a Unix socket, else "" */
} dt_web_listener;

dt_status dt_web_listen(dt_web_listener *out, const char *text, dt_error *err);
void dt_web_listener_close(dt_web_listener *listener);
/* "http://127.0.0.1:8642/" or "unix:PATH" */
void dt_web_listener_url(char *out, size_t size, const dt_web_listener *listener);

#endif
