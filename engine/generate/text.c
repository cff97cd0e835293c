/* text: extends a text token by token, by sampling or by beam search, up to a stop text. */
#include "engine/generate/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/philox.h"
#include "engine/search/search.h"

/* --- drawing a token */

static int64_t largest(const float *logits, int64_t vocab)
{
    int64_t best = 0;

    for (int64_t v = 1; v < vocab; v++)
        if (logits[v] > logits[best])
            best = v;
    return best;
}

/* Map a float to an integer of the same order. */
static uint32_t rank_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The largest rank such that all values of that rank or above weigh at least `target` together.
 * Determined one byte at a time, each by a pass that sums the weights per byte value. Each value
 * weighs 1 or, with `by_value`, itself. */
static uint32_t find_floor(const float *values, int64_t count, double target, bool by_value)
{
    uint32_t floor = 0;
    double above = 0;

    for (int shift = 24; shift >= 0; shift -= 8) {
        double weights[256] = {0};
        int byte = 255;

        for (int64_t i = 0; i < count; i++) {
            uint32_t rank = rank_of(values[i]);

            if (shift == 24 || rank >> (shift + 8) == floor >> (shift + 8))
                weights[rank >> shift & 255] += by_value ? values[i] : 1;
        }
        while (byte > 0 && above + weights[byte] < target)
            above += weights[byte--];
        floor |= (uint32_t)byte << shift;
    }
    return floor;
}

/* Set all logits below the k-th largest to -infinity; those equal to it stay, even past k. */
static void keep_largest(float *logits, int64_t vocab, int64_t k)
{
    uint32_t floor = find_floor(logits, vocab, (double)k, false);

    for (int64_t v = 0; v < vocab; v++)
        if (rank_of(logits[v]) < floor)
            logits[v] = -INFINITY;
}

/* Zero the less likely tokens, given probabilities that sum to `total`. Returns the sum of the
 * rest. */
static double keep_likeliest(float *chances, int64_t vocab, double total, double top_p)
{
    uint32_t floor = find_floor(chances, vocab, total * top_p, true);
    double kept = 0;

    for (int64_t v = 0; v < vocab; v++) {
        if (rank_of(chances[v]) < floor)
            chances[v] = 0;
        kept += chances[v];
    }
    return kept;
}

static void penalize(float *logits, int64_t vocab, double penalty, const bool *seen)
{
    for (int64_t v = 0; v < vocab; v++)
        if (seen[v])
            logits[v] = (float)(logits[v] > 0 ? logits[v] / penalty : logits[v] * penalty);
}

int32_t dt_sample_token(float *logits, int64_t vocab, const dt_sampling *how, const bool *seen,
                        uint32_t index)
{
    dt_philox_key key = {.seed = how->seed, .step = index, .op = DT_PHILOX_SAMPLE};
    double total = 0, until;
    int64_t best, last;
    float top;

    if (seen != NULL && how->penalty > 0)
        penalize(logits, vocab, how->penalty, seen);
    last = best = largest(logits, vocab);
    top = logits[best];
    if (how->temperature <= 0)
        return (int32_t)best;
    if (how->top_k > 0 && how->top_k < vocab)
        keep_largest(logits, vocab, how->top_k);
    for (int64_t v = 0; v < vocab; v++) {
        logits[v] = (float)exp(((double)logits[v] - top) / how->temperature);
        total += logits[v];
    }
    if (how->top_p > 0 && how->top_p < 1)
        total = keep_likeliest(logits, vocab, total, how->top_p);
    until = dt_philox_uniform(dt_philox_draw(&key, 0).word[0]) * total;
    for (int64_t v = 0; v < vocab; v++) {
        if (logits[v] <= 0)
            continue;
        last = v;
        until -= logits[v];
        if (until < 0)
            break;
    }
    return (int32_t)last;
}

/* --- stop texts */

/* Length of the longest suffix of text that is a prefix of `stop`. */
static size_t overlap(const char *text, size_t length, const char *stop)
{
    size_t most = strlen(stop) - 1;

    for (size_t n = length < most ? length : most; n > 0; n--)
        if (memcmp(text + length - n, stop, n) == 0)
            return n;
    return 0;
}

/* Bytes of an incomplete UTF-8 character at the end of text. */
static size_t cut_character(const char *text, size_t length)
{
    static const unsigned char full[] = {0xc0, 2, 0xe0, 3, 0xf0, 4};

    for (size_t n = 1; n < DT_UTF8_MAX && n <= length; n++) {
        unsigned char c = (unsigned char)text[length - n];

        if ((c & 0xc0) == 0x80)
            continue;
        for (size_t i = 0; i < sizeof(full); i += 2)
            if (c >= full[i] && c < (i + 2 < sizeof(full) ? full[i + 2] : 0xf8))
                return full[i + 1] > n ? n : 0;
        return 0;
    }
    return 0;
}

bool dt_stops_find(size_t *until, dt_strbuf *text, size_t from, const dt_stops *stops)
{
    const char *first = NULL;
    size_t held = cut_character(text->data + from, text->length - from);

    for (size_t i = 0; i < stops->count; i++) {
        const char *found = memmem(text->data + from, text->length - from, stops->texts[i],
                                   strlen(stops->texts[i]));
        size_t begun = overlap(text->data + from, text->length - from, stops->texts[i]);

        if (found != NULL && (first == NULL || found < first))
            first = found;
        held = begun > held ? begun : held;
    }
    if (first != NULL) {
        text->length = (size_t)(first - text->data);
        text->data[text->length] = '\0';
        held = 0;
    }
    *until = text->length - held;
    return first != NULL;
}

/* --- a text */

const char *dt_text_end_name(dt_text_end end)
{
    static const char *const names[] = {[DT_TEXT_TOKENS] = "tokens",
                                        [DT_TEXT_END_OF_TEXT] = "end_of_text",
                                        [DT_TEXT_STOP] = "stop"};

    return names[end];
}

static void add_token(dt_text *t, int32_t token)
{
    t->tokens[t->count++] = token;
    if (t->seen != NULL)
        t->seen[token] = true;
}

/* Allocates room for so many tokens of a prompt, and for new ones. */
static dt_status make_room(dt_text *out, int64_t count, dt_error *err)
{
    const dt_text_rules *rules = out->rules;
    bool asks = rules->sampling.penalty > 0 && rules->sampling.penalty != 1;

    out->tokens = calloc((size_t)(count + rules->tokens), sizeof *out->tokens);
    if (asks)
        out->seen = calloc((size_t)dt_tokenizer_vocab(out->from->tokenizer), sizeof *out->seen);
    if (out->tokens == NULL || (asks && out->seen == NULL))
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %lld tokens",
                       (long long)(count + rules->tokens));
    return DT_OK;
}

dt_status dt_text_open_ids(dt_text *out, const dt_loaded *from, const dt_text_rules *rules,
                           const int32_t *ids, int64_t count, uint64_t seed, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_text){.rules = rules, .from = from, .seed = seed};
    dt_strbuf_init(&out->text);
    DT_TRY(make_room(out, count, err));
    for (int64_t i = 0; i < count; i++)
        add_token(out, ids[i]);
out:
    return st;
}

dt_status dt_text_open(dt_text *out, const dt_loaded *from, const dt_text_rules *rules,
                       const char *prompt, size_t length, uint64_t seed, dt_error *err)
{
    dt_bpe_around around = {0};
    int32_t *tokens = NULL;
    int64_t count = 0;
    dt_status st = DT_OK;

    *out = (dt_text){.rules = rules, .from = from, .seed = seed};
    dt_strbuf_init(&out->text);
    if (length > 0)
        DT_TRY(dt_tokenizer_encode(&tokens, &count, from->tokenizer, prompt, length, err));
    if (count == 0) {
        free(tokens);
        DT_TRY(dt_loaded_first_tokens(&tokens, &count, from, err));
        if (count == 0)
            DT_THROW(err, DT_ERR_USAGE,
                     "the model was trained on token ids, so that no token is known to begin a "
                     "text: give the first ids, for example --prompt \"12 7\"");
    } else if (!rules->no_special) {
        around = dt_tokenizer_around(from->tokenizer);
    }
    DT_TRY(make_room(out, count + (int64_t)around.before_count, err));
    for (size_t i = 0; i < around.before_count; i++)
        add_token(out, around.before[i]);
    for (int64_t i = 0; i < count; i++)
        add_token(out, tokens[i]);
    if (from->ids && length > 0)
        dt_strbuf_add_char(&out->text, ' '); /* separates the next number */
out:
    free(tokens);
    return st;
}

void dt_text_close(dt_text *t)
{
    free(t->tokens);
    free(t->seen);
    dt_strbuf_release(&t->text);
    *t = (dt_text){0};
}

dt_status dt_text_logits(float *logits, const dt_text *t, dt_loaded *from, int64_t sequence,
                         dt_error *err)
{
    int64_t context = from->model->config.decoder.context, first, length;
    bool fits = t->count <= context;
    dt_batch batch = {0};
    dt_tensor *tokens = &batch.inputs[0];
    dt_status st = DT_OK;

    first = fits ? dt_model_extended(from->model, sequence) : t->count - context;
    length = t->count - first;
    *tokens = dt_tensor_2d(from->tokens_in.data, DT_I32, 1, length);
    DT_TRY(from->model->device->copy_in(from->model->device, tokens->data, t->tokens + first,
                                        (size_t)length * sizeof *t->tokens, err));
    if (fits)
        DT_TRY(dt_model_extend(from->model, sequence, tokens, logits, err));
    else
        DT_TRY(dt_model_logits(from->model, &batch, 1, logits, err));
out:
    return st;
}

static bool are_finite(const float *logits, int64_t vocab)
{
    float sums[8] = {0}, sum = 0; /* several, since each addition waits for the one before */
    int64_t v = 0;

    for (; v + 8 <= vocab; v += 8)
        for (int i = 0; i < 8; i++)
            sums[i] += logits[v + i] * 0; /* NaN for a NaN or an infinity */
    for (; v < vocab; v++)
        sum += logits[v] * 0;
    for (int i = 0; i < 8; i++)
        sum += sums[i];
    return sum == 0;
}

static bool ends(const dt_text *t, int32_t token)
{
    const dt_ids *ids = &t->from->ends;

    for (size_t i = 0; i < ids->count && !t->rules->past_end; i++)
        if (ids->items[i] == token)
            return true;
    return false;
}

dt_status dt_text_take(dt_text *t, float *logits, dt_error *err)
{
    int64_t vocab = dt_tokenizer_vocab(t->from->tokenizer);
    dt_sampling sampling = t->rules->sampling;
    int32_t token;

    if (!are_finite(logits, vocab))
        return dt_loaded_diverged(err);
    sampling.seed = t->seed;
    token = dt_sample_token(logits, vocab, &sampling, t->seen, (uint32_t)t->added);
    t->added++;
    if (ends(t, token)) {
        t->end = DT_TEXT_END_OF_TEXT;
    } else {
        dt_tokenizer_decode(&t->text, t->from->tokenizer, token);
        add_token(t, token);
        if (dt_stops_find(&t->whole, &t->text, t->whole, &t->rules->stops))
            t->end = DT_TEXT_STOP;
    }
    t->done = t->end != DT_TEXT_TOKENS || t->added == t->rules->tokens;
    if (t->done)
        t->whole = t->text.length;
    return DT_OK;
}

/* --- by beam search */

typedef struct text_search {
    dt_text *text;
    dt_loaded *from;
    int64_t beams;
} text_search;

/* Copy each hypothesis's parent to it, through the second half of the sequences. */
static dt_status take_parents(text_search *s, const int32_t *parents, int64_t versions,
                              dt_error *err)
{
    dt_model *model = s->from->model;
    bool same = true;
    dt_status st = DT_OK;

    for (int64_t k = 0; k < versions; k++)
        same = same && parents[k] == k;
    for (int64_t k = 0; k < versions && !same; k++)
        DT_TRY(dt_model_replace(model, s->beams + k, parents[k], err));
    for (int64_t k = 0; k < versions && !same; k++)
        DT_TRY(dt_model_replace(model, k, s->beams + k, err));
out:
    return st;
}

/* Implements dt_beam_next; the first call reads the prompt. */
static dt_status next(void *self, const int32_t *newest, const int32_t *parents, int64_t versions,
                      float *logits, dt_error *err)
{
    text_search *s = self;
    dt_tensor tokens = dt_tensor_2d(s->from->tokens_in.data, DT_I32, versions, 1);
    dt_status st = DT_OK;

    if (parents == NULL)
        return dt_text_logits(logits, s->text, s->from, 0, err);
    DT_TRY(take_parents(s, parents, versions, err));
    DT_TRY(s->from->device.copy_in(&s->from->device, tokens.data, newest,
                                   (size_t)versions * sizeof *newest, err));
    DT_TRY(dt_model_extend_each(s->from->model, &tokens, logits, err));
out:
    return st;
}

dt_status dt_text_search(dt_text *t, dt_loaded *from, dt_error *err)
{
    const dt_text_rules *rules = t->rules;
    int64_t context = from->model->config.decoder.context;
    dt_beam_options options = {.beams = rules->beams,
                               .vocab = from->model->config.decoder.vocab,
                               .ids = dt_tokenizer_vocab(t->from->tokenizer),
                               .most = rules->tokens,
                               .length_penalty = rules->length_penalty,
                               .end = -1,
                               .ends = from->ends.items,
                               .ends_count = rules->past_end ? 0 : (int64_t)from->ends.count,
                               .pad = -1,
                               .texts = true};
    text_search search = {t, from, rules->beams};
    dt_beam_result found = {0};
    dt_status st = DT_OK;

    if (t->count + rules->tokens > context)
        DT_THROW(err, DT_ERR_USAGE,
                 "a prompt of %lld tokens and %lld more exceed the model's context of %lld, the "
                 "limit of a beam search (lower --tokens)",
                 (long long)t->count, (long long)rules->tokens, (long long)context);
    DT_TRY(dt_model_replace(from->model, 0, DT_SEQUENCE_EMPTY, err));
    DT_TRY(dt_beam_search(&found, &options, next, &search, err));
    if (!isfinite(found.score))
        DT_TRY(dt_loaded_diverged(err));
    for (int64_t i = 0; i < found.count; i++) {
        dt_tokenizer_decode(&t->text, t->from->tokenizer, found.tokens[i]);
        t->tokens[t->count++] = found.tokens[i];
    }
    t->end = found.count < rules->tokens ? DT_TEXT_END_OF_TEXT : DT_TEXT_TOKENS;
    t->added = found.count + (t->end == DT_TEXT_END_OF_TEXT);
    t->score = found.score;
    t->whole = t->text.length;
    t->done = true;
out:
    free(found.tokens);
    return st;
}
