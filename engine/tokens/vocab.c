#include "engine/tokens/vocab.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_SLOTS ((uint64_t)1 << 10)

dt_status dt_vocab_init(dt_vocab *out, dt_error *err)
{
    *out = (dt_vocab){.mask = FIRST_SLOTS - 1};
    dt_strbuf_init(&out->bytes);
    out->slots = calloc(FIRST_SLOTS, sizeof(*out->slots));
    return out->slots != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary");
}

void dt_vocab_release(dt_vocab *vocab)
{
    dt_strbuf_release(&vocab->bytes);
    free(vocab->tokens);
    free(vocab->slots);
    *vocab = (dt_vocab){0};
}

const char *dt_vocab_text(const dt_vocab *vocab, int64_t id, size_t *length)
{
    *length = 0;
    if (id < 0 || id >= vocab->size || !vocab->tokens[id].there)
        return NULL;
    *length = vocab->tokens[id].length;
    return vocab->bytes.data + vocab->tokens[id].start;
}

/* Returns the slot that has these bytes, or the free slot for them. */
static uint64_t slot_of(const dt_vocab *vocab, const int32_t *slots, uint64_t mask,
                        const void *bytes, size_t length)
{
    uint64_t at = XXH3_128bits(bytes, length).low64 & mask;
    const char *there;
    size_t its_length = 0;

    for (; slots[at] != 0; at = (at + 1) & mask) {
        there = dt_vocab_text(vocab, slots[at] - 1, &its_length);
        if (its_length == length && memcmp(there, bytes, length) == 0)
            break;
    }
    return at;
}

int32_t dt_vocab_find(const dt_vocab *vocab, const void *bytes, size_t length)
{
    return vocab->slots[slot_of(vocab, vocab->slots, vocab->mask, bytes, length)] - 1;
}

static dt_status widen_slots(dt_vocab *vocab, dt_error *err)
{
    uint64_t mask = vocab->mask * 2 + 1;
    int32_t *slots = calloc(mask + 1, sizeof(*slots));
    size_t length = 0;

    if (slots == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    for (uint64_t i = 0; i <= vocab->mask; i++)
        if (vocab->slots[i] != 0) {
            const char *bytes = dt_vocab_text(vocab, vocab->slots[i] - 1, &length);

            slots[slot_of(vocab, slots, mask, bytes, length)] = vocab->slots[i];
        }
    free(vocab->slots);
    vocab->slots = slots;
    vocab->mask = mask;
    return DT_OK;
}

static dt_status widen_tokens(dt_vocab *vocab, int64_t id, dt_error *err)
{
    int64_t wider = vocab->capacity == 0 ? 1024 : vocab->capacity;
    dt_vocab_token *tokens;

    while (wider <= id)
        wider *= 2;
    tokens = realloc(vocab->tokens, (size_t)wider * sizeof(*tokens));
    if (tokens == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld tokens", (long long)wider);
    memset(tokens + vocab->capacity, 0, (size_t)(wider - vocab->capacity) * sizeof(*tokens));
    vocab->tokens = tokens;
    vocab->capacity = wider;
    return DT_OK;
}

dt_status dt_vocab_add(dt_vocab *vocab, int64_t id, const char *bytes, size_t length, bool findable,
                       dt_error *err)
{
    dt_status st = DT_OK;
    uint64_t slot;

    if (id < 0 || id >= DT_VOCAB_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "token '%.40s' has the id %lld (expected 0 to %lld)", bytes,
                 (long long)id, (long long)DT_VOCAB_MAX - 1);
    if (length > UINT32_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "token %lld has %zu bytes", (long long)id, length);
    if (id >= vocab->capacity)
        DT_TRY(widen_tokens(vocab, id, err));
    if (vocab->tokens[id].there)
        DT_THROW(err, DT_ERR_CORRUPT, "two tokens have the id %lld; one of them is '%.40s'",
                 (long long)id, bytes);
    if (findable && (vocab->found + 1) * 2 > vocab->mask + 1)
        DT_TRY(widen_slots(vocab, err));
    slot = slot_of(vocab, vocab->slots, vocab->mask, bytes, length);
    if (findable && vocab->slots[slot] != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "tokens %d and %lld are the same, '%.40s'",
                 vocab->slots[slot] - 1, (long long)id, bytes);
    vocab->tokens[id] = (dt_vocab_token){vocab->bytes.length, (uint32_t)length, true};
    dt_strbuf_add(&vocab->bytes, bytes, length);
    if (id >= vocab->size)
        vocab->size = id + 1;
    if (findable) {
        vocab->slots[slot] = (int32_t)id + 1;
        vocab->found++;
    }
out:
    return st;
}
