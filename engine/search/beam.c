#include "engine/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    double score; /* sum of log-probabilities */
    int32_t version, token;
} candidate;

struct dt_beam {
    const dt_beam_options *options;
    int64_t versions, tokens; /* number of current hypotheses; tokens of each so far */
    double *scores;           /* (beams): score of each hypothesis */
    int32_t *words, *spare;   /* (beams, most): tokens of each hypothesis */
    int32_t *newest, *parents;
    candidate *candidates; /* (2 beams) continuations, best first */
    int64_t candidate_count, done;
    dt_beam_result best;
};

dt_status dt_beam_open(dt_beam **out, const dt_beam_options *options, dt_error *err)
{
    size_t beams = (size_t)options->beams, most = (size_t)options->most;
    dt_beam *s = calloc(1, sizeof *s);

    DT_ASSERT(options->beams >= 1 && options->most >= (options->texts ? 1 : 2) &&
              options->vocab >= 2);
    *out = s;
    if (s == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a search of %zu beams", beams);
    *s = (dt_beam){.options = options, .versions = 1, .best = {.score = -INFINITY}};
    s->scores = calloc(beams, sizeof *s->scores);
    s->words = calloc(beams * most, sizeof *s->words);
    s->spare = calloc(beams * most, sizeof *s->spare);
    s->newest = calloc(beams, sizeof *s->newest);
    s->parents = calloc(beams, sizeof *s->parents);
    s->candidates = calloc(2 * beams, sizeof *s->candidates);
    s->best.tokens = calloc(most, sizeof *s->best.tokens);
    if (!s->scores || !s->words || !s->spare || !s->newest || !s->parents || !s->candidates ||
        !s->best.tokens) {
        dt_beam_close(s);
        *out = NULL;
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a search of %zu beams", beams);
    }
    s->newest[0] = options->end;
    return DT_OK;
}

void dt_beam_close(dt_beam *s)
{
    if (s == NULL)
        return;
    free(s->scores);
    free(s->words);
    free(s->spare);
    free(s->newest);
    free(s->parents);
    free(s->candidates);
    free(s->best.tokens);
    free(s);
}

/* Insert a candidate if it is among the 2 * beams best; ties stay in order of arrival. */
static void consider(dt_beam *s, candidate new)
{
    int64_t most = 2 * s->options->beams, at = s->candidate_count;

    if (new.score == -INFINITY || isnan(new.score) ||
        (at == most && new.score <= s->candidates[at - 1].score))
        return;
    if (at == most)
        at--;
    else
        s->candidate_count++;
    for (; at > 0 && s->candidates[at - 1].score < new.score; at--)
        s->candidates[at] = s->candidates[at - 1];
    s->candidates[at] = new;
}

static double log_sum(const float *logits, int64_t vocab)
{
    float max = logits[0];
    double sum = 0;

    for (int64_t v = 1; v < vocab; v++)
        max = logits[v] > max ? logits[v] : max;
    for (int64_t v = 0; v < vocab; v++)
        sum += (double)expf(logits[v] - max);
    return (double)max + log(sum);
}

/* Returns a logit below which consider() ignores the continuations of hypothesis k; all: the log-sum of its logits. */
static float least_logit(const dt_beam *s, int64_t k, double all)
{
    double least;

    if (s->candidate_count < 2 * s->options->beams)
        return -INFINITY;
    least = s->candidates[s->candidate_count - 1].score - s->scores[k] + all;
    return (float)(least - 1e-6 * (1 + fabs(least)));
}

static void consider_all(dt_beam *s, const float *const *each)
{
    const dt_beam_options *o = s->options;
    bool last = s->tokens + 1 == o->most, early = s->tokens == 0 || (o->past_end && !last);

    s->candidate_count = 0;
    for (int64_t k = 0; k < s->versions; k++) {
        const float *logits = each[k];
        double all = log_sum(logits, o->vocab);
        float least = least_logit(s, k, all);

        for (int32_t v = 0; v < (o->ids > 0 ? o->ids : o->vocab); v++) {
            if (logits[v] < least || v == o->pad || (!o->texts && v == o->end && early) ||
                (!o->texts && v != o->end && last))
                continue;
            consider(s, (candidate){s->scores[k] + (double)logits[v] - all, (int32_t)k, v});
            least = least_logit(s, k, all);
        }
    }
}

static bool is_end(const dt_beam_options *o, int32_t token)
{
    for (int64_t i = 0; i < o->ends_count; i++)
        if (o->ends[i] == token)
            return true;
    return token == o->end;
}

static void finish(dt_beam *s, const candidate *c)
{
    double length = (double)(s->tokens + 1);
    double score = c->score / pow(length, s->options->length_penalty);
    bool cut = !is_end(s->options, c->token);

    s->done++;
    if (score <= s->best.score)
        return;
    s->best.score = score;
    s->best.count = s->tokens + cut;
    memcpy(s->best.tokens, s->words + c->version * s->options->most,
           (size_t)s->tokens * sizeof(int32_t));
    if (cut)
        s->best.tokens[s->tokens] = c->token;
}

static void advance(dt_beam *s, const candidate *c, int64_t to, double *score)
{
    int64_t most = s->options->most;

    memcpy(s->spare + to * most, s->words + c->version * most, (size_t)s->tokens * sizeof(int32_t));
    s->spare[to * most + s->tokens] = c->token;
    s->newest[to] = c->token;
    s->parents[to] = c->version;
    *score = c->score;
}

int64_t dt_beam_versions(const dt_beam *s)
{
    bool over = s->done >= s->options->beams || s->tokens >= s->options->most;

    return over ? 0 : s->versions;
}

const int32_t *dt_beam_newest(const dt_beam *s)
{
    return s->newest;
}

const int32_t *dt_beam_parents(const dt_beam *s)
{
    return s->tokens == 0 ? NULL : s->parents;
}

void dt_beam_step(dt_beam *s, const float *const *logits)
{
    int64_t beams = s->options->beams, versions = 0;
    bool cut = s->options->texts && s->tokens + 1 == s->options->most;
    int32_t *words = s->words;

    consider_all(s, logits);
    for (int64_t i = 0; i < s->candidate_count; i++) {
        const candidate *c = &s->candidates[i];

        if (cut || is_end(s->options, c->token)) {
            if (i < beams && s->done < beams)
                finish(s, c);
        } else if (versions < beams) {
            advance(s, c, versions, &s->scores[versions]);
            versions++;
        }
    }
    s->words = s->spare;
    s->spare = words;
    s->versions = versions;
    s->tokens++;
}

dt_beam_result dt_beam_take(dt_beam *s)
{
    dt_beam_result best = s->best;

    s->best = (dt_beam_result){.score = -INFINITY};
    return best;
}

dt_status dt_beam_search(dt_beam_result *out, const dt_beam_options *options, dt_beam_next *next,
                         void *self, dt_error *err)
{
    size_t beams = (size_t)options->beams, vocab = (size_t)options->vocab;
    float *logits = calloc(beams * vocab, sizeof *logits);
    const float **each = calloc(beams, sizeof *each);
    dt_beam *beam = NULL;
    dt_status st = DT_OK;

    if (logits == NULL || each == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a search of %zu beams", beams);
    for (size_t k = 0; k < beams; k++)
        each[k] = logits + k * vocab;
    DT_TRY(dt_beam_open(&beam, options, err));
    while (dt_beam_versions(beam) > 0) {
        DT_TRY(next(self, dt_beam_newest(beam), dt_beam_parents(beam), dt_beam_versions(beam),
                    logits, err));
        dt_beam_step(beam, each);
    }
    *out = dt_beam_take(beam);
out:
    dt_beam_close(beam);
    free(logits);
    free(each);
    return st;
}
