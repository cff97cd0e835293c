#include "engine/tokens/word_cache.h"

#include <stdlib.h>
#include <xxhash.h>

#define LINE      64 /* bytes of a cache line */
#define LINES     ((size_t)1 << DT_WORD_LINES_LOG)
#define LONGS_LOG 12
#define LONGS     ((size_t)1 << LONGS_LOG)

dt_status dt_word_cache_init(dt_word_cache *out, dt_error *err)
{
    size_t lines = LINES * sizeof(dt_word_line), longs = LONGS * sizeof(dt_long_word);
    uintptr_t start;

    *out = (dt_word_cache){.memory = calloc(1, LINE + lines + longs)};
    if (out->memory == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to encode text");
    start = ((uintptr_t)out->memory + LINE - 1) / LINE * LINE;
    out->lines = (dt_word_line *)start;
    out->longs = (dt_long_word *)(start + lines);
    return DT_OK;
}

void dt_word_cache_release(dt_word_cache *cache)
{
    free(cache->memory);
    *cache = (dt_word_cache){0};
}

dt_long_word *dt_word_cache_long(const dt_word_cache *cache, const unsigned char *word,
                                 size_t length)
{
    return &cache->longs[XXH3_64bits(word, length) >> (64 - LONGS_LOG)];
}
