/* weights: the parameters that a model begins from, in files of others or of a checkpoint.
 *
 * Files      recipes/weights.h finds them; names and layouts of Hugging Face's are in
 *            recipes/architecture/published.h, those of .bin files in bin_published.c beside it. F32, BF16
 *            and F16 become fp32
 * Reading    each rank reads the slices that it holds, by pread; a matrix that lies transposed is
 *            turned while it is read, and rows that lie in another order are put into ours. The moments of an optimizer are left at zero
 * Padding    rows behind the vocabulary are zero: no target and no softmax takes them in, so that their
 *            gradient is zero too, and they are never written out
 * Errors     DT_ERR_RECIPE naming tensor and shapes where the files are of another model;
 *            DT_ERR_CORRUPT naming the file, also for values that are no numbers
 * Threads    one
 */
#ifndef DT_ENGINE_WEIGHTS_H
#define DT_ENGINE_WEIGHTS_H

#include "engine/strategy/strategy.h"
#include "recipes/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_weights dt_weights;

/* Reads what the files say of themselves; their data only where a digest is to be checked. `files` is
 * borrowed. */
dt_status dt_weights_open(dt_weights **out, const dt_weights_files *files, dt_error *err);
void dt_weights_close(dt_weights *weights); /* accepts NULL */

/* Of a checkpoint, what its tokens mean; NULL: the files do not say. Borrowed. */
const json_t *dt_weights_tokenizer(const dt_weights *weights);

/* Whether they are all of the model's parameters, and nothing else. */
dt_status dt_weights_check(dt_weights *weights, const dt_model *model, dt_error *err);

/* A slice of a parameter, as values in memory; rows of padding are zero. After a check. */
dt_status dt_weights_read(float *out, dt_weights *weights, const dt_model *model, int param,
                          const dt_slice *slice, dt_error *err);

/* All ranks call it: checks, and fills the strategy's values. */
dt_status dt_weights_load(dt_weights *weights, dt_strategy_state *state, dt_error *err);

/* Whether a run by this recipe can begin from them: for who launches it. vocab: of the data, 0 unknown. */
dt_status dt_weights_fit(const dt_weights_files *files, const dt_recipe *recipe, int64_t vocab,
                         dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
