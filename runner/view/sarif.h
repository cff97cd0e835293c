/* sarif: what is wrong with recipes as SARIF 2.1.0, for code hosts and editors.
 *
 * One document of all recipes; rules are those of recipes/rules.h. Paths are as they were given, absolute
 * ones as file URIs.
 */
#ifndef DT_RUNNER_VIEW_SARIF_H
#define DT_RUNNER_VIEW_SARIF_H

#include "base/json.h"
#include "recipes/problems.h"

/* New reference. */
json_t *dt_sarif_new(void);
/* The problems of one recipe. */
void dt_sarif_add(json_t *sarif, const dt_problems *problems);
/* A recipe that could not be read at all. */
void dt_sarif_add_error(json_t *sarif, const char *path, const char *message);

#endif
