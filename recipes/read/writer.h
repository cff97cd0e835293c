/* writer: writes a resolved recipe as a file that reads back the same anywhere. */
#ifndef DT_RECIPES_READ_WRITER_H
#define DT_RECIPES_READ_WRITER_H

#include "base/strbuf.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds JSON, which is also YAML, of all fields that differ from their defaults. */
void dt_recipe_write(dt_strbuf *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
