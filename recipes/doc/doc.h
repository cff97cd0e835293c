/* doc: writes docs/recipe.md and the JSON schema of recipes from the table of fields. */
#ifndef DT_RECIPES_DOC_DOC_H
#define DT_RECIPES_DOC_DOC_H

#include "base/json.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the whole page as Markdown. */
void dt_recipe_doc(dt_strbuf *out);

/* schema: writes the recipe format as JSON Schema 2020-12, for editors (`dtrun schema`, docs/recipe.schema.json).
 *
 * Generated from the table of fields. It accepts every recipe that dtrun accepts, including layers and
 * references, and also some that dtrun refuses: it does not check missing fields (another layer may have
 * them), rules across fields (rules.h), and numbers in quotes.
 */

/* New reference. */
json_t *dt_recipe_schema(void);

#ifdef __cplusplus
}
#endif

#endif
