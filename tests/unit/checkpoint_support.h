/* checkpoint_support: a world of ranks in one process (a thread each), a tiny model, and a strategy
 * that holds it in whatever pieces a test asks for.
 *
 * Every element of the model is known from its place: after a load it is compared with that.
 */
#ifndef DT_TESTS_CHECKPOINT_SUPPORT_H
#define DT_TESTS_CHECKPOINT_SUPPORT_H

#include "engine/checkpoint/checkpoint_int.h"

#define FAKE_MAX_RANKS 4
#define FAKE_VOCAB     5
#define FAKE_PADDED    8

typedef enum fake_layout {
    FAKE_LEAD,               /* rank 0 everything, as ddp */
    FAKE_FLAT,               /* each rank a slice of all parameters laid end to end, as fsdp */
    FAKE_STRIPES,            /* pieces of 7 elements, dealt out in turn */
    FAKE_LAYOUTS,            /* so many; then those of a mesh, whose tensor ranks have boxes */
    FAKE_DDP = FAKE_LAYOUTS, /* each data rank has them whole */
    FAKE_FSDP                /* the data ranks divide their elements */
} fake_layout;

/* What a rank's thread runs; what it returns is its result. */
typedef struct fake_world fake_world;
typedef dt_status (*fake_task)(fake_world *world, dt_strategy_state *state, dt_error *err);

struct fake_world {
    int64_t ranks;
    fake_layout layout;
    int64_t tensor_size; /* of the mesh; the rest of the ranks is its data axis */
    int64_t padded;      /* rows of the embedding in memory */
    bool no_moments;
    int failing_rank; /* its export_state fails; -1: none */
    const dt_checkpoint_io *io;
    char parent[128]; /* where checkpoints go */
    bool apart;       /* each rank is a node with a folder of its own */
    char node_parent[FAKE_MAX_RANKS][128];
    dt_checkpoint_info info;
    /* results, per rank */
    dt_status st[FAKE_MAX_RANKS];
    dt_error err[FAKE_MAX_RANKS];
    dt_checkpoint_saved saved[FAKE_MAX_RANKS];
    struct fake_shared *shared;
};

/* Defaults: one rank, FAKE_LEAD, moments, the real system calls, step 100 of attempt 1. */
void fake_world_init(fake_world *world, const char *parent);
void fake_world_release(fake_world *world);
/* Runs the task on every rank; DT_OK when all return it, else the first rank's error. */
dt_status fake_world_run(fake_world *world, fake_task task);

/* The same of one rank that has a process of its own. */
dt_status fake_world_run_rank(fake_world *world, int64_t rank, dt_comm *comm, fake_task task);

/* Tasks. Load: poisons the state first, then expects every element. */
dt_status fake_save(fake_world *world, dt_strategy_state *state, dt_error *err);
dt_status fake_load(fake_world *world, dt_strategy_state *state, dt_error *err);

/* Prunes all but the newest (0: leftovers alone). */
dt_status fake_prune(const char *parent, int64_t newest);

/* All that a rank holds: what it should be, or NaN. */
void fake_fill(dt_strategy_state *state, bool poison);

/* Shorthands that fail the test where they fail. */
void fake_must_save(fake_world *world);
void fake_must_load(fake_world *world);

/* The value that element `index` of a parameter has; kind as in index.h. */
float fake_value(int param, int64_t index, int kind);
/* A model to look at; static. */
const dt_model *fake_model(void);

/* A fresh folder for *state of cmocka, and its removal. */
int fake_folder_make(void **state);
int fake_folder_remove(void **state);

#endif
