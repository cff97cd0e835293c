/* checkpoint: what the processes of one mesh save can be loaded by those of any other, with the
 * communicators of a real run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "checkpoint_support.h"
#include "engine/channel/events.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"

static const struct {
    int64_t data_size, tensor_size;
} meshes[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

#define MESHES  (int)(sizeof(meshes) / sizeof(meshes[0]))
#define LAYOUTS 2 /* FAKE_DDP, FAKE_FSDP */

typedef struct job {
    const char *folder;
    int mesh;
    bool saves;
} job;

/* Opens the world of the checkpoint that `mesh` saves in `layout`, in its own folder. */
static void open_world(fake_world *out, const job *j, int mesh, int layout)
{
    char parent[100];

    snprintf(parent, sizeof(parent), "%s/%d-%d", j->folder, mesh, layout);
    fake_world_init(out, parent);
    out->ranks = meshes[j->mesh].data_size * meshes[j->mesh].tensor_size;
    out->tensor_size = meshes[j->mesh].tensor_size;
}

static int run_task(int rank, fake_world *world, fake_layout layout, dt_comm *comm, fake_task task)
{
    dt_status st;

    world->layout = layout;
    st = fake_world_run_rank(world, rank, comm, task);
    if (st != DT_OK)
        fprintf(stderr, "rank %d, '%s': %s\n", rank, world->parent, world->err[rank].message);
    CHECK(st == DT_OK);
    return 0;
}

/* Saves a checkpoint in both layouts, or loads those of all meshes. */
static int body(int rank, void *self)
{
    const job *j = self;
    int64_t world_size = meshes[j->mesh].data_size * meshes[j->mesh].tensor_size;
    dt_events *events;
    dt_comm comm;

    CHECK(dt_events_open(&events, rank, world_size, NULL) == DT_OK);
    CHECK(dt_comm_open(&comm, events, "main", dt_group_all(rank, world_size), 100, NULL) == DT_OK);
    for (int at = 0; at < MESHES * LAYOUTS; at++) {
        fake_world world;

        if (j->saves && at / LAYOUTS != j->mesh)
            continue;
        open_world(&world, j, at / LAYOUTS, at % LAYOUTS);
        if (j->saves)
            CHECK(run_task(rank, &world, FAKE_DDP + at % LAYOUTS, &comm, fake_save) == 0);
        for (int layout = FAKE_DDP; layout <= FAKE_FSDP && !j->saves; layout++)
            CHECK(run_task(rank, &world, layout, &comm, fake_load) == 0);
        fake_world_release(&world);
    }
    dt_comm_close(&comm);
    dt_events_close(events);
    return 0;
}

static void run(const char *folder, int mesh, bool saves)
{
    job j = {folder, mesh, saves};
    ranks all = {.world_size = (int)(meshes[mesh].data_size * meshes[mesh].tensor_size),
                 .timeout_seconds = 250,
                 .body = body,
                 .self = &j};

    assert_int_equal(ranks_run(&all), 0);
}

static void test_any_mesh_of_processes_loads_from_any(void **state)
{
    for (int mesh = 0; mesh < MESHES; mesh++)
        run(*state, mesh, true);
    for (int mesh = 0; mesh < MESHES; mesh++)
        run(*state, mesh, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_mesh_of_processes_loads_from_any, fake_folder_make,
                                        fake_folder_remove),
    };

    return cmocka_run_group_tests_name("checkpoints of meshes", tests, NULL, NULL);
}
