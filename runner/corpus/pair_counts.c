#include "runner/corpus/pair_counts.h"

#include <stdlib.h>

#include "base/alloc.h"

dt_status dt_pair_counts_init(dt_pair_counts *out, dt_error *err)
{
    *out = (dt_pair_counts){0};
    return dt_pairs_init(&out->index, 1 << 16, err);
}

void dt_pair_counts_release(dt_pair_counts *counts)
{
    for (int32_t i = 0; i < counts->count; i++)
        free(counts->pairs[i].words);
    free(counts->pairs);
    free(counts->heap);
    free(counts->grown);
    dt_pairs_release(&counts->index);
    *counts = (dt_pair_counts){0};
}

static void reserve(void **items, size_t *capacity, size_t count, size_t each)
{
    if (count < *capacity)
        return;
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    *items = dt_realloc(*items, *capacity, each);
}

/* --- the heap, with the best candidate on top */

static bool is_better(const dt_pair_candidate *a, const dt_pair_candidate *b)
{
    return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static void swap(dt_pair_candidate *a, dt_pair_candidate *b)
{
    dt_pair_candidate held = *a;

    *a = *b;
    *b = held;
}

static void push(dt_pair_counts *counts, dt_pair_candidate c)
{
    size_t at = counts->heap_count;

    reserve((void **)&counts->heap, &counts->heap_capacity, at, sizeof(*counts->heap));
    counts->heap[counts->heap_count++] = c;
    for (; at > 0 && is_better(&counts->heap[at], &counts->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&counts->heap[at], &counts->heap[(at - 1) / 2]);
}

/* Moves the top entry down to its place. */
static void sift(dt_pair_counts *counts)
{
    size_t at = 0, best;

    for (;; at = best) {
        best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < counts->heap_count; child++)
            if (is_better(&counts->heap[child], &counts->heap[best]))
                best = child;
        if (best == at)
            return;
        swap(&counts->heap[at], &counts->heap[best]);
    }
}

static void pop(dt_pair_counts *counts)
{
    counts->heap[0] = counts->heap[--counts->heap_count];
    sift(counts);
}

bool dt_pair_counts_best(dt_pair_candidate *out, dt_pair_counts *counts)
{
    while (counts->heap_count > 0) {
        dt_pair_candidate *top = &counts->heap[0];
        int64_t count = counts->pairs[top->which].count;

        if (top->count == count && count > 0) {
            *out = *top;
            pop(counts);
            return true;
        }
        top->count = count;
        if (count > 0)
            sift(counts);
        else
            pop(counts);
    }
    return false;
}

/* --- pairs and their words */

static dt_status find_pair(int32_t *out, dt_pair_counts *counts, int32_t first, int32_t second,
                           dt_error *err)
{
    const dt_pair *known = dt_pairs_get(&counts->index, first, second);
    size_t capacity = (size_t)counts->capacity;
    dt_status st = DT_OK;

    *out = known->id;
    if (known->rank != DT_PAIR_NONE)
        goto out;
    if (counts->count == INT32_MAX / 2)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "the text has more than %d different pairs of tokens",
                 counts->count);
    reserve((void **)&counts->pairs, &capacity, (size_t)counts->count, sizeof(*counts->pairs));
    counts->capacity = (int32_t)capacity;
    counts->pairs[counts->count] = (dt_pair_count){0};
    DT_TRY(dt_pairs_put(&counts->index, first, second, 0, counts->count, err));
    *out = counts->count++;
out:
    return st;
}

dt_status dt_pair_counts_add(dt_pair_counts *counts, int32_t first, int32_t second, int64_t change,
                             uint32_t word, dt_error *err)
{
    dt_status st = DT_OK;
    size_t capacity;
    int32_t which;
    dt_pair_count *p;

    DT_TRY(find_pair(&which, counts, first, second, err));
    p = &counts->pairs[which];
    p->count += change;
    if (change < 0)
        goto out;
    if (!p->grown) {
        p->grown = true;
        reserve((void **)&counts->grown, &counts->grown_capacity, counts->grown_count,
                sizeof(*counts->grown));
        counts->grown[counts->grown_count++] = dt_pair_key(first, second);
    }
    if (p->words_count > 0 && p->words[p->words_count - 1] == word)
        goto out;
    capacity = p->words_capacity;
    reserve((void **)&p->words, &capacity, p->words_count, sizeof(*p->words));
    p->words_capacity = (uint32_t)capacity;
    p->words[p->words_count++] = word;
out:
    return st;
}

void dt_pair_counts_settle(dt_pair_counts *counts)
{

    for (size_t i = 0; i < counts->grown_count; i++) {
        uint64_t key = counts->grown[i];
        int32_t which = dt_pairs_get(&counts->index, (int32_t)(key >> 32), (int32_t)key)->id;

        counts->pairs[which].grown = false;
        if (counts->pairs[which].count > 0)
            push(counts, (dt_pair_candidate){counts->pairs[which].count, key, which});
    }
    counts->grown_count = 0;
}
