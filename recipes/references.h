/* references: "${env:NAME}" and "${env:NAME:-default}" in the values of a recipe.
 *
 * Filled in when the recipe is read; the resolved recipe has what came of it. A variable that is not
 * set, or empty, stands for the default; without one it is an error. What comes from the environment
 * is never looked through again. A value that is one reference and no more may be a number, with
 * quotes or without: `lr: "${env:LR:-1e-4}"`; inside of {} and [] YAML wants the quotes.
 * Fields that keep references (notify.webhook) are filled in where they are used, and never stored, because they
 * hold secrets. Reading such a field only checks that its variables are set.
 */
#ifndef DT_RECIPES_REFERENCES_H
#define DT_RECIPES_REFERENCES_H

#include "recipes/reading.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The node's scalars and those below it, once. DT_ERR_RECIPE at the mark of what cannot be filled in. */
dt_status dt_references_fill(dt_reading *reading, dt_yaml_node *node);
/* The same errors for a scalar whose field keeps references; the node does not change. */
dt_status dt_references_check(dt_reading *reading, const dt_yaml_node *node);

#ifdef __cplusplus
}
#endif
#endif
