#include "engine/tokens/bpe_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define SHORT 48 /* tokens; from here on, a heap is faster than comparing all pairs */
#define NONE  UINT32_MAX

/* --- short words: ranks[i] is that of the merge of tokens i and i + 1 */

static size_t merge_short(int32_t *ids, size_t count, const dt_pairs *merges)
{
    uint32_t ranks[SHORT];
    int32_t made[SHORT]; /* what the merge makes */

    for (size_t i = 0; i + 1 < count; i++) {
        const dt_pair *pair = dt_pairs_get(merges, ids[i], ids[i + 1]);

        ranks[i] = pair->rank;
        made[i] = pair->id;
    }
    while (count > 1) {
        size_t best = 0;

        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best])
                best = i;
        if (ranks[best] == DT_PAIR_NONE)
            break;
        ids[best] = made[best];
        count--;
        memmove(ids + best + 1, ids + best + 2, (count - best - 1) * sizeof(*ids));
        memmove(ranks + best, ranks + best + 1, (count - best) * sizeof(ranks[0]));
        memmove(made + best, made + best + 1, (count - best) * sizeof(made[0]));
        if (best + 1 < count) {
            const dt_pair *pair = dt_pairs_get(merges, ids[best], ids[best + 1]);

            ranks[best] = pair->rank;
            made[best] = pair->id;
        }
        if (best > 0) {
            const dt_pair *pair = dt_pairs_get(merges, ids[best - 1], ids[best]);

            ranks[best - 1] = pair->rank;
            made[best - 1] = pair->id;
        }
    }
    return count;
}

/* --- long words: a linked list of tokens, and a heap of pairs, some of which are outdated */

static void sink(uint64_t *queue, size_t count, size_t at)
{
    uint64_t value = queue[at];

    for (size_t below = 2 * at + 1; below < count; below = 2 * at + 1) {
        if (below + 1 < count && queue[below + 1] < queue[below])
            below++;
        if (queue[below] >= value)
            break;
        queue[at] = queue[below];
        at = below;
    }
    queue[at] = value;
}

static void push(dt_merge_memory *m, uint64_t value)
{
    size_t at = m->queued++;

    for (; at > 0 && m->queue[(at - 1) / 2] > value; at = (at - 1) / 2)
        m->queue[at] = m->queue[(at - 1) / 2];
    m->queue[at] = value;
}

static uint64_t pop(dt_merge_memory *m)
{
    uint64_t first = m->queue[0];

    m->queue[0] = m->queue[--m->queued];
    if (m->queued > 0)
        sink(m->queue, m->queued, 0);
    return first;
}

static const dt_pair *pair_at(const dt_merge_memory *m, uint32_t at, const dt_pairs *merges)
{
    return dt_pairs_get(merges, m->symbols[at].id, m->symbols[m->symbols[at].behind].id);
}

/* Allocates the memory for `count` tokens. Each merge removes one pair from the heap and adds at
 * most two, and there are fewer merges than tokens: the heap never has more than twice as many
 * pairs as tokens. */
static dt_status make_room(dt_merge_memory *m, size_t count, dt_error *err)
{
    if (count <= m->room)
        return DT_OK;
    dt_merge_release(m);
    if (count < NONE) {
        m->symbols = malloc(count * sizeof(*m->symbols));
        m->queue = malloc(2 * count * sizeof(*m->queue));
    }
    if (m->symbols == NULL || m->queue == NULL) {
        dt_merge_release(m);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a word of %zu bytes", count);
    }
    m->room = count;
    return DT_OK;
}

static void start(dt_merge_memory *m, const int32_t *ids, size_t count, const dt_pairs *merges)
{
    m->queued = 0;
    for (size_t i = 0; i < count; i++)
        m->symbols[i] = (dt_merge_symbol){ids[i], i > 0 ? (uint32_t)i - 1 : NONE,
                                          i + 1 < count ? (uint32_t)i + 1 : NONE};
    for (size_t i = 0; i + 1 < count; i++) {
        uint32_t rank = dt_pairs_get(merges, ids[i], ids[i + 1])->rank;

        if (rank != DT_PAIR_NONE)
            m->queue[m->queued++] = (uint64_t)rank << 32 | i;
    }
    for (size_t i = m->queued / 2; i > 0; i--)
        sink(m->queue, m->queued, i - 1);
}

static void queue_pair(dt_merge_memory *m, uint32_t at, const dt_pairs *merges)
{
    uint32_t rank = pair_at(m, at, merges)->rank;

    if (rank != DT_PAIR_NONE)
        push(m, (uint64_t)rank << 32 | at);
}

static void merge_at(dt_merge_memory *m, uint32_t at, const dt_pairs *merges)
{
    dt_merge_symbol *left = &m->symbols[at], *right = &m->symbols[left->behind];

    left->id = pair_at(m, at, merges)->id;
    right->id = -1;
    left->behind = right->behind;
    if (left->behind != NONE) {
        m->symbols[left->behind].before = at;
        queue_pair(m, at, merges);
    }
    if (left->before != NONE)
        queue_pair(m, left->before, merges);
}

static dt_status merge_long(int32_t *ids, size_t *count, const dt_pairs *merges, dt_merge_memory *m,
                            dt_error *err)
{
    dt_status st = DT_OK;
    size_t kept = 0;

    DT_TRY(make_room(m, *count, err));
    start(m, ids, *count, merges);
    while (m->queued > 0) {
        uint64_t next = pop(m);
        uint32_t at = (uint32_t)next;

        if (m->symbols[at].id >= 0 && m->symbols[at].behind != NONE &&
            pair_at(m, at, merges)->rank == next >> 32)
            merge_at(m, at, merges);
    }
    for (uint32_t at = 0; at != NONE; at = m->symbols[at].behind)
        ids[kept++] = m->symbols[at].id;
    *count = kept;
out:
    return st;
}

dt_status dt_merge(int32_t *ids, size_t *count, const dt_pairs *merges, dt_merge_memory *memory,
                   dt_error *err)
{
    if (*count > SHORT)
        return merge_long(ids, count, merges, memory, err);
    *count = merge_short(ids, *count, merges);
    return DT_OK;
}

void dt_merge_release(dt_merge_memory *memory)
{
    free(memory->symbols);
    free(memory->queue);
    *memory = (dt_merge_memory){0};
}
