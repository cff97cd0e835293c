#include "engine/strategy/strategy.h"

#include "recipes/fields/recipe.h"

const dt_strategy *dt_strategy_find(int kind)
{
    static const dt_strategy *const all[] = {
        [DT_STRATEGY_DP] = &dt_strategy_dp,
        [DT_STRATEGY_DDP] = &dt_strategy_ddp,
        [DT_STRATEGY_FSDP] = &dt_strategy_fsdp,
    };

    DT_ASSERT(kind >= 0 && kind < (int)(sizeof(all) / sizeof(all[0])));
    return all[kind];
}
