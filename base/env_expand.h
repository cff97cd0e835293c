/* env_expand: replaces "${env:NAME}" and "${env:NAME:-default}" by values of this process's environment.
 *
 * Recipes keep references to secrets as they are written; the code that uses the value expands it.
 */
#ifndef DT_BASE_ENV_EXPAND_H
#define DT_BASE_ENV_EXPAND_H

#include "base/error.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Resets `out` and writes the expanded text. An empty variable counts as unset. DT_ERR_RECIPE: a reference is
 * malformed, or its variable is not set and has no default; the message says which. */
dt_status dt_env_expand(dt_strbuf *out, const char *text, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
