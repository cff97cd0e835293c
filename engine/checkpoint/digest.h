/* digest: computes XXH3-128 over a stream, as 32 hex digits.
 *
 * Detects damage, not attacks. The digits are in XXH3's canonical (big-endian) order, so that
 * `xxhsum -H2 FILE` prints the same.
 */
#ifndef DT_ENGINE_DIGEST_H
#define DT_ENGINE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DIGEST_SIZE 33 /* hex digits and the terminating NUL */

typedef struct dt_digest dt_digest;

dt_status dt_digest_new(dt_digest **out, dt_error *err);
void dt_digest_free(dt_digest *digest);
void dt_digest_add(dt_digest *digest, const void *bytes, size_t length);
/* Digest of everything added so far; hex has DT_DIGEST_SIZE bytes. */
void dt_digest_get(char *hex, const dt_digest *digest);
/* The 64 bits of XXH3-64. */
uint64_t dt_digest_number(const void *bytes, size_t length);
void dt_digest_of(char *hex, const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
