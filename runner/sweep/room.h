/* room: chooses the GPUs and nodes of a run of a sweep. A pure function of what nodes have and other runs use.
 *
 * Rule       nodes in the order of the recipe, as many as wanted; on each the lowest consecutive free GPUs. A node
 *            on which the run uses no GPU has room if no run of the sweep is on it, or if all nodes are wanted,
 *            because processors are shared
 */
#ifndef DT_SWEEP_ROOM_H
#define DT_SWEEP_ROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { DT_ROOM_GPUS_MOST = 64 }; /* GPUs of a machine */

/* A machine; several nodes of a recipe may be on one. */
typedef struct dt_room_machine {
    int64_t gpus;
    bool used[DT_ROOM_GPUS_MOST]; /* by GPU */
    bool busy;                    /* a run of the sweep is on it */
} dt_room_machine;

typedef struct dt_room_node {
    dt_room_machine *machine;
    int64_t from;  /* first GPU that may be used */
    int64_t needs; /* GPUs; 0: none */
    bool chosen;   /* out */
    int64_t first; /* out: first GPU */
} dt_room_node;

/* Finds room for a run on `wanted` of the nodes (all if `wanted` is `count`) and takes it.
 * Returns false if there is none; then only the out fields have changed. */
bool dt_room_find(dt_room_node *nodes, int64_t count, int64_t wanted);

#endif
