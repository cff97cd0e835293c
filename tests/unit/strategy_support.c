#include "tests/unit/strategy_support.h"

#include <string.h>

/* oneDNN, which dp's threads share, is not instrumented for the thread sanitizer: its locks and
 * reference counts are invisible to it. */
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libdnnl.so\n";
}
#endif

#define VOCAB        11
#define MAX_REPLICAS 4

dt_strategy_options default_options(void)
{
    return (dt_strategy_options){.bucket_mb = 25,
                                 .first_bucket_mb = 1,
                                 .shard = DT_SHARD_FULL,
                                 .reshard_after_forward = true,
                                 .reduce_each_micro_step = true,
                                 .replicas = 1};
}

dt_status open_trainee(trainee *out, const dt_strategy *strategy,
                       const dt_strategy_options *options, dt_dtype dtype, dt_events *events,
                       int64_t rank, int64_t world_size, dt_error *err)
{
    dt_mesh mesh = strategy == &dt_strategy_fsdp ? dt_mesh_of(rank, 1, world_size, 1)
                                                 : dt_mesh_of(rank, world_size, 1, 1);

    return open_trainee_on(out, strategy, options, dtype, events, &mesh, err);
}

dt_model_config trainee_config(dt_dtype dtype)
{
    return (dt_model_config){.decoder.layers = LAYERS,
                             .decoder.heads = 2,
                             .decoder.embed = 32,
                             .decoder.vocab = VOCAB,
                             .decoder.vocab_padded = 128,
                             .decoder.context = TOKENS,
                             .batch = SEQUENCES,
                             .tokens = TOKENS,
                             .dtype = dtype};
}

dt_status open_trainee_on(trainee *out, const dt_strategy *strategy,
                          const dt_strategy_options *options, dt_dtype dtype, dt_events *events,
                          const dt_mesh *mesh, dt_error *err)
{
    dt_model_config config = trainee_config(dtype);

    return open_trainee_of(out, strategy, options, &config, events, mesh, err);
}

dt_status open_trainee_of(trainee *out, const dt_strategy *strategy,
                          const dt_strategy_options *options, const dt_model_config *config,
                          dt_events *events, const dt_mesh *mesh, dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_device_open_cpu(&out->device, 1, err));
    DT_TRY(dt_model_open(&out->model, config, &out->device, err));
    DT_TRY(dt_comm_open(&out->comm, events, "main", mesh->world, 100, err));
    out->state.strategy = strategy;
    out->state.model = out->model;
    out->state.mesh = *mesh;
    out->state.comm = &out->comm;
    out->state.events = events;
    out->state.options = *options;
    DT_TRY(strategy->setup(&out->state, 7, err));
out:
    return st;
}

void close_trainee(trainee *t)
{
    if (t->state.strategy != NULL) {
        t->state.strategy->teardown(&t->state);
        t->state.strategy->teardown(&t->state); /* a second call has no effect */
    }
    dt_comm_close(&t->comm);
    dt_model_close(t->model);
    dt_device_close(&t->device);
}

dt_status train_step_with(trainee *t, int64_t micro_steps, dt_optimizer_args args, double *loss,
                          dt_error *err)
{
    const dt_strategy *strategy = t->state.strategy;
    int64_t sequences = SEQUENCES * t->state.options.replicas;
    int32_t inputs[MAX_REPLICAS * SEQUENCES * TOKENS], targets[MAX_REPLICAS * SEQUENCES * TOKENS];
    double scale = 1.0 / (double)(micro_steps * t->comm.world_size * sequences * TOKENS), norm, sum;
    dt_status st = DT_OK;

    *loss = 0;
    DT_TRY(strategy->step_begin(&t->state, micro_steps, err));
    for (int64_t micro = 0; micro < micro_steps; micro++) {
        dt_micro_batch batch = {.inputs = {dt_tensor_2d(inputs, DT_I32, sequences, TOKENS),
                                           dt_tensor_2d(targets, DT_I32, sequences, TOKENS)},
                                .samples = sequences};

        for (int64_t i = 0; i < sequences * TOKENS; i++) {
            inputs[i] = (int32_t)((i + 3 * t->comm.rank + 5 * micro) % VOCAB);
            targets[i] = (inputs[i] + 1) % VOCAB;
        }
        DT_TRY(strategy->forward_backward(&t->state, &batch, scale, &sum, err));
        *loss += sum * scale;
    }
    DT_TRY(strategy->grads_finish(&t->state, err));
    DT_TRY(strategy->grad_norm(&t->state, &norm, err));
    if (!(norm > 0 && norm < 1e3))
        DT_THROW(err, DT_ERR_CORRUPT, "a gradient norm of %g", norm);
    args.step = ++t->steps;
    DT_TRY(strategy->update(&t->state, &args, err));
    DT_TRY(t->comm.all_reduce_f64(&t->comm, loss, 1, err));
out:
    return st;
}

dt_status train_step(trainee *t, int64_t micro_steps, double *loss, dt_error *err)
{
    dt_optimizer_args args = {.options = t->state.options.optimizer, .lr = 1e-2, .grad_scale = 1};

    args.options.beta1 = 0.9;
    args.options.beta2 = 0.99;
    args.options.eps = 1e-8;
    args.options.momentum = 0.9;
    return train_step_with(t, micro_steps, args, loss, err);
}

static void copy_floats(float *to, const float *from, int64_t elems)
{
    if (to != NULL)
        memcpy(to, from, (size_t)elems * sizeof(*to));
}

dt_status hand_over(trainee *a, trainee *b, dt_error *err)
{
    const dt_state_chunk *from, *to;
    int count, to_count;
    dt_status st = DT_OK;

    DT_TRY(a->state.strategy->export_state(&a->state, &from, &count, err));
    DT_TRY(b->state.strategy->import_state(&b->state, &to, &to_count, err));
    if (count != to_count)
        DT_THROW(err, DT_ERR_CORRUPT, "%d chunks are exported, %d imported", count, to_count);
    for (int i = 0; i < count; i++) {
        copy_floats(to[i].value, from[i].value, from[i].slice.elems);
        for (int s = 0; s < DT_OPTIMIZER_STATES; s++)
            copy_floats(to[i].state[s], from[i].state[s], from[i].slice.elems);
    }
    DT_TRY(b->state.strategy->import_finish(&b->state, err));
    b->steps = a->steps;
out:
    return st;
}

int64_t trainee_elems(const trainee *t)
{
    int64_t elems = 0;

    for (int unit = 0; unit < t->model->unit_count; unit++)
        elems += t->model->units[unit].elems;
    return elems;
}

dt_status set_trainee_base(trainee *t, dt_error *err)
{
    const dt_strategy *strategy = t->state.strategy;
    const dt_state_chunk *chunks;
    int count;
    dt_status st = DT_OK;

    DT_TRY(strategy->import_state(&t->state, &chunks, &count, err));
    for (int i = 0; i < count; i++) {
        const dt_param *param = &t->model->params[chunks[i].param];
        float values[100];

        if (!param->in_base)
            continue;
        if (chunks[i].value != NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "a copy of '%s' on the host", param->name);
        for (int64_t at = 0; at < chunks[i].slice.elems; at += 100) {
            int64_t left = chunks[i].slice.elems - at, elems = left < 100 ? left : 100;

            /* a slice of a whole parameter, since no ranks divide layers here */
            dt_model_init_range(values, t->model, chunks[i].param, chunks[i].slice.start_elems + at,
                                elems, 5);
            DT_TRY(strategy->import_base(&t->state, &chunks[i], at, values, elems, err));
        }
    }
    DT_TRY(strategy->import_finish(&t->state, err));
out:
    return st;
}
