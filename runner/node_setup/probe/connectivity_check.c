/* connectivity_check: every node listens on its address, and the others connect to it as their ranks will.
 *
 * A listener lives until its own connection ends, so that the time of a login matters to nobody: all listeners of a
 * block are up before the first dialer logs in, and are closed after the last dialer has answered. A node logs in
 * once to listen, and once a block to dial all of its peers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

#include "base/memory.h"

enum {
    ALL_PAIRS_MAX = 8,
    BLOCK = 32, /* listeners at a time: each uses a process and two descriptors on this machine */
    WORDS_MAX = 3 + 2 * BLOCK + 1,
    PORT_SIZE = 32
};
#define DIAL_SECONDS 20.0 /* after the login; the dialer itself takes at most 11 */
#define PORT_SECONDS 12.0
#define END_SECONDS  5.0

/* One node, as listener and as dialer. */
typedef struct member {
    dt_remote remote; /* connection to the listener, while it is up */
    bool listens, listen_failed, dial_failed;
    char port[PORT_SIZE];
    dt_error listen_why, dial_why;
} member;

typedef struct meeting {
    int64_t from, to;
    enum { NOT_TRIED, MET, UNREACHABLE, FAILED } outcome;
    char why[300];
} meeting;

typedef struct meetings {
    const dt_probe_report *report;
    const dt_probe_wish *wish;
    const dt_bootstrap *bootstrap;
    member *members; /* [report->count] */
    meeting *items;  /* [count], sorted by `from` */
    int64_t count;
    int64_t first, end; /* the nodes that listen in this block */
} meetings;

static bool is_pair(const dt_probe_report *report, int64_t from, int64_t to)
{
    int64_t apart = llabs(from - to);

    return from != to && report->probes[from].address != NULL &&
           report->probes[to].address != NULL &&
           !(dt_nodes_is_here(report->probes[from].node) &&
             dt_nodes_is_here(report->probes[to].node)) &&
           (report->count <= ALL_PAIRS_MAX || apart == 1 || apart == report->count - 1);
}

/* --- listeners */

/* Reads the line "port N" of a listener. */
static dt_status read_port(member *one, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf line;
    int code = 0;

    dt_strbuf_init(&line);
    DT_TRY(dt_nodes_line(&line, &one->remote, PORT_SECONDS, err));
    if (strncmp(line.data, "port ", 5) == 0) {
        snprintf(one->port, sizeof(one->port), "%s", line.data + 5);
        goto out;
    }
    DT_TRY(dt_remote_finish(&one->remote, &code, &problem, END_SECONDS, err));
    DT_THROW(err, DT_ERR_PEER, "%s", code != 0 ? problem.message : "it printed no port");
out:
    dt_strbuf_release(&line);
    return st;
}

static void begin_listener(void *context, int64_t i)
{
    meetings *plan = context;
    int64_t to = plan->first + i;
    const dt_node_probe *probe = &plan->report->probes[to];
    member *one = &plan->members[to];
    dt_status st = DT_OK;
    dt_error *err = &one->listen_why;
    const char *agent;
    dt_arena arena;

    if (!one->listens)
        return;
    dt_arena_init(&arena, 1024);
    DT_TRY(dt_bootstrap_agent(&agent, plan->bootstrap, probe->node, probe->facts, &arena, err));
    {
        const char *const words[] = {agent, "node", "listen", probe->address, NULL};

        DT_TRY(dt_remote_open(&one->remote, probe->node, words, plan->wish->cancelled, err));
    }
    DT_TRY(read_port(one, err));
out:
    one->listen_failed = st != DT_OK;
    dt_arena_release(&arena);
}

/* Ends a listener. If it fails, its error is the cause of what its dialers reported. */
static void end_listener(void *context, int64_t i)
{
    meetings *plan = context;
    member *one = &plan->members[plan->first + i];
    dt_error problem = DT_ERROR_INIT;
    int code = 0;

    if (one->listens && !one->listen_failed) {
        dt_status st = dt_remote_finish(&one->remote, &code, &problem, END_SECONDS, &problem);

        one->listen_failed = st == DT_OK ? code != 0 : st != DT_ERR_TIMEOUT;
        if (one->listen_failed)
            (void)DT_FAIL(&one->listen_why, DT_ERR_PEER, "%s", problem.message);
    }
    dt_remote_close(&one->remote);
}

/* --- dialers */

static bool is_in_block(const meetings *plan, const meeting *one)
{
    return one->to >= plan->first && one->to < plan->end && !plan->members[one->to].listen_failed;
}

/* Parses one line of a dialer's answer. */
static void take_answer(meeting *one, const char *line, size_t length)
{
    static const char unreachable[] = "unreachable ", failed[] = "failed ";

    if (length == 3 && memcmp(line, "met", 3) == 0) {
        one->outcome = MET;
    } else if (length > sizeof(unreachable) - 1 &&
               memcmp(line, unreachable, sizeof(unreachable) - 1) == 0) {
        one->outcome = UNREACHABLE;
        snprintf(one->why, sizeof(one->why), "%.*s", (int)(length - (sizeof(unreachable) - 1)),
                 line + sizeof(unreachable) - 1);
    } else {
        size_t front = length > sizeof(failed) - 1 && memcmp(line, failed, sizeof(failed) - 1) == 0
                           ? sizeof(failed) - 1
                           : 0;

        one->outcome = FAILED;
        snprintf(one->why, sizeof(one->why), "%.*s", (int)(length - front), line + front);
    }
}

static void dial(void *context, int64_t from)
{
    meetings *plan = context;
    const dt_node_probe *probe = &plan->report->probes[from];
    member *dialer = &plan->members[from];
    const char *words[WORDS_MAX] = {NULL, "node", "dial"};
    meeting *mine[BLOCK];
    size_t count = 0;
    dt_status st = DT_OK;
    dt_error problem = DT_ERROR_INIT, *err = &problem;
    dt_strbuf answer;
    dt_arena arena;

    for (int64_t i = 0; i < plan->count && count < BLOCK; i++)
        if (plan->items[i].from == from && is_in_block(plan, &plan->items[i])) {
            words[3 + 2 * count] = plan->report->probes[plan->items[i].to].address;
            words[4 + 2 * count] = plan->members[plan->items[i].to].port;
            mine[count++] = &plan->items[i];
        }
    if (count == 0 || dialer->dial_failed)
        return;
    dt_arena_init(&arena, 1024);
    dt_strbuf_init(&answer);
    DT_TRY(dt_bootstrap_agent(&words[0], plan->bootstrap, probe->node, probe->facts, &arena, err));
    DT_TRY(dt_nodes_ask(&answer, probe->node, words, NULL, 0, DIAL_SECONDS, plan->wish->cancelled,
                        err));
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t length = strcspn(answer.data + at, "\n");

        if (answer.data[at + length] == '\0')
            DT_THROW(err, DT_ERR_PEER, "node '%s': the answer is incomplete", probe->node);
        take_answer(mine[i], answer.data + at, length);
        at += length + 1;
    }
out:
    if (st != DT_OK) {
        dialer->dial_failed = true;
        (void)DT_FAIL(&dialer->dial_why, st, "%s", problem.message);
    }
    dt_strbuf_release(&answer);
    dt_arena_release(&arena);
}

/* --- the results */

static void add_faults(dt_probe_report *report, const meetings *plan, dt_arena *arena)
{
    for (int64_t i = 0; i < report->count; i++) {
        const member *one = &plan->members[i];
        const dt_node_probe *probe = &report->probes[i];

        if (one->listen_failed)
            dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_UNSUPPORTED,
                               "node '%s' cannot listen on %s: %s", probe->node, probe->address,
                               one->listen_why.message);
        else if (one->dial_failed)
            dt_probe_add_fault(report, arena, probe->node, true, DT_ERR_UNSUPPORTED,
                               "node '%s': cannot test its connections to the other nodes: %s",
                               probe->node, one->dial_why.message);
    }
    for (int64_t i = 0; i < plan->count; i++) {
        const meeting *one = &plan->items[i];
        const dt_node_probe *from = &report->probes[one->from], *to = &report->probes[one->to];

        if ((one->outcome == UNREACHABLE || one->outcome == FAILED) &&
            !plan->members[one->to].listen_failed)
            dt_probe_add_fault(
                report, arena, from->node, true, DT_ERR_UNSUPPORTED,
                "node '%s' cannot connect to node '%s' at %s: %s%s", from->node, to->node,
                to->address, one->why,
                one->outcome == UNREACHABLE
                    ? ": allow TCP between the nodes in the firewall, or set network.interface"
                    : "");
    }
}

void dt_probe_connectivity(dt_probe_report *report, const dt_probe_wish *wish,
                           const dt_bootstrap *bootstrap, dt_arena *arena)
{
    meetings plan = {.report = report, .wish = wish, .bootstrap = bootstrap};
    int64_t most = report->count <= ALL_PAIRS_MAX ? report->count - 1 : 2;

    plan.members = dt_calloc((size_t)report->count, sizeof(plan.members[0]));
    plan.items = dt_calloc((size_t)(report->count * most) + 1, sizeof(plan.items[0]));
    for (int64_t from = 0; from < report->count; from++)
        for (int64_t to = 0; to < report->count; to++)
            if (is_pair(report, from, to)) {
                plan.items[plan.count++] = (meeting){.from = from, .to = to};
                plan.members[to].listens = true;
            }
    for (plan.first = 0; plan.first < report->count; plan.first += BLOCK) {
        plan.end = plan.first + BLOCK < report->count ? plan.first + BLOCK : report->count;
        dt_probe_parallel(plan.end - plan.first, begin_listener, &plan);
        dt_probe_parallel(report->count, dial, &plan);
        dt_probe_parallel(plan.end - plan.first, end_listener, &plan);
    }
    add_faults(report, &plan, arena);
    free(plan.members);
    free(plan.items);
}
