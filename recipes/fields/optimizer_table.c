#include "recipes/fields/optimizer_table.h"

#include <string.h>

#define FACTS(KIND, NAME, ...) [DT_OPTIMIZER_##KIND] = {.name = #NAME, __VA_ARGS__},
const dt_optimizer_facts dt_optimizers[DT_OPTIMIZER_KINDS] = {DT_OPTIMIZERS(FACTS)};

const dt_optimizer_facts *dt_optimizer_find(const char *name)
{
    for (int kind = 0; kind < DT_OPTIMIZER_KINDS; kind++)
        if (strcmp(dt_optimizers[kind].name, name) == 0)
            return &dt_optimizers[kind];
    return NULL;
}

int dt_optimizer_states(const dt_optimizer_options *options, bool matrix)
{
    const dt_optimizer_facts *facts = &dt_optimizers[options->kind];

    if (facts->needs_momentum && options->momentum == 0)
        return 0;
    return matrix && facts->whole_matrices ? facts->matrix_states : facts->states;
}

dt_dtype dt_optimizer_state_dtype(const dt_optimizer_options *options)
{
    return options->moments == DT_MOMENTS_BF16 ? DT_BF16 : DT_F32;
}

const char *dt_optimizer_state_name(int state)
{
    static const char *const names[DT_OPTIMIZER_STATES] = {DT_OPTIMIZER_STATE_NAMES};

    return names[state];
}
