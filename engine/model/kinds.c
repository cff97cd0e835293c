#include "engine/model/kind.h"

#define DECLARE(KIND, name) extern const dt_model_kind dt_##name##_kind;
#define ROW(KIND, name)     &dt_##name##_kind,
DT_MODELS(DECLARE)

/* By dt_architecture_kind. */
static const dt_model_kind *const kinds[DT_MODEL_KINDS] = {DT_MODELS(ROW)};

const dt_model_kind *dt_model_kind_find(dt_architecture_kind kind)
{
    DT_ASSERT((size_t)kind < DT_MODEL_KINDS);
    return kinds[kind];
}
