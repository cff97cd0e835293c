/* session: opens and closes a session, from the device to the checkpoint to resume from. */
#include "engine/train/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/channel/events.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/config.h"
#include "engine/data/fingerprint.h"
#include "engine/device/device_cuda.h"
#include "engine/device/nvml.h"
#include "engine/train/train_int.h"
#include "engine/weights/weights.h"
#include "recipes/cost/memory.h"

/* --- the initial state, from a checkpoint or from external weights */

/* The epoch in which the last step began. The checkpoint does not store it if a stop interrupted
 * the evaluation of that step. */
static int64_t epoch_before(const dt_train_session *session, const dt_checkpoint_info *info)
{
    int64_t samples = dt_sampler_epoch_samples(&session->data.sampler);
    int64_t behind = info->step_samples - info->sample;

    return behind > 0 ? info->epoch - 1 - (behind - 1) / samples : info->epoch;
}

/* Restore the checkpoint's parameters, moments, position in the data and best score. */
static dt_status session_resume(dt_train_session *session, dt_checkpoint *checkpoint, dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_load(checkpoint, &session->state, err));
    if (!session->data.replaces_resumed)
        DT_TRY(dt_sampler_seek(&session->data.sampler, info->epoch, info->sample, err));
    session->step = info->step;
    session->loss = info->loss;
    session->evaluation.loss = info->valid_loss;
    session->evaluation.step = isnan(info->valid_loss) ? -1 : info->step;
    session->evaluation.epoch = session->data.sampler.epoch;
    if (!session->data.replaces_resumed && session->evaluation.step < 0 && info->epoch > 0)
        session->evaluation.epoch = epoch_before(session, info);
    session->evaluation.bleu = info->valid_bleu;
    session->evaluation.missing = info->missing;
    session->saving.best.score = info->best_score;
    if (info->best_by != session->recipe->checkpoint.best_by) {
        dt_log_info("checkpoint.best_by has changed since the checkpoint; the best value is reset");
        session->saving.best.score = NAN;
    }
    if (session->data.replaces_resumed ||
        dt_fingerprint_validation_differs(info->data, session->data.fingerprint)) {
        dt_log_info("the validation data differ from the checkpoint's; the best loss is reset");
        session->saving.best.score = NAN;
    }
    if (session->scaler.on && info->loss_scale > 0) {
        session->scaler.scale = info->loss_scale;
        session->scaler.clean_steps = info->clean_steps;
        session->scaler.skipped_steps = info->skipped_steps;
    }
out:
    return st;
}

static bool has_adapter(const dt_train_session *session)
{
    return session->recipe->lora.rank > 0;
}

/* Checks the base of an adapter, or takes its digests for the checkpoints. resumed: info of the checkpoint. */
static dt_status session_know_base(dt_train_session *session, const dt_checkpoint_info *resumed,
                                   dt_error *err)
{
    const dt_weights_files *files = &session->plan->weights;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_base_make(&session->base, files, err));
    if (resumed != NULL)
        DT_TRY(dt_weights_base_check(files, resumed->base, session->plan->resume_from, err));
out:
    return st;
}

/* Open the weights to start from. A resumed run loads its own checkpoint, but for the base of an adapter. */
static dt_status session_open_weights(dt_train_session *session, dt_error *err)
{
    const dt_plan *plan = session->plan;

    if (plan->resume_from[0] != '\0' && !has_adapter(session))
        return DT_OK;
    if (plan->weights.kind == DT_WEIGHTS_NONE)
        return plan->recipe.model.from[0] == '\0'
                   ? DT_OK
                   : DT_FAIL(err, DT_ERR_CORRUPT, "the plan does not list the files of '%s'",
                             plan->recipe.model.from);
    return dt_weights_open(&session->weights, &plan->weights, err);
}

/* Turns the failure of any rank to read damaged weights into an error of the recipe, on all ranks: a restart would read
 * the same file. The ranks have agreed before that one of them failed. */
static dt_status refuse_restarts(dt_train_session *session, dt_status st, dt_error *err)
{
    dt_comm *comm = session->state.comm; /* as in dt_weights_load */
    double damaged = st == DT_ERR_CORRUPT;

    if (comm->all_reduce_f64(comm, &damaged, 1, NULL) != DT_OK || damaged == 0)
        return st;
    if (err != NULL)
        err->code = DT_ERR_RECIPE;
    return DT_ERR_RECIPE;
}

/* Load the adapter of a folder of PEFT. */
static dt_status load_adapter(dt_train_session *session, dt_error *err)
{
    dt_weights *adapter = NULL;
    dt_weights_files files;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    st = dt_weights_open_adapter(&adapter, &files, session->recipe, &arena, err);
    st = dt_checkpoint_agree(session->state.comm, st, "open the adapter", err);
    if (st == DT_OK)
        st = dt_weights_load(adapter, &session->state, err);
    if (st == DT_ERR_CORRUPT || st == DT_ERR_IO)
        st = refuse_restarts(session, st, err);
    dt_weights_close(adapter);
    dt_arena_release(&arena);
    return st;
}

/* Load the parameters from session->weights and close it; no effect if there are none. */
static dt_status session_load_weights(dt_train_session *session, dt_error *err)
{
    dt_status st = DT_OK;

    if (session->weights == NULL)
        return DT_OK;
    st = dt_weights_load(session->weights, &session->state, err);
    if (st == DT_ERR_CORRUPT || st == DT_ERR_IO)
        st = refuse_restarts(session, st, err);
    DT_TRY(st);
    if (session->mesh.world.rank == 0)
        dt_log_info("parameters loaded from '%s'", session->recipe->model.from);
    if (session->plan->resume_from[0] == '\0' && session->recipe->lora.from[0] != '\0')
        DT_TRY(load_adapter(session, err));
out:
    dt_weights_close(session->weights);
    session->weights = NULL;
    return st;
}

/* --- opening and closing */

/* Open the metrics of the GPU. Failure is not fatal: a run trains without them. */
static void watch_card(dt_train_session *session)
{
    dt_error problem = DT_ERROR_INIT;
    const dt_cuda_entry *entry;
    dt_cuda_card card;

    if (dt_cuda_load(&entry, &problem) == DT_OK &&
        entry->card(&card, session->device.index, &problem) == DT_OK &&
        dt_nvml_open(&session->machine.nvml, card.pci, &problem) == DT_OK)
        return;
    dt_log_warn("cannot read metrics of the GPU: %s", problem.message);
}

static dt_status open_device(dt_train_session *session, dt_error *err)
{
    const dt_plan_rank *place = &session->plan->ranks[session->mesh.world.rank];
    dt_status st = DT_OK;

    DT_TRY(dt_device_open(&session->device, place->device, (int)place->threads,
                          session->recipe->precision.tf32, err));
    dt_timed_ops_install(&session->timed_ops, &session->device);
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

static dt_status open_model(dt_train_session *session, dt_error *err)
{
    int64_t vocab = dt_tokenizer_vocab(dt_dataset_tokenizer(session->data.dataset));
    int64_t free_bytes = dt_measure_free_memory(&session->device);
    const dt_plan *plan = session->plan;
    dt_memory_ranks ranks = dt_plan_memory_ranks(plan, session->mesh.world.rank);
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(dt_config_train(&config, session->recipe, vocab, err));
    config.tensor.rank = session->mesh.axis[DT_AXIS_TENSOR].rank;
    /* Check this rank alone: other ranks on the node may have allocated their memory already. */
    if (free_bytes > 0)
        DT_TRY(dt_memory_check(session->recipe, vocab, &ranks, 1, free_bytes,
                               plan->node_names[plan->ranks[session->mesh.world.rank].node], err));
    DT_TRY(dt_model_open(&session->model, &config, &session->device, err));
    DT_TRY(dt_measure_matmul(&session->machine.matmul_flops, session->model, err));
    DT_TRY(dt_measure_memory(&session->machine.memory_bytes_per_second, session->model, err));
out:
    return st;
}

/* Allocate batches of sentence pairs, each large enough for the largest batch that the model
 * accepts. */
static dt_status open_pair_batches(dt_train_session *session, dt_error *err)
{
    session->pair_batches = calloc((size_t)session->replicas, sizeof(*session->pair_batches));
    if (session->pair_batches == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for batches");
    for (int64_t r = 0; r < session->replicas; r++)
        for (int i = 0; i < DT_INPUTS_MAX; i++) {
            dt_tensor *input = &session->pair_batches[r].inputs[i];
            size_t bytes = dt_tensor_bytes(&session->batch.inputs[i]);

            *input = session->batch.inputs[i];
            if (input->data != NULL)
                input->data = (char *)input->data + (size_t)r * (bytes / (size_t)session->replicas);
        }
    session->batch.parts = session->pair_batches;
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
    return dt_dataset_has_pairs(session->data.dataset) ? open_pair_batches(session, err) : DT_OK;
}

static dt_status open_strategy(dt_train_session *session, dt_error *err)
{
    dt_strategy_state *state = &session->state;

    state->strategy = dt_strategy_find((int)session->recipe->strategy.kind);
    if (state->strategy == NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "this dtrun-engine does not have the recipe's strategy: use the dtrun that "
                       "wrote the plan");
    state->model = session->model;
    state->mesh = session->mesh;
    state->comm = &session->comm;
    state->events = session->events;
    state->options = dt_config_strategy(session->recipe, session->replicas);
    state->options.graphs = state->options.graphs &&
                            session->model->config.decoder.beta == 0; /* the host weighs pairs */
    state->options.loads = session->plan->resume_from[0] != '\0' ||
                           (session->weights != NULL && !has_adapter(session));
    return state->strategy->setup(state, (uint64_t)session->recipe->seed, err);
}

/* Before the first step a rank can stop without coordination: a stop request reaches every rank. */
static dt_status heed_stop(dt_error *err)
{
    return dt_stop_asked()
               ? DT_FAIL(err, DT_ERR_TIMEOUT, "a stop was requested before the first step")
               : DT_OK;
}

/* True also if the call failed because a peer obeyed the stop request first. */
static bool is_stop(dt_status st)
{
    return (st == DT_ERR_TIMEOUT || st == DT_ERR_COMM || st == DT_ERR_PEER) && dt_stop_asked();
}

/* Append the memory table to an out-of-memory message. */
static void add_memory_table(const dt_train_session *session, dt_error *err)
{
    const dt_tokenizer *tokenizer =
        session->data.dataset != NULL ? dt_dataset_tokenizer(session->data.dataset) : NULL;
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
    out->loss = out->evaluation.loss = out->evaluation.bleu = NAN;
    out->saving.best = (dt_best){NAN, NAN};
    out->evaluation.step = out->evaluation.tasks_step = out->evaluation.samples_step = -1;
    out->compared_step = -1;
    out->start_seconds = dt_clock_monotonic_seconds();
    dt_scaler_init(&out->scaler, out->recipe);

    DT_TRY(dt_session_place(out, rank, err));
    DT_TRY(dt_faults_install(out, err));
    if (plan->resume_from[0] != '\0')
        DT_TRY(dt_checkpoint_open(&checkpoint, plan->resume_from, err));
    if (checkpoint != NULL)
        DT_TRY(dt_checkpoint_fits(checkpoint, out->recipe, plan->new_model, err));
    DT_TRY(session_open_weights(out, err));
    if (out->weights != NULL && has_adapter(out))
        DT_TRY(session_know_base(
            out, checkpoint != NULL ? dt_checkpoint_get_info(checkpoint) : NULL, err));
    DT_TRY(open_device(out, err));
    DT_TRY(dt_session_open_data(out, checkpoint != NULL ? dt_checkpoint_get_info(checkpoint) : NULL,
                                err));
    DT_TRY(heed_stop(err));
    DT_TRY(open_model(out, err));
    DT_TRY(open_batch(out, err));
    DT_TRY(heed_stop(err));
    DT_TRY(dt_comm_open(&out->comm, events, "main", out->mesh.world, DT_COMM_TIMEOUT_SECONDS, err));
    DT_TRY(dt_session_compare_data(out, err));
    DT_TRY(dt_session_open_layers(out, err));
    DT_TRY(open_strategy(out, err));
    DT_TRY(dt_valid_bleu_open(out, err));
    DT_TRY(dt_confusion_open(out, err));
    DT_TRY(dt_train_tasks_open(out, err));
    DT_TRY(dt_train_samples_open(out, err));
    DT_TRY(dt_side_model_open(&out->evaluation.side, out, err));
    DT_TRY(dt_train_tasks_use_model(out, err));
    if (checkpoint != NULL)
        DT_TRY(session_resume(out, checkpoint, err));
    DT_TRY(session_load_weights(out, err));
    DT_TRY(dt_reference_compute(out, err));
    out->saving.epoch = out->data.sampler.epoch;
    DT_TRY(dt_saving_open(out, err));
    DT_TRY(dt_recording_open(out, err));
    DT_TRY(dt_flip_open(out, err));
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
    dt_flip_close(session);
    dt_record_close(session->record);
    dt_valid_bleu_close(session->evaluation.translations);
    dt_train_tasks_close(session->evaluation.tasks);
    dt_confusion_close(session->evaluation.confusion);
    dt_train_samples_close(session->evaluation.samples);
    dt_side_model_close(&session->evaluation.side);
    if (session->state.strategy != NULL)
        session->state.strategy->teardown(&session->state);
    dt_layer_comm_close(&session->sharers);
    dt_layer_comm_close(&session->layer);
    dt_comm_close(&session->comm);
    dt_weights_close(session->weights);
    for (int i = 0; i < DT_INPUTS_MAX; i++)
        free(session->batch.inputs[i].data);
    free(session->pair_batches);
    dt_model_close(session->model);
    dt_sampler_release(&session->data.sampler);
    dt_dataset_close(session->data.dataset);
    json_decref(session->data.fingerprint);
    json_decref(session->base);
    dt_nvml_close(session->machine.nvml);
    dt_device_close(&session->device);
    free(session->after_step_state);
    memset(session, 0, sizeof(*session));
}
