/* Pieces of a parameter: a random division is accepted as complete; a change that loses or
 * repeats an element is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/index.h"

#define ROUNDS 3000
#define MOST   64

typedef struct division {
    dt_box whole;
    dt_checkpoint_piece items[MOST];
    dt_checkpoint_pieces pieces;
} division;

static uint64_t drawn;

static int64_t draw(int64_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((drawn >> 33) % (uint64_t)below);
}

/* Divides the box into ranges. */
static void add_ranges(division *out, const dt_box *box)
{
    int64_t elems = dt_box_elems(box), at = 0;

    while (at < elems) {
        int64_t left = elems - at, take = draw(2) == 0 ? left : 1 + draw(left);

        if (out->pieces.count >= MOST - 8)
            take = left;
        out->items[out->pieces.count++].slice = (dt_slice){*box, at, take};
        at += take;
    }
}

/* Cuts the box in two, repeatedly. */
static void divide(division *out, const dt_box *box, int cuts)
{
    int d = (int)draw(box->ndim);
    dt_box left = *box, right = *box;

    if (cuts == 0 || box->size[d] == 1) {
        add_ranges(out, box);
        return;
    }
    left.size[d] = 1 + draw(box->size[d] - 1);
    right.start[d] += left.size[d];
    right.size[d] -= left.size[d];
    divide(out, &left, cuts - 1);
    divide(out, &right, cuts - 1);
}

static void shuffle(division *out)
{
    for (int64_t i = out->pieces.count - 1; i > 0; i--) {
        int64_t k = draw(i + 1);
        dt_checkpoint_piece kept = out->items[i];

        out->items[i] = out->items[k];
        out->items[k] = kept;
    }
}

static void draw_division(division *out)
{
    const int64_t dim[] = {1 + draw(7), 1 + draw(7)};

    memset(out, 0, sizeof(*out));
    out->whole = dt_box_whole(dim, 1 + (int)draw(2));
    out->pieces.items = out->items;
    divide(out, &out->whole, (int)draw(4));
    shuffle(out);
}

/* Checks the division by counting each element. */
static bool is_whole(const division *d)
{
    dt_slice whole = dt_slice_whole(&d->whole);
    int count[49] = {0};
    bool once = true;

    for (int64_t i = 0; i < d->pieces.count; i++)
        for (dt_overlap run = dt_overlap_of(&d->items[i].slice, &whole); dt_overlap_next(&run);)
            for (int64_t k = 0; k < run.elems; k++)
                count[run.at_b + k]++;
    for (int64_t i = 0; i < whole.elems; i++)
        once = once && count[i] == 1;
    return once;
}

static dt_status cover(division *d)
{
    return dt_checkpoint_pieces_cover(&d->pieces, &d->whole, "a test", NULL);
}

static void test_a_division_is_the_whole(void **state)
{
    division d;

    for (int round = 0; round < ROUNDS; round++) {
        draw_division(&d);
        assert_true(is_whole(&d));
        assert_int_equal(cover(&d), DT_OK);
    }
}

/* Changes a piece to another box and range, as a damaged document could have them. */
static void change_one(division *d)
{
    dt_slice *slice = &d->items[draw(d->pieces.count)].slice;
    int dim = (int)draw(d->whole.ndim);
    int64_t elems;

    switch (draw(4)) {
    case 0:
        d->pieces.count--;
        return;
    case 1:
        d->items[d->pieces.count] = d->items[draw(d->pieces.count)];
        d->pieces.count++;
        return;
    case 2:
        slice->box.start[dim] = draw(d->whole.size[dim]);
        slice->box.size[dim] = 1 + draw(d->whole.size[dim] - slice->box.start[dim]);
        break;
    default:
        slice->start_elems = draw(dt_box_elems(&slice->box));
    }
    elems = dt_box_elems(&slice->box);
    if (slice->start_elems >= elems)
        slice->start_elems = 0;
    slice->elems = 1 + draw(elems - slice->start_elems);
}

static void test_no_gap_and_no_overlap_passes(void **state)
{
    int refused = 0;
    division d;

    for (int round = 0; round < ROUNDS; round++) {
        draw_division(&d);
        change_one(&d);
        if (cover(&d) == DT_OK)
            assert_true(is_whole(&d));
        else
            refused++;
    }
    assert_in_range(refused, ROUNDS / 2, ROUNDS);
}

static void test_a_piece_is_read_as_it_was_written(void **state)
{
    division d;

    for (int round = 0; round < ROUNDS; round++) {
        draw_division(&d);
        for (int64_t i = 0; i < d.pieces.count; i++) {
            const dt_slice *slice = &d.items[i].slice;
            json_t *json = dt_checkpoint_piece_make("f", "k", slice, &d.whole);
            dt_slice read;

            assert_int_equal(dt_checkpoint_slice_parse(&read, json, &d.whole, "a test", NULL),
                             DT_OK);
            assert_true(dt_box_equal(&read.box, &slice->box));
            assert_int_equal(read.start_elems, slice->start_elems);
            assert_int_equal(read.elems, slice->elems);
            assert_int_equal(json_object_get(json, "box") == NULL,
                             dt_box_equal(&slice->box, &d.whole));
            json_decref(json);
        }
    }
}

static void test_a_box_that_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *text, *word;
    } boxes[] = {
        {"[]", "'box'"},
        {"{\"start\":[0,0]}", "'size'"},
        {"{\"start\":[0],\"size\":[4]}", "has 1 numbers, not 2"},
        {"{\"start\":[0,0,0],\"size\":[1,1,1]}", "has 3 numbers, not 2"},
        {"{\"start\":[0,-1],\"size\":[4,6]}", "reaches beyond"},
        {"{\"start\":[0,1],\"size\":[4,6]}", "reaches beyond"},
        {"{\"start\":[4,0],\"size\":[1,6]}", "reaches beyond"},
        {"{\"start\":[0,0],\"size\":[4,0]}", "reaches beyond"},
        {"{\"start\":[0,0],\"size\":[4,\"6\"]}", "reaches beyond"},
        {"{\"start\":[1,1],\"size\":[9223372036854775807,9223372036854775807]}", "reaches beyond"},
        /* The range has its 5 elements. */
        {"{\"start\":[1,1],\"size\":[2,2]}", "a piece reaches beyond"},
    };
    dt_box whole = dt_box_whole((const int64_t[]){4, 6}, 2);

    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        json_t *json = json_pack("{s:i, s:i, s:o}", "start", 0, "elems", 5, "box",
                                 json_loads(boxes[i].text, 0, NULL));
        dt_error err = DT_ERROR_INIT;
        dt_slice slice;

        assert_int_equal(dt_checkpoint_slice_parse(&slice, json, &whole, "a test", &err),
                         DT_ERR_CORRUPT);
        if (strstr(err.message, boxes[i].word) == NULL)
            fail_msg("%s: %s", boxes[i].text, err.message);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_division_is_the_whole),
        cmocka_unit_test(test_no_gap_and_no_overlap_passes),
        cmocka_unit_test(test_a_piece_is_read_as_it_was_written),
        cmocka_unit_test(test_a_box_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests_name("checkpoint: pieces", tests, NULL, NULL);
}
