/* connectivity_check: every node listens on its address, the others dial it, as their ranks
 * will. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/probe/probe_int.h"
#include "runner/transport/remote.h"

#include "base/banned.h"

enum { ALL_PAIRS_MAX = 8 };
#define MEET_SECONDS 12.0

typedef struct meeting {
    int64_t from, to;
    bool failed, listen_failed;
    dt_error why;
} meeting;

typedef struct meetings {
    const dt_probe_report *report;
    const dt_probe_wish *wish;
    const dt_bootstrap *bootstrap;
    meeting *items;
} meetings;

static dt_status dial(const meetings *all, meeting *one, const char *port, dt_error *err)
{
    const dt_node_probe *from = &all->report->probes[one->from],
                        *to = &all->report->probes[one->to];
    const char *agent;
    dt_strbuf answer;
    dt_status st;
    dt_arena arena;

    dt_arena_init(&arena, 1024);
    dt_strbuf_init(&answer);
    DT_TRY(dt_bootstrap_agent(&agent, all->bootstrap, from->node, from->facts, &arena, err));
    {
        const char *const words[] = {agent, "node", "dial", to->address, port, NULL};

        DT_TRY(dt_nodes_ask(&answer, from->node, words, NULL, 0, MEET_SECONDS, all->wish->cancelled,
                            err));
    }
out:
    dt_strbuf_release(&answer);
    dt_arena_release(&arena);
    return st;
}

/* The listener's "port N". */
static dt_status read_port(char *port, size_t size, dt_remote *remote, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    char bytes[64];
    dt_status st;
    size_t got;
    int code;

    while (memchr(remote->early.data, '\n', remote->early.length) == NULL) {
        st = dt_remote_read(remote, bytes, sizeof(bytes), &got, MEET_SECONDS, err);
        if (st != DT_OK)
            return st;
        if (got == 0) {
            st = dt_remote_finish(remote, &code, &problem, MEET_SECONDS, err);
            return st != DT_OK ? st : DT_FAIL(err, DT_ERR_PEER, "%s", problem.message);
        }
        dt_strbuf_add(&remote->early, bytes, got);
    }
    snprintf(port, size, "%lld",
             strncmp(remote->early.data, "port ", 5) == 0
                 ? strtoll(remote->early.data + 5, NULL, 10)
                 : 0);
    return DT_OK;
}

static void hold(void *context, int64_t i)
{
    meetings *all = context;
    meeting *one = &all->items[i];
    const dt_node_probe *to = &all->report->probes[one->to];
    dt_remote remote = {0};
    dt_status st = DT_OK;
    dt_error *err = &one->why;
    const char *agent;
    dt_arena arena;
    char port[32];

    dt_arena_init(&arena, 1024);
    one->listen_failed = true;
    DT_TRY(dt_bootstrap_agent(&agent, all->bootstrap, to->node, to->facts, &arena, err));
    {
        const char *const words[] = {agent, "node", "listen", to->address, NULL};

        DT_TRY(dt_remote_open(&remote, to->node, words, all->wish->cancelled, err));
    }
    DT_TRY(read_port(port, sizeof(port), &remote, err));
    one->listen_failed = false;
    DT_TRY(dial(all, one, port, err));
out:
    one->failed = st != DT_OK;
    dt_remote_close(&remote);
    dt_arena_release(&arena);
}

static bool is_pair(const dt_probe_report *report, int64_t from, int64_t to)
{
    int64_t apart = llabs(from - to);

    return from != to && report->probes[from].address != NULL &&
           report->probes[to].address != NULL &&
           !(dt_nodes_is_here(report->probes[from].node) &&
             dt_nodes_is_here(report->probes[to].node)) &&
           (report->count <= ALL_PAIRS_MAX || apart == 1 || apart == report->count - 1);
}

dt_status dt_probe_connectivity(dt_probe_report *report, const dt_probe_wish *wish,
                                const dt_bootstrap *bootstrap, dt_arena *arena, dt_error *err)
{
    meetings all = {report, wish, bootstrap, NULL};
    int64_t count = 0;

    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (int64_t from = 0; from < report->count; from++)
            for (int64_t to = 0; to < report->count; to++)
                if (is_pair(report, from, to)) {
                    if (pass == 1)
                        all.items[count] = (meeting){.from = from, .to = to};
                    count++;
                }
        if (pass == 0)
            all.items = calloc((size_t)count + 1, sizeof(all.items[0]));
        if (all.items == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    }
    dt_probe_spread(count, hold, &all);
    for (int64_t i = 0; i < count; i++) {
        const meeting *one = &all.items[i];
        const dt_node_probe *from = &report->probes[one->from], *to = &report->probes[one->to];

        if (one->failed && one->listen_failed)
            dt_probe_add_fault(report, arena, to->node, true, DT_ERR_UNSUPPORTED,
                               "node '%s' cannot be listened on at %s: %s", to->node, to->address,
                               one->why.message);
        else if (one->failed)
            dt_probe_add_fault(
                report, arena, from->node, true, DT_ERR_UNSUPPORTED,
                "%s: it cannot connect to node '%s' at %s: let TCP between the nodes "
                "through the firewall, or set network.interface",
                one->why.message, to->node, to->address);
    }
    free(all.items);
    return DT_OK;
}
