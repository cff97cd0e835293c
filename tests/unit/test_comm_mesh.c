/* The mesh: ranks of rows and columns, which rank represents those that hold the same, and
 * processes that communicate along both axes. NODE_RANK says which of them share a node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/channel/events.h"
#include "engine/comm/comm.h"
#include "engine/comm/mesh.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"

#define ROUNDS 50

static void test_ranks_of_a_row_are_neighbours(void **state)
{
    dt_mesh mesh = dt_mesh_of(3, 3, 1, 2);

    assert_int_equal(mesh.world.rank, 3);
    assert_int_equal(mesh.world.size, 6);
    assert_int_equal(mesh.data.rank, 1);
    assert_int_equal(mesh.data.size, 3);
    assert_int_equal(mesh.axis[DT_AXIS_TENSOR].rank, 1);
    assert_int_equal(mesh.axis[DT_AXIS_TENSOR].size, 2);
    for (int64_t m = 0; m < 3; m++)
        assert_int_equal(dt_group_rank(&mesh.data, m), 2 * m + 1);
    for (int64_t m = 0; m < 2; m++)
        assert_int_equal(dt_group_rank(&mesh.axis[DT_AXIS_TENSOR], m), 2 + m);
}

static void test_without_a_tensor_axis_the_data_axis_is_the_world(void **state)
{
    for (int64_t rank = 0; rank < 5; rank++) {
        dt_mesh mesh = dt_mesh_of(rank, 5, 1, 1);

        assert_memory_equal(&mesh.data, &mesh.world, sizeof(mesh.world));
        assert_int_equal(mesh.axis[DT_AXIS_TENSOR].rank, 0);
        assert_int_equal(mesh.axis[DT_AXIS_TENSOR].size, 1);
        assert_int_equal(dt_group_rank(&mesh.axis[DT_AXIS_TENSOR], 0), rank);
    }
}

/* Ranks 0 .. 11 of 2 replicas x 3 shards x 2 tensor ranks: rank 9 is (1, 1, 1). */
static void test_axes_nest_from_the_outermost_to_the_innermost(void **state)
{
    const int64_t size[DT_MESH_AXES] = {
        [DT_AXIS_REPLICA] = 2, [DT_AXIS_SHARD] = 3, [DT_AXIS_TENSOR] = 2};
    static const int64_t first[DT_MESH_AXES] = {3, 7, 8}, stride[DT_MESH_AXES] = {6, 2, 1};
    dt_mesh mesh = dt_mesh_make(9, size);

    for (int axis = 0; axis < DT_MESH_AXES; axis++) {
        assert_int_equal(mesh.axis[axis].rank, 1);
        assert_int_equal(mesh.axis[axis].size, size[axis]);
        assert_int_equal(mesh.axis[axis].first, first[axis]);
        assert_int_equal(mesh.axis[axis].stride, stride[axis]);
    }
    assert_int_equal(mesh.data.size, 6);
    assert_int_equal(mesh.data.rank, 4);
    for (int64_t m = 0; m < 6; m++)
        assert_int_equal(dt_group_rank(&mesh.data, m), 2 * m + 1);
    assert_string_equal(dt_mesh_axis_name(DT_AXIS_TENSOR), "tensor");
}

static void test_every_rank_knows_the_groups_of_all(void **state)
{
    for (int64_t rank = 0; rank < 12; rank++)
        for (int64_t other = 0; other < 12; other++) {
            dt_mesh own = dt_mesh_of(rank, 4, 1, 3), theirs = dt_mesh_of(other, 4, 1, 3);
            dt_group of_data = dt_group_of(other, own.data.stride, own.data.size, 12);
            dt_group of_tensor = dt_group_of(other, own.axis[DT_AXIS_TENSOR].stride,
                                             own.axis[DT_AXIS_TENSOR].size, 12);

            assert_memory_equal(&of_data, &theirs.data, sizeof(of_data));
            assert_memory_equal(&of_tensor, &theirs.axis[DT_AXIS_TENSOR], sizeof(of_tensor));
            assert_int_equal(own.data.first == theirs.data.first, rank % 3 == other % 3);
            assert_int_equal(own.axis[DT_AXIS_TENSOR].first == theirs.axis[DT_AXIS_TENSOR].first,
                             rank / 3 == other / 3);
        }
}

/* For each part, exactly one of the ranks that hold it is chosen: whichever axes divide it. */
static void test_shared_parts_have_one_speaker(void **state)
{
    enum { RANKS = 12 };
    static const int64_t sizes[DT_MESH_AXES] = {2, 2, 3};

    for (unsigned divided = 0; divided < 1u << DT_MESH_AXES; divided++) {
        int said[RANKS] = {0}, parts = 0, wanted = 1;

        for (int axis = 0; axis < DT_MESH_AXES; axis++)
            wanted *= divided & 1u << axis ? (int)sizes[axis] : 1;
        for (int64_t rank = 0; rank < RANKS; rank++) {
            dt_mesh mesh = dt_mesh_make(rank, sizes);
            int64_t part = 0;

            for (int axis = 0; axis < DT_MESH_AXES; axis++)
                if (divided & 1u << axis)
                    part = part * sizes[axis] + mesh.axis[axis].rank;
            said[part] += dt_mesh_speaks(&mesh, divided);
            parts += dt_mesh_term(&mesh, divided, 7) == 7;
        }
        for (int part = 0; part < wanted; part++)
            assert_int_equal(said[part], 1);
        assert_int_equal(parts, wanted);
    }
}

/* --- processes */

typedef struct layout {
    int data_size, tensor_size;
    int node[RANKS_MAX];
    const char *data, *tensor; /* transports as seen by rank 0 */
} layout;

static const layout layouts[] = {
    {2, 2, {0, 0, 0, 0}, "shm", "shm"},
    {2, 2, {0, 0, 1, 1}, "gloo", "shm"},
    {2, 2, {0, 1, 2, 3}, "gloo", "gloo"},
    {2, 2, {0, 0, 0, 1}, "shm", "shm"}, /* only the other row and the other column cross nodes */
    {2, 2, {1, 0, 0, 0}, "nodes", "nodes"},
    {3, 2, {0, 0, 0, 1, 1, 1}, "nodes", "shm"}, /* a row across two nodes */
    {4, 1, {0, 0, 1, 1}, "nodes", "self"},
    {1, 4, {0, 0, 0, 0}, "self", "shm"},
};

typedef struct talk {
    dt_comm world, data, tensor;
    dt_events *events;
    dt_mesh mesh;
} talk;

static int open_all(talk *out, int rank, const layout *l)
{
    dt_error err = DT_ERROR_INIT;
    char node[16];
    dt_status st = DT_OK;

    out->mesh = dt_mesh_of(rank, l->data_size, 1, l->tensor_size);
    snprintf(node, sizeof(node), "%d", l->node[rank]);
    setenv("NODE_RANK", node, 1);
    DT_TRY(dt_events_open(&out->events, rank, out->mesh.world.size, &err));
    DT_TRY(dt_comm_open(&out->world, out->events, "world", out->mesh.world, 100, &err));
    DT_TRY(dt_comm_open(&out->data, out->events, "data", out->mesh.data, 100, &err));
    DT_TRY(dt_comm_open(&out->tensor, out->events, "tensor", out->mesh.axis[DT_AXIS_TENSOR], 100,
                        &err));
out:
    if (st != DT_OK)
        fprintf(stderr, "rank %d: %s\n", rank, err.message);
    return st == DT_OK ? 0 : 1;
}

static void close_all(talk *t)
{
    dt_comm_close(&t->tensor);
    dt_comm_close(&t->data);
    dt_comm_close(&t->world);
    dt_events_close(t->events);
}

/* Each rank sends its number; the group must hear exactly its members. */
static int check_members(dt_comm *comm, const dt_group *group, int rank)
{
    int64_t own = rank, heard[RANKS_MAX];

    CHECK(comm->rank == group->rank && comm->world_size == group->size);
    CHECK(comm->all_gather(comm, heard, &own, sizeof(own), NULL) == DT_OK);
    for (int64_t m = 0; m < group->size; m++)
        CHECK(heard[m] == dt_group_rank(group, m));
    return 0;
}

static int check_axes(talk *t, const layout *l, int rank)
{
    CHECK(rank != 0 || strcmp(t->data.name, l->data) == 0);
    CHECK(rank != 0 || strcmp(t->tensor.name, l->tensor) == 0);
    CHECK(check_members(&t->world, &t->mesh.world, rank) == 0);
    CHECK(check_members(&t->data, &t->mesh.data, rank) == 0);
    CHECK(check_members(&t->tensor, &t->mesh.axis[DT_AXIS_TENSOR], rank) == 0);
    CHECK(check_collectives(&t->data) == 0);
    CHECK(check_collectives(&t->tensor) == 0);
    return 0;
}

typedef struct axis {
    dt_comm *comm;
    const dt_group *group;
    bool right;
} axis;

static void *sum_ranks(void *self)
{
    axis *a = self;

    a->right = true;
    for (int round = 0; round < ROUNDS; round++) {
        float own[1000], expected = 0;

        for (int64_t m = 0; m < a->group->size; m++)
            expected += (float)(dt_group_rank(a->group, m) + round);
        for (int i = 0; i < 1000; i++)
            own[i] = (float)(dt_group_rank(a->group, a->group->rank) + round);
        a->right = a->right && a->comm->all_reduce(a->comm, own, 1000, DT_F32, NULL) == DT_OK;
        for (int i = 0; i < 1000; i++)
            a->right = a->right && own[i] == expected;
    }
    return NULL;
}

/* One thread for each axis: neither waits for the other. */
static int check_both_at_once(talk *t, int rank)
{
    axis data = {&t->data, &t->mesh.data, false},
         tensor = {&t->tensor, &t->mesh.axis[DT_AXIS_TENSOR], false};
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, sum_ranks, &tensor) == 0);
    sum_ranks(&data);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(data.right && tensor.right);
    return 0;
}

/* Gradients 1, 2, 3, ...: the first ELEMS belong to a matrix that the tensor ranks divide, as
 * many to a vector that each of them holds. ddp: every data rank holds the same; fsdp: they
 * divide it. */
#define ELEMS 24

static double own_squares(const dt_mesh *mesh, bool fsdp, double *replicated)
{
    double divided = 0;

    *replicated = 0;
    for (int64_t i = 0; i < ELEMS; i++) {
        bool mine = !fsdp || i % mesh->data.size == mesh->data.rank;

        if (mine && i / mesh->data.size % mesh->axis[DT_AXIS_TENSOR].size ==
                        mesh->axis[DT_AXIS_TENSOR].rank)
            divided += (double)((i + 1) * (i + 1));
        if (mine)
            *replicated += (double)((ELEMS + i + 1) * (ELEMS + i + 1));
    }
    return divided;
}

static int check_norm(talk *t, int rank)
{
    double expected = 0;

    for (int64_t i = 1; i <= 2 * ELEMS; i++)
        expected += (double)(i * i);
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        unsigned data = fsdp ? DT_MESH_DATA : 0;
        double replicated, divided = own_squares(&t->mesh, fsdp, &replicated), sum;

        sum = dt_mesh_term(&t->mesh, data | DT_MESH_TENSOR, divided) +
              dt_mesh_term(&t->mesh, data, replicated);
        CHECK(t->world.all_reduce_f64(&t->world, &sum, 1, NULL) == DT_OK);
        CHECK(sum == expected);
    }
    return 0;
}

static int body(int rank, void *self)
{
    talk t = {0};

    CHECK(open_all(&t, rank, self) == 0);
    CHECK(check_axes(&t, self, rank) == 0);
    CHECK(check_both_at_once(&t, rank) == 0);
    CHECK(check_norm(&t, rank) == 0);
    close_all(&t);
    return 0;
}

static void test_axes_connect_their_ranks_and_norms_count_every_gradient_once(void **state)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        layout l = layouts[i];
        ranks all = {.world_size = l.data_size * l.tensor_size,
                     .timeout_seconds = 250,
                     .body = body,
                     .self = &l};
        int code = ranks_run(&all);

        if (code != 0)
            fprintf(stderr, "layout %zu: %d x %d: %d\n", i, l.data_size, l.tensor_size, code);
        assert_int_equal(code, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_a_row_are_neighbours),
        cmocka_unit_test(test_without_a_tensor_axis_the_data_axis_is_the_world),
        cmocka_unit_test(test_axes_nest_from_the_outermost_to_the_innermost),
        cmocka_unit_test(test_every_rank_knows_the_groups_of_all),
        cmocka_unit_test(test_shared_parts_have_one_speaker),
        cmocka_unit_test(test_axes_connect_their_ranks_and_norms_count_every_gradient_once),
    };

    return cmocka_run_group_tests_name("comm: the mesh", tests, NULL, NULL);
}
