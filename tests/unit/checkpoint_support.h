/* checkpoint_support: runs a world of ranks as threads of one process, with a tiny model and a strategy that holds
 * it in the pieces that a test asks for.
 *
 * The value of each element follows from its place, and is compared after a load.
 */
#ifndef DT_TESTS_CHECKPOINT_SUPPORT_H
#define DT_TESTS_CHECKPOINT_SUPPORT_H

#include "engine/checkpoint/checkpoint_int.h"

#define FAKE_MAX_RANKS 4
#define FAKE_VOCAB     5
#define FAKE_PADDED    8

typedef enum fake_layout {
    FAKE_LEAD,    /* rank 0 holds everything, as in ddp */
    FAKE_FLAT,    /* each rank holds a slice of all parameters laid end to end, as in fsdp */
    FAKE_STRIPES, /* pieces of 7 elements, dealt out in turn */
    FAKE_LAYOUTS, /* count; the next ones are of a mesh, whose tensor ranks hold boxes */
    FAKE_DDP = FAKE_LAYOUTS, /* each data rank holds them whole */
    FAKE_FSDP                /* the data ranks divide the elements */
} fake_layout;

/* The function that a rank's thread runs; its status is the rank's result. */
typedef struct fake_world fake_world;
typedef dt_status (*fake_task)(fake_world *world, dt_strategy_state *state, dt_error *err);

struct fake_world {
    int64_t ranks;
    fake_layout layout;
    int64_t tensor_size; /* of the mesh; the other ranks are its data axis */
    int64_t padded;      /* rows of the embedding in memory */
    bool no_moments;
    int failing_rank; /* its export_state fails; -1: none */
    const dt_checkpoint_io *io;
    char parent[128]; /* folder of the checkpoints */
    bool apart;       /* each rank is a node with its own folder */
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
/* Runs the task on every rank. Returns DT_OK if all ranks do, else the error of the first rank that failed. */
dt_status fake_world_run(fake_world *world, fake_task task);

/* Runs the task on one rank, in a process of its own. */
dt_status fake_world_run_rank(fake_world *world, int64_t rank, dt_comm *comm, fake_task task);

/* Tasks. fake_load overwrites the state first, and then checks every element. */
dt_status fake_save(fake_world *world, dt_strategy_state *state, dt_error *err);
dt_status fake_load(fake_world *world, dt_strategy_state *state, dt_error *err);

/* Removes all checkpoints but the newest (0: only remains of unfinished saves). */
dt_status fake_prune(const char *parent, int64_t newest);

/* Fills all that a rank holds with the expected values, or with NaN. */
void fake_fill(dt_strategy_state *state, bool poison);

/* These fail the test on an error. */
void fake_must_save(fake_world *world);
void fake_must_load(fake_world *world);

/* Returns the value of element `index` of a parameter; kind as in index.h. */
float fake_value(int param, int64_t index, int kind);
/* Returns the model; static. */
const dt_model *fake_model(void);

/* Makes and removes a fresh folder, as *state of cmocka. */
int fake_folder_make(void **state);
int fake_folder_remove(void **state);

#endif
