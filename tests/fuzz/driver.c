/* driver: runs a fuzz harness without libFuzzer: fuzz_NAME SEED SECONDS FILE...
 *
 * Every file as it is, then mutations of them (bytes changed, pieces cut, repeated and moved
 * between files) until the time is over. The same seed gives the same inputs in the same order.
 * A fault ends the process by DT_ASSERT or a sanitizer. DT_FUZZ_KEEP=FILE keeps the
 * input at hand there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

#include "base/banned.h"

#define FILE_MAX_BYTES  ((size_t)1 << 20)
#define INPUT_MAX_BYTES ((size_t)16 << 10) /* short inputs are many inputs */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* xorshift64* (Vigna 2016): good enough to choose bytes. */
static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * 2685821657736338717u;
}

static size_t below(uint64_t *seed, size_t limit)
{
    return limit != 0 ? (size_t)(next(seed) % limit) : 0;
}

/* Puts `length` bytes into the input in place of `cut` bytes at `at`. */
static void splice(dt_strbuf *input, size_t at, size_t cut, const char *bytes, size_t length)
{
    dt_strbuf tail, piece;

    dt_strbuf_init(&tail);
    dt_strbuf_init(&piece);
    dt_strbuf_add(&piece, bytes, length); /* may point into the input */
    dt_strbuf_add(&tail, input->data + at + cut, input->length - at - cut);
    input->length = at;
    dt_strbuf_add(input, piece.data, piece.length);
    dt_strbuf_add(input, tail.data, tail.length);
    dt_strbuf_release(&piece);
    dt_strbuf_release(&tail);
}

static void mutate(dt_strbuf *input, const dt_strbuf *other, uint64_t *seed)
{
    static const char *const spice[] = {"\t", "\xff", "&a ", "*a",    ": ",   "- ",  "[",   "{",
                                        "}",  "]",    "\"",  "---\n", "!!a ", "~",   "#",   "|\n",
                                        "0",  "-1",   "1e9", "null",  "? ",   "\\0", "<<: "};
    size_t at = below(seed, input->length + 1), left = input->length - at;
    size_t piece = below(seed, left < 32 ? left + 1 : 32);
    size_t from = below(seed, other->length + 1);
    size_t taken = below(seed, other->length - from + 1);
    const char *word = spice[below(seed, sizeof(spice) / sizeof(spice[0]))];
    char byte = (char)next(seed);

    switch (next(seed) % 6) {
    case 0: /* a byte changed */
        splice(input, at, left > 0 ? 1 : 0, &byte, 1);
        break;
    case 1: /* a piece gone */
        splice(input, at, piece, "", 0);
        break;
    case 2: /* a piece twice */
        splice(input, at, 0, input->data + at, piece);
        break;
    case 3: /* something that means something */
        splice(input, at, 0, word, strlen(word));
        break;
    case 4: /* something instead */
        splice(input, at, piece, word, strlen(word));
        break;
    default: /* a piece of another file */
        splice(input, at, piece, other->data + from, taken < 256 ? taken : 256);
    }
    if (input->length > INPUT_MAX_BYTES)
        splice(input, INPUT_MAX_BYTES, input->length - INPUT_MAX_BYTES, "", 0);
}

static void run(const dt_strbuf *input)
{
    const char *keep = getenv("DT_FUZZ_KEEP");

    if (keep != NULL)
        dt_file_write_atomic(keep, input->data, input->length, 0600, NULL);
    LLVMFuzzerTestOneInput((const uint8_t *)input->data, input->length);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 3 ? strtoull(argv[1], NULL, 10) * 2 + 1 : 0;
    double end = argc > 3 ? dt_clock_monotonic_seconds() + strtod(argv[2], NULL) : 0;
    size_t files = argc > 3 ? (size_t)argc - 3 : 0;
    dt_strbuf *corpus = calloc(files + 1, sizeof(*corpus));
    dt_error err = DT_ERROR_INIT;
    long long inputs = 0;
    dt_strbuf input;

    if (files == 0 || corpus == NULL) {
        fprintf(stderr, "usage: %s SEED SECONDS FILE...\n", argv[0]);
        free(corpus);
        return 2;
    }
    dt_strbuf_init(&input);
    for (size_t i = 0; i < files; i++)
        dt_strbuf_init(&corpus[i]);
    for (size_t i = 0; i < files; i++) {
        if (dt_file_read(&corpus[i], argv[3 + i], FILE_MAX_BYTES, &err) != DT_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 3;
        }
        run(&corpus[i]);
        inputs++;
    }
    while (dt_clock_monotonic_seconds() < end) {
        const dt_strbuf *base = &corpus[below(&seed, files)];

        dt_strbuf_reset(&input);
        dt_strbuf_add(&input, base->data, base->length);
        for (size_t i = 1 + below(&seed, 4); i > 0; i--)
            mutate(&input, &corpus[below(&seed, files)], &seed);
        run(&input);
        inputs++;
    }
    printf("%lld inputs\n", inputs);
    for (size_t i = 0; i < files; i++)
        dt_strbuf_release(&corpus[i]);
    dt_strbuf_release(&input);
    free(corpus);
    return 0;
}
