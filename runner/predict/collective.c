#include "runner/predict/collective.h"

#include <math.h>

enum { LL, LL128, SIMPLE, PROTOCOLS };
enum { RING, TREE, WAYS };
enum { NVLINK, PCIE, NETWORK, LINKS };

/* Microseconds of each start, and of each step. */
static const double start_us[WAYS][PROTOCOLS] = {[RING] = {3.6, 10.0, 8.4}, [TREE] = {4.4, 4.4, 0}};
static const double step_us[LINKS][WAYS][PROTOCOLS] = {
    [NVLINK] = {[RING] = {0.47, 1.9, 3.4}, [TREE] = {0.52, 1.2, 28}},
    [PCIE] = {[RING] = {1.0, 2.5, 5.7}, [TREE] = {1.0, 1.9, 28}},
    [NETWORK] = {[RING] = {2.7, 4.0, 9.6}, [TREE] = {5.0, 8.5, 50}},
};

double dt_fabric_bus_gbs(const dt_fabric *fabric)
{
    if (fabric->nodes == 1)
        return fabric->node_gbs;
    if (fabric->node_gpus == 1)
        return fabric->network_gbs;
    return fmin(fabric->node_gbs, fabric->network_gbs);
}

/* Returns the share of the bus bandwidth that the protocol leaves for data: LL sends a flag with
 * every 4 bytes and keeps fewer bytes in flight, LL128 sends one with every 120 bytes. */
static double usable(const dt_fabric *fabric, dt_traffic_kind kind, int way, int protocol)
{
    bool many = fabric->nodes > 1;

    if (way == RING) {
        const double share[PROTOCOLS] = {many || kind == DT_TRAFFIC_ALL_REDUCE ? 1.0 / 4 : 1.0 / 3,
                                         fabric->node_gpus < 2 ? 0.7 : 0.92, 1};
        return share[protocol];
    } else {
        const double share[PROTOCOLS] = {1 / 3.8, many ? 0.915 : 7.0 / 9, 1};
        return 0.9 * share[protocol];
    }
}

static double latency_us(const dt_fabric *fabric, dt_traffic_kind kind, int way, int protocol)
{
    int link = fabric->nvlink ? NVLINK : PCIE;
    double inside_us = step_us[link][way][protocol], between_us = step_us[NETWORK][way][protocol];
    double nodes = (double)fabric->nodes, gpus = (double)fabric->node_gpus;
    double both = kind == DT_TRAFFIC_ALL_REDUCE ? 2 : 1, between, inside;

    if (fabric->nodes > 1 && protocol == LL)
        inside_us *= 1.8;
    between = way == RING ? both * (nodes - 1) : 2 * floor(log2(nodes));
    inside = way == RING ? both * (nodes * gpus - 1) - between : 2 * (gpus - 1);
    return start_us[way][protocol] + inside * inside_us + between * between_us;
}

double dt_collective_seconds(const dt_fabric *fabric, dt_traffic_kind kind, int64_t bytes)
{
    double world = (double)(fabric->nodes * fabric->node_gpus), best = INFINITY;

    if (world < 2)
        return 0;
    for (int way = 0; way < (kind == DT_TRAFFIC_ALL_REDUCE ? WAYS : TREE); way++) {
        double moved = way == TREE ? 2 : kind == DT_TRAFFIC_BROADCAST ? 1 : (world - 1) / world;

        if (way == RING && kind == DT_TRAFFIC_ALL_REDUCE)
            moved *= 2;
        for (int protocol = 0; protocol < PROTOCOLS; protocol++) {
            double gbs = dt_fabric_bus_gbs(fabric) * usable(fabric, kind, way, protocol);
            double seconds = latency_us(fabric, kind, way, protocol) * 1e-6 +
                             moved * (double)bytes / (gbs * 1e9);

            if (protocol == LL128 && !fabric->nvlink)
                continue; /* NCCL uses LL128 over NVLink only, which keeps 128 bytes together */
            best = fmin(best, seconds);
        }
    }
    return best;
}
