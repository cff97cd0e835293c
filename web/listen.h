/* listen: the address that a person gives, and the socket that listens there.
 *
 * Addresses are "HOST:PORT" with HOST localhost, 127.x.y.z or [::1].
 * Errors  DT_ERR_USAGE for one that is not understood or not loopback, DT_ERR_BUSY where the port
 *         is taken, DT_ERR_IO
 */
#ifndef DT_WEB_LISTEN_H
#define DT_WEB_LISTEN_H

#include "base/error.h"

typedef struct dt_web_listener {
    int fd;
    int port;         /* the real one, where 0 was asked for */
    char address[48]; /* as it stands in a URL: "127.0.0.1", "[::1]" */
} dt_web_listener;

dt_status dt_web_listen(dt_web_listener *out, const char *text, dt_error *err);

#endif
