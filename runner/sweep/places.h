/* places: chooses the nodes and GPUs of a point of a sweep, so that points that run at the same time do not share
 * GPUs or nodes.
 *
 * What is in use comes from the plans of all runs that have not ended, including other sweeps and single runs;
 * nothing else is stored, so the next driver sees the same. The place is written into the point's recipe, as
 * `nodes: [gpu-a gpus=2 first_gpu=4]`, and so into its run.
 * As written  if it trains on CPUs and on all nodes, if Slurm chooses the nodes, or if it would not fit even
 *             alone: then its launch reports why
 * Threads     drivers choose one after another, by sweeps.lock of the state folder, which is held until the run
 *             exists
 */
#ifndef DT_SWEEP_PLACES_H
#define DT_SWEEP_PLACES_H

#include "runner/sweep/group.h"
#include "store/store.h"

/* GPUs of the nodes, which are asked once. Zero except for the arena. */
typedef struct dt_places {
    dt_arena *arena;
    const char **names;
    int64_t *gpus;
    int64_t count, room;
} dt_places;

typedef struct dt_place {
    bool there;        /* false: other runs use what the point needs; try again later */
    const char *nodes; /* "nodes=[...]", in the places' arena; NULL: as in the recipe */
    int lock;          /* -1: not held */
} dt_place;

/* Chooses a place. Release *out with dt_place_let_go in any case. */
dt_status dt_place_take(dt_place *out, dt_places *places, const dt_sweep_group *group,
                        int64_t index, dt_store *store, dt_error *err);
void dt_place_let_go(dt_place *place);

#endif
