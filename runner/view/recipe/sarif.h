/* sarif: writes the problems of recipes as SARIF 2.1.0, for code hosts and editors.
 *
 * One document for all recipes, with the rules of recipes/rules/rules.h. Paths are written as given, absolute ones as
 * file URIs.
 */
#ifndef DT_RUNNER_VIEW_SARIF_H
#define DT_RUNNER_VIEW_SARIF_H

#include "base/json.h"
#include "recipes/read/problems.h"

/* Returns an empty document. New reference. */
json_t *dt_sarif_new(void);
/* Adds the problems of one recipe. */
void dt_sarif_add(json_t *sarif, const dt_problems *problems);
/* Adds the error of a recipe that could not be read at all. */
void dt_sarif_add_error(json_t *sarif, const char *path, const char *message);

#endif
