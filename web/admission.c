#include "web/admission.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

enum {
    CLIENTS = DT_WEB_CLIENTS_MAX * 2,
    RESERVED = 40, /* descriptors of the program itself: store handles, the log, the terminal */
    LEAST = 4
};

dt_web_limits dt_web_limits_of(long long descriptors)
{
    /* a connection can have a log open in addition to its socket */
    long long room = (descriptors - RESERVED) / 2;
    int all = room > DT_WEB_CLIENTS_MAX ? DT_WEB_CLIENTS_MAX : room < LEAST ? LEAST : (int)room;

    /* One address may use three quarters of the connections: behind a proxy or a tunnel, all
     * clients on this machine share one address. */
    return (dt_web_limits){.all = all, .per_address = all - all / 4};
}

static bool same_address(const struct in6_addr *a, const struct in6_addr *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

bool dt_web_client_is_over(const dt_web_client *client, double now)
{
    return (client->phase == DT_WEB_ASKING && now - client->since >= DT_WEB_REQUEST_SECONDS) ||
           (client->phase == DT_WEB_ANSWERING && now - client->since >= DT_WEB_TAKE_SECONDS);
}

static bool may_leave(const dt_web_client *client, double now)
{
    return (client->phase == DT_WEB_ASKING && now - client->since >= DT_WEB_GRACE_SECONDS) ||
           (client->phase == DT_WEB_ANSWERING && now - client->since >= DT_WEB_STALLED_SECONDS);
}

/* Returns the client that has waited longest, preferring clients with an incomplete request to
 * clients that do not read their answer; DT_WEB_WAIT if none can be closed. address NULL: of all
 * addresses. */
static int longest(const dt_web_client *clients, int count, const struct in6_addr *address,
                   double now)
{
    int found = DT_WEB_WAIT;

    for (int i = 0; i < count; i++) {
        const dt_web_client *client = &clients[i];

        if (!may_leave(client, now) ||
            (address != NULL && !same_address(&client->address, address)))
            continue;
        if (found < 0 || client->phase < clients[found].phase ||
            (client->phase == clients[found].phase && client->since < clients[found].since))
            found = i;
    }
    return found;
}

int dt_web_admission_choose(const dt_web_client *clients, int count, const dt_web_limits *limits,
                            const struct in6_addr *newcomer, double now)
{
    int all = 0, of_address = 0, leaving = 0;

    for (int i = 0; i < count; i++) {
        if (clients[i].phase == DT_WEB_FREE)
            continue;
        if (clients[i].phase == DT_WEB_LEAVING) {
            leaving++;
            continue;
        }
        all++;
        of_address += same_address(&clients[i].address, newcomer);
    }
    if (all + leaving >= 2 * limits->all)
        return DT_WEB_WAIT; /* connections that are being closed have to end first */
    if (of_address >= limits->per_address)
        return longest(clients, count, newcomer, now);
    return all < limits->all ? DT_WEB_ADMIT : longest(clients, count, NULL, now);
}

void dt_web_admission_init(dt_web_admission *admission, const dt_web_limits *limits)
{
    memset(admission, 0, sizeof(*admission));
    pthread_mutex_init(&admission->lock, NULL);
    admission->limits = *limits;
}

void dt_web_admission_release(dt_web_admission *admission)
{
    pthread_mutex_destroy(&admission->lock);
}

/* Shuts the socket down. The thread of the connection then sees its end, and closes it. */
static void hang_up(dt_web_client *client)
{
    client->phase = DT_WEB_LEAVING;
    shutdown(client->fd, SHUT_RDWR);
}

static dt_web_client *free_place(dt_web_admission *admission)
{
    for (int i = 0; i < CLIENTS; i++)
        if (admission->clients[i].phase == DT_WEB_FREE)
            return &admission->clients[i];
    return NULL;
}

dt_web_client *dt_web_admission_enter(dt_web_admission *admission, int fd,
                                      const struct in6_addr *address)
{
    double now = dt_clock_monotonic_seconds();
    dt_web_client *place = NULL;
    int chosen;

    pthread_mutex_lock(&admission->lock);
    chosen = dt_web_admission_choose(admission->clients, CLIENTS, &admission->limits, address, now);
    if (chosen >= 0)
        hang_up(&admission->clients[chosen]);
    if (chosen != DT_WEB_WAIT)
        place = free_place(admission);
    if (place != NULL)
        *place =
            (dt_web_client){.phase = DT_WEB_ASKING, .since = now, .address = *address, .fd = fd};
    pthread_mutex_unlock(&admission->lock);
    return place;
}

dt_web_client *dt_web_admission_claim(dt_web_admission *admission, int fd)
{
    dt_web_client *found = NULL;

    pthread_mutex_lock(&admission->lock);
    for (int i = 0; i < CLIENTS && found == NULL; i++) {
        dt_web_client *client = &admission->clients[i];

        if (client->phase != DT_WEB_FREE && client->fd == fd && !client->claimed)
            found = client;
    }
    if (found != NULL)
        found->claimed = true;
    pthread_mutex_unlock(&admission->lock);
    return found;
}

void dt_web_admission_phase(dt_web_admission *admission, dt_web_client *client, dt_web_phase phase)
{
    pthread_mutex_lock(&admission->lock);
    if (client->phase != DT_WEB_LEAVING) {
        client->phase = phase;
        client->since = dt_clock_monotonic_seconds();
    }
    pthread_mutex_unlock(&admission->lock);
}

void dt_web_admission_leave(dt_web_admission *admission, dt_web_client *client)
{
    pthread_mutex_lock(&admission->lock);
    *client = (dt_web_client){.phase = DT_WEB_FREE};
    pthread_mutex_unlock(&admission->lock);
}

void dt_web_admission_shrink(dt_web_admission *admission)
{
    double now = dt_clock_monotonic_seconds();
    int chosen;

    pthread_mutex_lock(&admission->lock);
    chosen = longest(admission->clients, CLIENTS, NULL, now);
    if (chosen >= 0)
        hang_up(&admission->clients[chosen]);
    pthread_mutex_unlock(&admission->lock);
}

bool dt_web_admission_sweep(dt_web_admission *admission)
{
    double now = dt_clock_monotonic_seconds();
    bool any = false;

    pthread_mutex_lock(&admission->lock);
    for (int i = 0; i < CLIENTS; i++) {
        if (dt_web_client_is_over(&admission->clients[i], now))
            hang_up(&admission->clients[i]);
        any = any || admission->clients[i].phase != DT_WEB_FREE;
    }
    pthread_mutex_unlock(&admission->lock);
    return any;
}
