/* kind: declares a kind of model as a struct of functions, and what all kinds share.
 *
 * To add a kind, see docs/adding-a-model.md. Each kind is a folder next to this file with the same names:
 *   model_int.h   what its files share, with a drawing of the pass
 *   block.c       a block, forward and backward
 *   kind.c        which activations a pass keeps and where, both ends of a pass, and the struct
 * decoder/ has the passes of all kinds that predict the next token of a text.
 * Threads    one per model
 */
#ifndef DT_ENGINE_MODEL_KIND_H
#define DT_ENGINE_MODEL_KIND_H

#include "engine/model/model.h"
#include "engine/ops/ops.h"
#include "engine/philox.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_model_kind;
struct dt_decoder_parts; /* declared in decoder/decoder.h */

typedef struct dt_model_passes {
    /* MUST: exact bytes of the largest pass that the config allows */
    size_t (*activation_bytes)(const struct dt_model_kind *kind, const dt_model_config *config);
    /* MUST: allocates the activations and sets model->state; the parameter table is already
     * complete */
    dt_status (*open)(dt_model *model, dt_error *err);
    /* MUST: release everything; accepts a partly opened model */
    void (*close)(dt_model *model);
    /* MUST: dt_model_pass, dt_model_loss, dt_model_evaluate. Batches differ in size, up to the
     * config's: every pass lays out its activations again */
    dt_status (*pass)(dt_model *model, const dt_batch *batch, const double *loss_scale,
                      dt_error *err);
    dt_status (*loss)(dt_model *model, const dt_batch *batch, double *loss_sum, dt_error *err);
    dt_status (*evaluate)(dt_model *model, const dt_batch *batch, double *loss_sum, double *counted,
                          dt_error *err);
    /* MAY; both or none: dt_model_classes, dt_model_count_classes */
    int64_t (*classes)(const dt_model_config *config);
    dt_status (*count_classes)(dt_model *model, int64_t *counts, dt_error *err);
    /* MAY: implements dt_model_logits */
    dt_status (*logits)(dt_model *model, const dt_batch *batch, int64_t last, float *logits,
                        dt_error *err);
    /* MAY; all or none, together with logits: generate text. Implement dt_model_text_of,
     * dt_model_extend and the functions declared after it */
    dt_model_text (*text)(const dt_model *model);
    dt_status (*extend)(dt_model *model, int64_t sequence, const dt_tensor *tokens, float *logits,
                        dt_error *err);
    dt_status (*extend_each)(dt_model *model, const dt_tensor *tokens, float *logits,
                             dt_error *err);
    /* MUST with extend or translate */
    dt_status (*replace)(dt_model *model, int64_t to, int64_t from, dt_error *err);
    int64_t (*extended)(const dt_model *model, int64_t sequence);
    /* MAY; both or none, together with replace: dt_model_translate, dt_model_translate_next */
    dt_status (*translate)(dt_model *model, int64_t sentence, const dt_tensor *source,
                           dt_error *err);
    dt_status (*translate_next)(dt_model *model, const dt_tensor *previous, const int32_t *parents,
                                float *logits, dt_error *err);
} dt_model_passes;

typedef struct dt_model_kind {
    const dt_model_passes *passes;
    const struct dt_decoder_parts *decoder; /* MUST if passes is dt_decoder_passes */
} dt_model_kind;

/* Build params and units from the config, in the model's arena (params.c). */
void dt_model_make_table(dt_model *model);

/* --- helpers for the kinds */

/* Call the strategy's hooks, in the order that model.h prescribes. */
dt_status dt_model_before_unit(dt_model *model, int unit, bool backward, dt_error *err);
dt_status dt_model_after_unit(dt_model *model, int unit, bool backward, dt_error *err);
dt_status dt_model_grads_ready(dt_model *model, int unit, dt_error *err);

/* Block `layer`'s part of a pass; its unit, layer + 1, is in use meanwhile. `batch` is passed on
 * from the functions below. */
typedef dt_status (*dt_block_pass)(dt_model *model, int layer, const dt_batch *batch,
                                   dt_error *err);
/* Run blocks first .. end - 1 with their hooks. Backward runs end - 1 .. first, and signals that
 * their gradients are ready. */
dt_status dt_model_blocks_forward(dt_model *model, int first, int end, dt_block_pass block,
                                  const dt_batch *batch, dt_error *err);
dt_status dt_model_blocks_backward(dt_model *model, int first, int end, dt_block_pass block,
                                   const dt_batch *batch, dt_error *err);

/* The key of a layer's dropout mask in a pass over the batch. */
dt_philox_key dt_model_dropout_key(const dt_batch *batch, int layer, dt_philox_op op);

/* Views of parameter `which` of a unit, in the order of its table; valid between before_unit and
 * after_unit. The gradient of a frozen parameter has no data. */
dt_tensor dt_model_weight(const dt_model *model, int unit, int which);
dt_tensor dt_model_grad(const dt_model *model, int unit, int which);

#ifdef __cplusplus
}
#endif
#endif
