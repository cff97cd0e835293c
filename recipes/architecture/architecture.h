/* architecture: describes a kind of model as arithmetic, its division among ranks, and its form that
 * translates.
 *
 * Purpose    the only description of a model, used by recipes (memory.h, traffic.h), `dtrun
 *            plan`, checkpoints, and the engine, which creates the parameters from it
 *            (engine/model/kind.h has the computation). unit.model_memory and
 *            unit.strategy_accounts compare it with what the engine allocates
 * Units      of a model: unit 0 is the root (used at both ends of a pass), units 1.. are the blocks
 *            in the order of the forward pass
 * Sizes      elements, saturated at INT64_MAX, because a recipe may exceed the address space
 * Adding one a folder engine/model/NAME, a file here, and a row in recipes/fields/model_table.h:
 *            docs/adding-a-model.md
 * Threads    any; everything is const
 */
#ifndef DT_RECIPES_ARCHITECTURE_ARCHITECTURE_H
#define DT_RECIPES_ARCHITECTURE_ARCHITECTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "recipes/architecture/kinds.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* division: says which part of each parameter a rank of a tensor group holds (tensor parallelism).
 *
 * N ranks divide every layer: the heads of attention, the columns inside the multi-layer perceptron, and the
 * vocabulary. A matrix that makes such columns is divided by rows, and one that reads them by columns (Shoeybi et
 * al. 2019, https://arxiv.org/abs/1909.08053). Norms and everything else of the residual stream's width are held by
 * each rank.
 */

#define DT_PARAM_DIMS 4
#define DT_PARTS_MOST 3 /* of dt_param_held.parts */

typedef enum dt_param_cut {
    DT_CUT_NONE,    /* each rank holds all of it, and computes its whole gradient */
    DT_CUT_ROWS,    /* each has an equal range of dim[0] */
    DT_CUT_COLUMNS, /* each has an equal range of dim[1] */
    DT_CUT_THIRDS,  /* dim[0] has three equal parts (q, k and v), each divided by rows */
    DT_CUT_KEYS, /* rows of key heads; if these are fewer than the ranks, adjacent ranks share one */
    DT_CUT_SUMMED /* each holds all of it, and computes a term of its gradient */
} dt_param_cut;

/* A rank of a group of `size` ranks that divide layers. */
typedef struct dt_tensor_place {
    int64_t rank, size; /* size 0 or 1: layers are whole */
} dt_tensor_place;

/* The part of a parameter that one rank holds. */
typedef struct dt_param_held {
    int64_t dim[DT_PARAM_DIMS];
    int64_t elems;
    int cut_dim;     /* dimension that is divided; -1: none */
    int parts;       /* equal parts of this dimension, each divided by itself */
    int64_t start;   /* first index of this rank's slice, within each part */
    int64_t sharers; /* adjacent ranks that hold the same slice; 1: no other rank holds it */
    bool summed;     /* the gradients of the sharers are terms of a sum; otherwise they are equal */
    bool counted; /* this rank is the first of the sharers: norms and checkpoints count it here */
} dt_param_held;

/* Number of ranks that divide layers, at least 1. */
static inline int64_t dt_tensor_ranks(const dt_tensor_place *place)
{
    return place->size > 1 ? place->size : 1;
}

/* A rank's share of `heads` key heads, at least one of them. */
int64_t dt_tensor_key_heads(const dt_tensor_place *place, int64_t heads);

/* key_heads: heads in dim[0], for DT_CUT_KEYS. The sizes must be divisible (dt_tensor_divides). */
dt_param_held dt_param_hold(const int64_t *dim, dt_param_cut cut, int64_t key_heads,
                            const dt_tensor_place *place);

/* Whether `ranks` can divide a size. shared: as for key heads, a size that divides the ranks will do as well. */
bool dt_tensor_divides(int64_t size, int64_t ranks, bool shared);

typedef enum dt_init_kind {
    DT_INIT_ZERO,
    DT_INIT_ONE,
    DT_INIT_NORMAL,
    DT_INIT_UNIFORM /* from -init_std up to init_std */
} dt_init_kind;

typedef struct dt_param {
    const char *name; /* published name: "wte.weight", "h.0.attn.c_attn.weight" */
    int unit;
    int ndim;
    int64_t dim[DT_PARAM_DIMS];
    int64_t
        stored_rows; /* rows of dim[0]; later rows are padding: always zero, not in checkpoints */
    int64_t elems;
    dt_param_held held; /* what a rank holds of it; everything above is about the whole parameter */
    int64_t
        offset_elems; /* offset in the unit's flat buffer, or in that of its frozen parameters: a
                           * multiple of 16 elements except for joined parameters */
    dt_init_kind init;
    double init_std;
    bool decay;     /* two or more dimensions: has weight decay */
    bool trainable; /* false: frozen, see dt_model_config.frozen and .lora */
    /* of the model below an adapter: read from model.from, and in no checkpoint */
    bool in_base;
} dt_param;

/* Returns whether it is a matrix of a hidden layer, which some optimizers update as a whole; embeddings and
 * head are in the root. */
static inline bool dt_param_is_matrix(const dt_param *param)
{
    return param->ndim == 2 && param->unit > 0;
}

typedef struct dt_unit {
    int first_param, param_count;
    int64_t
        elems; /* size of the flat buffer of what a rank holds, including gaps between parameters
                    * (kept zero) */
    int64_t
        frozen_elems; /* size of a second flat buffer, with the parameters that are not trained */
} dt_unit;

/* All parameters, unit by unit. */
typedef struct dt_param_table {
    dt_param *params;
    int param_count;
    dt_unit *units;
    int unit_count;
} dt_param_table;

/* One tensor of a batch, (samples, width). */
typedef struct dt_input {
    const char *name;
    dt_dtype dtype;
    int64_t width; /* largest number of elements of a sample */
} dt_input;

#define DT_INPUTS_MAX 6

/* All-reduces of a pass over a unit by ranks that divide its layers, each of B T C numbers. */
typedef struct dt_unit_sums {
    int forward, backward; /* of the root: the embeddings', and the head's */
    int again;             /* all-reduces of forward repeated by full recomputation */
} dt_unit_sums;

/* FLOPs of one item of a pass: a token, a row. */
typedef struct dt_unit_flops {
    double forward, backward;
    double again; /* part of forward that is recomputed in the backward pass */
} dt_unit_flops;

/* Config of kinds that predict the next token of a text (decoder.h). */
typedef struct dt_decoder_config {
    int64_t layers, heads, embed;
    int64_t vocab, vocab_padded; /* padded to a multiple of DT_VOCAB_MULTIPLE */
    int64_t context;             /* longest T: rows of the table of positions */
    double dropout, attention_dropout;
    bool own_lm_head; /* the head is a separate matrix, not the token embedding */
    bool documents;   /* batches mark the start of documents; attention does not cross it */
    bool weights;     /* batches have a weight for each target; only with `documents` */
    /* above 0: the loss is that of preferences (engine/model/decoder/preference.c), with this beta; only with
     * `weights` */
    double beta;
} dt_decoder_config;

/* Indices in their dt_batch. target < 0: not counted in the loss. Starts and positions only with config.documents:
 * for each token the first index of its document, and the position in the document; if left out, each
 * sequence is one document. Weights only with config.weights: the loss of a target is multiplied by its weight; if
 * left out, by 1. Reference only with config.beta, F32 (samples,1): the log ratio of a pair by the reference. */
typedef enum dt_decoder_input {
    DT_DECODER_TOKENS,
    DT_DECODER_TARGETS,
    DT_DECODER_STARTS,
    DT_DECODER_POSITIONS,
    DT_DECODER_WEIGHTS,
    DT_DECODER_REFERENCE
} dt_decoder_input;

/* An adapter of low rank (Hu et al. 2021, https://arxiv.org/abs/2106.09685): y = x W^T + scale dropout(x) A^T B^T for
 * each targeted W (O,I), with A (rank,I) and B (O,rank). Only A and B are trained. */
typedef struct dt_lora_config {
    int64_t rank; /* 0: none */
    double scale, dropout;
    uint32_t targets; /* bit i: dt_architecture.targets[i] */
} dt_lora_config;

#define DT_MODEL_MEMBER(KIND, name) dt_##name##_config name;
/* A model, and the shape of its passes. */
typedef struct dt_model_config {
    dt_architecture_kind kind;
    int64_t batch, tokens; /* samples of the largest pass, and tokens of each (B and T) */
    dt_recompute_kind recompute;
    dt_dtype dtype;         /* of activations and of the weights that enter ops: F32, BF16 or F16 */
    dt_tensor_place tensor; /* the rank among those that divide every layer */
    /* MAY: names of parameters that are not trained, as patterns of fnmatch(3) separated by blanks; borrowed. They have
     * no gradients and no optimizer state, and are held in `dtype` alone. NULL: all are trained */
    const char *frozen;
    dt_lora_config lora; /* with a rank, only the adapter's parameters are trained */
    bool inference;      /* no backward */
    bool incremental;    /* inference: allocates the KV cache of dt_model_extend */
    int64_t sequences;   /* incremental: sequences that grow at once; 0: one */
    int64_t kept;        /* incremental: largest number of cached tokens of each; 0: the context */
    int64_t versions;    /* incremental translations: hypotheses of each sequence; 0: one */
    dt_decoder_config decoder;
    union { /* by kind */
        DT_MODELS(DT_MODEL_MEMBER)
    };
} dt_model_config;

/* Whether each block keeps the outputs of its norms for the backward pass; and those of its activation function. */
static inline bool dt_model_keeps_norms(const dt_model_config *config)
{
    return config->recompute == DT_RECOMPUTE_NONE || config->recompute == DT_RECOMPUTE_NOTHING;
}
static inline bool dt_model_keeps_all(const dt_model_config *config)
{
    return config->recompute == DT_RECOMPUTE_NOTHING;
}

struct dt_param_sink;
struct dt_published; /* published.h */

/* A size of a model that tensor ranks divide. */
typedef struct dt_divided_size {
    const char *path; /* the field of the recipe: "model.heads" */
    int64_t (*of)(const dt_model_config *config);
    bool shared;  /* a size that divides the ranks will do as well (dt_tensor_divides) */
    int64_t step; /* sizes are multiples of it: 1, or the multiple that a vocabulary is padded to */
} dt_divided_size;

/* A matrix of every block that an adapter can be added to. */
typedef struct dt_lora_target {
    const char *name;   /* in the recipe's lora.targets: "q" */
    const char *module; /* in PEFT's target_modules: "q_proj" */
    const char *weight; /* the parameter's name in a block: "self_attn.q_proj.weight" */
} dt_lora_target;

struct dt_param_rows; /* decoder.h */

/* A kind of model. */
typedef struct dt_architecture {
    const char *name; /* the recipe's model.kind */
    const char *item; /* unit of its data, for people: "token", "row" */
    bool reads_rows;  /* its samples are rows of numbers (engine/data/data_int.h), else tokens */
    bool reads_pairs; /* its samples are pairs of sentences (kinds.h), else one text */
    bool ffn_follows; /* model.ffn defaults to four times model.embed; else it is required */
    /* MUST: fields of a recipe that this kind uses and other kinds do not; NULL ends the list */
    const char *const *reads;
    /* MUST: fills the kind's part of the config; vocab: of the data */
    void (*configure)(dt_model_config *out, const dt_recipe *recipe, int64_t vocab);
    /* MUST: DT_ERR_RECIPE naming an invalid value. All other functions are only called for configs that
     * pass this check, except that sizes may be too large */
    dt_status (*check)(const dt_model_config *config, dt_error *err);
    /* MUST: fills in at most DT_INPUTS_MAX inputs, in the order of dt_batch; returns their number */
    int (*inputs)(dt_input *out, const dt_model_config *config);
    /* MUST: returns 1 plus the number of blocks */
    int (*units)(const dt_model_config *config);
    /* MUST: adds the parameters of a unit with dt_param_add */
    void (*params)(struct dt_param_sink *sink, const dt_model_config *config, int unit);
    /* MUST: returns the FLOPs of a block; unit 0: of the head and the loss */
    dt_unit_flops (*flops)(const dt_model_config *config, int unit);
    const char *flops_formula; /* of an item, all units, both ways; shown with a utilisation */
    /* MUST: returns the memory that a pass keeps, at most 5 % more than the engine allocates */
    int64_t (*activation_bytes)(const dt_model_config *config);
    /* MAY: what tensor ranks divide; ends with a NULL path. NULL: the layers of this kind are not divided */
    const dt_divided_size *divided;
    /* MUST with divided */
    dt_unit_sums (*sums)(const dt_model_config *config, int unit);
    /* MAY: families with published weights; ends with a NULL model_type */
    const struct dt_published *published;
    /* MAY: fields that a family computes only with their default unless its table has them; ends with NULL */
    const char *const *switches;
    /* MUST with switches: DT_ERR_RECIPE naming one with an invalid value; `check` calls it too, other sizes may be wrong */
    dt_status (*check_switches)(const dt_model_config *config, dt_error *err);
    /* MAY: what adapters can be added to; ends with a NULL name */
    const dt_lora_target *targets;
    /* MUST with targets: the parameters */
    const struct dt_param_rows *rows;
} dt_architecture;

const dt_architecture *dt_architecture_find(dt_architecture_kind kind);
/* Returns the family `index` of all kinds in order, and its kind; false after the last. */
bool dt_architecture_published(const struct dt_published **out, dt_architecture_kind *kind,
                               size_t index);
/* Returns the bits of dt_lora_config.targets for one name, or for "all"; 0: the kind has no such target. */
uint32_t dt_lora_target_bits(const dt_architecture *kind, const char *name);
/* Finds a kind by its name in recipes; NULL: unknown kind. */
const dt_architecture *dt_architecture_named(const char *name);
/* Returns whether other kinds read this field of a recipe, but this kind does not. */
bool dt_architecture_ignores(dt_architecture_kind kind, const char *path);

/* Assumed vocabulary if only a full read of the data can find it. */
#define DT_VOCAB_UNKNOWN 256

/* Fills in the config of a recipe for training. vocab: of the data, used if the recipe leaves it out; 0:
 * unknown. */
void dt_model_config_make(dt_model_config *out, const dt_recipe *recipe, int64_t vocab);
/* DT_ERR_RECIPE naming an invalid value, DT_ERR_UNSUPPORTED for a type, DT_ERR_NOMEM if a pass does not fit in
 * memory. */
dt_status dt_model_config_check(const dt_model_config *config, dt_error *err);

/* Returns the first size that the config's tensor ranks cannot divide; NULL: none. */
const dt_divided_size *dt_model_undivided(const dt_model_config *config);

/* Returns the elements of a unit's flat buffer: of its trained parameters; and of the others. */
int64_t dt_model_unit_elems(const dt_model_config *config, int unit);
int64_t dt_model_unit_frozen_elems(const dt_model_config *config, int unit);
/* Returns the elements of all parameters, with padding and without gaps. */
int64_t dt_model_config_elems(const dt_model_config *config);
/* The same of what the config's tensor rank holds. */
int64_t dt_model_config_held_elems(const dt_model_config *config);
/* The same of the trained parameters alone: of all ranks, and of the config's. */
int64_t dt_model_config_trained_elems(const dt_model_config *config);
int64_t dt_model_config_trained_held_elems(const dt_model_config *config);
/* Calls `each` for every trained matrix of a hidden layer (dt_param_is_matrix), without its name. */
void dt_model_each_matrix(const dt_model_config *config,
                          void (*each)(void *self, const dt_param *matrix), void *self);
/* Calls `each` for every matrix of a hidden layer, trained or not. */
void dt_model_each_product(const dt_model_config *config,
                           void (*each)(void *self, const dt_param *matrix), void *self);
/* Returns the bytes of a batch of config.batch samples. */
int64_t dt_model_batch_bytes(const dt_model_config *config);

/* Returns the formula of dt_model_flops_per_token, for people. */
const char *dt_model_flops_formula(const dt_model_config *config);
/* Returns the FLOPs of both passes without recomputation: the share of the peak counts the model's work, not
 * the program's. */
double dt_model_flops_per_token(const dt_model_config *config);

/* The table, in the arena. */
void dt_param_table_make(dt_param_table *out, const dt_model_config *config, dt_arena *arena);

/* --- for the kinds */

/* Receives the parameters of units in order: counts them, and fills a table if it has one. */
typedef struct dt_param_sink {
    dt_param *params; /* room for the next parameters; NULL: only count */
    dt_arena *arena;  /* of the names */
    int unit, count;
    int64_t elems;                             /* elements of the parameters so far */
    int64_t held_elems;                        /* and of what a rank holds of them */
    int64_t trained_elems, trained_held_elems; /* the same of those that are trained */
    bool each_frozen;                          /* each_matrix: also of those that are not trained */
    dt_tensor_place tensor;
    void (*each_matrix)(void *self, const dt_param *matrix); /* MAY be NULL */
    void *self;
    const char *frozen;   /* dt_model_config.frozen */
    bool adapted;         /* the model has an adapter: only its parameters are trained */
    int64_t unit_elems;   /* size of the unit's flat buffer so far */
    int64_t frozen_elems; /* size of that of its frozen parameters */
    /* of the last parameter: its end in its buffer, and whether it is trained */
    int64_t unit_end;
    bool trainable;
    bool splits; /* parameters that are joined differ in this */
} dt_param_sink;

typedef struct dt_param_shape {
    int ndim;
    int64_t dim[DT_PARAM_DIMS];
    int64_t stored_rows; /* 0: all of dim[0] */
    bool joined; /* directly after the previous one in its unit: with equal columns, both are one
                  * matrix */
    dt_init_kind init;
    double init_std;
    dt_param_cut cut;
    int64_t key_heads; /* DT_CUT_KEYS: heads in dim[0] */
    bool of_adapter;
} dt_param_shape;

void dt_param_add(dt_param_sink *sink, const dt_param_shape *shape, const char *name_format, ...)
    DT_PRINTF(3, 4);

/* DT_ERR_RECIPE if a size of the config, named `what` in the recipe, is not 1 to `most`. */
dt_status dt_model_check_size(const char *what, int64_t value, int64_t most, dt_error *err);
/* The same if a probability is not from 0 up to, but not including, 1. */
dt_status dt_model_check_dropout(const char *what, double value, dt_error *err);

/* Products and sums of non-negative numbers, saturated at INT64_MAX. */
int64_t dt_size_times(int64_t a, int64_t b);
int64_t dt_size_plus(int64_t a, int64_t b);

/* translations: configures a translating model that generates config.sequences sentences at once, each in
 * config.versions hypotheses of a beam search (engine/search/search.h).
 */

/* Number of hypotheses up to which CPU products compute each row with the same bits, independent of the other
 * rows (engine/ops/cpu/ops_int.h). */
#define DT_TRANSLATIONS_EXACT 64
/* Number of hypotheses that evaluate.bleu decodes together: their caches take memory from training. */
#define DT_TRANSLATIONS_IN_TRAINING 16

/* Returns the sentences of this many hypotheses each that have at most `rows` in total, at least one. */
static inline int64_t dt_translations_within(int64_t rows, int64_t versions)
{
    return versions < rows ? rows / versions : 1;
}

static inline int64_t dt_translations_sentences(const dt_model_config *config)
{
    return config->sequences > 0 ? config->sequences : 1;
}

static inline int64_t dt_translations_versions(const dt_model_config *config)
{
    return config->versions > 0 ? config->versions : 1;
}

/* Returns the rows of a pass that adds a token to each hypothesis of all sentences. */
static inline int64_t dt_translations_rows(const dt_model_config *config)
{
    return dt_translations_sentences(config) * dt_translations_versions(config);
}

/* Changes the config of an inferring model to that of a translating one. */
static inline void dt_translations_configure(dt_model_config *config, int64_t sentences,
                                             int64_t versions)
{
    config->incremental = true;
    config->sequences = sentences;
    config->versions = versions;
    /* a pass over one token of each hypothesis has the rows of this many samples */
    config->batch = (sentences * versions + config->tokens - 1) / config->tokens;
}

#ifdef __cplusplus
}
#endif

#endif
