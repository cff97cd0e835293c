/* server: serves the page and the JSON API over HTTP to users of this machine; it reads, unless `changes` is set.
 *
 * Each connection has a thread; listen.h limits their number, web_int.h the handles of the store. Listens on loopback
 * addresses and Unix sockets only. docs/api.md lists what is served.
 * Threads  call it from one thread; it returns after stop_fd became readable
 * Errors   DT_ERR_USAGE: malformed address, or not loopback; DT_ERR_BUSY: the port is in use; errors of the store
 */
#ifndef DT_WEB_SERVER_H
#define DT_WEB_SERVER_H

#include "base/error.h"
#include "web/command.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WEB_LISTEN_DEFAULT "127.0.0.1:8642"

typedef struct dt_web_options {
    const char *listen;      /* "127.0.0.1:8642", "localhost:8642", "[::1]:8642", "unix:PATH"; NULL:
                               the default; port 0: any free port */
    const char *token;       /* access.h; NULL: no token is required */
    const char *write_token; /* enters as well, and may change runs; NULL: none */
    const char *changes; /* the program whose commands change runs (change.h); NULL: only reads */
    const char *store_path;       /* NULL: $XDG_STATE_HOME/dtrun/store.db; logs and checkpoints are
                               looked for below its folder */
    dt_web_command_rules command; /* commands for clients on other machines */
    int stop_fd;                  /* the server ends when this is readable or hung up; -1: never */
    /* Called once, when requests are accepted; or NULL. url: "unix:PATH" for a Unix socket. */
    void (*listening)(void *context, const char *url);
    void *context;
} dt_web_options;

dt_status dt_web_serve(const dt_web_options *options, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
