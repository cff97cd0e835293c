/* doc: writes docs/recipe.md from the table of fields. */
#ifndef DT_RECIPES_DOC_DOC_H
#define DT_RECIPES_DOC_DOC_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the whole page as Markdown. */
void dt_recipe_doc(dt_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
