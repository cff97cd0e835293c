/* places: where a point of a sweep trains, so that points side by side have GPUs and nodes of their own.
 *
 * What others have is in the plans of all runs that have not ended, those of other sweeps and single runs too:
 * nothing else is kept, and a driver that takes over sees the same. The place goes into the point's recipe, as
 * `nodes: [gpu-a gpus=2 first_gpu=4]`, and so into its run.
 * As written  where it trains on CPUs and on all nodes, where Slurm says which nodes, and where it would not even
 *             have room alone: then its launch says why
 * Threads     drivers choose one after another, by sweeps.lock of the state folder, which is held until the run is there
 */
#ifndef DT_SWEEP_PLACES_H
#define DT_SWEEP_PLACES_H

#include "runner/sweep/group.h"
#include "store/store.h"

/* What is known of nodes, which are asked once. Zero but for the arena. */
typedef struct dt_places {
    dt_arena *arena;
    const char **names;
    int64_t *gpus;
    int64_t count, room;
} dt_places;

typedef struct dt_place {
    bool there;        /* false: others have what the point needs; a later look may find it */
    const char *nodes; /* "nodes=[...]", of the places' arena; NULL: as the recipe says */
    int lock;          /* -1: none is held */
} dt_place;

/* *out is to be let go of in any case. */
dt_status dt_place_take(dt_place *out, dt_places *places, const dt_sweep_group *group,
                        int64_t index, dt_store *store, dt_error *err);
void dt_place_let_go(dt_place *place);

#endif
