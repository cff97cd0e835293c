/* weights: reads the initial parameters of a model from published files or from a checkpoint.
 *
 * Files      recipes/foreign/weights.h finds them; recipes/architecture/published.h has the names and layouts of
 *            Hugging Face models, bin_published.c next to it those of .bin files. F32, BF16
 *            and F16 are converted to fp32
 * Reading    each rank reads the slices that it holds, by pread; transposed matrices are transposed
 *            and permuted rows reordered while reading. Optimizer moments stay zero
 * Padding    rows after the vocabulary are zero: no target and no softmax includes them, so their
 *            gradient is zero too, and they are never exported
 * Errors     DT_ERR_RECIPE naming tensor and shapes if the files are of another model;
 *            DT_ERR_CORRUPT naming the file, also for values that are not finite
 * Threads    one
 */
#ifndef DT_ENGINE_WEIGHTS_H
#define DT_ENGINE_WEIGHTS_H

#include "engine/strategy/strategy.h"
#include "recipes/foreign/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_weights dt_weights;

/* Read the headers and descriptions of the files; their data only to check a digest. Borrows
 * `files`. */
dt_status dt_weights_open(dt_weights **out, const dt_weights_files *files, dt_error *err);
void dt_weights_close(dt_weights *weights); /* accepts NULL */

/* The tokenizer of a checkpoint; NULL: unknown. Borrowed. */
const json_t *dt_weights_tokenizer(const dt_weights *weights);

/* Check that the files contain all of the model's parameters, and nothing else. */
dt_status dt_weights_check(dt_weights *weights, const dt_model *model, dt_error *err);

/* Read a slice of a parameter as fp32; padding rows are zero. Call dt_weights_check first. */
dt_status dt_weights_read(float *out, dt_weights *weights, const dt_model *model, int param,
                          const dt_slice *slice, dt_error *err);

/* Collective: checks the files, and fills the strategy's values. */
dt_status dt_weights_load(dt_weights *weights, dt_strategy_state *state, dt_error *err);

/* Check before a launch whether a run of this recipe can start from the files. vocab: of the data,
 * 0 unknown. */
dt_status dt_weights_fit(const dt_weights_files *files, const dt_recipe *recipe, int64_t vocab,
                         dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
