/* Read the strategy's chunks. */
#include "engine/checkpoint/agree.h"
#include "engine/weights/weights_int.h"

static dt_status load_chunks(dt_weights *weights, dt_strategy_state *state, dt_error *err)
{
    const dt_state_chunk *chunks;
    int count;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_check(weights, state->model, err));
    DT_TRY(state->strategy->import_state(state, &chunks, &count, err));
    for (int i = 0; i < count; i++)
        DT_TRY(dt_weights_read(chunks[i].value, weights, state->model, chunks[i].param,
                               &chunks[i].slice, err));
out:
    return st;
}

dt_status dt_weights_load(dt_weights *weights, dt_strategy_state *state, dt_error *err)
{
    dt_status st = load_chunks(weights, state, err);

    /* import_finish can be collective, so no rank may enter it alone */
    st = dt_checkpoint_agree(state->comm, st, "read the weights", err);
    if (st == DT_OK)
        st = state->strategy->import_finish(state, err);
    return st;
}
