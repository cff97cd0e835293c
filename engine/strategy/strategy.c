/* strategy: the table of strategies, and the communicator of ranks that divide a layer. */
#include "engine/strategy/strategy.h"

#include <string.h>

#include "recipes/fields/recipe.h"

/* --- the table */

const dt_strategy *dt_strategy_find(int kind)
{
    static const dt_strategy *const all[] = {
        [DT_STRATEGY_DP] = &dt_strategy_dp,
        [DT_STRATEGY_DDP] = &dt_strategy_ddp,
        [DT_STRATEGY_FSDP] = &dt_strategy_fsdp,
    };

    DT_ASSERT(kind >= 0 && kind < (int)(sizeof(all) / sizeof(all[0])));
    return all[kind];
}

/* --- sums within a layer */

/* Let the collective start after the ops before it. */
static dt_status begin(dt_layer_comm *own, dt_error *err)
{
    const dt_queues *queues = own->device->queues;
    dt_status st = DT_OK;

    DT_TRY(queues->record(own->device, own->ready, NULL, err));
    DT_TRY(own->comm.queue != NULL ? queues->follow(own->device, own->comm.queue, own->ready, err)
                                   : queues->wait(own->device, own->ready, err));
out:
    return st;
}

/* Let the ops after it wait for the collective. */
static dt_status end(dt_layer_comm *own, dt_error *err)
{
    const dt_queues *queues = own->device->queues;
    dt_status st = DT_OK;

    if (own->comm.queue == NULL)
        return DT_OK;
    DT_TRY(queues->record(own->device, own->done, own->comm.queue, err));
    DT_TRY(queues->follow(own->device, NULL, own->done, err));
out:
    return st;
}

static dt_status sum(void *self, const dt_tensor *x, dt_error *err)
{
    dt_layer_comm *own = self;
    dt_status st = DT_OK;

    DT_ASSERT(x->dtype == DT_F32);
    DT_TRY(begin(own, err));
    DT_TRY(own->comm.all_reduce(&own->comm, x->data, dt_tensor_elems(x), DT_F32, err));
    DT_TRY(end(own, err));
out:
    return st;
}

static dt_status gather(void *self, const dt_tensor *all, const dt_tensor *mine, dt_error *err)
{
    dt_layer_comm *own = self;
    dt_status st = DT_OK;

    DT_ASSERT(dt_tensor_bytes(all) == (size_t)own->comm.world_size * dt_tensor_bytes(mine));
    DT_TRY(begin(own, err));
    DT_TRY(own->comm.all_gather(&own->comm, all->data, mine->data, dt_tensor_bytes(mine), err));
    DT_TRY(end(own, err));
out:
    return st;
}

dt_status dt_layer_comm_open(dt_layer_comm *out, dt_device *device, struct dt_events *events,
                             const char *name, dt_group group, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_layer_comm){.device = device, .peers = {.self = out, .sum = sum, .gather = gather}};
    DT_TRY(
        dt_comm_open_device(&out->comm, device, events, name, group, DT_COMM_TIMEOUT_SECONDS, err));
    DT_TRY(device->queues->event_open(device, &out->ready, err));
    DT_TRY(device->queues->event_open(device, &out->done, err));
out:
    return st;
}

void dt_layer_comm_close(dt_layer_comm *own)
{
    if (own->device == NULL)
        return;
    dt_comm_close(&own->comm);
    own->device->queues->event_close(own->device, own->ready);
    own->device->queues->event_close(own->device, own->done);
    memset(own, 0, sizeof(*own));
}
