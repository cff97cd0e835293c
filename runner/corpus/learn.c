/* learn: trains a byte pair encoding on counted words: counts words, counts pairs of tokens, and merges the
 * most frequent pair again and again. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/memory.h"
#include "engine/tokens/bpe.h"
#include "engine/tokens/vocab.h"
#include "runner/corpus/corpus_int.h"

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

static void words_add(dt_words *words, const char *word, size_t length, int64_t count)
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

            words_add(words, (const char *)at, piece, 1);
            at += piece;
        }
out:
    return st;
}

void dt_words_add_all(dt_words *words, const dt_words *other)
{

    for (uint64_t i = 0; i <= other->mask; i++)
        if (other->slots[i].count > 0)
            words_add(words, dt_word_text(other, &other->slots[i]), other->slots[i].length,
                      other->slots[i].count);
}

/* pair_counts: counts how often each pair of tokens occurs within words, and finds the words of a pair and the most
 * frequent pair, with a heap whose counts are updated when they reach the top. */

typedef struct dt_pair_count {
    int64_t count;   /* number of occurrences, weighted by the count of the word */
    uint32_t *words; /* words that contain the pair, or did so earlier; can contain duplicates */
    uint32_t words_count, words_capacity;
    bool grown; /* the count has grown since the last pair_counts_settle */
} dt_pair_count;

/* An entry of the heap, with the pair's count at the time when it was added. */
typedef struct dt_pair_candidate {
    int64_t count;
    uint64_t key;  /* dt_pair_key */
    int32_t which; /* index in `pairs` */
} dt_pair_candidate;

typedef struct dt_pair_counts {
    dt_pairs index; /* maps two tokens to an index in `pairs` */
    dt_pair_count *pairs;
    int32_t count;
    int64_t capacity;
    dt_pair_candidate *heap;
    size_t heap_count;
    int64_t heap_capacity;
    uint64_t *grown; /* keys */
    size_t grown_count;
    int64_t grown_capacity;
} dt_pair_counts;

static dt_status pair_counts_init(dt_pair_counts *out, dt_error *err)
{
    *out = (dt_pair_counts){0};
    return dt_pairs_init(&out->index, 1 << 16, err);
}

/* accepts a zeroed struct */
static void pair_counts_release(dt_pair_counts *counts)
{
    for (int32_t i = 0; i < counts->count; i++)
        free(counts->pairs[i].words);
    free(counts->pairs);
    free(counts->heap);
    free(counts->grown);
    dt_pairs_release(&counts->index);
    *counts = (dt_pair_counts){0};
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

    counts->heap =
        dt_array_room(counts->heap, at + 1, &counts->heap_capacity, sizeof(*counts->heap));
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

/* Removes the most frequent pair from the heap, of equal ones that with the lowest tokens; false: no pair occurs. */
static bool pair_counts_best(dt_pair_candidate *out, dt_pair_counts *counts)
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
    dt_status st = DT_OK;

    *out = known->id;
    if (known->rank != DT_PAIR_NONE)
        goto out;
    if (counts->count == INT32_MAX / 2)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "the text has more than %d different pairs of tokens",
                 counts->count);
    counts->pairs =
        dt_array_room(counts->pairs, counts->count + 1, &counts->capacity, sizeof(*counts->pairs));
    counts->pairs[counts->count] = (dt_pair_count){0};
    DT_TRY(dt_pairs_put(&counts->index, first, second, 0, counts->count, err));
    *out = counts->count++;
out:
    return st;
}

/* Changes the count of a pair in a word. */
static dt_status pair_counts_add(dt_pair_counts *counts, int32_t first, int32_t second,
                                 int64_t change, uint32_t word, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t capacity;
    int32_t which;
    dt_pair_count *p;

    DT_TRY(find_pair(&which, counts, first, second, err));
    p = &counts->pairs[which];
    p->count += change;
    if (change < 0)
        goto out;
    if (!p->grown) {
        p->grown = true;
        counts->grown = dt_array_room(counts->grown, counts->grown_count + 1,
                                      &counts->grown_capacity, sizeof(*counts->grown));
        counts->grown[counts->grown_count++] = dt_pair_key(first, second);
    }
    if (p->words_count > 0 && p->words[p->words_count - 1] == word)
        goto out;
    capacity = p->words_capacity;
    p->words = dt_array_room(p->words, (int64_t)p->words_count + 1, &capacity, sizeof(*p->words));
    p->words_capacity = (uint32_t)capacity;
    p->words[p->words_count++] = word;
out:
    return st;
}

/* Call after additions, before pair_counts_best. */
static void pair_counts_settle(dt_pair_counts *counts)
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

#define TELL_SECONDS 5.0 /* between two progress messages */

/* A word after the merges so far: its token ids are in learner.symbols. */
typedef struct word {
    uint64_t start;
    uint32_t length;
    int64_t count;
} word;

typedef struct learner {
    int32_t *symbols;
    word *words;
    uint32_t words_count;
    dt_pair_counts pairs;
} learner;

/* --- merging */

/* Replaces each `first second` in the word with `merged`, from left to right, and updates the
 * counts. */
static dt_status merge_word(learner *l, uint32_t index, int32_t first, int32_t second,
                            int32_t merged, dt_error *err)
{
    word *w = &l->words[index];
    int32_t *s = l->symbols + w->start;
    uint32_t to = 0;
    dt_status st = DT_OK;

    for (uint32_t from = 0; from < w->length; to++) {
        bool here = from + 1 < w->length && s[from] == first && s[from + 1] == second;

        if (here && to > 0) {
            DT_TRY(pair_counts_add(&l->pairs, s[to - 1], first, -w->count, index, err));
            DT_TRY(pair_counts_add(&l->pairs, s[to - 1], merged, w->count, index, err));
        }
        if (here && from + 2 < w->length) {
            DT_TRY(pair_counts_add(&l->pairs, second, s[from + 2], -w->count, index, err));
            DT_TRY(pair_counts_add(&l->pairs, merged, s[from + 2], w->count, index, err));
        }
        s[to] = here ? merged : s[from];
        from += here ? 2 : 1;
    }
    w->length = to;
out:
    return st;
}

static dt_status merge_all(learner *l, const dt_pair_candidate *best, int32_t merged, dt_error *err)
{
    dt_pair_count taken = l->pairs.pairs[best->which];
    dt_status st = DT_OK;

    l->pairs.pairs[best->which] = (dt_pair_count){0};
    for (uint32_t i = 0; i < taken.words_count; i++)
        DT_TRY(merge_word(l, taken.words[i], (int32_t)(best->key >> 32), (int32_t)best->key, merged,
                          err));
    /* In a word like "aaa" the merged pair also overlaps itself, which has changed its count. */
    l->pairs.pairs[best->which].count = 0;
    pair_counts_settle(&l->pairs);
out:
    free(taken.words);
    return st;
}

/* Returns the token of the concatenated bytes. Different merges can give the same bytes, which are
 * one token. */
static dt_status add_token(int32_t *out, dt_bpe_draft *draft, int32_t first, int32_t second,
                           dt_error *err)
{
    size_t length;
    const char *text;
    dt_status st = DT_OK;
    dt_strbuf bytes;

    dt_strbuf_init(&bytes);
    text = dt_vocab_text(&draft->vocab, first, &length);
    dt_strbuf_add(&bytes, text, length);
    text = dt_vocab_text(&draft->vocab, second, &length);
    dt_strbuf_add(&bytes, text, length);
    *out = dt_vocab_find(&draft->vocab, bytes.data, bytes.length);
    if (*out < 0) {
        *out = (int32_t)draft->vocab.size;
        DT_TRY(dt_vocab_add(&draft->vocab, *out, bytes.data, bytes.length, true, err));
    }
out:
    dt_strbuf_release(&bytes);
    return st;
}

static void tell_progress(const dt_learn_options *options, const dt_bpe_draft *draft, double *told)
{
    double now = dt_clock_monotonic_seconds();
    char text[96];

    if (options->tell == NULL || now - *told < TELL_SECONDS)
        return;
    *told = now;
    snprintf(text, sizeof(text), "learning: %lld of %lld tokens", (long long)draft->vocab.size,
             (long long)options->vocab);
    options->tell(text);
}

static dt_status merge_pairs(dt_bpe_draft *draft, dt_bpe_merge *merges, int64_t most, learner *l,
                             const dt_learn_options *options, dt_error *err)
{
    double told = dt_clock_monotonic_seconds();
    dt_status st = DT_OK;
    int32_t merged;
    dt_pair_candidate best;

    while (draft->vocab.size < options->vocab && draft->merge_count < most &&
           pair_counts_best(&best, &l->pairs) && best.count >= options->least_count) {
        dt_bpe_merge merge = {(int32_t)(best.key >> 32), (int32_t)best.key};

        DT_TRY(add_token(&merged, draft, merge.first, merge.second, err));
        merges[draft->merge_count++] = merge;
        DT_TRY(merge_all(l, &best, merged, err));
        tell_progress(options, draft, &told);
    }
out:
    return st;
}

/* --- words as bytes */

static dt_status take_words(learner *l, const dt_bpe_draft *draft, const dt_words *from,
                            dt_error *err)
{
    dt_status st = DT_OK;
    uint64_t at = 0;
    int32_t ids[256];

    for (int byte = 0; byte < 256; byte++) {
        char c = (char)byte;

        ids[byte] = dt_vocab_find(&draft->vocab, &c, 1);
    }
    if (from->used >= UINT32_MAX)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "the text has more than 2^32 different words");
    l->symbols = dt_malloc((from->bytes.length + 1) * sizeof(*l->symbols));
    l->words = dt_malloc((from->used + 1) * sizeof(*l->words));
    for (uint64_t i = 0; i <= from->mask; i++) {
        const dt_word *w = &from->slots[i];

        if (w->count == 0)
            continue;
        l->words[l->words_count++] = (word){at, w->length, w->count};
        for (uint32_t k = 0; k < w->length; k++)
            l->symbols[at++] = ids[(unsigned char)dt_word_text(from, w)[k]];
    }
out:
    return st;
}

static dt_status count_pairs(learner *l, dt_error *err)
{
    dt_status st = DT_OK;

    for (uint32_t i = 0; i < l->words_count; i++) {
        const int32_t *s = l->symbols + l->words[i].start;

        for (uint32_t k = 0; k + 1 < l->words[i].length; k++)
            DT_TRY(pair_counts_add(&l->pairs, s[k], s[k + 1], l->words[i].count, i, err));
    }
    pair_counts_settle(&l->pairs);
out:
    return st;
}

static void release(learner *l)
{
    free(l->symbols);
    free(l->words);
    pair_counts_release(&l->pairs);
}

dt_status dt_learn_merges(dt_bpe_draft *draft, dt_bpe_merge **merges, const dt_words *words,
                          const dt_learn_options *options, dt_error *err)
{
    int64_t most =
        (options->vocab - draft->vocab.size) * 2; /* some merges give an existing token */
    dt_status st = DT_OK;
    learner l = {0};

    *merges = NULL;
    if (most < 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "a vocabulary of %lld tokens cannot hold the 256 bytes and the special tokens; "
                 "use %lld or more",
                 (long long)options->vocab, (long long)draft->vocab.size);
    *merges = dt_calloc((size_t)most + 1, sizeof(**merges));
    draft->merges = *merges;
    DT_TRY(pair_counts_init(&l.pairs, err));
    DT_TRY(take_words(&l, draft, words, err));
    DT_TRY(count_pairs(&l, err));
    DT_TRY(merge_pairs(draft, *merges, most, &l, options, err));
out:
    release(&l);
    return st;
}
