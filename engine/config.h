/* config: derives the configuration of the model and the strategy from a recipe.
 *
 * Errors  DT_ERR_RECIPE if the data have more tokens than model.vocab allows
 */
#ifndef DT_ENGINE_CONFIG_H
#define DT_ENGINE_CONFIG_H

#include "engine/model/model.h"
#include "engine/strategy/strategy.h"
#include "recipes/fields/recipe.h"

/* `vocab` is the tokenizer's; the sizes are for the recipe's batch. */
dt_status dt_config_train(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                          dt_error *err);

/* Derive the options of the strategy. */
dt_strategy_options dt_config_strategy(const dt_recipe *recipe, int64_t replicas);

/* Derive a model that runs one sequence, forward only, in fp32. */
dt_status dt_config_inference(dt_model_config *out, const dt_recipe *recipe, int64_t vocab,
                              dt_error *err);

#endif
