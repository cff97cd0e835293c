/* decoder: implements what kinds that predict the next token share: ids in, a sequence of blocks, logits out.
 *
 * Purpose    such a kind defines rows of parameters, additional sizes, and the cost of a token; the rest of
 *            its dt_architecture is here
 * V Vp H C T as in engine/ops/ops.h, L blocks
 */
#ifndef DT_RECIPES_ARCHITECTURE_DECODER_H
#define DT_RECIPES_ARCHITECTURE_DECODER_H

#include "recipes/architecture/architecture.h"
#include "recipes/architecture/tokens.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- config */

dt_decoder_config dt_decoder_configure(const dt_recipe *recipe, int64_t vocab);
dt_status dt_decoder_check(const dt_model_config *config, dt_error *err);

/* --- what a tensor rank holds: everything if layers are whole */

/* Returns a rank's share of a size that the ranks divide equally. */
int64_t dt_decoder_share(const dt_model_config *config, int64_t size);
/* Returns its heads of queries, and the rows of the vocabulary with padding. */
int64_t dt_decoder_heads(const dt_model_config *config);
int64_t dt_decoder_vocab_rows(const dt_model_config *config);
/* Returns the same of the whole model, for dt_divided_size. */
int64_t dt_decoder_whole_heads(const dt_model_config *config);
int64_t dt_decoder_whole_vocab(const dt_model_config *config);

/* Returns the sums of a block with attention and a perceptron, and of the root. */
dt_unit_sums dt_decoder_sums(const dt_model_config *config, int unit);

/* --- batches */

int dt_decoder_inputs(dt_input *out, const dt_model_config *config);
int dt_decoder_units(const dt_model_config *config);

/* --- parameters */

/* Number of rows or columns of a parameter; from DT_SIZE_OWN on, defined by the kind. */
typedef enum dt_decoder_size {
    DT_SIZE_NONE, /* as columns: a vector */
    DT_SIZE_EMBED,
    DT_SIZE_VOCAB, /* Vp, of which V are stored */
    DT_SIZE_CONTEXT,
    DT_SIZE_OWN
} dt_decoder_size;

typedef struct dt_param_row {
    const char *name; /* in a block's unit without the table's prefix and the block's number */
    int rows, cols;   /* a dt_decoder_size, or a size of the kind */
    dt_init_kind init;
    bool joined;      /* as in dt_param_shape: joined to the previous row */
    bool residual;    /* projects onto the residual stream: init scaled by 1/sqrt(2 L) */
    dt_param_cut cut; /* how tensor ranks divide it */
} dt_param_row;

typedef struct dt_param_rows {
    const dt_param_row *root, *block; /* in the order of the kind's two enums */
    int root_count, block_count;
    const char *block_prefix; /* "h." */
    double init_std;
    /* MUST: returns the elements of an additional size */
    int64_t (*size)(const dt_model_config *config, int size);
    /* MUST with DT_CUT_KEYS: returns the heads of keys */
    int64_t (*key_heads)(const dt_model_config *config);
    /* MUST: returns whether the config leaves out a row of the root (unit 0) or of a block */
    bool (*lacks)(const dt_model_config *config, int unit, int row);
    /* MAY: the initial values, if they are not always those of the row */
    dt_init_kind (*init)(const dt_model_config *config, const dt_param_row *row);
} dt_param_rows;

void dt_decoder_params(dt_param_sink *sink, const dt_model_config *config, int unit,
                       const dt_param_rows *rows);

/* --- adapters (dt_lora_config)
 *
 * The parameters of a block's adapters come after its own: for each joined weight the A of its targets, joined, then
 * their B, joined. A of a weight that ranks divide by rows is held by each rank, and B by columns: their gradients are
 * terms of a sum. */

#define DT_LORA_JOINED_MOST 3 /* q, k and v */

/* Rows of a block's table that are joined to one weight, some or all of which have adapters. */
typedef struct dt_lora_join {
    int first, last; /* rows of the table */
    /* the rows with adapters; of them and of all rows: what a rank holds of O */
    int count, row[DT_LORA_JOINED_MOST];
    int64_t out[DT_LORA_JOINED_MOST];
    int64_t start[DT_LORA_JOINED_MOST]; /* the first of its `out` in the joined weight */
    int64_t all_out, in;                /* what a rank holds of the joined weight */
} dt_lora_join;

/* Finds the first join of rows `row` .. last; false: none. row .. last itself, if only these are used as one. */
bool dt_lora_join_of(dt_lora_join *out, const dt_model_config *config, int row, int last);
/* The same from row *next on, in the whole block; sets *next to the row after it. */
bool dt_lora_join_next(dt_lora_join *out, const dt_model_config *config, int *next);

/* Maxima over all joins. */
typedef struct dt_lora_sizes {
    int64_t ranks;   /* count * rank */
    int64_t out, in; /* all_out, in */
    int64_t product; /* all_out * count * rank */
    int64_t table;   /* sum of all_out * count, and the largest all_out */
} dt_lora_sizes;
dt_lora_sizes dt_lora_sizes_of(const dt_model_config *config);

/* Rows of a pass whose terms an adapter computes at once. */
#define DT_LORA_TERM_BYTES ((int64_t)32 << 20)
int64_t dt_lora_term_rows(const dt_model_config *config, int64_t rows);

/* --- activations */

/* For each row, which is a token of the pass: numbers of the compute type, and fp32 statistics, of a tensor rank. What
 * such a rank needs for sums is added by dt_decoder_activation_bytes. In addition
 * one shared buffer holds either `scratch` numbers of the blocks or a chunk of logits. */
typedef struct dt_row_cost {
    int64_t widths, stats, scratch;
    bool two_logits; /* two chunks of logits */
} dt_row_cost;

/* Largest chunk of logits, but at least one row: DT_LOGITS_BYTES; if the run keeps all that it computes, also a quarter
 * of the logits of a pass, because each chunk reads and writes the gradient of the head. */
int64_t dt_decoder_logits_bytes(const dt_model_config *config);

/* Returns the larger of a pass with backward (except for inference) and one without. */
int64_t dt_decoder_activation_bytes(const dt_model_config *config,
                                    dt_row_cost (*cost)(const dt_model_config *config,
                                                        bool backward));

/* --- FLOPs */

/* FLOPs of a token in both passes; backward is twice forward. again: part of `forward` that recompute full
 * repeats. */
dt_unit_flops dt_decoder_flops(const dt_model_config *config, double forward, double again);
/* The same of a block or the head of a model with an adapter, which computes no gradients of weights. attention: part of
 * `forward` that is no product with a weight. */
dt_unit_flops dt_decoder_lora_flops(const dt_model_config *config, int unit, dt_unit_flops whole,
                                    double attention);

#ifdef __cplusplus
}
#endif
#endif
