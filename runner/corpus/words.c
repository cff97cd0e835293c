#include "runner/corpus/words.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "engine/tokens/bpe.h"

#include "base/alloc.h"

#define SLOTS_FIRST ((uint64_t)1 << 12)

void dt_words_init(dt_words *out)
{
    *out = (dt_words){.mask = SLOTS_FIRST - 1};
    dt_strbuf_init(&out->bytes);
    out->slots = dt_calloc(SLOTS_FIRST, sizeof(*out->slots));
}

void dt_words_release(dt_words *words)
{
    dt_strbuf_release(&words->bytes);
    free(words->slots);
    *words = (dt_words){0};
}

static void grow(dt_words *words)
{
    uint64_t mask = words->mask * 2 + 1;
    dt_word *slots = dt_calloc(mask + 1, sizeof(*slots));

    for (uint64_t i = 0; i <= words->mask; i++) {
        uint64_t at = words->slots[i].hash & mask;

        if (words->slots[i].count == 0)
            continue;
        while (slots[at].count != 0)
            at = (at + 1) & mask;
        slots[at] = words->slots[i];
    }
    free(words->slots);
    words->slots = slots;
    words->mask = mask;
}

void dt_words_add(dt_words *words, const char *word, size_t length, int64_t count)
{
    uint32_t hash = (uint32_t)XXH3_64bits(word, length);
    dt_word *slot;
    uint64_t at;

    DT_ASSERT(length > 0 && length <= DT_WORD_MAX && count > 0);
    for (at = hash & words->mask; (slot = &words->slots[at])->count != 0;
         at = (at + 1) & words->mask)
        if (slot->hash == hash && slot->length == length &&
            memcmp(dt_word_text(words, slot), word, length) == 0) {
            slot->count += count;
            return;
        }
    *slot = (dt_word){words->bytes.length, (uint32_t)length, hash, count};
    dt_strbuf_add(&words->bytes, word, length);
    if (++words->used * 2 > words->mask)
        grow(words);
}

/* Returns where to cut a word that is too long: between two characters. */
static size_t piece_of(const char *word, size_t length)
{
    size_t piece = DT_WORD_MAX;

    if (length <= DT_WORD_MAX)
        return length;
    while (((unsigned char)word[piece] & 0xc0) == 0x80)
        piece--;
    return piece;
}

dt_status dt_words_add_text(dt_words *words, const dt_split *split, const char *text, size_t length,
                            dt_error *err)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length, *next;
    dt_status st = DT_OK;
    dt_splitter splitter;

    DT_TRY(dt_bpe_check_text(text, length, err));
    dt_splitter_begin(&splitter, split, text, length);
    while (at < end)
        for (next = dt_splitter_next(&splitter, at); at < next;) {
            size_t piece = piece_of((const char *)at, (size_t)(next - at));

            dt_words_add(words, (const char *)at, piece, 1);
            at += piece;
        }
out:
    return st;
}

void dt_words_add_all(dt_words *words, const dt_words *other)
{

    for (uint64_t i = 0; i <= other->mask; i++)
        if (other->slots[i].count > 0)
            dt_words_add(words, dt_word_text(other, &other->slots[i]), other->slots[i].length,
                         other->slots[i].count);
}
