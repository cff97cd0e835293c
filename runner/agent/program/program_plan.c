/* program_plan: what the programs of a node share: the plan, and MASTER_PORT, which all ranks agree on; and where they
 * report.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "runner/agent/program/program_int.h"

#define FIRST_PORT 20000
#define PORT_STEP  16
#define PORTS      (12768 / PORT_STEP) /* below 32768 */

/* --- reports */

void dt_reports_send(const dt_reports *reports, json_t *event)
{
    if (event != NULL)
        reports->send(reports->context, event);
}

void dt_reports_warn(const dt_reports *reports, const char *format, ...)
{
    char *text = NULL;
    va_list values;

    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    va_end(values);
    DT_ASSERT(text != NULL);
    reports->warn(reports->context, text);
    free(text);
}

/* --- the plan, and MASTER_PORT */

bool dt_program_is_planned(const json_t *plan)
{
    const char *task = json_string_value(json_object_get(json_object_get(plan, "recipe"), "task"));

    return task != NULL && strcmp(task, "command") == 0;
}

dt_status dt_program_plan_open(dt_program_plan **out, const json_t *plan, dt_error *err)
{
    dt_program_plan *shared = dt_calloc(1, sizeof(*shared));
    dt_status st = DT_OK;

    *out = NULL;
    shared->held = -1;
    dt_arena_init(&shared->arena, 0);
    DT_TRY(dt_plan_from_json(&shared->plan, plan, &shared->arena, err));
    if (shared->plan.program_checkpoint == NULL)
        shared->plan.program_checkpoint = "";
    *out = shared;
    shared = NULL;
out:
    dt_program_plan_close(shared);
    return st;
}

static void release_port(dt_program_plan *shared)
{
    if (shared->held >= 0)
        close(shared->held);
    shared->held = -1;
}

void dt_program_plan_close(dt_program_plan *shared)
{
    if (shared == NULL)
        return;
    release_port(shared);
    dt_arena_release(&shared->arena);
    free(shared);
}

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

static dt_status choose_port(dt_program_plan *shared, dt_error *err)
{
    unsigned start = 0;

    if (getrandom(&start, sizeof(start), GRND_NONBLOCK) < 0)
        start = (unsigned)getpid();
    for (unsigned i = 0; i < PORTS && shared->held < 0; i++) {
        shared->port = FIRST_PORT + PORT_STEP * (int64_t)((start + i) % PORTS) +
                       shared->plan.attempt % PORT_STEP;
        shared->held = bind_to(shared->port);
    }
    if (shared->held >= 0)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_IO, "no port from %d to %d is free for MASTER_PORT", FIRST_PORT,
                   FIRST_PORT + PORT_STEP * PORTS - 1);
}

dt_status dt_program_offer(char *value, dt_program_plan *shared, int64_t rank, dt_error *err)
{
    dt_status st = DT_OK;

    if (rank == 0)
        DT_TRY(choose_port(shared, err));
    snprintf(value, DT_PROGRAM_OFFER_SIZE, "%04x",
             rank == 0 ? (unsigned)shared->port & 0xffff : 0u);
out:
    return st;
}

dt_status dt_program_agree(dt_program_plan *shared, const json_t *values, dt_error *err)
{
    const char *value = json_string_value(json_array_get(values, 0));

    release_port(shared);
    shared->port_agreed = true;
    shared->port = value != NULL ? strtoll(value, NULL, 16) : 0;
    if (shared->port < FIRST_PORT || shared->port > UINT16_MAX)
        return DT_FAIL(err, DT_ERR_CORRUPT, "rank 0 gave no port for MASTER_PORT");
    return DT_OK;
}
