/* version: how a document that outlives the build which wrote it is read by another build.
 *
 * Documents  recipes, resolved recipes and plans; docs/formats.md has every format, and where each
 *            says its version
 * Rules      without a version a document is of version 1
 *            a newer version: DT_ERR_UNSUPPORTED, whatever else is in it. It is no damage
 *            a missing key: what its absence meant when the document was written (fields.h)
 *            an unknown key: a newer build of the same version wrote it. It is warned of by name,
 *            and passed over; where the document lists it under "needs" it changes what the others
 *            mean: DT_ERR_UNSUPPORTED
 */
#ifndef DT_RECIPES_VERSION_H
#define DT_RECIPES_VERSION_H

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_VERSION_NEEDS "needs"

/* The document's version, which stands under `key`. DT_ERR_CORRUPT: it is none. */
dt_status dt_version_read(int64_t *out, const json_t *document, const char *key, int64_t newest,
                          const char *where, dt_error *err);

/* `path` ("model.colour") is no key that this build knows. */
dt_status dt_version_unknown_key(const json_t *document, const char *path, const char *where,
                                 dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
