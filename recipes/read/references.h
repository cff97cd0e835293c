/* references: fills in "${env:NAME}" and "${env:NAME:-default}" in the values of a recipe.
 *
 * References are filled in when the recipe is read, and the resolved recipe has the values. If a variable is
 * unset or empty, the default is used; without a default this is an error. References in the environment's
 * values are not expanded. A value that is a single reference may be a number, with or without quotes:
 * `lr: "${env:LR:-1e-4}"`; inside {} and [], YAML requires the quotes.
 * Fields that keep references (notify.webhook) are filled in where they are used, and never stored, because they
 * hold secrets. Reading such a field only checks that its variables are set.
 */
#ifndef DT_RECIPES_READ_REFERENCES_H
#define DT_RECIPES_READ_REFERENCES_H

#include "recipes/read/reading.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the scalars of the node and those below it, once. DT_ERR_RECIPE at the mark of the reference. */
dt_status dt_references_fill(dt_reading *reading, dt_yaml_node *node);
/* The same errors for a scalar whose field keeps references; the node does not change. */
dt_status dt_references_check(dt_reading *reading, const dt_yaml_node *node);

/* Refuses "${NAME}" and "$NAME/..." in a value of the field, which were meant for the environment's NAME. Texts for
 * programs and shells may have them, and a file that has such a name is found. */
dt_status dt_references_refuse_shell(const dt_reading *reading, const dt_field *field,
                                     const dt_yaml_node *node);

#ifdef __cplusplus
}
#endif
#endif
