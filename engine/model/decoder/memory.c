/* memory: the memory of a pass: the KV cache, which outlives it, and its activations. */
#include <stddef.h>
#include <string.h>

#include "engine/model/decoder/decoder.h"
#include "engine/model/vocabulary.h"
#include "recipes/architecture/decoder.h"

/* kept: stores the KV cache: each cached tensor is (layers * sequences, kept, columns), so the rows
 * of one sequence in one layer are contiguous. */

int64_t dt_decoder_kept_room(const dt_model_config *config)
{
    return config->kept > 0 ? config->kept : config->decoder.context;
}

int64_t dt_decoder_sequences(const dt_model *model)
{
    return model->config.sequences > 0 ? model->config.sequences : 1;
}

dt_tensor dt_decoder_kept(const dt_model *model, int which, int64_t layer, int64_t sequence,
                          int64_t first, int64_t rows)
{
    const dt_decoder *state = model->state;
    const dt_tensor *kept = &state->lasting[which];
    int64_t row = (layer * dt_decoder_sequences(model) + sequence) * kept->dim[1] + first;
    unsigned char *start = kept->data;

    DT_ASSERT(first + rows <= kept->dim[1]);
    start += (size_t)(row * kept->dim[2]) * dt_dtype_bytes(kept->dtype);
    return dt_tensor_3d(start, kept->dtype, 1, rows, kept->dim[2]);
}

static dt_status copy(dt_model *model, void *to, void *from, int64_t elems, dt_error *err)
{
    dt_tensor out = dt_tensor_1d(to, model->config.dtype, elems);
    dt_tensor in = dt_tensor_1d(from, model->config.dtype, elems);

    return model->device->ops->cast(model->device, &out, &in, err);
}

dt_status dt_decoder_keep(dt_model *model, int which, int64_t layer, const dt_tensor *made,
                          int64_t first, dt_error *err)
{
    const dt_decoder *state = model->state;
    int64_t columns = state->lasting[which].dim[2], all = made->dim[2];
    dt_status st = DT_OK;

    DT_ASSERT(state->growth.each && made->dim[1] == 1 && first + columns <= all);
    for (int64_t k = 0; k < made->dim[0]; k++) {
        dt_tensor to = dt_decoder_kept(model, which, layer, k, state->growth.tokens[k], 1);

        DT_TRY(copy(model, to.data,
                    (unsigned char *)made->data +
                        (size_t)(k * all + first) * dt_dtype_bytes(made->dtype),
                    columns, err));
    }
out:
    return st;
}

dt_heads dt_decoder_kept_heads(const dt_model *model, int which, int64_t layer, int64_t first,
                               int64_t heads, int64_t width)
{
    const dt_decoder *state = model->state;
    dt_tensor all = dt_decoder_kept(model, which, layer, 0, 0, 1);
    dt_heads h;

    all.dim[0] = state->B;
    all.dim[1] = state->lasting[which].dim[1];
    h = dt_heads_of(&all, first, heads, width);
    h.rows = state->growth.longest;
    return h;
}

dt_status dt_decoder_replace(dt_model *model, int64_t to, int64_t from, dt_error *err)
{
    const dt_decoder_parts *parts = model->kind->decoder;
    dt_decoder *state = model->state;
    int64_t *tokens = state->growth.tokens, count = from == DT_SEQUENCE_EMPTY ? 0 : tokens[from];
    dt_status st = DT_OK;

    tokens[to] = 0;
    for (int which = parts->kept_first; count > 0 && to != from && which < parts->kept_end; which++)
        for (int64_t layer = 0; layer < model->config.decoder.layers; layer++) {
            dt_tensor out = dt_decoder_kept(model, which, layer, to, 0, count);
            dt_tensor in = dt_decoder_kept(model, which, layer, from, 0, count);

            DT_TRY(copy(model, out.data, in.data, dt_tensor_elems(&in), err));
        }
    tokens[to] = count;
out:
    return st;
}

int64_t dt_decoder_extended(const dt_model *model, int64_t sequence)
{
    const dt_decoder *state = model->state;

    return state->growth.tokens[sequence];
}

#define CHUNK_MULTIPLE 128 /* rows per tile of the matrix products */

/* Storage for one block of any kind during the layout. */
typedef union block_room {
    max_align_t align;
    unsigned char bytes[DT_DECODER_BLOCK_BYTES];
} block_room;

void dt_decoder_take(dt_decoder_layout *plan, dt_tensor *tensor)
{
    tensor->data = dt_layout_take(&plan->memory, dt_tensor_bytes(tensor));
}

dt_tensor dt_decoder_take_act(dt_decoder_layout *plan, int64_t width)
{
    dt_tensor tensor = dt_tensor_3d(NULL, plan->config->dtype, plan->B, plan->T, width);

    dt_decoder_take(plan, &tensor);
    return tensor;
}

dt_tensor dt_decoder_take_stat(dt_decoder_layout *plan, int64_t each)
{
    dt_tensor tensor = dt_tensor_1d(NULL, DT_F32, plan->B * plan->T * each);

    dt_decoder_take(plan, &tensor);
    return tensor;
}

dt_tensor dt_decoder_take_lse(dt_decoder_layout *plan, int64_t heads)
{
    dt_tensor tensor = dt_tensor_3d(NULL, DT_F32, plan->B, heads, plan->T);

    dt_decoder_take(plan, &tensor);
    return tensor;
}

void dt_decoder_take_kept(dt_decoder_layout *plan, dt_decoder *state, int which, int64_t columns)
{
    const dt_model_config *config = plan->config;
    int64_t sequences = config->sequences > 0 ? config->sequences : 1;

    if (!config->incremental)
        return;
    state->lasting[which] = dt_tensor_3d(NULL, config->dtype, config->decoder.layers * sequences,
                                         dt_decoder_kept_room(config), columns);
    dt_decoder_take(plan, &state->lasting[which]);
}

/* Allocate the positions and lengths of the sequences that a pass extends. */
static void take_growth(dt_decoder_layout *plan, dt_decoder *state)
{
    int64_t sequences = plan->config->sequences;

    state->growth.each = false;
    if (sequences < 2)
        return;
    state->growth.places = dt_tensor_2d(NULL, DT_I32, sequences, 1);
    state->growth.lengths = dt_tensor_1d(NULL, DT_I32, sequences);
    dt_decoder_take(plan, &state->growth.places);
    dt_decoder_take(plan, &state->growth.lengths);
}

/* Record block l and the tensor of its output. */
static void put_block(const dt_decoder_parts *parts, dt_decoder *state, int64_t l,
                      const block_room *block, const dt_tensor *out)
{
    if (state->blocks == NULL)
        return; /* only counting bytes */
    memcpy((unsigned char *)state->blocks + (size_t)l * parts->block_bytes, block->bytes,
           parts->block_bytes);
    state->stream[l + 1] = *out;
}

/* Lay out the blocks for backward: a set of tensors per block, or shared ones under recompute
 * (decoder.h). */
static void lay_out_blocks(dt_decoder_layout *plan, const dt_decoder_parts *parts,
                           dt_decoder *state, block_room *block)
{
    dt_recompute_kind recompute = plan->config->recompute;

    if (!dt_model_keeps_norms(plan->config))
        parts->share_norms(plan, state, block);
    if (recompute == DT_RECOMPUTE_FULL)
        parts->take_products(plan, block, NULL);
    for (int64_t l = 0; l < plan->config->decoder.layers; l++) {
        dt_tensor out;

        if (dt_model_keeps_norms(plan->config))
            parts->take_norms(plan, block, true);
        if (recompute != DT_RECOMPUTE_FULL)
            parts->take_products(plan, block, NULL);
        out = dt_decoder_take_act(plan, plan->config->decoder.embed);
        put_block(parts, state, l, block, &out);
    }
}

/* A pass without backward: all blocks share one set of tensors, and their sums overwrite the
 * stream. */
static void lay_out_one_block(dt_decoder_layout *plan, const dt_decoder_parts *parts,
                              dt_decoder *state, block_room *block, const dt_tensor *stream)
{
    parts->take_norms(plan, block, false);
    parts->take_products(plan, block, stream);
    for (int64_t l = 0; l < plan->config->decoder.layers; l++)
        put_block(parts, state, l, block, stream);
}

static void lay_out_logits(dt_decoder_layout *plan, const dt_decoder_parts *parts,
                           dt_decoder *state, size_t scratch_bytes, bool backward)
{
    /* without backward, logits are fp32 whatever the model's type */
    size_t elem_bytes = backward ? dt_dtype_bytes(plan->config->dtype) : 4;
    size_t row_bytes = (size_t)dt_decoder_vocab_rows(plan->config) * elem_bytes;
    int64_t rows = plan->B * plan->T, most = state->logits_bytes, room, round;

    if (state->wide_chunks && (int64_t)scratch_bytes > most)
        most = (int64_t)scratch_bytes;
    state->logits_rows = dt_token_head_chunk(&room, rows, row_bytes, most);
    round = (state->logits_rows + CHUNK_MULTIPLE - 1) / CHUNK_MULTIPLE * CHUNK_MULTIPLE;
    if (state->wide_chunks && state->logits_rows < rows && round <= room)
        state->logits_rows = round;
    state->logits = dt_layout_take(&plan->memory, (size_t)room * row_bytes);
    state->gathered = (dt_tensor){0};
    if (!backward && plan->config->incremental && plan->config->tensor.size > 1) {
        state->gathered = dt_tensor_3d(NULL, DT_F32, plan->config->tensor.size,
                                       plan->config->sequences > 0 ? plan->config->sequences : 1,
                                       dt_decoder_vocab_rows(plan->config));
        state->gathered.data = dt_layout_take(&plan->memory, dt_tensor_bytes(&state->gathered));
    }
    state->capped = NULL;
    if (backward && parts->logits_cap != NULL && parts->logits_cap(plan->config) > 0)
        state->capped = dt_layout_take(&plan->memory, (size_t)room * row_bytes);
}

/* Lay out the blocks' scratch, and the logits over the same memory. */
static void lay_out_scratch(dt_decoder_layout *plan, const dt_decoder_parts *parts,
                            dt_decoder *state, block_room *block, bool backward)
{
    size_t start = plan->memory.bytes, end;

    state->narrow = dt_decoder_take_act(plan, plan->config->decoder.embed);
    parts->take_scratch(plan, state, block, backward);
    end = plan->memory.bytes;
    dt_layout_go_back(&plan->memory, start);
    lay_out_logits(plan, parts, state, end - start, backward);
    if (plan->memory.bytes < end)
        dt_layout_take(&plan->memory, end - plan->memory.bytes);
}

static void lay_out_gradients(dt_decoder_layout *plan, const dt_decoder_parts *parts,
                              dt_decoder *state)
{
    int64_t C = plan->config->decoder.embed, columns = C;

    if (parts->gradient_columns != NULL)
        columns = parts->gradient_columns(plan->config);
    state->dstream = state->norm; /* written only after the head has read `norm` */
    state->dnarrow = dt_decoder_take_act(plan, columns > C ? columns : C);
    state->dnarrow.dim[2] = C;
}

/* What ranks that divide layers need for sums. */
static void lay_out_sums(dt_decoder_layout *plan, dt_decoder *state)
{
    int64_t ranks = dt_tensor_ranks(&plan->config->tensor), N = plan->B * plan->T;

    if (ranks == 1)
        return;
    state->part_own = dt_tensor_2d(NULL, DT_F32, DT_VOCAB_NUMBERS, N);
    state->part_all = dt_tensor_3d(NULL, DT_F32, ranks, DT_VOCAB_NUMBERS, N);
    dt_decoder_take(plan, &state->part_own);
    dt_decoder_take(plan, &state->part_all);
    if (plan->config->dtype == DT_F32)
        return;
    state->terms = dt_tensor_3d(NULL, DT_F32, plan->B, plan->T, plan->config->decoder.embed);
    dt_decoder_take(plan, &state->terms);
}

/* Lay out a pass; only counts bytes if the state has no blocks and stream. */
static void lay_out(dt_decoder_layout *plan, const dt_decoder_parts *parts, dt_decoder *state,
                    bool backward)
{
    int64_t C = plan->config->decoder.embed;
    block_room block = {.bytes = {0}};
    dt_tensor embedded;

    DT_ASSERT(parts->block_bytes <= sizeof(block));
    state->B = plan->B;
    state->T = plan->T;
    state->first_position = 0;
    dt_adapters_take_table(&state->adapters, plan->config, &plan->memory);
    parts->take_own(plan, state);
    take_growth(plan, state);
    embedded = dt_decoder_take_act(plan, C);
    if (state->stream != NULL)
        state->stream[0] = embedded;
    state->norm = dt_decoder_take_act(plan, C);
    state->losses = dt_decoder_take_stat(plan, 1);
    lay_out_sums(plan, state);
    if (backward && plan->config->decoder.beta > 0)
        state->pairs.weights = dt_decoder_take_stat(plan, 1);
    dt_adapters_take(&state->adapters, plan->config, &plan->memory, plan->B * plan->T, backward);
    lay_out_scratch(plan, parts, state, &block, backward);
    if (backward) {
        lay_out_gradients(plan, parts, state);
        lay_out_blocks(plan, parts, state, &block);
    } else {
        lay_out_one_block(plan, parts, state, &block, &embedded);
    }
}

static size_t count_bytes(const dt_decoder_parts *parts, const dt_model_config *config,
                          bool backward)
{
    dt_decoder_layout plan = {.config = config, .B = config->batch, .T = config->tokens};
    dt_decoder state = {.logits_bytes = dt_decoder_logits_bytes(config)};

    lay_out(&plan, parts, &state, backward);
    return plan.memory.bytes;
}

size_t dt_decoder_count_bytes(const dt_decoder_parts *parts, const dt_model_config *config)
{
    size_t without = count_bytes(parts, config, false);
    size_t with = config->inference ? 0 : count_bytes(parts, config, true);

    return with > without ? with : without;
}

void dt_decoder_lay_out(dt_model *model, int64_t B, int64_t T, bool backward)
{
    dt_decoder *state = model->state;
    dt_decoder_layout plan = {
        .config = &model->config, .memory = {.arena = &state->arena}, .B = B, .T = T};

    state->arena.used_bytes = 0;
    lay_out(&plan, model->kind->decoder, state, backward);
}
