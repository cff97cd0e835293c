/* admission: who holds a connection, and who has to leave when there are too many.
 *
 * Purpose  each connection is a thread and a descriptor, so there is a limit to them, and one to
 *          those of one address. At a limit the server does not go deaf and does not turn new ones
 *          away: it ends the connection that has waited longest without a whole request, for who
 *          means to ask has asked long before. Those who trickle a header, hold an idle connection
 *          or do not read their answer cost themselves nothing but their place.
 * Policy   dt_web_admission_choose is a pure function of the clients and a clock
 * Threads  the table is locked; any thread
 */
#ifndef DT_WEB_ADMISSION_H
#define DT_WEB_ADMISSION_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>

#define DT_WEB_CLIENTS_MAX 128 /* connections at once, as far as descriptors go */

#define DT_WEB_REQUEST_SECONDS 10.0 /* a whole request has to come in this time */
#define DT_WEB_TAKE_SECONDS    60.0 /* and each part of an answer has to be taken in this */
#define DT_WEB_GRACE_SECONDS   0.5  /* nobody has to leave sooner */
#define DT_WEB_STALLED_SECONDS 5.0  /* who does not read for so long leaves before others wait */

typedef enum dt_web_phase {
    DT_WEB_FREE,      /* no client */
    DT_WEB_ASKING,    /* its request is not whole, or it has not begun one */
    DT_WEB_WORKING,   /* its answer is being made */
    DT_WEB_ANSWERING, /* its answer, or a part of it, is to be taken */
    DT_WEB_LEAVING    /* it was hung up on; its thread is about to end */
} dt_web_phase;

typedef struct dt_web_client {
    dt_web_phase phase;
    double since; /* monotonic seconds */
    struct in6_addr address;
    int fd;
    bool claimed; /* the HTTP library knows it */
} dt_web_client;

typedef struct dt_web_limits {
    int all, per_address;
} dt_web_limits;

/* As many as descriptors allow beside those of the program, three quarters of them for one address.
 */
dt_web_limits dt_web_limits_of(long long descriptors);

/* What becomes of a newcomer: DT_WEB_ADMIT, DT_WEB_WAIT (nobody can leave yet), or the index of the
 * client that has to leave for it. */
#define DT_WEB_ADMIT (-1)
#define DT_WEB_WAIT  (-2)
int dt_web_admission_choose(const dt_web_client *clients, int count, const dt_web_limits *limits,
                            const struct in6_addr *newcomer, double now);

/* Whether this client's time is over, however many there are. */
bool dt_web_client_is_over(const dt_web_client *client, double now);

typedef struct dt_web_admission {
    pthread_mutex_t lock;
    dt_web_limits limits;
    dt_web_client clients[DT_WEB_CLIENTS_MAX * 2]; /* room for those who leave, too */
} dt_web_admission;

void dt_web_admission_init(dt_web_admission *admission, const dt_web_limits *limits);
void dt_web_admission_release(dt_web_admission *admission);

/* NULL where it has to wait. */
dt_web_client *dt_web_admission_enter(dt_web_admission *admission, int fd,
                                      const struct in6_addr *address);
/* The client with this descriptor that the library has not known yet; NULL: none. */
dt_web_client *dt_web_admission_claim(dt_web_admission *admission, int fd);
void dt_web_admission_phase(dt_web_admission *admission, dt_web_client *client, dt_web_phase phase);
/* Gone: before its descriptor is closed. */
void dt_web_admission_leave(dt_web_admission *admission, dt_web_client *client);
/* Hangs up on the one that has waited longest: descriptors have run out. */
void dt_web_admission_shrink(dt_web_admission *admission);
/* Hangs up on those whose time is over; whether anybody is left. */
bool dt_web_admission_sweep(dt_web_admission *admission);

#endif
