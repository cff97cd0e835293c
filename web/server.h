/* server: the page and its JSON twins over HTTP, read-only, for people on this machine.
 *
 * Each connection has a thread; admission.h says how many there may be and who leaves first,
 * stores.h what they wait for. Only loopback addresses are taken. docs/api.md lists what is served.
 * Threads  call it from one thread; it returns when it is told to stop
 * Errors   DT_ERR_USAGE for an address that is not understood or not loopback, DT_ERR_BUSY where
 *          the port is taken; what the store says
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
    const char *listen;     /* "127.0.0.1:8642", "localhost:8642", "[::1]:8642", "unix:PATH"; NULL:
                               the default; port 0: any that is free */
    const char *token;      /* what one has to know (access.h); NULL: nothing */
    const char *store_path; /* NULL: $XDG_STATE_HOME/dtrun/store.db; logs and checkpoints are
                               looked for below its folder */
    dt_web_command_rules command; /* what is run for who asks from another machine */
    int stop_fd;                  /* the server ends when it can be read or is hung up; -1: never */
    void (*listening)(void *context, const char *url); /* once, when requests are taken; or NULL;
                                                          "unix:PATH" of a Unix socket */
    void *context;
} dt_web_options;

dt_status dt_web_serve(const dt_web_options *options, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
