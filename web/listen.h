/* listen: opens the listening socket, and limits the number of connections.
 *
 * Addresses are "HOST:PORT" with HOST localhost, 127.x.y.z or [::1], or "unix:PATH", a socket of mode 0600, which is
 * removed when it is closed; a stale socket file without a listener is replaced.
 * Errors  DT_ERR_USAGE: malformed address, or not loopback; DT_ERR_BUSY: the port or socket is in use; DT_ERR_IO
 */
#ifndef DT_WEB_LISTEN_H
#define DT_WEB_LISTEN_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

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

/* admission: limits the number of connections, and chooses which one to close when there are too many.
 *
 * Purpose  each connection uses a thread and a descriptor, so their number is limited, in all and per address. At
 *          a limit the server still accepts new connections, and closes the one that has waited longest without
 *          a complete request: a real client sends its request at once. Clients that trickle a header, hold
 *          an idle connection or do not read their answer only lose their own connection.
 * Policy   dt_web_admission_choose is a pure function of the clients and a clock
 * Threads  the table is locked; any thread
 */

#define DT_WEB_CLIENTS_MAX 128 /* connections at once, as far as descriptors go */

#define DT_WEB_REQUEST_SECONDS 10.0 /* time limit for a complete request */
#define DT_WEB_TAKE_SECONDS    60.0 /* time limit for reading each part of an answer */
#define DT_WEB_GRACE_SECONDS   0.5  /* minimum age of a connection that may be closed */
#define DT_WEB_STALLED_SECONDS \
    5.0 /* at a limit, a client that has not read for this long is closed */

typedef enum dt_web_phase {
    DT_WEB_FREE,      /* no client */
    DT_WEB_ASKING,    /* its request is incomplete or has not begun */
    DT_WEB_WORKING,   /* its answer is being made */
    DT_WEB_ANSWERING, /* it has to read its answer, or a part of it */
    DT_WEB_LEAVING    /* its connection was closed; its thread is about to end */
} dt_web_phase;

typedef struct dt_web_client {
    dt_web_phase phase;
    double since; /* monotonic seconds */
    struct in6_addr address;
    int fd;
    bool claimed;    /* the HTTP library has accepted it */
    dt_strbuf *body; /* of the request that its own thread receives; NULL: none */
} dt_web_client;

typedef struct dt_web_limits {
    int all, per_address;
} dt_web_limits;

/* Returns the limits for this number of descriptors, less those that the program needs; per address: three quarters. */
dt_web_limits dt_web_limits_of(long long descriptors);

/* Decides about a new connection: DT_WEB_ADMIT, DT_WEB_WAIT (no other connection can be closed yet), or the index of
 * the client to close for it. */
#define DT_WEB_ADMIT (-1)
#define DT_WEB_WAIT  (-2)
int dt_web_admission_choose(const dt_web_client *clients, int count, const dt_web_limits *limits,
                            const struct in6_addr *newcomer, double now);

/* Returns true if the client exceeded a time limit, which applies however few connections there are. */
bool dt_web_client_is_over(const dt_web_client *client, double now);

typedef struct dt_web_admission {
    pthread_mutex_t lock;
    dt_web_limits limits;
    dt_web_client clients[DT_WEB_CLIENTS_MAX * 2]; /* includes those that are being closed */
} dt_web_admission;

void dt_web_admission_init(dt_web_admission *admission, const dt_web_limits *limits);
void dt_web_admission_release(dt_web_admission *admission);

/* Admits a connection; NULL if it has to wait. */
dt_web_client *dt_web_admission_enter(dt_web_admission *admission, int fd,
                                      const struct in6_addr *address);
/* Returns the client with this descriptor that the HTTP library had not accepted yet; NULL: none. */
dt_web_client *dt_web_admission_claim(dt_web_admission *admission, int fd);
void dt_web_admission_phase(dt_web_admission *admission, dt_web_client *client, dt_web_phase phase);
/* Removes a client; call before its descriptor is closed. */
void dt_web_admission_leave(dt_web_admission *admission, dt_web_client *client);
/* Closes the connection that has waited longest, because descriptors have run out. */
void dt_web_admission_shrink(dt_web_admission *admission);
/* Closes the connections whose time is over; returns true if any connection is left. */
bool dt_web_admission_sweep(dt_web_admission *admission);

#endif
