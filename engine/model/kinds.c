#include "engine/model/kind.h"

#include "base/banned.h"

extern const dt_model_kind dt_model_kind_gpt2, dt_model_kind_mlp, dt_model_kind_llama;

/* In the order of dt_architecture_kind. */
static const dt_model_kind *const kinds[] = {
    [DT_MODEL_GPT2] = &dt_model_kind_gpt2,
    [DT_MODEL_MLP] = &dt_model_kind_mlp,
    [DT_MODEL_LLAMA] = &dt_model_kind_llama,
};

const dt_model_kind *dt_model_kind_find(dt_architecture_kind kind)
{
    DT_ASSERT((size_t)kind < sizeof(kinds) / sizeof(kinds[0]));
    return kinds[kind];
}
