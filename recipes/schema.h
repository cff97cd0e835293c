/* schema: the recipe as JSON Schema 2020-12, for editors: `dtrun schema`, docs/recipe.schema.json.
 *
 * Made of the table of fields. It takes every recipe that dtrun takes, layers and references included,
 * and therefore some that dtrun refuses: what is missing (another layer may have it), rules across
 * fields (rules.h), and how a number is written in its quotes are dtrun's to tell.
 */
#ifndef DT_RECIPES_SCHEMA_H
#define DT_RECIPES_SCHEMA_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* New reference. */
json_t *dt_recipe_schema(void);

#ifdef __cplusplus
}
#endif
#endif
