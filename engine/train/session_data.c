/* session_data: opens the data of a session, and selects the samples of each rank. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/data/data.h"
#include "engine/data/fingerprint.h"
#include "engine/train/session.h"
#include "engine/weights/weights.h"

/* samples: selects the samples of each rank and counts the samples of a step. */

static void inputs_of(const dt_micro_batch *batch, void *out[DT_INPUTS_MAX])
{
    for (int i = 0; i < DT_INPUTS_MAX; i++)
        out[i] = batch->inputs[i].data;
}

/* Number of samples of this rank in a micro-step. */
static int64_t own_samples(const dt_train_session *session)
{
    return session->pair_batches != NULL ? session->replicas : session->batch.samples;
}

/* Set the tensor dimensions of a batch of sentence pairs to the widths of its longest sentences. */
static void shape_batch(dt_micro_batch *batch, const dt_pair_shape *shape)
{
    batch->samples = shape->samples;
    batch->inputs[0].dim[0] = batch->inputs[1].dim[0] = batch->inputs[2].dim[0] = shape->samples;
    batch->inputs[0].dim[1] = shape->source;
    batch->inputs[1].dim[1] = batch->inputs[2].dim[1] = shape->target;
}

dt_status dt_train_session_fill(dt_train_session *session, int64_t micro_step, dt_error *err)
{
    int64_t first = dt_train_session_first_sample(session, micro_step);
    void *inputs[DT_INPUTS_MAX];
    dt_status st = DT_OK;

    session->batch.step = (uint32_t)session->step;
    session->batch.micro_step = (uint32_t)micro_step;
    if (session->pair_batches == NULL) {
        inputs_of(&session->batch, inputs);
        return dt_sampler_fill(&session->data.sampler, inputs, first, session->batch.samples, err);
    }
    for (int64_t r = 0; r < session->replicas; r++) {
        dt_pair_shape shape;

        inputs_of(&session->pair_batches[r], inputs);
        DT_TRY(dt_sampler_fill_group(&session->data.sampler, &shape, inputs, first + r, err));
        shape_batch(&session->pair_batches[r], &shape);
    }
out:
    return st;
}

int64_t dt_train_session_valid_per_pass(const dt_train_session *session)
{
    return own_samples(session) * session->mesh.data.size;
}

/* evaluate.sequences counts sentence pairs, and each batch holds several of them: convert to
 * batches. */
int64_t dt_train_session_valid_count(const dt_train_session *session)
{
    int64_t all = dt_validation_count(session->data.dataset, session->recipe->batch.tokens);
    int64_t wanted = session->recipe->evaluate.sequences, pairs;

    if (session->pair_batches != NULL && wanted > 0) {
        pairs = dt_dataset_valid_pairs(session->data.dataset);
        wanted = wanted < pairs ? (wanted * all + pairs - 1) / pairs : all;
    }
    return wanted > 0 && wanted < all ? wanted : all;
}

dt_status dt_train_session_fill_valid(dt_train_session *session, int64_t first, dt_error *err)
{
    int64_t all = dt_validation_count(session->data.dataset, session->recipe->batch.tokens);
    int64_t count = dt_train_session_valid_count(session);
    void *inputs[DT_INPUTS_MAX];
    dt_status st = DT_OK;

    for (int64_t i = 0; i < own_samples(session); i++) {
        int64_t turn = first + i * session->mesh.data.size + session->mesh.data.rank;
        int64_t index = turn < count ? turn * all / count : -1;
        dt_pair_shape shape;

        if (session->pair_batches != NULL) {
            inputs_of(&session->pair_batches[i], inputs);
            DT_TRY(dt_validation_fill_group(session->data.dataset, index, &shape, inputs, err));
            shape_batch(&session->pair_batches[i], &shape);
        } else {
            inputs_of(&session->batch, inputs);
            DT_TRY(dt_validation_fill(session->data.dataset, session->recipe->batch.tokens, index,
                                      inputs, i, err));
        }
    }
out:
    return st;
}

int64_t dt_train_session_items(const dt_train_session *session, double valid_targets)
{
    return session->pair_batches != NULL
               ? (int64_t)valid_targets
               : dt_train_session_samples_per_step(session) * session->recipe->batch.tokens;
}

double dt_train_session_mean_items(const dt_train_session *session)
{
    double samples = (double)dt_train_session_samples_per_step(session);

    if (session->pair_batches == NULL)
        return samples * (double)session->recipe->batch.tokens;
    return samples * (double)dt_dataset_train_tokens(session->data.dataset) /
           (double)dt_sampler_epoch_samples(&session->data.sampler);
}

int64_t dt_train_session_samples_per_step(const dt_train_session *session)
{
    const dt_recipe *recipe = session->recipe;

    return (dt_dataset_has_pairs(session->data.dataset) ? 1 : recipe->batch.sequences) *
           session->replicas * session->mesh.data.size * recipe->batch.accumulate;
}

int64_t dt_train_session_first_sample(const dt_train_session *session, int64_t micro_step)
{
    const dt_group *data = &session->mesh.data;

    return (micro_step * data->size + data->rank) * own_samples(session);
}

void dt_train_session_count_steps(dt_train_session *session)
{
    dt_budget_place place = {session->step, session->data.sampler.epoch,
                             session->data.sampler.sample};

    session->resolved.schedule.steps =
        dt_budget_steps(&session->plan->recipe, &session->data.sampler,
                        dt_train_session_samples_per_step(session), &place);
}

bool dt_train_session_ends_epoch(const dt_train_session *session, int64_t *seen, int64_t every)
{
    int64_t before = *seen, now = session->data.sampler.epoch;

    *seen = now;
    return every > 0 && now / every > before / every;
}

/* A resumed run must have the checkpoint's data. If new data are allowed, they are read from their
 * beginning. */
static dt_status compare_with_checkpoint(dt_train_session *session,
                                         const dt_checkpoint_info *resumed, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf words;

    dt_strbuf_init(&words);
    if (resumed->data == NULL) {
        if (session->mesh.world.rank == 0)
            dt_log_warn(
                "'%s' does not record which data it was trained on; the data are not compared",
                session->plan->resume_from);
        goto out;
    }
    session->data.replaces_resumed =
        dt_fingerprint_differs(&words, resumed->data, session->data.fingerprint);
    if (session->data.replaces_resumed && !session->plan->new_data)
        DT_THROW(
            err, DT_ERR_RECIPE,
            "'%s' was trained on other data: %s (resume with the same data, or add --new-data)",
            session->plan->resume_from, words.data);
    if (session->data.replaces_resumed && session->mesh.world.rank == 0)
        dt_log_info("starting at the beginning of the new data: %s", words.data);
out:
    dt_strbuf_release(&words);
    return st;
}

/* A run that starts from a checkpoint's weights keeps the tokenizer that these were trained with. */
static dt_status tokenizer_of_weights(dt_tokenizer **out, const dt_train_session *session,
                                      dt_error *err)
{
    const json_t *json = session->weights != NULL ? dt_weights_tokenizer(session->weights) : NULL;

    return json != NULL ? dt_tokenizer_from_json(out, json, err) : DT_OK;
}

dt_status dt_session_open_data(dt_train_session *session, const dt_checkpoint_info *resumed,
                               dt_error *err)
{
    dt_tokenizer *fixed = NULL;
    dt_budget_place place = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_fingerprint_make(&session->data.fingerprint, session->recipe, err));
    if (resumed != NULL) {
        DT_TRY(compare_with_checkpoint(session, resumed, err));
        place = (dt_budget_place){resumed->step, resumed->epoch, resumed->sample};
        if (session->data.replaces_resumed)
            place.epoch = place.sample = 0;
        DT_TRY(dt_tokenizer_from_json(&fixed, resumed->tokenizer, err));
    } else {
        DT_TRY(tokenizer_of_weights(&fixed, session, err));
    }
    DT_TRY(dt_dataset_open(&session->data.dataset, session->recipe, fixed, err));
    DT_TRY(dt_sampler_init(&session->data.sampler, session->data.dataset,
                           session->recipe->batch.tokens, (uint64_t)session->recipe->seed, err));
    DT_TRY(dt_sampler_set_tail(&session->data.sampler, session->recipe->data.tail,
                               dt_train_session_samples_per_step(session), err));
    session->resolved.schedule.steps = dt_budget_steps(
        &session->plan->recipe, &session->data.sampler, dt_train_session_samples_per_step(session),
        resumed != NULL ? &place : NULL);
out:
    dt_tokenizer_free(fixed);
    return st;
}

/* Compare fingerprints of the contents: files of the same length can differ. */
static dt_status compare_content(dt_train_session *session, dt_error *err)
{
    dt_comm *comm = &session->comm;
    json_t *theirs = NULL;
    dt_status st = DT_OK;
    dt_strbuf mine, first, words;
    int64_t length;
    double differ;

    dt_strbuf_init(&mine);
    dt_strbuf_init(&first);
    dt_strbuf_init(&words);
    dt_json_write(&mine, session->data.fingerprint);
    length = (int64_t)mine.length;
    DT_TRY(comm->broadcast(comm, &length, sizeof(length), 0, err));
    for (int64_t i = 0; i < length; i++)
        dt_strbuf_add_char(&first, session->mesh.world.rank == 0 ? mine.data[i] : ' ');
    DT_TRY(comm->broadcast(comm, first.data, (size_t)length, 0, err));
    differ = strcmp(mine.data, first.data) != 0 ? 1 : 0;
    if (differ > 0 && dt_json_parse(&theirs, first.data, first.length, "rank 0", NULL) == DT_OK &&
        !dt_fingerprint_differs(&words, theirs, session->data.fingerprint))
        dt_strbuf_add_str(&words, "the validation files differ");
    DT_TRY(comm->all_reduce_f64(comm, &differ, 1, err));
    if (differ > 0)
        DT_THROW(
            err, DT_ERR_RECIPE,
            "the ranks read different data: %.0f of %lld ranks differ from rank 0%s%s (put the "
            "same files on every node)",
            differ, (long long)session->mesh.world.size,
            words.length > 0 ? "; from there to this rank: " : "", words.data);
out:
    json_decref(theirs);
    dt_strbuf_release(&mine);
    dt_strbuf_release(&first);
    dt_strbuf_release(&words);
    return st;
}

/* Report different counts: training items, validation items, and for text the vocabulary. */
static dt_status refuse_counts(const dt_train_session *session, const int64_t first[3],
                               const int64_t mine[3], double differ, dt_error *err)
{
    const dt_architecture *kind = dt_architecture_find(session->recipe->model.kind);
    char vocab[2][48] = {"", ""};

    if (!kind->reads_rows) {
        snprintf(vocab[0], sizeof(vocab[0]), " of a vocabulary of %lld", (long long)first[2]);
        snprintf(vocab[1], sizeof(vocab[1]), " of %lld", (long long)mine[2]);
    }
    return DT_FAIL(
        err, DT_ERR_RECIPE,
        "the ranks read different data: rank 0 has %lld training and %lld validation "
        "%ss%s, this rank %lld and %lld%s, and %.0f of %lld ranks differ from rank 0 (put "
        "the same files on every node)",
        (long long)first[0], (long long)first[1], kind->item, vocab[0], (long long)mine[0],
        (long long)mine[1], vocab[1], differ, (long long)session->mesh.world.size);
}

dt_status dt_session_compare_data(dt_train_session *session, dt_error *err)
{
    const dt_dataset *dataset = session->data.dataset;
    dt_comm *comm = &session->comm;
    int64_t mine[] = {dt_dataset_train_tokens(dataset), dt_dataset_valid_tokens(dataset),
                      dt_tokenizer_vocab(dt_dataset_tokenizer(dataset))};
    int64_t first[] = {mine[0], mine[1], mine[2]};
    double differ;
    dt_status st = DT_OK;

    DT_TRY(comm->broadcast(comm, first, sizeof(first), 0, err));
    differ = memcmp(mine, first, sizeof(first)) != 0 ? 1 : 0;
    DT_TRY(comm->all_reduce_f64(comm, &differ, 1, err));
    if (differ > 0)
        DT_TRY(refuse_counts(session, first, mine, differ, err));
    DT_TRY(compare_content(session, err));
out:
    return st;
}
