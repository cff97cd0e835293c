#include "engine/data/dataset_int.h"

#include "base/banned.h"

/* The last token is only ever a target. */
int64_t dt_validation_count(const dt_dataset *dataset, int64_t tokens)
{
    int64_t inputs =
        dataset->has_rows || dataset->has_pairs ? dataset->valid_count : dataset->valid_count - 1;

    if (dataset->has_pairs)
        return inputs;
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
    int32_t *ids = (int32_t *)inputs[0] + place * tokens;
    int32_t *targets = (int32_t *)inputs[1] + place * tokens;
    int64_t start = index * tokens, left = dataset->valid_count - 1 - start, have = 0;
    dt_status st = DT_OK;

    DT_ASSERT(!dataset->has_pairs);
    if (dataset->has_rows) {
        fill_row(dataset, index, inputs, place);
        goto out;
    }
    if (index >= 0) {
        have = left < tokens ? left : tokens;
        DT_ASSERT(have > 0);
        start += dataset->valid_start;
        DT_TRY(dt_token_stream_check(dataset->valid_stream, start, have + 1, dataset->limit, err));
        dt_token_stream_read(ids, dataset->valid_stream, start, have);
        dt_token_stream_read(targets, dataset->valid_stream, start + 1, have);
    }
    for (int64_t i = have; i < tokens; i++) {
        ids[i] = 0;
        targets[i] = -1;
    }
    dt_dataset_mark_documents(dataset, inputs, place, tokens);
out:
    return st;
}

dt_status dt_validation_fill_group(const dt_dataset *dataset, int64_t index, dt_pair_shape *shape,
                                   void *const inputs[], dt_error *err)
{
    if (index >= 0)
        return dt_group_fill(shape, inputs, &dataset->valid_groups, index, &dataset->pair_ids, err);
    dt_group_blank(shape, inputs, &dataset->pair_ids);
    return DT_OK;
}
