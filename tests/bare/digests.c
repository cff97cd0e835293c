/* digests: XXH3-128 of many inputs, a line each; built against the library and against what stands
 * in for it (stand_ins_match_the_libraries.sh compares).
 *
 * Every length up to 2,048 at once and in uneven pieces, some long inputs, and digests taken
 * on the way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/error.h"

#include "base/banned.h"

#define EVERY_LENGTH 2048
#define LONGEST      ((size_t)5 << 20)

static void show(XXH128_hash_t hash)
{
    XXH128_canonical_t bytes;

    XXH128_canonicalFromHash(&bytes, hash);
    for (size_t i = 0; i < sizeof(bytes.digest); i++)
        printf("%02x", bytes.digest[i]);
    printf(" ");
}

/* In pieces of `step`, then `step` times two and one more, and so on over again. */
static void show_pieces(XXH3_state_t *state, const unsigned char *bytes, size_t length, size_t step)
{
    size_t piece = step;

    XXH3_128bits_reset(state);
    for (size_t at = 0; at < length; at += piece) {
        piece = piece > 3000 ? step : 2 * piece + 1;
        piece = piece < length - at ? piece : length - at;
        XXH3_128bits_update(state, bytes + at, piece);
        if (at % 5 == 1) /* looking changes nothing */
            XXH3_128bits_digest(state);
    }
    XXH3_128bits_update(state, bytes, 0);
    show(XXH3_128bits_digest(state));
}

int main(void)
{
    static const size_t large[] = {4095,  4096,    4097,         65535,   65536,
                                   65537, 1000003, 1048576 + 63, 3333333, LONGEST};
    unsigned char *bytes = malloc(LONGEST);
    XXH3_state_t *state = XXH3_createState();
    uint64_t x = 1;

    DT_ASSERT(bytes != NULL && state != NULL);
    for (size_t i = 0; i < LONGEST; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
        bytes[i] = (unsigned char)(x >> 56);
    }
    for (size_t length = 0; length <= EVERY_LENGTH; length++) {
        printf("%zu ", length);
        show(XXH3_128bits(bytes + 3, length));
        for (size_t step = 1; step < 400; step = 3 * step + 1)
            show_pieces(state, bytes + 3, length, step);
        printf("\n");
    }
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        printf("%zu ", large[i]);
        show(XXH3_128bits(bytes, large[i]));
        show_pieces(state, bytes, large[i], 63);
        show_pieces(state, bytes, large[i], 1021);
        printf("\n");
    }
    XXH3_freeState(state);
    free(bytes);
    return 0;
}
