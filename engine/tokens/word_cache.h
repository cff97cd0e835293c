/* word_cache: keeps the tokens of words, because most words of a text were in it before.
 *
 * Short     up to 15 bytes and 3 tokens, in slots of 32 bytes. Two slots share a cache line; a word is in the line
 *           of its hash, the word used last in the first slot
 * Long      up to 126 bytes and 16 tokens, in slots of 192 bytes, one for each hash
 * Memory    5 MB; pages are used when words are put there
 * Threads   a cache belongs to one thread
 */
#ifndef DT_ENGINE_TOKENS_WORD_CACHE_H
#define DT_ENGINE_TOKENS_WORD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_WORD_LINES_LOG    16
#define DT_WORD_SHORT        15 /* bytes */
#define DT_WORD_SHORT_TOKENS 3
#define DT_WORD_COPIED       (DT_WORD_SHORT_TOKENS + 1) /* a slot's ids with its count */
#define DT_WORD_LONG         126
#define DT_WORD_LONG_TOKENS  16

/* The bytes of a short word and zeros; the upper byte of `high` is its length. */
typedef struct dt_word_key {
    uint64_t low, high;
} dt_word_key;

typedef struct dt_word_slot {
    dt_word_key key; /* zeros: the slot is empty */
    int32_t ids[DT_WORD_SHORT_TOKENS];
    int32_t count;
} dt_word_slot;

typedef struct dt_word_line {
    dt_word_slot slots[2];
} dt_word_line;

typedef struct dt_long_word {
    uint8_t length, count; /* length 0: the slot is empty */
    unsigned char text[DT_WORD_LONG];
    int32_t ids[DT_WORD_LONG_TOKENS];
} dt_long_word;

typedef struct dt_word_cache {
    dt_word_line *lines;
    dt_long_word *longs;
    void *memory;
} dt_word_cache;

dt_status dt_word_cache_init(dt_word_cache *out, dt_error *err);
void dt_word_cache_release(dt_word_cache *cache); /* accepts a zeroed one */

/* Returns the slot that a word of 1 to DT_WORD_LONG bytes has among the long words. */
dt_long_word *dt_word_cache_long(const dt_word_cache *cache, const unsigned char *word,
                                 size_t length);

/* Returns the key of a word of at least one byte, which no slot has if the word is not short. `end`: that of
 * the text. */
static inline dt_word_key dt_word_key_of(const unsigned char *word, size_t length,
                                         const unsigned char *end)
{
    static const unsigned char keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255};
    dt_word_key key = {0, UINT64_MAX}, mask;

    if (length > DT_WORD_SHORT)
        return key;
    if (end - word >= (ptrdiff_t)sizeof(key)) {
        memcpy(&key, word, sizeof(key));
        memcpy(&mask, keep + sizeof(keep) / 2 - length, sizeof(mask));
        key.low &= mask.low;
        key.high &= mask.high;
    } else {
        key.high = 0;
        memcpy(&key, word, length);
    }
    key.high |= (uint64_t)length << 56;
    return key;
}

static inline dt_word_line *dt_word_line_of(dt_word_line *lines, dt_word_key key)
{
    uint64_t hash = key.low * 0x9e3779b97f4a7c15ull + key.high * 0xc2b2ae3d27d4eb4full;

    return &lines[hash >> (64 - DT_WORD_LINES_LOG)];
}

static inline bool dt_word_key_equal(dt_word_key a, dt_word_key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

/* Returns the slot of a short word in its line; NULL if the word is not there. */
static inline const dt_word_slot *dt_word_line_find(dt_word_line *line, dt_word_key key)
{
    dt_word_slot first = line->slots[0];

    if (dt_word_key_equal(first.key, key))
        return &line->slots[0];
    if (!dt_word_key_equal(line->slots[1].key, key))
        return NULL;
    line->slots[0] = line->slots[1];
    line->slots[1] = first;
    return &line->slots[0];
}

#ifdef __cplusplus
}
#endif
#endif
