#include "engine/search/search.h"

#include <stdlib.h>
#include <string.h>

#include "recipes/architecture/architecture.h"

/* A sentence being translated. The model keeps each hypothesis in a row, which can differ from its
 * number: a hypothesis that is the first to continue another stays in that one's row, so nothing is
 * copied. */
typedef struct growing {
    int64_t source; /* number of the source */
    dt_beam *beam;
    int32_t *rows; /* [versions]: row of each hypothesis, counted from the sentence's first row */
} growing;

struct dt_translator {
    dt_model *model;
    dt_tensor ids;
    dt_beam_options search;
    int64_t sentences, versions;
    growing *active; /* [sentences] being translated */
    int64_t active_count, begun;
    bool exhausted;            /* the callback has no next source */
    int32_t *newest, *parents; /* [sentences * versions]: last token and parent of each row */
    int32_t *spare;            /* [versions]: scratch for choosing rows */
    bool *taken;               /* [versions]: rows already assigned */
    float *logits;             /* (sentences * versions, vocab): logits of each row */
    const float **each;        /* [sentences * versions]: logits of each hypothesis */
};

/* --- memory */

int64_t dt_translator_ids(const dt_model_config *config)
{
    int64_t rows = dt_translations_rows(config);

    return config->decoder.context > rows ? config->decoder.context : rows;
}

int64_t dt_translator_bytes(const dt_model_config *config)
{
    return dt_translations_rows(config) * config->decoder.vocab * (int64_t)sizeof(float);
}

dt_status dt_translator_open(dt_translator **out, dt_model *model, const dt_tensor *ids,
                             const dt_sides *sides, double length_penalty, bool past_end,
                             dt_error *err)
{
    size_t sentences = (size_t)dt_translations_sentences(&model->config);
    size_t versions = (size_t)dt_translations_versions(&model->config), rows = sentences * versions;
    dt_translator *t = calloc(1, sizeof *t);
    dt_status st = DT_OK;

    *out = t;
    if (t == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for translations");
    *t = (dt_translator){.model = model,
                         .ids = *ids,
                         .sentences = (int64_t)sentences,
                         .versions = (int64_t)versions,
                         .search = {.beams = (int64_t)versions,
                                    .vocab = model->config.decoder.vocab,
                                    .most = model->config.decoder.context,
                                    .length_penalty = length_penalty,
                                    .past_end = past_end,
                                    .end = sides->target->end,
                                    .pad = sides->target->pad}};
    t->active = calloc(sentences, sizeof *t->active);
    t->newest = calloc(rows, sizeof *t->newest);
    t->parents = calloc(rows, sizeof *t->parents);
    t->spare = calloc(versions, sizeof *t->spare);
    t->taken = calloc(versions, sizeof *t->taken);
    t->logits = calloc((size_t)dt_translator_bytes(&model->config), 1);
    t->each = calloc(rows, sizeof *t->each);
    if (!t->active || !t->newest || !t->parents || !t->spare || !t->taken || !t->logits || !t->each)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %zu hypotheses", rows);
    for (size_t i = 0; i < sentences; i++) {
        t->active[i].rows = calloc(versions, sizeof *t->active[i].rows);
        if (t->active[i].rows == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for %zu hypotheses", rows);
    }
out:
    if (st != DT_OK) {
        dt_translator_close(t);
        *out = NULL;
    }
    return st;
}

void dt_translator_close(dt_translator *t)
{
    if (t == NULL)
        return;
    for (int64_t i = 0; t->active != NULL && i < t->sentences; i++) {
        dt_beam_close(t->active[i].beam);
        free(t->active[i].rows);
    }
    free(t->active);
    free(t->newest);
    free(t->parents);
    free(t->spare);
    free(t->taken);
    free(t->logits);
    free(t->each);
    free(t);
}

/* --- adding a token */

#define SHARED_LOGITS 16384 /* that are worth more than one thread */

static dt_status copy_ids(dt_translator *t, dt_tensor *out, const int32_t *ids, int64_t rows,
                          int64_t columns, dt_error *err)
{
    dt_device *device = t->model->device;

    *out = dt_tensor_2d(t->ids.data, DT_I32, rows, columns);
    return device->copy_in(device, out->data, ids, (size_t)(rows * columns) * sizeof(*ids), err);
}

/* Assign rows: the first hypothesis that continues another gets its row, the others the remaining
 * rows. */
static void choose_rows(dt_translator *t, growing *g, int32_t *row_parents)
{
    const int32_t *parents = dt_beam_parents(g->beam);
    int64_t count = dt_beam_versions(g->beam), left = 0;

    memset(t->taken, 0, (size_t)t->versions * sizeof *t->taken);
    for (int64_t k = 0; k < count; k++) {
        int32_t row = g->rows[parents[k]];

        t->spare[k] = t->taken[row] ? -1 : row;
        t->taken[row] = true;
    }
    for (int64_t k = 0; k < count; k++) {
        if (t->spare[k] >= 0)
            continue;
        while (t->taken[left])
            left++;
        t->spare[k] = (int32_t)left;
        t->taken[left] = true;
        row_parents[left] += g->rows[parents[k]] - (int32_t)left;
    }
    memcpy(g->rows, t->spare, (size_t)count * sizeof *g->rows);
}

/* Set the row inputs of sentence i. Rows without a hypothesis (at first all but one) get the end
 * token, and their logits are ignored. */
static void place(dt_translator *t, int64_t i)
{
    const int32_t *newest = dt_beam_newest(t->active[i].beam);
    int64_t first = i * t->versions;

    for (int64_t k = 0; k < t->versions; k++) {
        t->newest[first + k] = t->search.end;
        t->parents[first + k] = (int32_t)(first + k);
    }
    if (dt_beam_parents(t->active[i].beam) != NULL)
        choose_rows(t, &t->active[i], t->parents + first);
    for (int64_t k = 0; k < dt_beam_versions(t->active[i].beam); k++)
        t->newest[first + t->active[i].rows[k]] = newest[k];
}

static void step(const dt_translator *t, int64_t i)
{
    const float **each = t->each + i * t->versions;

    for (int64_t k = 0; k < t->versions; k++)
        each[k] = t->logits + (i * t->versions + t->active[i].rows[k]) * t->search.vocab;
    dt_beam_step(t->active[i].beam, each);
}

/* Threads that search: those of the device, as for an op, or one, so that no thread ends in between. */
static int threads_of(const dt_translator *t)
{
    int threads = t->model->device->threads;
    bool shared =
        t->active_count > 1 && t->active_count * t->versions * t->search.vocab >= SHARED_LOGITS;

    return shared && threads > 1 ? threads : 1;
}

static dt_status grow_each(dt_translator *t, dt_error *err)
{
    dt_tensor previous;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < t->active_count; i++)
        place(t, i);
    DT_TRY(copy_ids(t, &previous, t->newest, t->active_count * t->versions, 1, err));
    DT_TRY(dt_model_translate_next(t->model, &previous, t->parents, t->logits, err));
#pragma omp parallel for num_threads(threads_of(t)) schedule(static)
    for (int64_t i = 0; i < t->active_count; i++)
        step(t, i);
out:
    return st;
}

/* --- starting and ending sentences */

static dt_status begin(dt_translator *t, const dt_translator_work *work, dt_error *err)
{
    growing *g = &t->active[t->active_count];
    const int32_t *source = NULL;
    int64_t count = 0;
    dt_tensor sentence;
    dt_status st = DT_OK;

    DT_TRY(work->next(work->context, &source, &count, err));
    t->exhausted = source == NULL;
    if (t->exhausted)
        return DT_OK;
    DT_TRY(copy_ids(t, &sentence, source, 1, count, err));
    DT_TRY(dt_model_translate(t->model, t->active_count, &sentence, err));
    DT_TRY(dt_beam_open(&g->beam, &t->search, err));
    for (int64_t k = 0; k < t->versions; k++)
        g->rows[k] = (int32_t)k;
    g->source = t->begun++;
    t->active_count++;
out:
    return st;
}

/* Remove sentence i; the last one takes its place. */
static dt_status leave(dt_translator *t, int64_t i, dt_error *err)
{
    int64_t last = t->active_count - 1;
    growing left = t->active[i];
    dt_status st = DT_OK;

    dt_beam_close(left.beam);
    left.beam = NULL;
    t->active[i] = t->active[last];
    t->active[last] = left;
    t->active_count = last;
    if (i != last)
        DT_TRY(dt_model_replace(t->model, i, last, err));
out:
    return st;
}

static dt_status end_some(dt_translator *t, const dt_translator_work *work, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = t->active_count - 1; i >= 0; i--) {
        dt_beam_result found;

        if (dt_beam_versions(t->active[i].beam) > 0)
            continue;
        found = dt_beam_take(t->active[i].beam);
        st = work->done(work->context, t->active[i].source, &found, err);
        free(found.tokens);
        DT_TRY(st);
        DT_TRY(leave(t, i, err));
    }
out:
    return st;
}

/* Discard what a failed run left behind. */
static void start(dt_translator *t)
{
    for (int64_t i = 0; i < t->active_count; i++) {
        dt_beam_close(t->active[i].beam);
        t->active[i].beam = NULL;
    }
    t->active_count = t->begun = 0;
    t->exhausted = false;
}

dt_status dt_translator_run(dt_translator *t, const dt_translator_work *work, dt_error *err)
{
    dt_status st = DT_OK;

    start(t);
    do {
        while (!t->exhausted && t->active_count < t->sentences)
            DT_TRY(begin(t, work, err));
        if (t->active_count == 0)
            break;
        DT_TRY(grow_each(t, err));
        DT_TRY(end_some(t, work, err));
    } while (true);
out:
    return st;
}

void dt_translator_line(dt_strbuf *out, const dt_side *side, const int32_t *ids, int64_t count)
{
    dt_strbuf_reset(out);
    for (int64_t i = 0; i < count; i++)
        dt_side_decode(out, side, ids[i]);
    if (side->bpe != NULL && dt_bpe_drops_first_space(side->bpe) && out->length > 0 &&
        out->data[0] == ' ')
        dt_strbuf_remove_front(out, 1);
    for (size_t i = 0; i < out->length; i++)
        if (out->data[i] == '\n' || out->data[i] == '\r')
            out->data[i] = ' ';
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->data[--out->length] = '\0';
}
