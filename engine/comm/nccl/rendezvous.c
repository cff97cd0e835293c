/* rendezvous: agrees with all ranks whether to use NCCL, and sets its network interface. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/resources.h"
#include "engine/comm/nccl/nccl.h"

/* A rank's GPU, exchanged as is: every rank runs the same program. */
typedef struct nccl_card {
    uint8_t card[DT_NCCL_CARD_BYTES];
    uint8_t id[DT_NCCL_ID_BYTES]; /* NCCL's unique id, set by the first rank of each group */
    int32_t version;              /* version of NCCL; 0: not available here */
} nccl_card;

/* Must run before NCCL's first call: it reads the variable once. */
static dt_status bind_to_interface(dt_error *err)
{
    const char *address = getenv("DTRUN_INTERFACE_ADDRESS");
    char name[DT_INTERFACE_SIZE + 1] = "=";

    if (address == NULL || address[0] == '\0')
        return DT_OK;
    if (!dt_interface_name(name + 1, address))
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "DTRUN_INTERFACE_ADDRESS is '%s': expected a numeric address of this machine", address);
    (void)setenv("NCCL_SOCKET_IFNAME", name, 0);
    return DT_OK;
}

static dt_status write_card(nccl_card *out, const dt_nccl_link *link, dt_device *device, bool first,
                            dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    if (link == NULL)
        return DT_OK;
    DT_TRY(bind_to_interface(err));
    out->version = link->version();
    if (out->version == 0)
        return DT_OK;
    DT_TRY(link->card(device, out->card, err));
    if (first)
        DT_TRY(link->make_id(out->id, err));
out:
    return st;
}

/* Find the reason not to use NCCL; the result is the same on every rank. *why is empty if all can
 * use it. */
static void find_hindrance(char *why, size_t size, const nccl_card *cards, int64_t count)
{
    why[0] = '\0';
    for (int64_t i = 0; i < count; i++) {
        if (cards[i].version == 0) {
            snprintf(why, size, "rank %lld cannot use NCCL", (long long)i);
            return;
        }
        if (cards[i].version != cards[0].version) {
            snprintf(why, size, "rank %lld has NCCL %d, rank 0 has %d", (long long)i,
                     (int)cards[i].version, (int)cards[0].version);
            return;
        }
        for (int64_t j = 0; j < i; j++)
            if (memcmp(cards[i].card, cards[j].card, DT_NCCL_CARD_BYTES) == 0) {
                snprintf(why, size, "ranks %lld and %lld share a GPU", (long long)j, (long long)i);
                return;
            }
    }
}

dt_status dt_nccl_rendezvous(dt_comm *out, const dt_comm_setup *setup, dt_device *device,
                             dt_comm *host, dt_error *err)
{
    nccl_card mine, *cards = calloc((size_t)setup->group.world_size, sizeof(*cards));
    dt_peer peers[DT_SEGMENT_MEMBERS_MAX];
    dt_topology topology = {0};
    dt_nccl_options options = {.link = device->nccl,
                               .device = device,
                               .name = setup->name,
                               .rank = setup->group.rank,
                               .world_size = setup->group.size,
                               .timeout_seconds = setup->timeout_seconds};
    dt_comm_setup nccl_setup = *setup; /* the host's communicator has used the plain name */
    dt_status st = DT_OK;
    char why[128], name[96];

    memset(out, 0, sizeof(*out));
    snprintf(name, sizeof(name), "%s/nccl", setup->name);
    nccl_setup.name = name;
    nccl_setup.topology = &topology;
    if (cards == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to compare the GPUs of %lld ranks",
                 (long long)setup->group.world_size);
    DT_TRY(write_card(&mine, options.link, device, setup->group.rank == 0, err));
    DT_TRY(dt_topology_exchange(cards, &mine, sizeof(mine), &nccl_setup, "cards", err));
    find_hindrance(why, sizeof(why), cards, setup->group.world_size);
    if (why[0] != '\0') {
        if (setup->group.rank == 0)
            dt_log_info("communicator '%s': collectives go through host memory: %s", setup->name,
                        why);
        goto out;
    }
    DT_TRY(dt_topology_find(&topology, &nccl_setup, err));
    dt_topology_peers(peers, &nccl_setup);
    options.peers = peers;
    options.peer_count = dt_topology_members(&topology);
    DT_TRY(dt_nccl_open(out, &options, cards[setup->group.first].id, host, err));
    if (setup->group.rank == 0)
        dt_log_info("communicator '%s': %lld ranks through NCCL %d", setup->name,
                    (long long)setup->group.size, (int)cards[0].version);
out:
    dt_topology_release(&topology);
    free(cards);
    return st;
}
