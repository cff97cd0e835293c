#include "engine/tensor.h"

#include "base/error.h"

dt_box dt_box_whole(const int64_t *dim, int ndim)
{
    dt_box out = {.ndim = ndim};

    DT_ASSERT(ndim >= 1 && ndim <= DT_BOX_DIMS);
    for (int d = 0; d < DT_BOX_DIMS; d++)
        out.size[d] = d < ndim ? dim[d] : 1;
    return out;
}

int64_t dt_box_elems(const dt_box *box)
{
    int64_t elems = 1;

    for (int d = 0; d < DT_BOX_DIMS; d++)
        elems *= box->size[d];
    return elems;
}

bool dt_box_equal(const dt_box *a, const dt_box *b)
{
    bool equal = a->ndim == b->ndim;

    for (int d = 0; d < DT_BOX_DIMS; d++)
        equal = equal && a->start[d] == b->start[d] && a->size[d] == b->size[d];
    return equal;
}

bool dt_box_meet(dt_box *out, const dt_box *a, const dt_box *b)
{
    bool some = true;

    DT_ASSERT(a->ndim == b->ndim);
    out->ndim = a->ndim;
    for (int d = 0; d < DT_BOX_DIMS; d++) {
        int64_t a_end = a->start[d] + a->size[d], b_end = b->start[d] + b->size[d];
        int64_t start = a->start[d] > b->start[d] ? a->start[d] : b->start[d];

        out->start[d] = start;
        out->size[d] = (a_end < b_end ? a_end : b_end) - start;
        some = some && out->size[d] > 0;
    }
    return some;
}

dt_slice dt_slice_whole(const dt_box *box)
{
    return (dt_slice){.box = *box, .elems = dt_box_elems(box)};
}

dt_overlap dt_overlap_of(const dt_slice *a, const dt_slice *b)
{
    dt_overlap out = {.a = a, .b = b, .row_dim = DT_BOX_DIMS - 1};
    const int64_t *size = out.both.size;
    int d = DT_BOX_DIMS - 1;

    out.more = dt_box_meet(&out.both, &a->box, &b->box);
    out.row_elems = size[d];
    /* Rows that are complete in both boxes are contiguous: merge them. */
    for (; d > 0 && size[d] == a->box.size[d] && size[d] == b->box.size[d]; d--)
        out.row_elems *= size[d - 1];
    out.row_dim = d;
    return out;
}

/* Position of the current row in a slice, relative to its first element; can be outside the slice. */
static int64_t place_of(const dt_overlap *run, const dt_slice *slice)
{
    int64_t at = 0;

    for (int d = 0; d < DT_BOX_DIMS; d++)
        at = at * slice->box.size[d] + run->both.start[d] + run->index[d] - slice->box.start[d];
    return at - slice->start_elems;
}

static void go_to_next_row(dt_overlap *run)
{
    for (int d = run->row_dim - 1; d >= 0; d--) {
        if (++run->index[d] < run->both.size[d])
            return;
        run->index[d] = 0;
    }
    run->more = false;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool dt_overlap_next(dt_overlap *run)
{
    while (run->more) {
        int64_t at_a = place_of(run, run->a), at_b = place_of(run, run->b);
        int64_t skip = larger(0, larger(-at_a, -at_b));
        int64_t over =
            larger(at_a + run->row_elems - run->a->elems, at_b + run->row_elems - run->b->elems);

        go_to_next_row(run);
        run->at_a = at_a + skip;
        run->at_b = at_b + skip;
        run->elems = run->row_elems - skip - larger(0, over);
        if (run->elems > 0)
            return true;
    }
    return false;
}
