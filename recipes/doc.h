/* doc: docs/recipe.md, written from the table of fields. */
#ifndef DT_RECIPES_DOC_H
#define DT_RECIPES_DOC_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The whole page, Markdown. */
void dt_recipe_doc(dt_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
