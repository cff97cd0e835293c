/* optimizer_table: defines the table of optimizers: the facts that recipes, plans, checkpoints and strategies need.
 * engine/optim implements the updates.
 *
 * Adding an optimizer
 *   1. here: a line in DT_OPTIMIZERS, and members of dt_optimizer_options for its own numbers
 *   2. recipes/fields/fields.c: a row for each of these members
 *   3. engine/optim/NAME.c: dt_optimizer_NAME (engine/optim/optimizer.h)
 *   4. engine/ops/optimizer_rules.h: how it updates one element, unless an existing rule fits
 *   5. tests/golden/make_optimizer_fixture.py: its steps computed by another program, which
 *      tests/unit/test_optim_golden.c then requires
 *   6. docs: `dtrun-recipe-doc` into docs/recipe.md, its states in docs/checkpoint.md, CHANGES.md
 * No other code may name an optimizer; unit.optimizers_stand_in_one_table checks this.
 */
#ifndef DT_RECIPES_FIELDS_OPTIMIZER_TABLE_H
#define DT_RECIPES_FIELDS_OPTIMIZER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum floats of optimizer state for an element, and their names in checkpoints. */
#define DT_OPTIMIZER_STATES      2
#define DT_OPTIMIZER_STATE_NAMES "m", "v"

/* X(KIND, name, facts): the facts of dt_optimizer_facts except the name. Checkpoints and resolved recipes store the
 * name: the order may change, a name must not. */
#define DT_OPTIMIZERS(X)                                                                    \
    X(ADAMW, adamw, .family = "adam", .states = 2, .bf16_states = true)                     \
    X(ADAM, adam, .family = "adam", .states = 2, .bf16_states = true)                       \
    X(SGD, sgd, .family = "sgd", .states = 1, .needs_momentum = true)                       \
    X(LION, lion, .family = "lion", .states = 1, .defaults = {{"optimizer.beta2", "0.99"}}) \
    X(MUON, muon, .family = "muon", .states = 2, .whole_matrices = &dt_newton_schulz,       \
      .matrix_states = 1,                                                                   \
      .defaults = {{"optimizer.momentum", "0.95"}, {"optimizer.nesterov", "true"}})

#define DT_OPTIMIZER_ENUM(KIND, ...) DT_OPTIMIZER_##KIND,
typedef enum dt_optimizer_kind {
    DT_OPTIMIZERS(DT_OPTIMIZER_ENUM) DT_OPTIMIZER_KINDS
} dt_optimizer_kind;

/* Position of epsilon: PyTorch adds it after the bias correction, fairseq before. */
typedef enum dt_optimizer_variant {
    DT_OPTIMIZER_PYTORCH,
    DT_OPTIMIZER_FAIRSEQ
} dt_optimizer_variant;

/* Parameters with weight decay: those with two or more dimensions, or all. */
typedef enum dt_optimizer_decays { DT_DECAYS_MATRICES, DT_DECAYS_ALL } dt_optimizer_decays;

/* How the learning rate of a whole-matrix update depends on the shape: as torch.optim.Muon's adjust_lr_fn. */
typedef enum dt_optimizer_adjust_lr {
    DT_ADJUST_LR_ORIGINAL,
    DT_ADJUST_LR_MATCH_RMS_ADAMW
} dt_optimizer_adjust_lr;

/* How states are held between steps. */
typedef enum dt_optimizer_moments { DT_MOMENTS_FP32, DT_MOMENTS_BF16 } dt_optimizer_moments;

/* optimizer.* of a recipe; fields.c documents which optimizer uses which option. */
typedef struct dt_optimizer_options {
    dt_optimizer_kind kind;
    dt_optimizer_variant variant;
    double lr; /* the highest rate; dt_optimizer_args.lr is the scheduled one */
    double beta1, beta2, eps, weight_decay;
    dt_optimizer_decays decays;
    double momentum;
    bool nesterov;
    dt_optimizer_adjust_lr adjust_lr;
    dt_optimizer_moments moments;
    double adamw_lr; /* rate of parameters without whole-matrix updates; 0: lr */
} dt_optimizer_options;

/* Cost of whole-matrix updates of hidden matrices; engine/optim/optimizer.h implements them. */
typedef struct dt_whole_matrices {
    int iterations;
    dt_dtype (*dtype)(dt_dtype of_model); /* type of its products */
    /* For one matrix: workspace in bytes (at most INT64_MAX), and FLOPs. */
    int64_t (*work_bytes)(int64_t rows, int64_t columns, dt_dtype dtype);
    double (*flops)(int64_t rows, int64_t columns);
} dt_whole_matrices;

extern const dt_whole_matrices dt_newton_schulz;

/* A field's default for an optimizer that differs from the one in fields.c. */
typedef struct dt_optimizer_default {
    const char *path, *text; /* as in a recipe; a NULL path ends the list */
} dt_optimizer_default;

#define DT_OPTIMIZER_DEFAULTS 3

typedef struct dt_optimizer_facts {
    const char *name;    /* the recipe's value */
    const char *family;  /* optimizers of one family can resume from each other's state */
    int states;          /* floats for an element, at most DT_OPTIMIZER_STATES */
    bool needs_momentum; /* no state if `momentum` is 0 */
    bool bf16_states;    /* DT_MOMENTS_BF16 is possible */
    const dt_whole_matrices
        *whole_matrices; /* how hidden matrices are updated; NULL: as other parameters */
    int matrix_states;   /* floats for an element of such a matrix, at most `states` */
    dt_optimizer_default defaults[DT_OPTIMIZER_DEFAULTS];
} dt_optimizer_facts;

extern const dt_optimizer_facts dt_optimizers[DT_OPTIMIZER_KINDS];

/* Returns NULL for an unknown name. */
const dt_optimizer_facts *dt_optimizer_find(const char *name);

/* Returns the floats of state for each element of a hidden matrix, or of another parameter. */
int dt_optimizer_states(const dt_optimizer_options *options, bool matrix);

/* Returns the type in which states are held. Checkpoints have F32. */
dt_dtype dt_optimizer_state_dtype(const dt_optimizer_options *options);

/* Returns the name of a state, 0 to DT_OPTIMIZER_STATES - 1: "m", "v". */
const char *dt_optimizer_state_name(int state);

#ifdef __cplusplus
}
#endif
#endif
