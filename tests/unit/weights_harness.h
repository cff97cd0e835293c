/* weights_harness: opens models from files of other programs, for tests of engine/weights: those of
 * tests/golden/huggingface and tests/golden/bin, which are all of one size.
 *
 * Errors  a failing call fails the running test
 */
#ifndef DT_TESTS_WEIGHTS_HARNESS_H
#define DT_TESTS_WEIGHTS_HARNESS_H

#include "engine/weights/weights.h"
#include "tests/unit/model_harness.h"

enum { WEIGHTS_VOCAB = 61, WEIGHTS_CONTEXT = 16, WEIGHTS_BATCH = 2, WEIGHTS_TOKENS = 13 };

/* Returns a recipe with the model of the files. */
dt_recipe weights_recipe(const char *from, dt_arena *arena);
void weights_open_model(harness *out, const char *from, dt_arena *arena);

void weights_find(dt_weights_files *out, const char *from, dt_arena *arena);
/* Opens the files, and checks them against the model. */
dt_weights *weights_open_checked(dt_weights_files *files, const char *from, const dt_model *model,
                                 dt_arena *arena);

dt_slice weights_whole(const dt_param *param);
void weights_read_slice(float *out, dt_weights *weights, const dt_model *model, int param,
                        const dt_slice *slice);
/* Reads the whole model. */
void weights_fill(harness *h, dt_weights *weights);

/* The model must compute the logits of a fixture (tokens, logits). */
void weights_expect_logits(const char *from, const char *expect);
/* Slices cut at ends of rows, within rows and in padding must equal that part of the whole. */
void weights_expect_slices(const char *from);
/* Both files must have the same model, to the bit. */
void weights_expect_same(const char *from, const char *other);

#endif
