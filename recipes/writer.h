/* writer: a resolved recipe as a file that the reader takes, and that means the same anywhere. */
#ifndef DT_RECIPES_WRITER_H
#define DT_RECIPES_WRITER_H

#include "base/strbuf.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* JSON, which is YAML, of all that says other than its default. */
void dt_recipe_write(dt_strbuf *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
