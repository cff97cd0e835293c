/* mixture: draws training samples from several parts in the shares of their weights (data.mixture).
 *
 * Epoch      has as many samples as all parts together. Each part has its share of them, rounded to whole samples whose
 *            sum is exact (largest remainders; equal ones in the order of the parts). The parts take turns evenly: the
 *            first n samples have each part's share of n, to a sample or two
 * Parts      have epochs of their own, each in an order (and, for text that is not packed, from an offset) drawn from
 *            (seed, part, part's epoch). A part continues where the mixture's last epoch left it; at its end it starts
 *            its next epoch
 * Samples    of a part's epoch are as many as with its largest offset, so that all its epochs are equally long
 * Position   (epoch, sample) of the mixture determines that of every part, whatever the number of ranks
 * Errors     DT_ERR_RECIPE: a part whose share of an epoch is less than one sample
 */
#ifndef DT_ENGINE_DATA_MIXTURE_H
#define DT_ENGINE_DATA_MIXTURE_H

#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/data/files.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_data_part {
    const char *name; /* in the recipe's arena */
    double share;
    int64_t first, count; /* range of its tokens, packs or rows of conversations in the data */
    int64_t token_first, token_end; /* range of its training tokens; of conversations 0 */
    int64_t samples;                /* in an epoch of its own */
    int64_t quota;                  /* in an epoch of the mixture */
} dt_data_part;

/* Zeroed: the data are not a mixture. */
typedef struct dt_mixture {
    dt_data_part parts[DT_MIXTURE_MOST];
    int64_t count;
    int64_t tokens, ahead; /* of a sample, in units of the ranges: as in dt_sampler */
    int64_t samples;       /* in an epoch */
    int64_t most;          /* samples in the largest epoch of a part */
} dt_mixture;

/* Takes names and shares from the recipe. */
void dt_mixture_init(dt_mixture *out, const dt_recipe *recipe);
/* Computes samples and quotas from the ranges of the parts. DT_ERR_RECIPE as above. */
dt_status dt_mixture_divide(dt_mixture *mixture, int64_t tokens, int64_t ahead, dt_error *err);
/* Samples of an epoch of `count` units, as above. */
int64_t dt_mixture_part_samples(int64_t count, int64_t tokens, int64_t ahead);
/* Computes the quotas from the samples of each part. */
dt_status dt_mixture_set_quotas(dt_mixture *mixture, dt_error *err);
/* Writes the samples of an epoch to order, (samples): the unit where each starts. `picks` (samples) and `scratch` (most)
 * are overwritten. */
void dt_mixture_order(int64_t *order, int64_t *picks, int64_t *scratch, const dt_mixture *mixture,
                      uint64_t seed, int64_t epoch);
/* The end of the part that has this training token. */
int64_t dt_mixture_end(const dt_mixture *mixture, int64_t token);

/* Number of files of each part. `kind` as in dt_data_files_find. */
dt_status dt_mixture_files(int64_t counts[DT_MIXTURE_MOST], const dt_recipe *recipe,
                           dt_tokens_kind kind, dt_arena *arena, dt_error *err);
/* A copy of the recipe whose data.train has the files of one part, for checks of the part. */
dt_recipe dt_mixture_recipe_of(const dt_recipe *recipe, int64_t part);
/* Prefixes the error with the part's name, and returns st. */
dt_status dt_mixture_in_part(dt_status st, const dt_recipe *recipe, int64_t part, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
