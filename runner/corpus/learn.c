#include "runner/corpus/learn.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "runner/corpus/pair_counts.h"

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
            DT_TRY(dt_pair_counts_add(&l->pairs, s[to - 1], first, -w->count, index, err));
            DT_TRY(dt_pair_counts_add(&l->pairs, s[to - 1], merged, w->count, index, err));
        }
        if (here && from + 2 < w->length) {
            DT_TRY(dt_pair_counts_add(&l->pairs, second, s[from + 2], -w->count, index, err));
            DT_TRY(dt_pair_counts_add(&l->pairs, merged, s[from + 2], w->count, index, err));
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
    dt_pair_counts_settle(&l->pairs);
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
           dt_pair_counts_best(&best, &l->pairs) && best.count >= options->least_count) {
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
            DT_TRY(dt_pair_counts_add(&l->pairs, s[k], s[k + 1], l->words[i].count, i, err));
    }
    dt_pair_counts_settle(&l->pairs);
out:
    return st;
}

static void release(learner *l)
{
    free(l->symbols);
    free(l->words);
    dt_pair_counts_release(&l->pairs);
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
    DT_TRY(dt_pair_counts_init(&l.pairs, err));
    DT_TRY(take_words(&l, draft, words, err));
    DT_TRY(count_pairs(&l, err));
    DT_TRY(merge_pairs(draft, *merges, most, &l, options, err));
out:
    release(&l);
    return st;
}
