/* slice: boxes and runs compared with counting each element of small parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "engine/tensor.h"

#define ROUNDS    20000
#define MOST_SIDE 6
#define MOST      (MOST_SIDE * MOST_SIDE * MOST_SIDE * MOST_SIDE)

static uint64_t drawn;

static int64_t draw(int64_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((drawn >> 33) % (uint64_t)below);
}

static dt_box draw_whole(void)
{
    int64_t dim[DT_BOX_DIMS];
    int ndim = 1 + (int)draw(DT_BOX_DIMS);

    for (int d = 0; d < ndim; d++)
        dim[d] = 1 + draw(MOST_SIDE);
    return dt_box_whole(dim, ndim);
}

/* Draws a box inside the whole, often as wide, and a range of it. */
static dt_slice draw_slice(const dt_box *whole)
{
    dt_slice out = {.box = *whole};

    for (int d = 0; d < whole->ndim; d++) {
        if (draw(2) == 0)
            continue;
        out.box.start[d] = draw(whole->size[d]);
        out.box.size[d] = 1 + draw(whole->size[d] - out.box.start[d]);
    }
    out.elems = dt_box_elems(&out.box);
    if (draw(3) > 0) {
        out.start_elems = draw(out.elems);
        out.elems = 1 + draw(out.elems - out.start_elems);
    }
    return out;
}

/* Returns the place of the parameter's element `index` in the slice, or -1. */
static int64_t place_in(const dt_slice *slice, const dt_box *whole, int64_t index)
{
    int64_t at[DT_BOX_DIMS], place = 0;

    for (int d = DT_BOX_DIMS - 1; d >= 0; d--) {
        at[d] = index % whole->size[d] - slice->box.start[d];
        index /= whole->size[d];
    }
    for (int d = 0; d < DT_BOX_DIMS; d++) {
        if (at[d] < 0 || at[d] >= slice->box.size[d])
            return -1;
        place = place * slice->box.size[d] + at[d];
    }
    place -= slice->start_elems;
    return place < 0 || place >= slice->elems ? -1 : place;
}

static void test_runs_are_what_both_slices_have(void **state)
{
    static int64_t a_to_b[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        dt_box whole = draw_whole();
        dt_slice a = draw_slice(&whole), b = draw_slice(&whole);
        int64_t last = -1;

        for (int64_t i = 0; i < MOST; i++)
            a_to_b[i] = -1;
        for (dt_overlap run = dt_overlap_of(&a, &b); dt_overlap_next(&run);) {
            assert_true(run.elems > 0 && run.at_a > last);
            assert_true(run.at_a + run.elems <= a.elems && run.at_b >= 0 &&
                        run.at_b + run.elems <= b.elems);
            for (int64_t i = 0; i < run.elems; i++)
                a_to_b[run.at_a + i] = run.at_b + i;
            last = run.at_a + run.elems - 1;
        }
        for (int64_t i = 0; i < dt_box_elems(&whole); i++) {
            int64_t in_a = place_in(&a, &whole, i), in_b = place_in(&b, &whole, i);

            if (in_a >= 0)
                assert_int_equal(a_to_b[in_a], in_b);
        }
    }
}

static void test_boxes_meet_where_both_have_elements(void **state)
{
    for (int round = 0; round < ROUNDS; round++) {
        dt_box whole = draw_whole(), both;
        dt_slice a = draw_slice(&whole), b = draw_slice(&whole);
        dt_slice all_a = dt_slice_whole(&a.box), all_b = dt_slice_whole(&b.box);
        bool meet = dt_box_meet(&both, &a.box, &b.box);
        int64_t shared = 0;

        for (int64_t i = 0; i < dt_box_elems(&whole); i++) {
            bool in_both = place_in(&all_a, &whole, i) >= 0 && place_in(&all_b, &whole, i) >= 0;
            dt_slice met = dt_slice_whole(&both);

            shared += in_both;
            if (meet)
                assert_int_equal(place_in(&met, &whole, i) >= 0, in_both);
        }
        assert_int_equal(meet, shared > 0);
        assert_int_equal(dt_box_equal(&a.box, &b.box),
                         meet && shared == all_a.elems && shared == all_b.elems);
    }
}

/* Checkpoints without boxes are read with one read for each piece. */
static void test_ranges_of_one_box_share_one_run(void **state)
{
    dt_box whole = dt_box_whole((const int64_t[]){4, 6}, 2);
    dt_slice a = {whole, 3, 15}, b = {whole, 10, 14};
    dt_overlap run = dt_overlap_of(&a, &b);

    assert_true(dt_overlap_next(&run));
    assert_int_equal(run.at_a, 7);
    assert_int_equal(run.at_b, 0);
    assert_int_equal(run.elems, 8);
    assert_false(dt_overlap_next(&run));
}

/* The same for rows of a box that is as wide as the parameter. */
static void test_rows_of_a_parameter_share_one_run_with_it(void **state)
{
    dt_box whole = dt_box_whole((const int64_t[]){4, 6}, 2), rows = whole;
    dt_slice a = dt_slice_whole(&whole), b;
    dt_overlap run;

    rows.start[0] = 1;
    rows.size[0] = 2;
    b = dt_slice_whole(&rows);
    run = dt_overlap_of(&a, &b);
    assert_true(dt_overlap_next(&run));
    assert_int_equal(run.at_a, 6);
    assert_int_equal(run.elems, 12);
    assert_false(dt_overlap_next(&run));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_what_both_slices_have),
        cmocka_unit_test(test_boxes_meet_where_both_have_elements),
        cmocka_unit_test(test_ranges_of_one_box_share_one_run),
        cmocka_unit_test(test_rows_of_a_parameter_share_one_run_with_it),
    };

    return cmocka_run_group_tests_name("slices of parameters", tests, NULL, NULL);
}
