/* version: checks that this build can read a document that another build may have written.
 *
 * Documents  resolved recipes, plans and kept attempts; docs/formats.md lists every format and where it
 *            states its version
 * Rules      a document without a version is of version 1
 *            a version other than the expected one: DT_ERR_UNSUPPORTED, whatever else is in the document
 *            an unknown key: DT_ERR_CORRUPT, since a build that adds a key raises the version
 */
#ifndef DT_RECIPES_FIELDS_VERSION_H
#define DT_RECIPES_FIELDS_VERSION_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks that the integer at `key` is `version`. DT_ERR_CORRUPT: it is not an integer from 1. `where` names the
 * document in messages. */
dt_status dt_version_check(const json_t *document, const char *key, int64_t version,
                           const char *where, dt_error *err);

/* Fails: this build does not know the key at `path` ("model.colour"). */
dt_status dt_version_unknown_key(const char *path, const char *where, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
