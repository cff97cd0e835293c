/* recipe: what a person asked for, typed, with every default filled in.
 *
 * Filled by recipes/fields.c, whose table is the one place that says what a field is called, its
 * type, unit, range, default and help. Read from YAML (reader.h) by the runner and from the
 * plan's JSON by the engine; both go through that table.
 *
 * Ownership  strings and lists live in the arena that the reader was given
 * Units      in the names; sizes in elements of what is named
 */
#ifndef DT_RECIPES_RECIPE_H
#define DT_RECIPES_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/optimizers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_string_list {
    const char **items;
    int64_t count;
} dt_string_list;

/* Structs one after another, as the field's table of items says (fields.h). */
typedef struct dt_map_list {
    void *items;
    int64_t count;
} dt_map_list;

typedef enum dt_strategy_kind {
    DT_STRATEGY_DP,
    DT_STRATEGY_DDP,
    DT_STRATEGY_FSDP
} dt_strategy_kind;
/* What fsdp divides among the ranks: all of it, gradients and optimizer (ZeRO-2), optimizer alone
 * (ZeRO-1). */
typedef enum dt_shard_kind { DT_SHARD_FULL, DT_SHARD_GRADIENTS, DT_SHARD_OPTIMIZER } dt_shard_kind;
/* The order of recipes/architecture/architecture.c and engine/model/kinds.c. */
typedef enum dt_architecture_kind {
    DT_MODEL_GPT2,
    DT_MODEL_MLP,
    DT_MODEL_LLAMA,
    DT_MODEL_TRANSFORMER
} dt_architecture_kind;
typedef enum dt_positions_kind { DT_POSITIONS_LEARNED, DT_POSITIONS_SINUSOIDAL } dt_positions_kind;
/* GPT-2's tanh approximation of GELU, GELU itself, x Phi(x), and others. */
typedef enum dt_activation_kind {
    DT_ACTIVATION_GELU_TANH,
    DT_ACTIVATION_GELU,
    DT_ACTIVATION_RELU,
    DT_ACTIVATION_TANH
} dt_activation_kind;
/* How rotary frequencies are stretched beyond the length that they were trained for. */
typedef enum dt_rope_scaling_kind {
    DT_ROPE_NONE,
    DT_ROPE_LINEAR, /* all by the factor */
    DT_ROPE_LLAMA3  /* long waves by the factor, short ones not at all, smoothly between */
} dt_rope_scaling_kind;
/* Where a block's norms stand: before what they feed, or behind the sum (Xiong et al. 2020). */
typedef enum dt_norm_kind { DT_NORM_POST, DT_NORM_PRE } dt_norm_kind;
typedef enum dt_loss_kind { DT_LOSS_CROSS_ENTROPY, DT_LOSS_SQUARED_ERROR } dt_loss_kind;
typedef enum dt_recompute_kind {
    DT_RECOMPUTE_NONE,
    DT_RECOMPUTE_SELECTIVE, /* what is cheap to compute and large to keep */
    DT_RECOMPUTE_FULL       /* of a block only its input is kept */
} dt_recompute_kind;
typedef enum dt_precision_kind {
    DT_PRECISION_FP32,
    DT_PRECISION_BF16,
    DT_PRECISION_FP16
} dt_precision_kind;
typedef enum dt_best_by { DT_BEST_BY_VALID_LOSS, DT_BEST_BY_VALID_BLEU } dt_best_by;
typedef enum dt_reduce_kind { DT_REDUCE_FP32, DT_REDUCE_BF16 } dt_reduce_kind;
typedef enum dt_tokens_kind {
    DT_TOKENS_AUTO, /* by the file: .bin with a magic = llmc, beside an .idx of fairseq as that says,
                        * other .bin = nanogpt, else char */
    DT_TOKENS_CHAR,    /* one token per Unicode code point of the training text */
    DT_TOKENS_BYTE,    /* 256 tokens */
    DT_TOKENS_LLMC,    /* llm.c .bin, versions 1 (uint16) and 7 (uint32) */
    DT_TOKENS_NANOGPT, /* bare uint16 */
    DT_TOKENS_UINT8,   /* bare ids of that width, as fairseq writes them */
    DT_TOKENS_INT32,
    DT_TOKENS_INT64,
    DT_TOKENS_PAIRS, /* of sentences, as ids (engine/data/sentences.h) */
    DT_TOKENS_ROWS   /* .csv; in no recipe: what a model on rows reads */
} dt_tokens_kind;
typedef enum dt_tail_kind { DT_TAIL_WRAP, DT_TAIL_DROP } dt_tail_kind;
typedef enum dt_too_long_kind { DT_TOO_LONG_REFUSE, DT_TOO_LONG_DROP } dt_too_long_kind;
typedef enum dt_ship_kind { DT_SHIP_AUTO, DT_SHIP_NEVER } dt_ship_kind;
typedef enum dt_schedule_kind {
    DT_SCHEDULE_COSINE,
    DT_SCHEDULE_INVERSE_SQRT,
    DT_SCHEDULE_LINEAR,
    DT_SCHEDULE_POLYNOMIAL,
    DT_SCHEDULE_CONSTANT,
    DT_SCHEDULE_WARMUP_STABLE_DECAY
} dt_schedule_kind;

/* What the ranks do; all but training is of a run that another command makes (plan.h). */
typedef enum dt_task_kind { DT_TASK_TRAIN, DT_TASK_GENERATE, DT_TASK_SCORE } dt_task_kind;

/* Which points a sweep has (sweep.h). */
typedef enum dt_search_kind { DT_SEARCH_GRID, DT_SEARCH_ZIP, DT_SEARCH_RANDOM } dt_search_kind;

typedef struct dt_recipe {
    const char *name;  /* left out: the recipe file's stem */
    dt_task_kind task; /* in what people write: training alone */

    /* One node an item, ranges and hostfile expanded: "HOST", "USER@HOST", then " gpus=N",
     * " first_gpu=N" or " ranks=N" where the node has its own (recipes/nodes.h), or "slurm:N", or "slurm". Left
     * out: {"localhost"} */
    dt_string_list nodes;
    const char *hostfile; /* "" or a file of nodes */
    int64_t nodes_min;    /* with fewer the run ends; 0: all are needed */
    int64_t gpus;         /* per node; -1: all that are found */
    int64_t ranks;        /* CPU ranks per node where there is no GPU; default 1 */
    int64_t threads;      /* per rank (dp: per replica); 0: the node's cores divided by its ranks */
    int64_t tensor;       /* ranks of a row of the mesh (engine/comm/mesh.h): 1 */

    struct {
        const char *interface; /* "": found; a name, an address or a subnet "10.0.0.0/24" */
    } network;

    struct {
        dt_string_list options; /* for sbatch, each "--name" or "--name=value" */
    } slurm;

    struct {
        dt_strategy_kind kind;
        double bucket_mb, first_bucket_mb;
        dt_shard_kind shard;        /* fsdp */
        bool reshard_after_forward; /* fsdp, full: gathered weights are dropped until backward */
        dt_reduce_kind reduce_dtype;
        bool reduce_each_micro_step; /* fsdp: else full gradients are kept until the last one */
    } strategy;

    struct {
        dt_architecture_kind kind;
        const char *preset; /* "" or "gpt2-small", ...: fills the dimensions that are left out */
        const char *from;   /* "", or where the parameters begin (recipes/weights.h), absolute */
        int64_t layers, heads, embed;
        int64_t vocab; /* 0: taken from the data; the engine pads it to a multiple of 128 */
        dt_string_list end_ids; /* numbers; empty: the tokenizer's end-of-text token */
        double dropout;
        double attention_dropout; /* of the attention's probabilities */
        dt_activation_kind activation;
        dt_positions_kind positions;
        bool scale_embedding; /* token embeddings times sqrt(embed) */
        bool tied;            /* the head is the token embedding */
        /* llama */
        int64_t kv_heads;   /* heads of keys and values; 0: as many as heads */
        int64_t head_width; /* 0: embed / heads */
        int64_t ffn;        /* width inside the multi-layer perceptron; transformer too */
        double rope_theta;
        dt_rope_scaling_kind rope_scaling;
        double rope_factor, rope_low_freq_factor, rope_high_freq_factor;
        int64_t rope_original_tokens; /* llama3: what the frequencies were trained for */
        double norm_eps;
        bool qkv_bias, qk_norm;
        bool o_bias;   /* of the projection of what attention gives */
        bool mlp_bias; /* of the multi-layer perceptron */
        /* transformer, whose `layers` are its encoder's, and whose `vocab` the targets' */
        int64_t decoder_layers; /* 0: as many as layers */
        dt_norm_kind norm;
        int64_t source_vocab;   /* 0: the targets' */
        int64_t pad;            /* id that sentences end in, in batches */
        bool shared_embeddings; /* source, target and head are one matrix */
        double label_smoothing;
        /* mlp, whose width is `embed` */
        int64_t inputs, outputs; /* numbers of a row that go in; classes, or numbers predicted */
        dt_loss_kind loss;
    } model;

    dt_recompute_kind activation_checkpointing;
    bool cuda_graphs; /* what a GPU does step after step is recorded, and launched as one */

    struct {
        dt_precision_kind kind;
        double loss_scale;     /* fp16: the first one */
        int64_t scale_window;  /* fp16: clean steps before it doubles */
        double min_loss_scale; /* fp16: below it the run fails */
        bool tf32;             /* fp32 on GPUs: products may round their inputs to it */
    } precision;

    struct {
        dt_string_list train;      /* absolute paths or globs, after the recipe's folder */
        dt_string_list validation; /* files; empty: split */
        double split;              /* fraction at the end of the training text that validates */
        dt_tokens_kind tokens;
        const char *tokenizer; /* "": by `tokens`; "char", "byte", or a file or folder, absolute */
        const char *field;     /* of JSON lines, or column of .csv: what is the text */
        bool cross_documents;  /* attention and targets go from a document into the next */
        bool pack;             /* a sequence holds whole documents (engine/data/packs.h) */
        int64_t end_of_text;   /* id that ends documents; -1: the tokenizer's */
        const char *source, *target; /* of sentence pairs: the two languages (runner/corpus/) */
        const char *codes;           /* "" or a file of subword-nmt, absolute */
        dt_too_long_kind too_long;   /* pairs: what is over batch.tokens */
        dt_tail_kind tail;           /* the end of an epoch that fills no step */
        dt_ship_kind ship;           /* to nodes that lack the files */
    } data;

    struct {
        int64_t sequences;  /* per rank and micro-step */
        int64_t tokens;     /* per sequence (T) */
        int64_t max_tokens; /* pairs: of a batch, padding with them; 0: batches are of sequences */
        int64_t accumulate; /* micro-steps per step */
        int64_t
            total; /* sequences (pairs: tokens) per step over all ranks; 0: as accumulate gives */
    } batch;

    dt_optimizer_options optimizer;

    struct {
        dt_schedule_kind kind;
        int64_t steps;  /* of the whole run; 0: epochs say it */
        int64_t epochs; /* 0: steps say it; both: whichever is over first */
        int64_t warmup_steps;
        double warmup_init_lr; /* default min_lr */
        double min_lr;
        int64_t period_steps; /* 0: steps - warmup_steps */
        double period_mult, shrink;
        double power;        /* polynomial */
        int64_t decay_steps; /* warmup-stable-decay: the last so many */
    } schedule;

    double time_limit_seconds; /* 0: none */

    double clip; /* global gradient norm; 0: none */
    int64_t seed;

    struct {
        int64_t every;       /* steps; 0: only at the end */
        int64_t every_epoch; /* epochs; 0: none */
        int64_t sequences;   /* validation sequences per evaluation, all ranks together; 0: all */
        bool bleu;           /* of sentence pairs: they are translated too */
        int64_t beam;        /* of those translations, side by side */
    } evaluate;

    struct {
        int64_t every;       /* steps; 0: only at the end */
        int64_t keep;        /* the last K of those stay; 0: all */
        int64_t every_epoch; /* epochs; 0: none */
        int64_t keep_epochs; /* the last K of those stay; 0: all */
        int64_t keep_best;   /* the K best stay as well */
        dt_best_by best_by;
    } checkpoint;

    struct {
        int64_t every; /* steps between metrics */
    } log;

    double grace_seconds; /* between SIGTERM and SIGKILL at a stop */

    struct {
        int64_t max_restarts;
        const char *launcher_lost; /* "continue" or "stop_after 10m" (dt_launcher_lost_seconds) */
        double hang_seconds;       /* least time without a step that is a hang */
    } failure;

    struct {
        dt_search_kind kind;
        int64_t count;   /* random: points that are drawn */
        int64_t seed;    /* of the drawing */
        int64_t at_once; /* runs side by side; 0: as there are GPUs, or processors here */
        int64_t nodes;   /* that each run trains on; 0: all */
    } search;

    struct {
        const char *metric; /* "": none ends early */
        int64_t after;      /* steps */
        double keep;        /* fraction of the runs that continue */
    } early_stop;

    struct {
        const char *webhook; /* "" or a URL; "${env:NAME}" is filled in when it is used */
    } notify;
} dt_recipe;

#ifdef __cplusplus
}
#endif
#endif
