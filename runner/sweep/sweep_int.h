/* sweep_int: what the driver of a sweep and its tests use: rules of room and of early stops, places on
 * nodes, the start of a point. */
#ifndef DT_RUNNER_SWEEP_SWEEP_INT_H
#define DT_RUNNER_SWEEP_SWEEP_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "runner/sweep/group.h"
#include "store/store.h"

/* room: chooses the GPUs and nodes of a run of a sweep. A pure function of what nodes have and other runs use.
 *
 * Rule       nodes in the order of the recipe, as many as wanted; on each the lowest consecutive free GPUs. A node
 *            on which the run uses no GPU has room if no run of the sweep is on it, or if all nodes are wanted,
 *            because processors are shared
 */

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

/* halving: decides which run of a sweep is stopped early. A pure function of what the runs have reached.
 *
 * Rungs      after, 2 after, 4 after, ... steps. The value of a run at a rung is the last metric up to that step
 * Rule       of all runs that have reached a rung, including ended ones, the best `keep` (rounded up, at least one)
 *            continue; the others are stopped. A run that was cut at an earlier rung does not compete, even if it
 *            reaches the rung before it ends. A run is cut only if a run that was not cut is better at the rung, so
 *            the best of those always continues. The rule is applied at every look, so that runs are judged by the
 *            runs before them: successive halving (Jamieson and Talwalkar 2016) without waiting for each other
 *            (Li et al. 2018)
 * Ties       the earlier point wins; a value that is not a number is the worst
 */

typedef struct dt_halving_run {
    double value; /* value at the rung; may be NaN */
    bool there;   /* the run has reached the rung */
    int64_t cut;  /* rung at which it was cut; 0: not cut */
} dt_halving_run;

/* True if the run `which`, which was not cut before, is stopped at the rung. */
bool dt_halving_cuts(const dt_halving_run *runs, int64_t count, int64_t which, int64_t rung,
                     double keep);

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

typedef struct dt_known_place {
    const char *name;
    int64_t gpus;
} dt_known_place;

/* GPUs of the nodes, which are asked once. Zero except for the arena. */
typedef struct dt_places {
    dt_arena *arena;
    dt_known_place *known;
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
