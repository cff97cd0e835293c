#include "engine/data/dataset_int.h"

#include "base/banned.h"

/* The last token is only ever a target. */
int64_t dt_validation_count(const dt_dataset *dataset, int64_t tokens)
{
    int64_t inputs = dataset->valid_count - 1;

    return inputs > 0 ? (inputs + tokens - 1) / tokens : 0;
}

dt_status dt_validation_fill(const dt_dataset *dataset, int64_t tokens, int64_t index,
                             int32_t *inputs, int32_t *targets, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t start = index * tokens, left = dataset->valid_count - 1 - start;
    int64_t have = left < tokens ? left : tokens;

    DT_ASSERT(index >= 0 && have > 0);
    start += dataset->valid_start;
    DT_TRY(dt_token_stream_check(dataset->valid_stream, start, have + 1, dataset->limit, err));
    dt_token_stream_read(inputs, dataset->valid_stream, start, have);
    dt_token_stream_read(targets, dataset->valid_stream, start + 1, have);
    for (int64_t i = have; i < tokens; i++) {
        inputs[i] = 0;
        targets[i] = -1;
    }
out:
    return st;
}
