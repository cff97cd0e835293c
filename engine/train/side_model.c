/* side_model: a second model for inference with the weights of training. */
#include <stdlib.h>

#include "engine/config.h"
#include "engine/train/train_int.h"

void dt_side_model_need(dt_side_model *io, int64_t tokens)
{
    io->tokens = tokens > io->tokens ? tokens : io->tokens;
}

static void lay_out(void *self, dt_layout *layout)
{
    const dt_side_model *side = self;
    size_t bytes = dt_dtype_bytes(side->model->config.dtype);

    for (int unit = 0; side->weights != NULL && unit < side->model->unit_count; unit++) {
        const dt_unit *of = &side->model->units[unit];

        side->weights[unit] = dt_layout_take(layout, (size_t)of->elems * bytes);
        side->frozen[unit] = dt_layout_take(layout, (size_t)of->frozen_elems * bytes);
    }
}

dt_status dt_side_model_open(dt_side_model *io, dt_train_session *session, dt_error *err)
{
    int64_t vocab = dt_tokenizer_vocab(dt_dataset_tokenizer(session->data.dataset));
    dt_model_config config;
    dt_status st = DT_OK;

    if (io->tokens == 0)
        return DT_OK;
    DT_TRY(dt_config_inference(&config, session->recipe, vocab, err));
    config.dtype = session->model->config.dtype;
    config.tensor = session->model->config.tensor;
    config.incremental = true;
    config.sequences = 1;
    config.tokens = config.kept = io->tokens < config.tokens ? io->tokens : config.tokens;
    DT_TRY(dt_model_open(&io->model, &config, &session->device, err));
    DT_ASSERT(io->model->unit_count == session->model->unit_count);
    io->model->peers = session->model->peers;
    if (!session->state.keeps_weights) {
        io->weights = calloc((size_t)io->model->unit_count, sizeof(*io->weights));
        io->frozen = calloc((size_t)io->model->unit_count, sizeof(*io->frozen));
        if (io->weights == NULL || io->frozen == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of units");
        DT_TRY(dt_layout_open(&io->memory, &session->device, lay_out, io, err));
    }
out:
    if (st != DT_OK)
        dt_error_prefix(err, "the model of 'evaluate.tasks' and 'evaluate.samples'");
    return st;
}

void dt_side_model_close(dt_side_model *side)
{
    dt_device_arena_close(&side->memory);
    dt_model_close(side->model);
    free(side->weights);
    free(side->frozen);
    *side = (dt_side_model){0};
}

int64_t dt_side_model_bytes(const dt_side_model *side)
{
    return side->model == NULL
               ? 0
               : (int64_t)side->model->activation_bytes + (int64_t)side->memory.capacity_bytes;
}

/* --- the weights */

typedef struct taking {
    dt_side_model *side;
    dt_train_session *session;
} taking;

/* Copies `elems` values to a copy of the side model, if there is one. Returns where they are. */
static dt_status take_values(void **out, void *copy, void *from, int64_t elems,
                             dt_train_session *session, dt_error *err)
{
    dt_dtype dtype = session->model->config.dtype;
    dt_tensor to = dt_tensor_1d(copy, dtype, elems), source = dt_tensor_1d(from, dtype, elems);

    *out = copy != NULL ? copy : from;
    if (copy == NULL || elems == 0)
        return DT_OK;
    return session->device.ops->cast(&session->device, &to, &source, err);
}

/* Called while the weights of `unit` are in memory. */
static dt_status take_unit(void *self, int unit, dt_error *err)
{
    const taking *t = self;
    dt_side_model *side = t->side;
    const dt_unit *of = &side->model->units[unit];
    bool copies = side->weights != NULL;
    dt_status st = DT_OK;

    DT_TRY(take_values(&side->model->weights[unit], copies ? side->weights[unit] : NULL,
                       t->session->model->weights[unit], of->elems, t->session, err));
    DT_TRY(take_values(&side->model->frozen[unit], copies ? side->frozen[unit] : NULL,
                       t->session->model->frozen[unit], of->frozen_elems, t->session, err));
out:
    return st;
}

dt_status dt_side_model_take(dt_side_model *io, dt_train_session *session, dt_error *err)
{
    taking t = {io, session};

    return dt_model_visit_units(session->model, take_unit, &t, err);
}
