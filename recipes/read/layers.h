/* layers: applies the texts of a recipe one on top of another.
 *
 *   extends: base.yaml          a recipe file, relative to this one's folder; or [a.yaml, b.yaml];
 *                               or a preset of the model
 *   dtrun launch gpt.yaml -f big.yaml -f tonight.yaml --set optimizer.lr=1e-3
 *
 * Order, lowest precedence first: what the recipe extends (which may extend others), the recipe, each -f
 * with what it extends, --set. Maps are merged field by field; scalars and lists are replaced. Refused: a
 * file that extends itself, more than DEPTH_MAX nested files, more than DT_ORIGIN_SOURCES in all.
 */
#ifndef DT_RECIPES_READ_LAYERS_H
#define DT_RECIPES_READ_LAYERS_H

#include "recipes/read/reading.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_RECIPE_EXTENDS_KEY "extends"

/* Applies a text, and all that it extends, to reading->recipe. DT_ERR_RECIPE: the text is not a recipe;
 * other errors are added to the problems. */
dt_status dt_layer_apply(dt_reading *reading, const char *path, const char *text);

#ifdef __cplusplus
}
#endif
#endif
