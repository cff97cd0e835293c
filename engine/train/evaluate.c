/* evaluate: the loss and BLEU on the validation data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bleu/bleu.h"
#include "engine/channel/events.h"
#include "engine/config.h"
#include "engine/device/device.h"
#include "engine/progress.h"
#include "engine/search/search.h"
#include "engine/train/train_int.h"
#include "recipes/architecture/architecture.h"

/* --- BLEU */

#define TOGETHER 32 /* sentences a rank translates between two exchanges with the other ranks */
/* replaces <unk> in a target, because a translation can contain <unk> too */
#define UNKNOWN_WORD "UNKNOWNWORDOFTHETARGET"

typedef struct dt_valid_bleu {
    dt_model *model;
    dt_device_arena memory;
    dt_tensor ids;
    /* (units) copies of the weights; NULL: the training weights are used in place */
    void **gathered;
    dt_translator *translator;
    const dt_sides *sides;
    dt_bleu_counts counts;
    /* batches being translated; the following fields are the position in them */
    const dt_micro_batch *batches;
    int64_t batch_count, batch, sample;
    const int32_t *targets[TOGETHER]; /* targets of the sentences being translated */
    int64_t target_counts[TOGETHER], begun;
    dt_strbuf line, target;
} dt_valid_bleu;

/* --- the model that translates */

static void lay_out(void *self, dt_layout *layout)
{
    dt_train_session *session = self;
    dt_valid_bleu *bleu = session->evaluation.translations;
    const dt_model *model = bleu->model;

    bleu->ids = dt_tensor_1d(NULL, DT_I32, dt_translator_ids(&model->config));
    bleu->ids.data = dt_layout_take(layout, dt_tensor_bytes(&bleu->ids));
    for (int unit = 0; bleu->gathered != NULL && unit < model->unit_count; unit++)
        bleu->gathered[unit] = dt_layout_take(layout, (size_t)model->units[unit].elems *
                                                          dt_dtype_bytes(model->config.dtype));
}

static dt_status open_model(dt_train_session *session, dt_error *err)
{
    const dt_tokenizer *tokenizer = dt_dataset_tokenizer(session->data.dataset);
    dt_valid_bleu *bleu = session->evaluation.translations;
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(dt_config_inference(&config, session->recipe, dt_tokenizer_vocab(tokenizer), err));
    config.dtype = session->model->config.dtype;
    config.tensor = session->model->config.tensor;
    dt_translations_configure(
        &config,
        dt_translations_within(DT_TRANSLATIONS_IN_TRAINING, session->recipe->evaluate.beam),
        session->recipe->evaluate.beam);
    DT_TRY(dt_model_open(&bleu->model, &config, &session->device, err));
    DT_ASSERT(bleu->model->unit_count == session->model->unit_count);
    bleu->model->peers = session->model->peers;
    if (!session->state.keeps_weights)
        bleu->gathered = calloc((size_t)bleu->model->unit_count, sizeof(*bleu->gathered));
    if (!session->state.keeps_weights && bleu->gathered == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of units");
    DT_TRY(dt_layout_open(&bleu->memory, &session->device, lay_out, session, err));
    bleu->sides = dt_tokenizer_sides(tokenizer);
    DT_TRY(
        dt_translator_open(&bleu->translator, bleu->model, &bleu->ids, bleu->sides, 1, false, err));
out:
    return st;
}

dt_status dt_valid_bleu_open(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (!session->recipe->evaluate.bleu || session->pair_batches == NULL)
        return DT_OK;
    session->evaluation.translations = calloc(1, sizeof(*session->evaluation.translations));
    if (session->evaluation.translations == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for translations");
    dt_strbuf_init(&session->evaluation.translations->line);
    dt_strbuf_init(&session->evaluation.translations->target);
    st = open_model(session, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'evaluate.bleu'");
    return st;
}

void dt_valid_bleu_close(dt_valid_bleu *bleu)
{
    if (bleu == NULL)
        return;
    dt_translator_close(bleu->translator);
    dt_device_arena_close(&bleu->memory);
    dt_model_close(bleu->model);
    free(bleu->gathered);
    dt_strbuf_release(&bleu->line);
    dt_strbuf_release(&bleu->target);
    free(bleu);
}

int64_t dt_valid_bleu_bytes(const dt_valid_bleu *bleu)
{
    return bleu == NULL
               ? 0
               : (int64_t)bleu->model->activation_bytes + (int64_t)bleu->memory.capacity_bytes +
                     dt_translator_bytes(&bleu->model->config);
}

/* --- an evaluation */

/* Called while the weights of `unit` are in memory: copies them, or points to them. */
static dt_status take_unit(void *self, int unit, dt_error *err)
{
    dt_train_session *session = self;
    dt_valid_bleu *bleu = session->evaluation.translations;
    dt_tensor to = dt_tensor_1d(NULL, bleu->model->config.dtype, bleu->model->units[unit].elems);
    dt_tensor from = to;

    DT_ASSERT(session->model->units[unit].frozen_elems == 0); /* no recipe freezes a translator */
    from.data = bleu->model->weights[unit] = session->model->weights[unit];
    if (bleu->gathered == NULL)
        return DT_OK;
    to.data = bleu->model->weights[unit] = bleu->gathered[unit];
    return session->device.ops->cast(&session->device, &to, &from, err);
}

/* Collective; call before the first pass of an evaluation. */
static dt_status valid_bleu_begin(dt_train_session *session, dt_error *err)
{
    dt_valid_bleu *bleu = session->evaluation.translations;
    dt_status st = DT_OK;

    if (bleu == NULL)
        return DT_OK;
    memset(&bleu->counts, 0, sizeof(bleu->counts));
    DT_TRY(dt_model_visit_units(session->model, take_unit, session, err));
out:
    return st;
}

/* Length of a row without its trailing padding. */
static int64_t length_of(const int32_t *row, int64_t width, int32_t filler)
{
    while (width > 0 && row[width - 1] == filler)
        width--;
    return width;
}

static void read_target(dt_strbuf *out, const dt_side *side, const int32_t *ids, int64_t count)
{
    dt_strbuf_reset(out);
    for (int64_t i = 0; i < count; i++)
        if (side->bpe == NULL && ids[i] == DT_DICTIONARY_UNKNOWN)
            dt_strbuf_add_str(out, UNKNOWN_WORD " ");
        else
            dt_side_decode(out, side, ids[i]);
}

/* Whether to begin no more sentences. Ranks that divide layers translate the same ones, but see a stop request at
 * different times: they heed it at the next exchange. */
static bool gives_up(const dt_valid_bleu *bleu)
{
    return bleu->model->peers == NULL && dt_stop_asked();
}

/* The next sample that counts, at most TOGETHER per exchange; none after a stop request. */
static dt_status next_sample(void *context, const int32_t **source, int64_t *count, dt_error *err)
{
    dt_valid_bleu *bleu = context;

    *source = NULL;
    while (bleu->batch < bleu->batch_count && bleu->begun < TOGETHER && !gives_up(bleu)) {
        const dt_micro_batch *batch = &bleu->batches[bleu->batch];
        int64_t S = batch->inputs[DT_TRANSFORMER_SOURCE].dim[1];
        int64_t T = batch->inputs[DT_TRANSFORMER_TARGETS].dim[1], i = bleu->sample;
        const int32_t *from = (const int32_t *)batch->inputs[DT_TRANSFORMER_SOURCE].data + i * S;
        const int32_t *target = (const int32_t *)batch->inputs[DT_TRANSFORMER_TARGETS].data + i * T;
        int64_t target_count = length_of(target, T, -1);

        dt_progress_made();
        if (++bleu->sample == batch->samples) {
            bleu->sample = 0;
            bleu->batch++;
        }
        if (target_count == 0)
            continue;
        bleu->targets[bleu->begun] = target;
        bleu->target_counts[bleu->begun++] = target_count;
        *source = from;
        *count = length_of(from, S, bleu->sides->source->pad);
        return DT_OK;
    }
    return DT_OK;
}

/* If the model's outputs are not finite, the translation counts as an empty line. */
static dt_status add_pair(void *context, int64_t i, const dt_beam_result *found, dt_error *err)
{
    dt_valid_bleu *bleu = context;

    dt_translator_line(&bleu->line, bleu->sides->target, found->tokens,
                       isfinite(found->score) ? found->count : 0);
    read_target(&bleu->target, bleu->sides->target, bleu->targets[i], bleu->target_counts[i]);
    return dt_bleu_add(&bleu->counts, DT_BLEU_WORDS_13A, bleu->line.data, bleu->line.length,
                       bleu->target.data, bleu->target.length, err);
}

/* Translate the next sentences of this rank's batches. *left: some remain. */
static dt_status add_some(bool *left, dt_valid_bleu *bleu, dt_error *err)
{
    dt_translator_work work = {next_sample, add_pair, bleu};
    dt_status st = DT_OK;

    bleu->begun = 0;
    DT_TRY(dt_translator_run(bleu->translator, &work, err));
    *left = bleu->batch < bleu->batch_count;
out:
    return st;
}

/* Collective: translates the sentences in each rank's batch. *stopped: a rank was asked to stop before all
 * were translated. Exchanges with the other ranks after every TOGETHER sentences, so that a stop request is
 * seen in time even if one rank's sentences are long. */
static dt_status valid_bleu_add(dt_train_session *session, bool *stopped, dt_error *err)
{
    double sums[2] = {1, 0}; /* ranks with sentences left, ranks that were asked to stop */
    dt_valid_bleu *bleu = session->evaluation.translations;
    dt_status st = DT_OK;
    bool left;

    if (bleu != NULL) {
        bleu->batches = session->pair_batches;
        bleu->batch_count = session->replicas;
        bleu->batch = bleu->sample = 0;
    }
    while (bleu != NULL && sums[0] > 0 && sums[1] == 0) {
        DT_TRY(add_some(&left, bleu, err));
        sums[0] = left ? 1 : 0;
        sums[1] = dt_stop_asked() ? 1 : 0;
        DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 2, err));
    }
    *stopped = sums[1] > 0;
out:
    return st;
}

/* --- totals over all ranks */

/* The i-th count of a BLEU score. Counts are integers far below 2^53, so their sums as doubles are
 * exact. */
static int64_t *count_at(dt_bleu_counts *counts, int i)
{
    if (i < DT_BLEU_ORDERS)
        return &counts->matched[i];
    if (i < 2 * DT_BLEU_ORDERS)
        return &counts->made[i - DT_BLEU_ORDERS];
    return i == 2 * DT_BLEU_ORDERS ? &counts->length : &counts->reference_length;
}

/* Collective: returns in *out the BLEU over all ranks. */
static dt_status valid_bleu_end(double *out, dt_train_session *session, dt_error *err)
{
    enum { COUNTS = 2 * DT_BLEU_ORDERS + 2 };
    dt_bleu_counts totals;
    double sums[COUNTS];
    dt_status st = DT_OK;

    if (session->evaluation.translations == NULL)
        return DT_OK;
    totals = session->evaluation.translations->counts;
    for (int i = 0; i < COUNTS; i++)
        sums[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, (double)*count_at(&totals, i));
    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, COUNTS, err));
    for (int i = 0; i < COUNTS; i++)
        *count_at(&totals, i) = (int64_t)sums[i];
    *out = dt_bleu_of(&totals).score;
out:
    return st;
}

/* --- the loss */

/* Validation passes can contain collectives, so all ranks must stop after the same pass. */
static dt_status look_for_stop(dt_train_session *session, bool *stopped, dt_error *err)
{
    double asked = dt_stop_asked() ? 1 : 0;
    dt_status st = session->comm.all_reduce_f64(&session->comm, &asked, 1, err);

    *stopped = asked > 0;
    return st;
}

dt_status dt_evaluate(dt_train_session *session, bool *evaluated, bool *stopped, dt_error *err)
{
    int64_t count = dt_train_session_valid_count(session);
    int64_t per_pass = dt_train_session_valid_per_pass(session);
    double sums[2] = {0, 0}; /* sums of losses and of the weights of targets */
    dt_status st = DT_OK;

    *evaluated = *stopped = false;
    if (count > 0)
        DT_TRY(valid_bleu_begin(session, err));
    dt_confusion_begin(session);
    for (int64_t first = 0; first < count; first += per_pass) {
        double loss_sum, counted;

        DT_TRY(look_for_stop(session, stopped, err));
        if (*stopped)
            goto out;
        DT_TRY(dt_train_session_fill_valid(session, first, err));
        DT_TRY(session->state.strategy->evaluate(&session->state, &session->batch, &loss_sum,
                                                 &counted, err));
        dt_progress_made();
        DT_TRY(valid_bleu_add(session, stopped, err));
        if (*stopped)
            goto out;
        sums[0] += loss_sum;
        sums[1] += counted;
    }
    if (count == 0)
        goto out;
    DT_TRY(valid_bleu_end(&session->evaluation.bleu, session, err));
    DT_TRY(dt_confusion_end(session, err));
    for (int i = 0; i < 2; i++)
        sums[i] = dt_mesh_term(&session->mesh, DT_MESH_DATA, sums[i]);
    DT_TRY(session->comm.all_reduce_f64(&session->comm, sums, 2, err));
    session->evaluation.loss = sums[0] / sums[1];
    session->evaluation.step = session->step;
    *evaluated = true;
out:
    return st;
}
