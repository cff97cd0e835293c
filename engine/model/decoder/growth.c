/* growth: extends sequences incrementally: one sequence by any number of tokens, or each by one
 * token. */
#include "engine/model/decoder/decoder.h"

static dt_status finish(dt_model *model, const dt_batch *batch, float *logits, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_decoder_infer(model, batch, err));
    DT_TRY(dt_decoder_head_logits(model, 1, logits, err));
    DT_TRY(dt_model_after_unit(model, 0, false, err));
out:
    return st;
}

dt_status dt_decoder_extend(dt_model *model, int64_t sequence, const dt_tensor *tokens,
                            float *logits, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_decoder_growth *growth = &state->growth;
    dt_batch batch = {.inputs[DT_DECODER_TOKENS] = *tokens};
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[0] == 1);
    DT_ASSERT(sequence >= 0 && sequence < dt_decoder_sequences(model));
    DT_ASSERT(growth->tokens[sequence] + tokens->dim[1] <= dt_decoder_kept_room(&model->config));
    dt_decoder_begin(model, &batch);
    growth->sequence = sequence;
    state->first_position = growth->tokens[sequence];
    model->kind->decoder->lay_out_behind(model);
    DT_TRY(finish(model, &batch, logits, err));
    growth->tokens[sequence] += tokens->dim[1];
out:
    return st;
}

/* Copy positions and lengths to the device. */
static dt_status place_each(dt_model *model, int64_t count, dt_error *err)
{
    dt_decoder *state = model->state;
    dt_decoder_growth *growth = &state->growth;
    size_t bytes = (size_t)count * sizeof(int32_t);
    int32_t *places = growth->on_host, *lengths = places + count;
    dt_status st = DT_OK;

    growth->longest = 0;
    for (int64_t k = 0; k < count; k++) {
        DT_ASSERT(growth->tokens[k] > 0 &&
                  growth->tokens[k] < dt_decoder_kept_room(&model->config));
        places[k] = (int32_t)growth->tokens[k];
        lengths[k] = places[k] + 1;
        growth->longest = lengths[k] > growth->longest ? lengths[k] : growth->longest;
    }
    growth->places.dim[0] = growth->lengths.dim[0] = count;
    DT_TRY(model->device->copy_in(model->device, growth->places.data, places, bytes, err));
    DT_TRY(model->device->copy_in(model->device, growth->lengths.data, lengths, bytes, err));
    state->positions = growth->places;
out:
    return st;
}

dt_status dt_decoder_extend_each(dt_model *model, const dt_tensor *tokens, float *logits,
                                 dt_error *err)
{
    dt_decoder *state = model->state;
    dt_decoder_growth *growth = &state->growth;
    dt_batch batch = {.inputs[DT_DECODER_TOKENS] = *tokens};
    int64_t count = tokens->dim[0];
    dt_status st = DT_OK;

    DT_ASSERT(model->config.incremental && tokens->dim[1] == 1 &&
              count <= dt_decoder_sequences(model));
    if (dt_decoder_sequences(model) == 1)
        return dt_decoder_extend(model, 0, tokens, logits, err);
    dt_decoder_begin(model, &batch);
    growth->each = true;
    DT_TRY(place_each(model, count, err));
    model->kind->decoder->lay_out_behind(model);
    DT_TRY(finish(model, &batch, logits, err));
    for (int64_t k = 0; k < count; k++)
        growth->tokens[k]++;
out:
    return st;
}
