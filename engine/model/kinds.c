#include "engine/model/decoder/decoder.h"

#include "base/banned.h"

extern const dt_model_passes dt_mlp_passes, dt_transformer_passes;
extern const dt_decoder_parts dt_gpt2_parts, dt_llama_parts;

/* Indexed by dt_architecture_kind. */
static const dt_model_kind kinds[] = {
    [DT_MODEL_GPT2] = {&dt_decoder_passes, &dt_gpt2_parts},
    [DT_MODEL_MLP] = {&dt_mlp_passes, NULL},
    [DT_MODEL_LLAMA] = {&dt_decoder_passes, &dt_llama_parts},
    [DT_MODEL_TRANSFORMER] = {&dt_transformer_passes, NULL},
};

const dt_model_kind *dt_model_kind_find(dt_architecture_kind kind)
{
    DT_ASSERT((size_t)kind < sizeof(kinds) / sizeof(kinds[0]));
    return &kinds[kind];
}
