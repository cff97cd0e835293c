/* layers: the texts that a recipe is made of, one on top of another.
 *
 *   extends: base.yaml          a recipe file, relative to this one's folder; or [a.yaml, b.yaml];
 *                               or a preset of the model
 *   dtrun launch gpt.yaml -f big.yaml -f tonight.yaml --set optimizer.lr=1e-3
 *
 * From below: what the recipe extends (which may extend others), the recipe, each -f with what it
 * extends, --set. Maps are merged, field by field; scalars and lists are replaced. Nothing is
 * computed. A file that extends itself, more than DEPTH_MAX below each other and more than
 * DT_ORIGIN_SOURCES in all are refused.
 */
#ifndef DT_RECIPES_LAYERS_H
#define DT_RECIPES_LAYERS_H

#include "recipes/reading.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_RECIPE_EXTENDS_KEY "extends"

/* A text with all that it extends, on top of what reading->recipe has. DT_ERR_RECIPE: the text is no
 * recipe at all; other faults are reported. */
dt_status dt_layer_apply(dt_reading *reading, const char *path, const char *text);

#ifdef __cplusplus
}
#endif
#endif
