/* vocabulary: embeds tokens, makes tables of sinusoidal positions, and computes logits and losses. */
#include "engine/model/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"

dt_status dt_layer_embed(dt_model *model, dt_tensor *y, const dt_tensor *tokens,
                         const dt_tensor *words, const dt_tensor *positions, double scale,
                         int64_t vocab, const dt_tensor *terms, dt_error *err)
{
    dt_vocab_part part = dt_layer_vocab(model, words->dim[0], vocab);
    dt_tensor term = dt_layer_term(model, y, terms), none = {0};
    const dt_tensor *added = dt_layer_adds_once(model) ? positions : &none;
    dt_status st = DT_OK;

    DT_TRY(model->device->ops->embedding_forward(model->device, &term, tokens, words, added, scale,
                                                 model->peers != NULL ? &part : NULL, err));
    DT_TRY(dt_layer_sum(model, y, &term, err));
out:
    return st;
}

dt_status dt_layer_embed_backward(dt_model *model, dt_tensor *dwords, dt_tensor *dpositions,
                                  const dt_tensor *dy, const dt_tensor *tokens, double scale,
                                  int64_t vocab, dt_error *err)
{
    dt_vocab_part part = dt_layer_vocab(model, dwords->dim[0], vocab);

    if (dwords->data == NULL && dpositions->data == NULL)
        return DT_OK;
    return model->device->ops->embedding_backward(model->device, dwords, dpositions, dy, tokens,
                                                  scale, model->peers != NULL ? &part : NULL, err);
}

dt_vocab_part dt_layer_vocab(const dt_model *model, int64_t rows, int64_t vocab)
{
    dt_vocab_part part = {.first = rows * model->config.tensor.rank, .all = vocab};

    part.count = part.all - part.first;
    if (part.count > rows)
        part.count = rows;
    if (part.count < 0)
        part.count = 0;
    return part;
}

/* Sines in the first half, cosines in the second, as in tensor2tensor and fairseq; Vaswani et al.
 * 2017 interleave the two and divide by h, not h - 1. Frequency and angle are rounded to fp32
 * exactly where fairseq's SinusoidalPositionalEmbedding.get_embedding rounds them: at position 1000
 * the rounding changes the angle, so it is part of the definition. */
void dt_sinusoids_row(float *out, int64_t position, int64_t embed)
{
    int64_t half = embed / 2;
    float step = (float)-(log(10000.0) / (double)(half - 1));

    DT_ASSERT(half >= 2);
    for (int64_t i = 0; i < half; i++) {
        float frequency = (float)exp((double)((float)i * step));
        float angle = (float)position * frequency;

        out[i] = (float)sin((double)angle);
        out[half + i] = (float)cos((double)angle);
    }
    if (embed % 2 != 0)
        out[embed - 1] = 0;
}

/* Uses temporary device memory: the table is computed in fp32 and stored in the model's type. */
dt_status dt_sinusoids_fill(dt_device *device, dt_tensor *table, int64_t first, dt_error *err)
{
    int64_t rows = table->dim[0], embed = table->dim[1];
    size_t bytes = (size_t)(rows * embed) * sizeof(float);
    dt_tensor from;
    float *host = malloc(bytes);
    void *wide = NULL;
    dt_status st = DT_OK;

    if (!host)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of %lld positions", (long long)rows);
    for (int64_t t = 0; t < rows; t++)
        dt_sinusoids_row(host + t * embed, first + t, embed);
    DT_TRY(device->alloc(device, &wide, bytes, err));
    DT_TRY(device->copy_in(device, wide, host, bytes, err));
    from = dt_tensor_2d(wide, DT_F32, rows, embed);
    DT_TRY(device->ops->cast(device, table, &from, err));
    DT_TRY(device->synchronize(device, err));
out:
    if (wide)
        device->free(device, wide);
    free(host);
    return st;
}

/* Rows first .. first+count of a tensor, as (count, cols); of a 1-D tensor: elements. */
static dt_tensor slice(const dt_tensor *tensor, int64_t first, int64_t count)
{
    int64_t cols = tensor->ndim > 1 ? dt_tensor_cols(tensor) : 1;
    unsigned char *data = tensor->data;

    data += (size_t)(first * cols) * dt_dtype_bytes(tensor->dtype);
    if (tensor->ndim == 1)
        return dt_tensor_1d(data, tensor->dtype, count);
    return dt_tensor_2d(data, tensor->dtype, count, cols);
}

int64_t dt_token_head_chunk(int64_t *room, int64_t rows, size_t row_bytes, int64_t most_bytes)
{
    int64_t most = most_bytes / (int64_t)row_bytes, chunks;

    if (most < 1)
        most = 1;
    if (most > rows)
        most = rows;
    *room = most;
    chunks = (rows + most - 1) / most;
    return (rows + chunks - 1) / chunks;
}

static int64_t count_of(const dt_token_head *head, int64_t first, int64_t end)
{
    return end - first < head->chunk_rows ? end - first : head->chunk_rows;
}

/* Losses of a chunk, which starts at row `first`, from its logits, which become their gradient if `scale` is not
 * NULL. */
static dt_status lose(const dt_token_head *head, int64_t first, dt_tensor *losses,
                      dt_tensor *logits, const dt_tensor *target, const double *scale,
                      dt_error *err)
{
    const dt_ops *ops = head->model->device->ops;
    double smoothing = scale != NULL ? head->smoothing : 0;
    int64_t count = dt_tensor_rows(logits);
    const dt_tensor *weights = NULL;
    dt_tensor own, all, flat, part;
    dt_status st = DT_OK;

    if (head->weights != NULL) {
        flat = dt_tensor_1d(head->weights->data, DT_F32, dt_tensor_elems(head->weights));
        part = slice(&flat, first, count);
        weights = &part;
    }
    if (head->model->peers == NULL)
        return scale != NULL
                   ? ops->cross_entropy_backward(head->model->device, losses, logits, target,
                                                 weights, head->vocab, scale, smoothing, err)
                   : ops->cross_entropy_forward(head->model->device, losses, logits, target,
                                                weights, head->vocab, err);
    own = dt_tensor_2d(head->own.data, DT_F32, DT_VOCAB_NUMBERS, count);
    all = dt_tensor_3d(head->all.data, DT_F32, head->all.dim[0], DT_VOCAB_NUMBERS, count);
    DT_TRY(ops->cross_entropy_part(head->model->device, &own, logits, target, &head->part,
                                   smoothing, err));
    DT_TRY(head->model->peers->gather(head->model->peers->self, &all, &own, err));
    DT_TRY(ops->cross_entropy_join(head->model->device, losses, logits, &all, target, weights,
                                   &head->part, scale, smoothing, err));
out:
    return st;
}

/* Logits of rows x: their product with the weight, times the factor, capped. */
static dt_status logits_of(const dt_token_head *head, dt_tensor *logits, const dt_tensor *x,
                           dt_error *err)
{
    double factor = head->factor > 0 ? head->factor : 1;
    dt_status st = DT_OK;

    DT_TRY(dt_linear_forward(head->model, &head->linear, logits, x, err));
    if (factor != 1 || head->cap > 0)
        DT_TRY(head->model->device->ops->softcap_forward(head->model->device, logits, logits,
                                                         factor, head->cap, err));
out:
    return st;
}

/* A copy of capped logits, which their gradient overwrites; no data without a cap. */
static dt_status keep_capped(dt_tensor *kept, const dt_token_head *head, const dt_tensor *logits,
                             dt_error *err)
{
    *kept = *logits;
    kept->data = head->cap > 0 ? head->capped : NULL;
    if (kept->data == NULL)
        return DT_OK;
    return head->model->device->ops->cast(head->model->device, kept, logits, err);
}

/* Turns the gradient of the logits into that of the product. */
static dt_status logits_back(const dt_token_head *head, dt_tensor *dlogits, const dt_tensor *kept,
                             dt_error *err)
{
    double factor = head->factor > 0 ? head->factor : 1;

    if (factor == 1 && head->cap == 0)
        return DT_OK;
    return head->model->device->ops->softcap_backward(head->model->device, dlogits, dlogits, kept,
                                                      factor, head->cap, err);
}

dt_status dt_token_head_train(const dt_token_head *head, const dt_tensor *dx,
                              const dt_tensor *targets, const double *loss_scale, dt_error *err)
{
    dt_tensor all = dt_tensor_1d(targets->data, DT_I32, dt_tensor_elems(targets));
    int64_t rows = dt_tensor_rows(&head->x), count;
    dt_status st = DT_OK;

    for (int64_t first = 0; first < rows; first += count) {
        dt_tensor logits, losses, target, x, dpart, kept;

        count = count_of(head, first, rows);
        logits = dt_tensor_2d(head->logits, head->x.dtype, count, head->vocab_padded);
        losses = slice(&head->losses, first, count);
        target = slice(&all, first, count);
        x = slice(&head->x, first, count);
        dpart = slice(dx, first, count);
        DT_TRY(logits_of(head, &logits, &x, err));
        DT_TRY(keep_capped(&kept, head, &logits, err));
        DT_TRY(lose(head, first, &losses, &logits, &target, loss_scale, err));
        DT_TRY(logits_back(head, &logits, &kept, err));
        DT_TRY(dt_linear_backward(head->model, &head->linear, &dpart, &logits, &x, err));
    }
out:
    return st;
}

static dt_status head_losses(const dt_token_head *head, const dt_tensor *targets, dt_dtype dtype,
                             dt_error *err)
{
    dt_tensor all = dt_tensor_1d(targets->data, DT_I32, dt_tensor_elems(targets));
    int64_t rows = dt_tensor_rows(&head->x), count;
    dt_status st = DT_OK;

    for (int64_t first = 0; first < rows; first += count) {
        dt_tensor logits, losses, target, x;

        count = count_of(head, first, rows);
        logits = dt_tensor_2d(head->logits, dtype, count, head->vocab_padded);
        losses = slice(&head->losses, first, count);
        target = slice(&all, first, count);
        x = slice(&head->x, first, count);
        DT_TRY(logits_of(head, &logits, &x, err));
        DT_TRY(lose(head, first, &losses, &logits, &target, NULL, err));
    }
out:
    return st;
}

dt_status dt_token_head_losses(const dt_token_head *head, const dt_tensor *targets, dt_error *err)
{
    return head_losses(head, targets, head->x.dtype, err);
}

dt_status dt_token_head_evaluate(const dt_token_head *head, const dt_tensor *targets, dt_error *err)
{
    return head_losses(head, targets, DT_F32, err);
}

/* Copy a chunk's rows to the host without their padding: columns from `first` on. */
static dt_status copy_rows(const dt_token_head *head, const dt_tensor *chunk, int64_t first,
                           float *logits, dt_error *err)
{
    int64_t left = head->vocab - first, columns = chunk->dim[1] < left ? chunk->dim[1] : left;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < chunk->dim[0] && columns > 0; i++) {
        dt_tensor row = slice(chunk, i, 1);

        DT_TRY(head->model->device->copy_out(head->model->device, logits + i * head->vocab + first,
                                             row.data, (size_t)columns * sizeof(float), err));
    }
out:
    return st;
}

/* Copy a chunk's rows to the host, gathered from the ranks that divide the vocabulary. */
static dt_status copy_chunk(const dt_token_head *head, const dt_tensor *chunk, float *logits,
                            dt_error *err)
{
    int64_t rows = chunk->dim[0], columns = head->vocab_padded;
    dt_tensor all;
    dt_status st = DT_OK;

    if (head->model->peers == NULL)
        return copy_rows(head, chunk, 0, logits, err);
    DT_ASSERT(head->gathered.data != NULL && rows <= head->gathered.dim[1]);
    all = dt_tensor_3d(head->gathered.data, DT_F32, head->gathered.dim[0], rows, columns);
    DT_TRY(head->model->peers->gather(head->model->peers->self, &all, chunk, err));
    for (int64_t r = 0; r < all.dim[0]; r++) {
        dt_tensor part =
            dt_tensor_2d((float *)all.data + r * rows * columns, DT_F32, rows, columns);

        DT_TRY(copy_rows(head, &part, r * columns, logits, err));
    }
out:
    return st;
}

dt_status dt_token_head_sum(dt_device *device, const dt_tensor *losses, const dt_tensor *targets,
                            const dt_tensor *weights, int32_t *on_host, double *loss_sum,
                            double *counted, dt_error *err)
{
    const dt_tensor *from = weights != NULL ? weights : targets;
    int64_t rows = dt_tensor_elems(targets);
    dt_status st = DT_OK;
    float weight;

    DT_TRY(device->ops->sum(device, loss_sum, losses, err));
    DT_TRY(device->copy_out(device, on_host, from->data, (size_t)rows * sizeof(*on_host), err));
    *counted = 0;
    for (int64_t i = 0; i < rows; i++) {
        memcpy(&weight, &on_host[i], sizeof(weight)); /* 0 where no target counts */
        *counted += weights != NULL ? (double)weight : on_host[i] >= 0;
    }
out:
    return st;
}

dt_status dt_token_head_logits(const dt_token_head *head, int64_t sequences, int64_t last,
                               float *logits, dt_error *err)
{
    int64_t tokens = dt_tensor_rows(&head->x) / sequences, count;
    dt_status st = DT_OK;

    if (tokens == last) { /* all positions: treat them as one sequence */
        tokens = last = tokens * sequences;
        sequences = 1;
    }
    for (int64_t b = 0; b < sequences; b++) {
        int64_t end = (b + 1) * tokens;

        for (int64_t first = end - last; first < end; first += count) {
            dt_tensor chunk, x;

            count = count_of(head, first, end);
            chunk = dt_tensor_2d(head->logits, DT_F32, count, head->vocab_padded);
            x = slice(&head->x, first, count);
            DT_TRY(logits_of(head, &chunk, &x, err));
            DT_TRY(copy_chunk(head, &chunk, logits, err));
            logits += count * head->vocab;
        }
    }
out:
    return st;
}
