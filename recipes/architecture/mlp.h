/* mlp: defines the config of kind mlp: rows of numbers pass through layers of one width.
 *
 *   row (I) ─ layer 0 ─ activation ─ ... ─ layer L-1 ─ activation ─ head (O) ─ loss
 *
 * L layers, W width, I inputs, O outputs.
 */
#ifndef DT_RECIPES_ARCHITECTURE_MLP_H
#define DT_RECIPES_ARCHITECTURE_MLP_H

#include <stdint.h>

#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_mlp_config {
    int64_t layers, width, inputs, outputs;
    dt_activation_kind activation;
    dt_loss_kind loss;
} dt_mlp_config;

/* Indices in the parameter table, within every unit: unit 0 is the head, unit l+1 is layer l. */
typedef enum dt_mlp_param { DT_MLP_W, DT_MLP_B } dt_mlp_param;

/* Indices in dt_batch. Targets: a class (below 0: not counted), or the numbers to predict (NaN: not counted). */
typedef enum dt_mlp_input { DT_MLP_ROWS, DT_MLP_TARGETS, DT_MLP_INPUTS } dt_mlp_input;

#ifdef __cplusplus
}
#endif
#endif
