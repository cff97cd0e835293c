/* room: which GPUs of which nodes a run of a sweep gets. A pure function of what nodes have and others use.
 *
 * Rule       nodes in the order of the recipe, so many as it is to have; on each the lowest GPUs in a row that
 *            nobody uses. A node that the run uses no GPU of has room where no run of the sweep is on it, or where
 *            all nodes are to be had, since processors are shared
 */
#ifndef DT_SWEEP_ROOM_H
#define DT_SWEEP_ROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_ROOM_GPUS_MOST = 64 }; /* of a machine */

/* A machine; several nodes of a recipe may be on one. */
typedef struct dt_room_machine {
    int64_t gpus;
    bool used[DT_ROOM_GPUS_MOST]; /* GPU by GPU */
    bool busy;                    /* a run of the sweep is on it */
} dt_room_machine;

typedef struct dt_room_node {
    dt_room_machine *machine;
    int64_t from;  /* the first GPU that may be had */
    int64_t needs; /* GPUs; 0: none */
    bool chosen;   /* out */
    int64_t first; /* out: of the GPUs */
} dt_room_node;

/* Whether there is room for a run on `wanted` of the nodes, all of them where that is `count`; then it is taken. Where
 * there is none nothing is changed but what is out. */
bool dt_room_find(dt_room_node *nodes, int64_t count, int64_t wanted);

#endif
