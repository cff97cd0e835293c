/* pipe: a channel between two processes: bytes in order, of unlimited capacity. */
#include <string.h>

#include "tests/sim/sim.h"

void sim_pair(sim_end *ends[2])
{
    for (int i = 0; i < 2; i++) {
        ends[i] = sim_alloc(sizeof(*ends[i]));
        dt_strbuf_init(&ends[i]->bytes);
        ends[i]->holders = 1;
    }
    ends[0]->peer = ends[1];
    ends[1]->peer = ends[0];
}

size_t sim_end_waiting(const sim_end *end)
{
    return end->bytes.length - end->taken;
}

size_t sim_end_read(sim_end *end, void *bytes, size_t most)
{
    size_t waiting = sim_end_waiting(end), length = waiting < most ? waiting : most;

    memcpy(bytes, end->bytes.data + end->taken, length);
    end->taken += length;
    if (end->taken == end->bytes.length) {
        dt_strbuf_reset(&end->bytes);
        end->taken = 0;
    }
    return length;
}

static void tell(sim_end *end)
{
    if (end->heard != NULL)
        end->heard(end->heard_context);
    sim_task_wake(end->reader);
    sim_loop_wake(end->loop);
}

void sim_end_deliver(sim_end *end, const void *bytes, size_t length, bool eof)
{
    if (end->closed || end->eof)
        return;
    dt_strbuf_add(&end->bytes, bytes, length);
    end->eof = eof;
    tell(end);
}

bool sim_end_write(sim_end *end, const void *bytes, size_t length)
{
    if (end->peer->closed && end->path == NULL)
        return false;
    if (end->path != NULL)
        sim_net_send(end, bytes, length, false);
    else
        sim_end_deliver(end->peer, bytes, length, false);
    return true;
}

void sim_end_shut(sim_end *end)
{
    if (end->path != NULL)
        sim_net_send(end, "", 0, true);
    else
        sim_end_deliver(end->peer, "", 0, true);
}

void sim_end_release(sim_end *end)
{
    if (--end->holders > 0 || end->closed)
        return;
    sim_end_shut(end);
    end->closed = true;
    end->loop = NULL;
    end->reader = NULL;
    dt_strbuf_release(&end->bytes);
    end->taken = 0;
    dt_strbuf_init(&end->bytes);
}
