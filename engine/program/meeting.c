#include "engine/program/meeting.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_PORT      20000
#define PORT_STEP       16
#define PORTS           (12768 / PORT_STEP) /* below 32768 */
#define TIMEOUT_SECONDS 3600.0 /* nodes that are prepared in turn may come much later */

/* Binds to the port on all addresses, of both families if there is IPv6. Returns the socket, or -1. */
static int bind_to(int64_t port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
        bind(fd, (struct sockaddr *)&six, sizeof(six)) == 0)
        return fd;
    if (fd >= 0 && errno == EADDRINUSE) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&four, sizeof(four)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static dt_status choose(dt_meeting *out, int64_t attempt, dt_error *err)
{
    unsigned start = 0;

    if (getrandom(&start, sizeof(start), GRND_NONBLOCK) < 0)
        start = (unsigned)getpid();
    for (unsigned i = 0; i < PORTS; i++) {
        out->port = FIRST_PORT + PORT_STEP * (int64_t)((start + i) % PORTS) + attempt % PORT_STEP;
        out->held = bind_to(out->port);
        if (out->held >= 0)
            return DT_OK;
    }
    return DT_FAIL(err, DT_ERR_IO, "no port from %d to %d is free for MASTER_PORT", FIRST_PORT,
                   FIRST_PORT + PORT_STEP * PORTS - 1);
}

dt_status dt_meeting_open(dt_meeting *out, int64_t rank, int64_t world_size, int64_t attempt,
                          dt_events *events, dt_error *err)
{
    unsigned char bytes[2] = {0, 0};
    json_t *values = NULL;
    dt_status st = DT_OK;

    *out = (dt_meeting){.held = -1};
    if (rank == 0) {
        DT_TRY(choose(out, attempt, err));
        bytes[0] = (unsigned char)(out->port >> 8);
        bytes[1] = (unsigned char)(out->port & 255);
    }
    DT_TRY(dt_events_rendezvous(events, "program", bytes, sizeof(bytes), TIMEOUT_SECONDS, &values,
                                err));
    if (world_size > 0 && json_string_length(json_array_get(values, 0)) == 2 * sizeof(bytes))
        out->port = strtoll(json_string_value(json_array_get(values, 0)), NULL, 16);
    if (out->port < FIRST_PORT)
        DT_THROW(err, DT_ERR_CORRUPT, "rank 0 gave no port for MASTER_PORT");
out:
    json_decref(values);
    if (st != DT_OK)
        dt_meeting_close(out);
    return st;
}

void dt_meeting_close(dt_meeting *meeting)
{
    if (meeting->held >= 0)
        close(meeting->held);
    meeting->held = -1;
}
