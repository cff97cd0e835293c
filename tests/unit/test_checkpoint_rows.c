/* checkpoint: a matrix that was saved by columns is read completely, and by rows, through a
 * window smaller than its pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_support.h"

#define ROWS    700
#define COLUMNS 1200
#define CUTS    3 /* of columns: 280,000 elements each, more than a window holds */

typedef struct holder {
    dt_state_chunk chunks[CUTS];
    int count;
} holder;

static dt_status give(dt_strategy_state *state, const dt_state_chunk **chunks, int *count,
                      dt_error *err)
{
    const holder *own = state->own;

    *chunks = own->chunks;
    *count = own->count;
    return DT_OK;
}

static dt_status finish(dt_strategy_state *state, dt_error *err)
{
    return DT_OK;
}

static const dt_strategy strategy = {
    .name = "test", .export_state = give, .import_state = give, .import_finish = finish};

static dt_state_chunk *add(holder *own, const dt_slice *slice)
{
    dt_state_chunk *chunk = &own->chunks[own->count++];

    *chunk =
        (dt_state_chunk){.slice = *slice, .value = calloc((size_t)slice->elems, sizeof(float))};
    assert_non_null(chunk->value);
    return chunk;
}

static void empty(holder *own)
{
    while (own->count > 0)
        free(own->chunks[--own->count].value);
}

/* Returns the place in the matrix, and thus the value, of element k of a slice. */
static float value_at(const dt_slice *slice, int64_t k)
{
    int64_t at = slice->start_elems + k, width = slice->box.size[1];

    return (float)((slice->box.start[0] + at / width) * COLUMNS + slice->box.start[1] + at % width);
}

static void fill_columns(holder *own, const dt_box *whole)
{
    for (int64_t cut = 0; cut < CUTS; cut++) {
        dt_box box = *whole;
        dt_slice slice;

        box.start[1] = COLUMNS / CUTS * cut;
        box.size[1] = COLUMNS / CUTS;
        slice = dt_slice_whole(&box);
        add(own, &slice);
        for (int64_t k = 0; k < slice.elems; k++)
            own->chunks[cut].value[k] = value_at(&slice, k);
    }
}

static dt_status save(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    dt_checkpoint_place place = {world->parent, true, true};

    return dt_checkpoint_save(world->saved, &place, &world->info, state, err);
}

static void expect_slice(dt_checkpoint *checkpoint, dt_strategy_state *state, const dt_slice *slice)
{
    holder own = {0};
    const dt_state_chunk *chunk = add(&own, slice);

    state->own = &own;
    assert_int_equal(dt_checkpoint_load(checkpoint, state, NULL), DT_OK);
    for (int64_t k = 0; k < slice->elems; k++)
        assert_true(chunk->value[k] == value_at(slice, k));
    empty(&own);
}

static dt_status save_and_read(fake_world *world, dt_strategy_state *state, dt_error *err)
{
    const int64_t dim[] = {ROWS, COLUMNS};
    dt_param matrix = {.name = "h.0.w",
                       .ndim = 2,
                       .dim = {ROWS, COLUMNS, 1, 1},
                       .stored_rows = ROWS,
                       .elems = ROWS * COLUMNS};
    dt_model model = {.params = &matrix, .param_count = 1};
    dt_box whole = dt_box_whole(dim, 2), middle = whole;
    dt_checkpoint *checkpoint = NULL;
    holder own = {0};
    dt_slice slice;
    char path[256];
    dt_status st = DT_OK;

    *state = (dt_strategy_state){
        .strategy = &strategy, .model = &model, .comm = state->comm, .own = &own};
    fill_columns(&own, &whole);
    DT_TRY(save(world, state, err));
    snprintf(path, sizeof(path), "%s/step-00000100", world->parent);
    DT_TRY(dt_checkpoint_open(&checkpoint, path, err));
    slice = dt_slice_whole(&whole);
    expect_slice(checkpoint, state, &slice);
    middle.start[0] = 3;
    middle.size[0] = ROWS - 5;
    middle.start[1] = 350; /* in the first two pieces */
    middle.size[1] = 300;
    slice = (dt_slice){middle, 777, dt_box_elems(&middle) - 1000};
    expect_slice(checkpoint, state, &slice);
out:
    dt_checkpoint_close(checkpoint);
    empty(&own);
    return st;
}

static void test_columns_are_read_in_rows(void **state)
{
    fake_world world;

    fake_world_init(&world, *state);
    if (fake_world_run(&world, save_and_read) != DT_OK)
        fail_msg("%s", world.err[0].message);
    fake_world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_columns_are_read_in_rows, fake_folder_make,
                                        fake_folder_remove),
    };

    return cmocka_run_group_tests_name("checkpoint: rows of boxes", tests, NULL, NULL);
}
