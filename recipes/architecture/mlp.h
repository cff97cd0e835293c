/* mlp: what a config of kind mlp has of its own: rows of numbers through layers of one width.
 *
 *   row (I) ─ layer 0 ─ activation ─ ... ─ layer L-1 ─ activation ─ head (O) ─ loss
 *
 * L layers, W width, I inputs, O outputs.
 */
#ifndef DT_RECIPES_ARCHITECTURE_MLP_H
#define DT_RECIPES_ARCHITECTURE_MLP_H

#include <stdint.h>

#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_mlp_config {
    int64_t layers, width, inputs, outputs;
    dt_activation_kind activation;
    dt_loss_kind loss;
} dt_mlp_config;

/* Places in the parameter table, within every unit: unit 0 is the head, unit l+1 layer l. */
typedef enum dt_mlp_param { DT_MLP_W, DT_MLP_B } dt_mlp_param;

/* Places in dt_batch. Targets: a class (less than 0: not counted), or the numbers that the outputs
 * should be (NaN: not counted). */
typedef enum dt_mlp_input { DT_MLP_ROWS, DT_MLP_TARGETS, DT_MLP_INPUTS } dt_mlp_input;

#ifdef __cplusplus
}
#endif
#endif
