#include "engine/train/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/channel/stop.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/fit.h"
#include "engine/config.h"
#include "engine/data/budget.h"
#include "engine/data/fingerprint.h"
#include "engine/device/device_cuda.h"
#include "engine/device/nvml.h"
#include "engine/train/measure.h"
#include "engine/train/saving.h"
#include "engine/weights/weights.h"
#include "recipes/memory.h"

#include "base/banned.h"

/* Not worth a run: one that cannot watch its card trains all the same. */
static void watch_card(dt_train_session *session)
{
    dt_error problem = DT_ERROR_INIT;
    const dt_cuda_entry *entry;
    dt_cuda_card card;

    if (dt_cuda_load(&entry, &problem) == DT_OK &&
        entry->card(&card, session->device.index, &problem) == DT_OK &&
        dt_nvml_open(&session->nvml, card.pci, &problem) == DT_OK)
        return;
    dt_log_warn("no metrics of the card: %s", problem.message);
}

static dt_status open_device(dt_train_session *session, dt_error *err)
{
    const dt_plan_rank *place = &session->plan->ranks[session->mesh.world.rank];
    dt_status st = DT_OK;

    DT_TRY(dt_device_open(&session->device, place->device, (int)place->threads,
                          session->recipe->precision.tf32, err));
    if (!session->device.host_reads)
        watch_card(session);
    else if (session->mesh.world.rank == 0 && session->recipe->gpus != 0)
        dt_log_info("no GPU was found: %lld rank(s) train on the CPU",
                    (long long)session->mesh.world.size);
    if (session->device.graphs != NULL && session->mesh.world.rank == 0 &&
        !session->recipe->cuda_graphs)
        dt_log_info("'cuda_graphs' is false: the host launches every kernel");
out:
    return st;
}

/* Going on means the same data: with others, as was asked for, they begin at their start. */
static dt_status compare_with_checkpoint(dt_train_session *session,
                                         const dt_checkpoint_info *resumed, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf words;

    dt_strbuf_init(&words);
    if (resumed->data == NULL) {
        if (session->mesh.world.rank == 0)
            dt_log_warn("'%s' does not say which data it was trained on: they are not compared",
                        session->plan->resume_from);
        goto out;
    }
    session->new_data = dt_fingerprint_differs(&words, resumed->data, session->fingerprint);
    if (session->new_data && !session->plan->new_data)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' was trained on other data: %s (resume with what they were, or with "
                 "--new-data)",
                 session->plan->resume_from, words.data);
    if (session->new_data && session->mesh.world.rank == 0)
        dt_log_info("new data from their start: %s", words.data);
out:
    dt_strbuf_release(&words);
    return st;
}

/* Tokens mean what they meant to the weights of a checkpoint. */
static dt_status tokenizer_of_weights(dt_tokenizer **out, const dt_train_session *session,
                                      dt_error *err)
{
    const json_t *json = session->weights != NULL ? dt_weights_tokenizer(session->weights) : NULL;

    return json != NULL ? dt_tokenizer_from_json(out, json, err) : DT_OK;
}

/* A resumed run keeps the tokenizer of its checkpoint, whatever the text has become. */
static dt_status open_data(dt_train_session *session, const dt_checkpoint_info *resumed,
                           dt_error *err)
{
    dt_tokenizer *fixed = NULL;
    dt_budget_place place = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_fingerprint_make(&session->fingerprint, session->recipe, err));
    if (resumed != NULL) {
        DT_TRY(compare_with_checkpoint(session, resumed, err));
        place = (dt_budget_place){resumed->step, resumed->epoch, resumed->sample};
        if (session->new_data)
            place.epoch = place.sample = 0;
        DT_TRY(dt_tokenizer_from_json(&fixed, resumed->tokenizer, err));
    } else {
        DT_TRY(tokenizer_of_weights(&fixed, session, err));
    }
    DT_TRY(dt_dataset_open(&session->dataset, session->recipe, fixed, err));
    DT_TRY(dt_sampler_init(&session->sampler, session->dataset, session->recipe->batch.tokens,
                           (uint64_t)session->recipe->seed, err));
    DT_TRY(dt_sampler_set_tail(&session->sampler, session->recipe->data.tail,
                               dt_train_session_samples_per_step(session), err));
    session->resolved.schedule.steps = dt_budget_steps(&session->plan->recipe, &session->sampler,
                                                       dt_train_session_samples_per_step(session),
                                                       resumed != NULL ? &place : NULL);
out:
    dt_tokenizer_free(fixed);
    return st;
}

static dt_status open_model(dt_train_session *session, dt_error *err)
{
    int64_t vocab = dt_tokenizer_vocab(dt_dataset_tokenizer(session->dataset));
    int64_t free_bytes = dt_measure_free_memory(&session->device);
    const dt_plan *plan = session->plan;
    dt_memory_ranks ranks = dt_plan_memory_ranks(plan, session->mesh.world.rank);
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(dt_config_train(&config, session->recipe, vocab, err));
    /* For this rank alone: its neighbours may have taken theirs already. */
    if (free_bytes > 0)
        DT_TRY(dt_memory_check(session->recipe, vocab, &ranks, 1, free_bytes,
                               plan->node_names[plan->ranks[session->mesh.world.rank].node], err));
    DT_TRY(dt_model_open(&session->model, &config, &session->device, err));
    DT_TRY(dt_measure_matmul(&session->matmul_flops, session->model, err));
out:
    return st;
}

/* Files of one length may have other content. */
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
    dt_json_write(&mine, session->fingerprint);
    length = (int64_t)mine.length;
    DT_TRY(comm->broadcast(comm, &length, sizeof(length), 0, err));
    for (int64_t i = 0; i < length; i++)
        dt_strbuf_add_char(&first, session->mesh.world.rank == 0 ? mine.data[i] : ' ');
    DT_TRY(comm->broadcast(comm, first.data, (size_t)length, 0, err));
    differ = strcmp(mine.data, first.data) != 0 ? 1 : 0;
    if (differ > 0 && dt_json_parse(&theirs, first.data, first.length, "rank 0", NULL) == DT_OK &&
        !dt_fingerprint_differs(&words, theirs, session->fingerprint))
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

/* Training and validation items, and the vocabulary, which rows have none of. */
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

/* Ranks whose files differ would draw other samples, and take part in another number of
 * collectives: the others would wait for them. All of them fail. */
static dt_status compare_data(dt_train_session *session, dt_error *err)
{
    const dt_dataset *dataset = session->dataset;
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

/* Batches of sentence pairs, each with room for as many elements as the model takes. */
static dt_status open_parts(dt_train_session *session, dt_error *err)
{
    session->parts = calloc((size_t)session->replicas, sizeof(*session->parts));
    if (session->parts == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for batches");
    for (int64_t r = 0; r < session->replicas; r++)
        for (int i = 0; i < DT_INPUTS_MAX; i++) {
            dt_tensor *input = &session->parts[r].inputs[i];
            size_t bytes = dt_tensor_bytes(&session->batch.inputs[i]);

            *input = session->batch.inputs[i];
            if (input->data != NULL)
                input->data = (char *)input->data + (size_t)r * (bytes / (size_t)session->replicas);
        }
    session->batch.parts = session->parts;
    return DT_OK;
}

static dt_status open_batch(dt_train_session *session, dt_error *err)
{
    const dt_model_config *config = &session->model->config;
    int64_t samples = config->batch * session->replicas;
    dt_input inputs[DT_INPUTS_MAX];
    int count = dt_architecture_find(config->kind)->inputs(inputs, config);

    session->batch = (dt_micro_batch){
        .samples = samples,
        .seed = (uint64_t)session->recipe->seed,
        .first_data_rank = (uint32_t)(session->mesh.data.rank * session->replicas),
    };
    for (int i = 0; i < count; i++) {
        dt_tensor *input = &session->batch.inputs[i];

        *input = dt_tensor_2d(NULL, inputs[i].dtype, samples, inputs[i].width);
        input->data = calloc(1, dt_tensor_bytes(input));
        if (input->data == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the %s of a batch of %lld samples",
                           inputs[i].name, (long long)samples);
    }
    return dt_dataset_has_pairs(session->dataset) ? open_parts(session, err) : DT_OK;
}

static dt_status open_strategy(dt_train_session *session, dt_error *err)
{
    dt_strategy_state *state = &session->state;

    state->strategy = dt_strategy_find((int)session->recipe->strategy.kind);
    if (state->strategy == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "this strategy is not there yet");
    state->model = session->model;
    state->mesh = session->mesh;
    state->comm = &session->comm;
    state->events = session->events;
    state->options = dt_config_strategy(session->recipe, session->replicas);
    state->options.loads = session->plan->resume_from[0] != '\0' || session->weights != NULL;
    return state->strategy->setup(state, (uint64_t)session->recipe->seed, err);
}

/* The epoch that the last step began in: a stop during its evaluation left none in the checkpoint. */
static int64_t epoch_before(const dt_train_session *session, const dt_checkpoint_info *info)
{
    int64_t samples = dt_sampler_epoch_samples(&session->sampler);
    int64_t behind = info->step_samples - info->sample;

    return behind > 0 ? info->epoch - 1 - (behind - 1) / samples : info->epoch;
}

static dt_status resume(dt_train_session *session, dt_checkpoint *checkpoint, dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_load(checkpoint, &session->state, err));
    if (!session->new_data)
        DT_TRY(dt_sampler_seek(&session->sampler, info->epoch, info->sample, err));
    session->step = info->step;
    session->loss = info->loss;
    session->valid_loss = info->valid_loss;
    session->valid_step = isnan(info->valid_loss) ? -1 : info->step;
    session->epoch_valid = session->sampler.epoch;
    if (!session->new_data && session->valid_step < 0 && info->epoch > 0)
        session->epoch_valid = epoch_before(session, info);
    session->best.loss = info->best_loss;
    if (session->new_data || dt_fingerprint_validation_differs(info->data, session->fingerprint)) {
        dt_log_info("the validation data are others: the best loss begins anew");
        session->best.loss = NAN;
    }
    if (session->scaler.on && info->loss_scale > 0) {
        session->scaler.scale = info->loss_scale;
        session->scaler.clean_steps = info->clean_steps;
        session->scaler.skipped_steps = info->skipped_steps;
    }
out:
    return st;
}

/* A run that continues has its own: only a fresh start reads what it was launched from. */
static dt_status open_weights(dt_train_session *session, dt_error *err)
{
    const dt_plan *plan = session->plan;

    if (plan->resume_from[0] != '\0')
        return DT_OK;
    if (plan->weights.kind == DT_WEIGHTS_NONE)
        return plan->recipe.model.from[0] == '\0'
                   ? DT_OK
                   : DT_FAIL(err, DT_ERR_CORRUPT, "the plan lacks the files of '%s'",
                             plan->recipe.model.from);
    return dt_weights_open(&session->weights, &plan->weights, err);
}

static dt_status load_weights(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (session->weights == NULL)
        return DT_OK;
    DT_TRY(dt_weights_load(session->weights, &session->state, err));
    if (session->mesh.world.rank == 0)
        dt_log_info("the parameters are those of '%s'", session->recipe->model.from);
out:
    dt_weights_close(session->weights);
    session->weights = NULL;
    return st;
}

/* While it gets ready a rank ends by itself: whoever stops a run tells all of them. */
static dt_status heed_stop(dt_error *err)
{
    return dt_stop_asked() ? DT_FAIL(err, DT_ERR_TIMEOUT, "asked to stop before the first step")
                           : DT_OK;
}

/* Also where a peer has heeded it sooner. */
static bool is_stop(dt_status st)
{
    return (st == DT_ERR_TIMEOUT || st == DT_ERR_COMM || st == DT_ERR_PEER) && dt_stop_asked();
}

/* What did not fit, beside the message of the part that noticed. */
static void add_memory_table(const dt_train_session *session, dt_error *err)
{
    const dt_tokenizer *tokenizer =
        session->dataset != NULL ? dt_dataset_tokenizer(session->dataset) : NULL;
    dt_memory_ranks ranks = dt_plan_memory_ranks(session->plan, session->mesh.world.rank);
    size_t used = strlen(err->message);
    dt_memory memory;
    dt_strbuf table;

    dt_strbuf_init(&table);
    dt_memory_estimate(&memory, session->recipe,
                       tokenizer != NULL ? dt_tokenizer_vocab(tokenizer) : 0, &ranks);
    dt_memory_table(&table, &memory, session->recipe);
    snprintf(err->message + used, sizeof(err->message) - used, "\n%s", table.data);
    dt_strbuf_release(&table);
}

/* The recipe may be of a newer build, whose strategies know more. */
static dt_status place_rank(dt_train_session *session, int64_t rank, dt_error *err)
{
    int64_t tensor = session->recipe->tensor;

    if (tensor != 1)
        return DT_FAIL(
            err, DT_ERR_UNSUPPORTED,
            "'tensor' is %lld, and this dtrun-engine has no strategy that divides layers",
            (long long)tensor);
    session->mesh = dt_mesh_of(rank, session->plan->world_size / tensor, tensor);
    return DT_OK;
}

dt_status dt_train_session_open(dt_train_session *out, const dt_plan *plan, int64_t rank,
                                dt_events *events, dt_error *err)
{
    dt_checkpoint *checkpoint = NULL;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->plan = plan;
    out->resolved = plan->recipe;
    out->recipe = &out->resolved;
    out->events = events;
    out->replicas = plan->ranks[rank].replicas;
    out->loss = out->valid_loss = NAN;
    out->best = (dt_best){NAN, NAN};
    out->valid_step = -1;
    out->compared_step = -1;
    out->start_seconds = dt_clock_monotonic_seconds();
    dt_scaler_init(&out->scaler, out->recipe);

    DT_TRY(place_rank(out, rank, err));
    DT_TRY(
        dt_faults_read(&out->faults, plan->attempt == 1 ? getenv("DTRUN_FAULT") : NULL, rank, err));
    if (plan->resume_from[0] != '\0')
        DT_TRY(dt_checkpoint_open(&checkpoint, plan->resume_from, err));
    if (checkpoint != NULL)
        DT_TRY(dt_checkpoint_fits(checkpoint, out->recipe, plan->new_model, err));
    DT_TRY(open_weights(out, err));
    DT_TRY(open_device(out, err));
    DT_TRY(open_data(out, checkpoint != NULL ? dt_checkpoint_get_info(checkpoint) : NULL, err));
    DT_TRY(heed_stop(err));
    DT_TRY(open_model(out, err));
    DT_TRY(open_batch(out, err));
    DT_TRY(heed_stop(err));
    DT_TRY(dt_comm_open(&out->comm, events, "main", out->mesh.world, DT_COMM_TIMEOUT_SECONDS, err));
    DT_TRY(compare_data(out, err));
    DT_TRY(open_strategy(out, err));
    if (checkpoint != NULL)
        DT_TRY(resume(out, checkpoint, err));
    DT_TRY(load_weights(out, err));
    out->epoch_saved = out->sampler.epoch;
    DT_TRY(dt_saving_open(out, err));
out:
    out->stopped = is_stop(st);
    if (st == DT_ERR_NOMEM)
        add_memory_table(out, err);
    dt_checkpoint_close(checkpoint);
    return st;
}

void dt_train_session_close(dt_train_session *session)
{
    dt_saving_close(session);
    if (session->state.strategy != NULL)
        session->state.strategy->teardown(&session->state);
    dt_comm_close(&session->comm);
    dt_weights_close(session->weights);
    for (int i = 0; i < DT_INPUTS_MAX; i++)
        free(session->batch.inputs[i].data);
    free(session->parts);
    dt_model_close(session->model);
    dt_sampler_release(&session->sampler);
    dt_dataset_close(session->dataset);
    json_decref(session->fingerprint);
    dt_nvml_close(session->nvml);
    dt_device_close(&session->device);
    memset(session, 0, sizeof(*session));
}
