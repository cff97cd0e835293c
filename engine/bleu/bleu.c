#include "engine/bleu/bleu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The words of both sides, concatenated: those below `first` are the translation's. */
typedef struct sides {
    uint32_t *word; /* [count]: equal words have equal numbers */
    uint32_t *gram; /* [count]: the same for the n-gram that starts there */
    struct place *sorted;
    size_t first, count;
} sides;

/* An n-gram and its sort key: a word's text, or the number of the n-gram one word shorter combined
 * with that of its last word. */
typedef struct place {
    const char *text;
    uint64_t key; /* bytes of the text, if it is a word */
    uint32_t at;
} place;

static int by_text(const void *left, const void *right)
{
    const place *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return memcmp(a->text, b->text, a->key);
}

static int by_key(const void *left, const void *right)
{
    const place *a = left, *b = right;

    return (a->key > b->key) - (a->key < b->key);
}

/* Give equal n-grams equal numbers, and return how many n-grams of the translation are also in the
 * reference. */
static int64_t match(sides *s, size_t places, int (*compare)(const void *, const void *))
{
    int64_t matched = 0;
    uint32_t number = 0;

    qsort(s->sorted, places, sizeof(*s->sorted), compare);
    for (size_t begin = 0, end; begin < places; begin = end, number++) {
        int64_t ours = 0;

        for (end = begin; end < places && compare(&s->sorted[begin], &s->sorted[end]) == 0; end++) {
            s->gram[s->sorted[end].at] = number;
            ours += s->sorted[end].at < s->first;
        }
        matched += ours < (int64_t)(end - begin) - ours ? ours : (int64_t)(end - begin) - ours;
    }
    return matched;
}

static size_t list_words(sides *s, const dt_strbuf *words)
{
    const char *text = words->data;

    for (size_t i = 0; i < s->count; i++) {
        const char *end = memchr(text, '\n', (size_t)(words->data + words->length - text));

        s->sorted[i] = (place){.text = text, .key = (uint64_t)(end - text), .at = (uint32_t)i};
        text = end + 1;
    }
    return s->count;
}

/* List the n-grams of `order` words that do not span both sides. */
static size_t list_longer(sides *s, size_t order)
{
    size_t places = 0;

    for (size_t i = 0; i + order <= s->count; i++)
        if (i >= s->first || i + order <= s->first)
            s->sorted[places++] = (place){
                .key = (uint64_t)s->gram[i] << 32 | s->word[i + order - 1], .at = (uint32_t)i};
    return places;
}

static void add_orders(dt_bleu_counts *counts, sides *s, const dt_strbuf *words)
{
    for (size_t order = 1; order <= DT_BLEU_ORDERS; order++) {
        size_t places = order == 1 ? list_words(s, words) : list_longer(s, order);

        counts->matched[order - 1] += match(s, places, order == 1 ? by_text : by_key);
        counts->made[order - 1] += s->first >= order ? (int64_t)(s->first - order + 1) : 0;
        if (order == 1 && s->count > 0)
            memcpy(s->word, s->gram, s->count * sizeof(*s->word));
    }
}

dt_status dt_bleu_add(dt_bleu_counts *counts, dt_bleu_words words, const char *line, size_t length,
                      const char *reference, size_t reference_length, dt_error *err)
{
    sides s = {0};
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    s.first = dt_bleu_words_split(&text, words, line, length);
    s.count = s.first + dt_bleu_words_split(&text, words, reference, reference_length);
    s.word = calloc(s.count + 1, sizeof(*s.word));
    s.gram = calloc(s.count + 1, sizeof(*s.gram));
    s.sorted = calloc(s.count + 1, sizeof(*s.sorted));
    if (s.word == NULL || s.gram == NULL || s.sorted == NULL || s.count >= UINT32_MAX)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the n-grams of a line of %zu words", s.count);
    add_orders(counts, &s, &text);
    counts->length += (int64_t)s.first;
    counts->reference_length += (int64_t)(s.count - s.first);
out:
    free(s.word);
    free(s.gram);
    free(s.sorted);
    dt_strbuf_release(&text);
    return st;
}

dt_bleu dt_bleu_of(const dt_bleu_counts *counts)
{
    double sum = 0, halved = 1;
    dt_bleu out = {.brevity = 1};

    if (counts->length < counts->reference_length)
        out.brevity = counts->length > 0
                          ? exp(1 - (double)counts->reference_length / (double)counts->length)
                          : 0;
    if (counts->matched[0] == 0) /* then longer n-grams cannot match either */
        return out;
    for (int i = 0; i < DT_BLEU_ORDERS; i++) {
        double matched = (double)counts->matched[i];

        if (counts->made[i] == 0)
            return out;
        if (counts->matched[i] == 0)
            matched = 1 / (halved *= 2);
        out.precisions[i] = 100 * matched / (double)counts->made[i];
        sum += log(out.precisions[i]);
    }
    out.score = out.brevity * exp(sum / DT_BLEU_ORDERS);
    return out;
}
