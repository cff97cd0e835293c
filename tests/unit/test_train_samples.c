/* Which samples of a step a rank of a mesh reads: the data ranks divide them, the tensor ranks
 * of a row read the same. The text is 0, 1, 2, ..., so that each token equals its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "data_support.h"
#include "engine/train/session.h"

#define T            4
#define STEP_SAMPLES 16
#define MICRO_STEPS  2
#define RANKS_MOST   8

/* What a rank reads in one step: the first token of each sample. */
typedef struct reading {
    int32_t starts[STEP_SAMPLES];
    int64_t count;
} reading;

static void read_step(reading *out, dt_dataset *dataset, dt_sampler *sampler, dt_recipe *recipe,
                      const dt_mesh *mesh)
{
    int64_t rows = STEP_SAMPLES / MICRO_STEPS / mesh->data.size;
    dt_train_session session = {.mesh = *mesh,
                                .recipe = recipe,
                                .data = {.dataset = dataset},
                                .replicas = 1,
                                .batch = {.samples = rows}};
    int32_t inputs[STEP_SAMPLES * T], targets[STEP_SAMPLES * T];

    recipe->batch.sequences = rows;
    recipe->batch.accumulate = MICRO_STEPS;
    assert_int_equal(dt_train_session_samples_per_step(&session), STEP_SAMPLES);
    out->count = 0;
    for (int64_t m = 0; m < MICRO_STEPS; m++) {
        assert_int_equal(dt_sampler_fill(sampler, (void *[]){inputs, targets},
                                         dt_train_session_first_sample(&session, m), rows, NULL),
                         DT_OK);
        for (int64_t row = 0; row < rows; row++)
            out->starts[out->count++] = inputs[row * T];
    }
}

static int holders(const reading *readings, int64_t ranks, int32_t start)
{
    int found = 0;

    for (int64_t rank = 0; rank < ranks; rank++)
        for (int64_t i = 0; i < readings[rank].count; i++)
            found += readings[rank].starts[i] == start;
    return found;
}

static void check_mesh(dt_dataset *dataset, dt_sampler *sampler, const int32_t *all,
                       int64_t data_size, int64_t tensor_size)
{
    reading readings[RANKS_MOST];
    dt_recipe recipe = {0};

    for (int64_t rank = 0; rank < data_size * tensor_size; rank++) {
        dt_mesh mesh = dt_mesh_of(rank, data_size, 1, tensor_size);

        read_step(&readings[rank], dataset, sampler, &recipe, &mesh);
        assert_int_equal(readings[rank].count, STEP_SAMPLES / data_size);
        if (mesh.axis[DT_AXIS_TENSOR].rank > 0)
            assert_memory_equal(readings[rank].starts, readings[rank - 1].starts,
                                (size_t)readings[rank].count * sizeof(int32_t));
    }
    for (int i = 0; i < STEP_SAMPLES; i++)
        assert_int_equal(holders(readings, data_size * tensor_size, all[i]), tensor_size);
}

static void test_a_step_has_the_same_samples_on_every_mesh(void **state)
{
    static const int64_t meshes[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}};
    dt_dataset *dataset = data_count_up(*state, 4 * 100 + 3, 0);
    dt_mesh one = dt_mesh_of(0, 1, 1, 1);
    dt_recipe recipe = {0};
    dt_sampler sampler;
    reading all;

    assert_int_equal(dt_sampler_init(&sampler, dataset, T, 7, NULL), DT_OK);
    read_step(&all, dataset, &sampler, &recipe, &one);
    for (size_t i = 0; i < sizeof(meshes) / sizeof(meshes[0]); i++)
        check_mesh(dataset, &sampler, all.starts, meshes[i][0], meshes[i][1]);
    dt_sampler_release(&sampler);
    dt_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_step_has_the_same_samples_on_every_mesh,
                                        data_folder_make, data_folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
