/* xxhash: stands in for libxxhash where that is not installed.
 *
 * Purpose    a GPU machine on loan often has a compiler and CUDA, and nobody who may install
 *            packages; the engine's digests must not fail there, nor be others. Never used where
 *            the library is found (cmake/libraries.cmake).
 * Formula    XXH3 with 128 bits, seed 0 and the default secret, as doc/xxhash_spec.md in
 *            https://github.com/Cyan4973/xxHash describes it. Same bytes, same digest.
 * Left out   every other hash, seeds and secrets of one's own, vector instructions written by hand
 * Threads    a state belongs to one thread at a time
 * Errors     creating a state gives NULL without memory; nothing else can fail
 */
#ifndef DT_BARE_XXHASH_H
#define DT_BARE_XXHASH_H

#include <stddef.h>
#include <stdint.h>

typedef enum { XXH_OK = 0, XXH_ERROR } XXH_errorcode;

typedef struct {
    uint64_t low64, high64;
} XXH128_hash_t;

/* High half first, each half from its highest byte. */
typedef struct {
    unsigned char digest[16];
} XXH128_canonical_t;

typedef struct XXH3_state_s XXH3_state_t;

XXH3_state_t *XXH3_createState(void);
XXH_errorcode XXH3_freeState(XXH3_state_t *state); /* accepts NULL */
XXH_errorcode XXH3_128bits_reset(XXH3_state_t *state);
XXH_errorcode XXH3_128bits_update(XXH3_state_t *state, const void *bytes, size_t length);
/* Of all bytes since the reset; more may be added after it. */
XXH128_hash_t XXH3_128bits_digest(const XXH3_state_t *state);

XXH128_hash_t XXH3_128bits(const void *bytes, size_t length);
void XXH128_canonicalFromHash(XXH128_canonical_t *out, XXH128_hash_t hash);

#endif
