/* driver: runs a fuzz harness without libFuzzer: fuzz_NAME SEED SECONDS FILE...
 *
 * Every file as it is, then mutations of them (mutate.h) until the time is over. The same seed gives
 * the same inputs in the same order.
 * A fault ends the process by DT_ASSERT or a sanitizer. DT_FUZZ_KEEP=FILE keeps the current input there.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/ways.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
const char *__asan_default_options(void);

/* Recording a stack for each allocation takes a third of the time of small inputs, so that it is
 * off. Repeat a failing input with ASAN_OPTIONS=malloc_context_size=30. */
const char *__asan_default_options(void)
{
    return "malloc_context_size=0";
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
    fuzz_ways_take_all(true);
    for (size_t i = 0; i < files; i++) {
        if (dt_file_read(&corpus[i], argv[3 + i], FILE_MAX_BYTES, &err) != DT_OK) {
            fprintf(stderr, "%s\n", err.message);
            return 3;
        }
        run(&corpus[i]);
        inputs++;
    }
    fuzz_ways_take_all(false);
    while (dt_clock_monotonic_seconds() < end) {
        const dt_strbuf *base = &corpus[fuzz_below(&seed, files)];

        dt_strbuf_reset(&input);
        dt_strbuf_add(&input, base->data, base->length);
        for (size_t i = 1 + fuzz_below(&seed, 4); i > 0; i--)
            fuzz_mutate(&input, &corpus[fuzz_below(&seed, files)], &seed);
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
