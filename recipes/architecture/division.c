#include "recipes/architecture/division.h"

#include "base/error.h"

static int64_t times(int64_t a, int64_t b)
{
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

bool dt_tensor_divides(int64_t size, int64_t ranks, bool shared)
{
    return size % ranks == 0 || (shared && size > 0 && ranks % size == 0);
}

int64_t dt_tensor_key_heads(const dt_tensor_place *place, int64_t heads)
{
    int64_t ranks = dt_tensor_ranks(place);

    return heads > ranks ? heads / ranks : 1;
}

static dt_param_held whole(const int64_t *dim)
{
    dt_param_held out = {.cut_dim = -1, .parts = 1, .sharers = 1, .counted = true};

    for (int i = 0; i < DT_PARAM_DIMS; i++)
        out.dim[i] = dim[i];
    return out;
}

/* Gives the rank slice `slice` of `slices` along a dimension. */
static void cut_along(dt_param_held *held, int d, int parts, int64_t slice, int64_t slices)
{
    int64_t each = held->dim[d] / parts / slices;

    held->cut_dim = d;
    held->parts = parts;
    held->start = slice * each;
    held->dim[d] = parts * each;
}

dt_param_held dt_param_hold(const int64_t *dim, dt_param_cut cut, int64_t key_heads,
                            const dt_tensor_place *place)
{
    int64_t ranks = dt_tensor_ranks(place), slices;
    dt_param_held held = whole(dim);

    switch (ranks > 1 ? cut : DT_CUT_NONE) {
    case DT_CUT_ROWS:
        cut_along(&held, 0, 1, place->rank, ranks);
        break;
    case DT_CUT_COLUMNS:
        cut_along(&held, 1, 1, place->rank, ranks);
        break;
    case DT_CUT_THIRDS:
        cut_along(&held, 0, 3, place->rank, ranks);
        break;
    case DT_CUT_KEYS:
        slices = key_heads < 1 ? 1 : key_heads < ranks ? key_heads : ranks;
        held.sharers = ranks / slices;
        held.summed = held.sharers > 1;
        cut_along(&held, 0, 1, place->rank / held.sharers, slices);
        break;
    case DT_CUT_NONE:
    case DT_CUT_SUMMED:
        held.sharers = ranks;
        held.summed = ranks > 1 && cut == DT_CUT_SUMMED;
        break;
    }
    held.counted = place->rank % held.sharers == 0;
    held.elems = 1;
    for (int i = 0; i < DT_PARAM_DIMS; i++)
        held.elems = times(held.elems, held.dim[i]);
    return held;
}
