#include "engine/data/dataset_int.h"

/* The last token is only used as a target. */
int64_t dt_validation_count(const dt_dataset *dataset, int64_t tokens)
{
    int64_t inputs =
        dataset->has_rows || dataset->has_pairs ? dataset->valid_count : dataset->valid_count - 1;

    if (dataset->has_pairs)
        return inputs;
    if (dataset->packed)
        return dataset->valid_packs.count;
    return inputs > 0 ? (inputs + tokens - 1) / tokens : 0;
}

static void fill_row(const dt_dataset *dataset, int64_t index, void *const inputs[], int64_t place)
{
    if (index < 0)
        dt_rows_blank(inputs, place, dataset->valid_rows);
    else
        dt_rows_copy(inputs, place, dataset->valid_rows, dataset->valid_start + index);
}

dt_status dt_validation_fill(const dt_dataset *dataset, int64_t tokens, int64_t index,
                             void *const inputs[], int64_t place, dt_error *err)
{
    int64_t end = dataset->valid_start + dataset->valid_count, start, have;

    DT_ASSERT(!dataset->has_pairs);
    if (dataset->has_rows) {
        fill_row(dataset, index, inputs, place);
        return DT_OK;
    }
    if (index < 0) {
        start = have = 0;
    } else if (dataset->packed) {
        start = dataset->valid_packs.starts[index];
        have = dt_packs_length(&dataset->valid_packs, index);
    } else {
        start = dataset->valid_start + index * tokens;
        have = end - 1 - start < tokens ? end - 1 - start : tokens;
        DT_ASSERT(have > 0);
    }
    return dt_dataset_fill_tokens(dataset, dataset->valid_stream, start, have, end, inputs, place,
                                  tokens, err);
}

dt_status dt_validation_fill_group(const dt_dataset *dataset, int64_t index, dt_pair_shape *shape,
                                   void *const inputs[], dt_error *err)
{
    if (index >= 0)
        return dt_group_fill(shape, inputs, &dataset->valid_groups, index, &dataset->pair_ids, err);
    dt_group_blank(shape, inputs, &dataset->pair_ids);
    return DT_OK;
}
