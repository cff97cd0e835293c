#include "engine/tokens/pairs.h"

#include <stdlib.h>

dt_status dt_pairs_init(dt_pairs *out, uint64_t count, dt_error *err)
{
    uint64_t slots = 16;

    *out = (dt_pairs){.shift = 60};
    while (slots < count * 2) {
        slots *= 2;
        out->shift--;
    }
    out->mask = slots - 1;
    out->slots = calloc(slots, sizeof(*out->slots));
    out->filter = calloc(slots / 8, sizeof(*out->filter));
    if (out->slots == NULL || out->filter == NULL) {
        dt_pairs_release(out);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %llu pairs of tokens",
                       (unsigned long long)count);
    }
    for (uint64_t i = 0; i < slots; i++)
        out->slots[i].rank = DT_PAIR_NONE;
    return DT_OK;
}

void dt_pairs_release(dt_pairs *pairs)
{
    free(pairs->slots);
    free(pairs->filter);
    *pairs = (dt_pairs){0};
}

static dt_pair *slot_of(dt_pairs *pairs, uint64_t key)
{
    uint64_t at = dt_pair_hash(key) >> pairs->shift;

    while (pairs->slots[at].rank != DT_PAIR_NONE && pairs->slots[at].key != key)
        at = (at + 1) & pairs->mask;
    return &pairs->slots[at];
}

/* Puts a pair into a table that has room for it. */
static void put(dt_pairs *pairs, const dt_pair *pair)
{
    uint64_t bit = dt_pair_bit(pairs, dt_pair_hash(pair->key));
    dt_pair *slot = slot_of(pairs, pair->key);

    pairs->count += slot->rank == DT_PAIR_NONE;
    pairs->filter[bit / 64] |= (uint64_t)1 << bit % 64;
    *slot = *pair;
}

static dt_status grow(dt_pairs *pairs, dt_error *err)
{
    dt_status st = DT_OK;
    dt_pairs wider;

    DT_TRY(dt_pairs_init(&wider, (pairs->mask + 1), err));
    for (uint64_t i = 0; i <= pairs->mask; i++)
        if (pairs->slots[i].rank != DT_PAIR_NONE)
            put(&wider, &pairs->slots[i]);
    dt_pairs_release(pairs);
    *pairs = wider;
out:
    return st;
}

dt_status dt_pairs_put(dt_pairs *pairs, int32_t first, int32_t second, uint32_t rank, int32_t id,
                       dt_error *err)
{
    dt_pair pair = {dt_pair_key(first, second), rank, id};
    dt_status st = DT_OK;

    DT_ASSERT(rank != DT_PAIR_NONE);
    if ((pairs->count + 1) * 2 > pairs->mask + 1)
        DT_TRY(grow(pairs, err));
    put(pairs, &pair);
out:
    return st;
}
