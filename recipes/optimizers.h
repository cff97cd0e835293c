/* optimizers: the one table of optimizers: what a recipe, a plan, a checkpoint and a strategy must
 * know of each without running it. How each steps is engine/optim's.
 *
 * Adding an optimizer
 *   1. here: its line in DT_OPTIMIZERS, and members of dt_optimizer_options for numbers that no
 *      other optimizer has
 *   2. recipes/fields.c: a row for each of these
 *   3. engine/optim/NAME.c: dt_optimizer_NAME (engine/optim/optimizer.h)
 *   4. engine/ops/optimizer_rules.h: how it steps one element, where no rule there does
 *   5. tests/golden/make_optimizer_fixture.py: its steps by another program, which
 *      tests/unit/test_optim_golden.c then asks for
 *   6. docs: `dtrun-recipe-doc` into docs/recipe.md, its states in docs/checkpoint.md, CHANGES.md
 * Nothing else names an optimizer: unit.optimizers_stand_in_one_table refuses it.
 */
#ifndef DT_RECIPES_OPTIMIZERS_H
#define DT_RECIPES_OPTIMIZERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Floats that an optimizer keeps beside an element at most, and what checkpoints call them. */
#define DT_OPTIMIZER_STATES      2
#define DT_OPTIMIZER_STATE_NAMES "m", "v"

/* X(KIND, name, facts): the facts of dt_optimizer_facts, but for the name. Checkpoints and resolved
 * recipes have the name, so that the order is free and a name is for ever. */
#define DT_OPTIMIZERS(X)                                                                    \
    X(ADAMW, adamw, .family = "adam", .states = 2)                                          \
    X(ADAM, adam, .family = "adam", .states = 2)                                            \
    X(SGD, sgd, .family = "sgd", .states = 1, .needs_momentum = true)                       \
    X(LION, lion, .family = "lion", .states = 1, .defaults = {{"optimizer.beta2", "0.99"}}) \
    X(MUON, muon, .family = "muon", .states = 2, .whole_matrices = &dt_newton_schulz,       \
      .matrix_states = 1,                                                                   \
      .defaults = {{"optimizer.momentum", "0.95"}, {"optimizer.nesterov", "true"}})

#define DT_OPTIMIZER_ENUM(KIND, ...) DT_OPTIMIZER_##KIND,
typedef enum dt_optimizer_kind {
    DT_OPTIMIZERS(DT_OPTIMIZER_ENUM) DT_OPTIMIZER_KINDS
} dt_optimizer_kind;

/* Where epsilon stands: PyTorch adds it after the bias correction, fairseq before. */
typedef enum dt_optimizer_variant {
    DT_OPTIMIZER_PYTORCH,
    DT_OPTIMIZER_FAIRSEQ
} dt_optimizer_variant;

/* What weight_decay makes smaller: parameters with two or more dimensions, or all. */
typedef enum dt_optimizer_decays { DT_DECAYS_MATRICES, DT_DECAYS_ALL } dt_optimizer_decays;

/* How the learning rate of a matrix that is stepped whole goes by its shape: as torch.optim.Muon's
 * adjust_lr_fn. */
typedef enum dt_optimizer_adjust_lr {
    DT_ADJUST_LR_ORIGINAL,
    DT_ADJUST_LR_MATCH_RMS_ADAMW
} dt_optimizer_adjust_lr;

/* optimizer.* of a recipe; fields.c says who reads what. */
typedef struct dt_optimizer_options {
    dt_optimizer_kind kind;
    dt_optimizer_variant variant;
    double lr; /* the highest: the schedule's is dt_optimizer_args.lr */
    double beta1, beta2, eps, weight_decay;
    dt_optimizer_decays decays;
    double momentum;
    bool nesterov;
    dt_optimizer_adjust_lr adjust_lr;
    double adamw_lr; /* of what is not stepped whole; 0: lr */
} dt_optimizer_options;

/* How hidden matrices are stepped that an optimizer needs whole, as arithmetic; the computation is
 * engine/optim/optimizer.h's. */
typedef struct dt_whole_matrices {
    int iterations;
    dt_dtype (*dtype)(dt_dtype of_model); /* of its products */
    /* Of one matrix, stopping at INT64_MAX: memory that is worked in, and FLOPs. */
    int64_t (*work_bytes)(int64_t rows, int64_t columns, dt_dtype dtype);
    double (*flops)(int64_t rows, int64_t columns);
} dt_whole_matrices;

extern const dt_whole_matrices dt_newton_schulz;

/* A field's default where it is not the table's (fields.c), which was there first. */
typedef struct dt_optimizer_default {
    const char *path, *text; /* as in a recipe; a NULL path ends the list */
} dt_optimizer_default;

#define DT_OPTIMIZER_DEFAULTS 3

typedef struct dt_optimizer_facts {
    const char *name;    /* the recipe's value */
    const char *family;  /* of those whose states mean the same: one resumes from another's */
    int states;          /* of an element, at most DT_OPTIMIZER_STATES */
    bool needs_momentum; /* no states where `momentum` is 0 */
    const dt_whole_matrices *whole_matrices; /* how hidden matrices are; NULL: as all else */
    int matrix_states;                       /* of their elements, at most `states` */
    dt_optimizer_default defaults[DT_OPTIMIZER_DEFAULTS];
} dt_optimizer_facts;

extern const dt_optimizer_facts dt_optimizers[DT_OPTIMIZER_KINDS];

/* NULL where there is none of that name. */
const dt_optimizer_facts *dt_optimizer_find(const char *name);

/* Floats kept beside each element of a hidden matrix, or of any other parameter. */
int dt_optimizer_states(const dt_optimizer_options *options, bool matrix);

/* "m", "v": of state 0 to DT_OPTIMIZER_STATES - 1. */
const char *dt_optimizer_state_name(int state);

#ifdef __cplusplus
}
#endif
#endif
