/* recipe: holds a recipe as typed fields, with every default filled in.
 *
 * The table in recipes/fields/fields.c is the only place that defines the name, type, unit, range, default and
 * help of a field. The runner reads recipes from YAML (reader.h), the engine from the plan's JSON; both use
 * this table.
 *
 * Ownership  strings and lists live in the arena that the reader was given
 * Units      in the names; sizes in elements of what is named
 */
#ifndef DT_RECIPES_FIELDS_RECIPE_H
#define DT_RECIPES_FIELDS_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "recipes/fields/activation.h"
#include "recipes/fields/model_table.h"
#include "recipes/fields/optimizer_table.h"
#include "recipes/fields/switch_table.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_string_list {
    const char **items;
    int64_t count;
} dt_string_list;

/* An array of structs; the field's table of items defines the struct (fields.h). */
typedef struct dt_map_list {
    void *items;
    int64_t count;
} dt_map_list;

/* A part of data.mixture. */
typedef struct dt_mixture_part {
    const char *name; /* unique */
    dt_string_list
        files; /* as many entries of data.train, in the order of the parts, are this part's */
    double weight;
} dt_mixture_part;
#define DT_MIXTURE_MOST 64

typedef enum dt_strategy_kind {
    DT_STRATEGY_DP,
    DT_STRATEGY_DDP,
    DT_STRATEGY_FSDP
} dt_strategy_kind;
/* What fsdp divides among the ranks: everything (ZeRO-3), gradients and optimizer state (ZeRO-2), or only the
 * optimizer state (ZeRO-1). */
typedef enum dt_shard_kind { DT_SHARD_FULL, DT_SHARD_GRADIENTS, DT_SHARD_OPTIMIZER } dt_shard_kind;
/* The ranks among which fsdp divides it: all, or those of a node, so that each node has a copy. */
typedef enum dt_within_kind { DT_WITHIN_RUN, DT_WITHIN_NODE } dt_within_kind;
#define DT_MODEL_ENUM(KIND, name) DT_MODEL_##KIND,
typedef enum dt_architecture_kind { DT_MODELS(DT_MODEL_ENUM) DT_MODEL_KINDS } dt_architecture_kind;
#define DT_LORA_RANK_MAX 4096
typedef enum dt_positions_kind { DT_POSITIONS_LEARNED, DT_POSITIONS_SINUSOIDAL } dt_positions_kind;
/* Scaling of rotary frequencies for contexts longer than the trained length. */
typedef enum dt_rope_scaling_kind {
    DT_ROPE_NONE,
    DT_ROPE_LINEAR,   /* all by the factor */
    DT_ROPE_LLAMA3,   /* long wavelengths by the factor, short ones not, interpolated between */
    DT_ROPE_YARN,     /* the same with other bounds, and larger scores (Peng et al. 2023) */
    DT_ROPE_LONGROPE, /* each wavelength by a factor of its own (Ding et al. 2024) */
    DT_ROPE_DYNAMIC   /* a larger base for sequences longer than the original ones */
} dt_rope_scaling_kind;
/* Where a block of kind llama has norms: before attention and perceptron, after them (before the residual sum), or
 * both. */
typedef enum dt_block_norms_kind {
    DT_BLOCK_NORMS_BEFORE,
    DT_BLOCK_NORMS_AFTER,
    DT_BLOCK_NORMS_BOTH
} dt_block_norms_kind;
/* Position of a block's norms: before each sublayer, or after the residual sum (Xiong et al. 2020). */
typedef enum dt_norm_kind { DT_NORM_POST, DT_NORM_PRE } dt_norm_kind;
typedef enum dt_loss_kind { DT_LOSS_CROSS_ENTROPY, DT_LOSS_SQUARED_ERROR } dt_loss_kind;
typedef enum dt_recompute_kind {
    DT_RECOMPUTE_NONE,      /* only what follows an activation function (GELU, ReLU, a gate) */
    DT_RECOMPUTE_SELECTIVE, /* recomputes activations that are cheap to compute and large to keep */
    DT_RECOMPUTE_FULL,      /* keeps only the input of each block */
    DT_RECOMPUTE_NOTHING /* keeps everything that backward reads, and fewer, larger chunks of logits */
} dt_recompute_kind;
typedef enum dt_precision_kind {
    DT_PRECISION_FP32,
    DT_PRECISION_BF16,
    DT_PRECISION_FP16
} dt_precision_kind;
typedef enum dt_best_by { DT_BEST_BY_VALID_LOSS, DT_BEST_BY_VALID_BLEU } dt_best_by;
typedef enum dt_reduce_kind { DT_REDUCE_FP32, DT_REDUCE_BF16 } dt_reduce_kind;
typedef enum dt_tokens_kind {
    DT_TOKENS_AUTO, /* by the file: .bin with llm.c's magic: llmc; .bin with a fairseq .idx: as the index says;
                     * other .bin: nanogpt; else char */
    DT_TOKENS_CHAR,    /* one token per Unicode code point of the training text */
    DT_TOKENS_BYTE,    /* 256 tokens */
    DT_TOKENS_LLMC,    /* llm.c .bin, versions 1 (uint16) and 7 (uint32) */
    DT_TOKENS_NANOGPT, /* bare uint16 */
    DT_TOKENS_UINT8,   /* bare ids of this width, as fairseq writes them */
    DT_TOKENS_INT32,
    DT_TOKENS_INT64,
    DT_TOKENS_PAIRS, /* sentence pairs as ids (engine/data/sentences.h) */
    DT_TOKENS_CHATS, /* conversations as ids with weights (engine/data/chats.h) */
    DT_TOKENS_ROWS   /* .csv, for models on rows; not a value of recipes */
} dt_tokens_kind;
typedef enum dt_tail_kind { DT_TAIL_WRAP, DT_TAIL_DROP } dt_tail_kind;
typedef enum dt_empty_kind { DT_EMPTY_REFUSE, DT_EMPTY_DROP } dt_empty_kind;
typedef enum dt_too_long_kind {
    DT_TOO_LONG_REFUSE,
    DT_TOO_LONG_DROP,
    DT_TOO_LONG_CUT
} dt_too_long_kind;
typedef enum dt_data_format { DT_DATA_TEXT, DT_DATA_CHAT } dt_data_format;
/* What the loss of a step is the mean of, for conversations. */
typedef enum dt_loss_mean { DT_MEAN_OF_TOKENS, DT_MEAN_OF_CONVERSATIONS } dt_loss_mean;
typedef enum dt_ship_kind { DT_SHIP_AUTO, DT_SHIP_NEVER } dt_ship_kind;
typedef enum dt_schedule_kind {
    DT_SCHEDULE_COSINE,
    DT_SCHEDULE_INVERSE_SQRT,
    DT_SCHEDULE_LINEAR,
    DT_SCHEDULE_POLYNOMIAL,
    DT_SCHEDULE_CONSTANT,
    DT_SCHEDULE_WARMUP_STABLE_DECAY
} dt_schedule_kind;

/* What the ranks do. GENERATE and SCORE process lines with a checkpoint of another run (plan.h); such a run's
 * resolved recipe is that of the checkpoint, except for the fields of fields.h. COMMAND runs a program of
 * the user in each rank (runner/agent/program/). */
typedef enum dt_task_kind {
    DT_TASK_TRAIN,
    DT_TASK_GENERATE,
    DT_TASK_SCORE,
    DT_TASK_COMMAND,
    DT_TASK_EVALUATE /* rows of evaluation tasks, otherwise as GENERATE */
} dt_task_kind;

/* The lines of a command's output that are metrics. */
typedef enum dt_output_metrics_kind {
    DT_OUTPUT_METRICS_NONE,
    DT_OUTPUT_METRICS_JSON,
    DT_OUTPUT_METRICS_TENSORBOARD
} dt_output_metrics_kind;

/* The signal that asks a command to end. */
typedef enum dt_stop_signal {
    DT_STOP_TERM,
    DT_STOP_INT,
    DT_STOP_HUP,
    DT_STOP_USR1,
    DT_STOP_USR2,
    DT_STOP_QUIT
} dt_stop_signal;

/* How a sweep selects its points (recipes/read/reader.h). */
typedef enum dt_search_kind { DT_SEARCH_GRID, DT_SEARCH_ZIP, DT_SEARCH_RANDOM } dt_search_kind;

typedef struct dt_recipe {
    const char *name; /* default: the recipe file's stem */
    dt_task_kind task;

    /* One node for each item, ranges and hostfile expanded: "HOST" or "USER@HOST", followed by " gpus=N",
     * " first_gpu=N" or " ranks=N" if set for this node (recipes/fields/nodes.h); or "slurm:N", or "slurm". Default:
     * {"localhost"} */
    dt_string_list nodes;
    const char *hostfile; /* "" or a file of nodes */
    bool preempt;         /* the queue may stop the run for one of a higher priority */
    int64_t nodes_min;    /* with fewer nodes the run ends; 0: all are needed */
    int64_t gpus;         /* per node; -1: all that exist */
    int64_t ranks;        /* CPU ranks per node without a GPU; default 1 */
    int64_t threads;      /* per rank (dp: per replica); 0: the node's cores divided by its ranks */

    struct {
        int64_t size;      /* ranks that divide every layer (engine/comm/mesh.h) */
        bool across_nodes; /* they may be on several nodes */
    } tensor;

    struct {
        const char *interface; /* "": detected; or a name, an address or a subnet "10.0.0.0/24" */
    } network;

    struct {
        dt_string_list options; /* for sbatch, each "--name" or "--name=value" */
    } slurm;

    struct {
        dt_strategy_kind kind;
        double bucket_mb, first_bucket_mb;
        dt_shard_kind shard;   /* fsdp */
        dt_within_kind within; /* fsdp */
        bool
            reshard_after_forward; /* fsdp, full: gathered weights are freed until the backward pass */
        dt_reduce_kind reduce_dtype;
        bool
            reduce_each_micro_step; /* fsdp; false: full gradients are kept until the last micro-step */
    } strategy;

    struct {
        dt_architecture_kind kind;
        const char *preset; /* "" or "gpt2-small", ...: sets dimensions that are left out */
        const char *
            from; /* "", or the source of the initial parameters (recipes/foreign/weights.h), absolute */
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
        double norm_eps;
        DT_SWITCHES(DT_SWITCH_MEMBER)
        const char *family; /* "", or the model_type of Hugging Face's that an export gets */
        /* transformer: `layers` is for the encoder, `vocab` for the targets */
        int64_t decoder_layers; /* 0: equal to layers */
        dt_norm_kind norm;
        int64_t source_vocab;   /* 0: equal to vocab */
        int64_t pad;            /* id that pads sentences in a batch */
        bool shared_embeddings; /* source embedding, target embedding and head are one matrix */
        double label_smoothing;
        /* mlp, whose width is `embed` */
        int64_t inputs, outputs; /* input columns of a row; classes, or predicted numbers */
        dt_loss_kind loss;
    } model;

    struct {
        double beta; /* 0: the data are no pairs of answers */
    } dpo;

    struct {
        int64_t rank; /* 0: all parameters are trained */
        const char *
            from; /* "", or a folder of PEFT whose adapter is trained further (recipes/foreign/peft.h), absolute */
        double alpha;           /* 0: twice the rank */
        dt_string_list targets; /* names of the kind's dt_lora_target, or "all" */
        double dropout;
        bool rslora; /* the adapter's term is divided by the root of the rank, not by the rank */
    } lora;

    dt_recompute_kind activation_checkpointing;
    bool cuda_graphs; /* steps on a GPU are recorded and launched as CUDA graphs */

    struct {
        dt_precision_kind kind;
        double loss_scale;     /* fp16: initial scale */
        int64_t scale_window;  /* fp16: steps without overflow before the scale doubles */
        double min_loss_scale; /* fp16: the run fails below this scale */
        bool tf32;             /* fp32 on GPUs: products may round their inputs to TF32 */
    } precision;

    struct {
        dt_string_list train;      /* absolute paths or globs */
        dt_string_list validation; /* files; empty: use split */
        double
            split; /* fraction at the end of the training text, or of each part, for validation */
        dt_map_list
            mixture; /* of dt_mixture_part, whose files are `train`; empty: train as a whole */
        dt_data_format format;
        const char *chat_template; /* "": the one in the tokenizer's folder; or an absolute file */
        dt_loss_mean loss;         /* conversations */
        dt_tokens_kind tokens;
        const char
            *tokenizer;    /* "": as `tokens` says; "char", "byte", or an absolute file or folder */
        const char *field; /* key of JSON lines, or column of .csv, that has the text */
        bool cross_documents; /* attention and targets cross document boundaries */
        bool pack;            /* sequences are filled with whole documents (engine/data/stream.h) */
        int64_t end_of_text;  /* id that ends documents; -1: the tokenizer's */
        const char *source, *target; /* sentence pairs: the two languages (runner/corpus/) */
        const char *codes;           /* "" or an absolute file of subword-nmt codes */
        dt_empty_kind empty;         /* pairs with an empty side */
        dt_too_long_kind too_long;   /* pairs and conversations longer than batch.tokens */
        dt_tail_kind tail;           /* the end of an epoch that does not fill a step */
        dt_ship_kind ship;           /* copy files to nodes that lack them */
    } data;

    struct {
        int64_t sequences; /* per rank and micro-step */
        int64_t tokens;    /* per sequence (T) */
        int64_t
            max_tokens; /* pairs: tokens of a batch, including padding; 0: batches are counted in sequences */
        int64_t accumulate; /* micro-steps per step */
        int64_t
            total; /* sequences (pairs: tokens) per step over all ranks; 0: accumulate sets it */
    } batch;

    dt_optimizer_options optimizer;

    struct {
        dt_schedule_kind kind;
        int64_t steps;  /* length of the whole run; 0: set by epochs */
        int64_t epochs; /* 0: set by steps; with both the shorter one counts */
        int64_t warmup_steps;
        double warmup_init_lr; /* default min_lr */
        double min_lr;
        int64_t period_steps; /* 0: steps - warmup_steps */
        double period_mult, shrink;
        double power;        /* polynomial */
        int64_t decay_steps; /* warmup_stable_decay: number of last steps that decay */
    } schedule;

    double time_limit_seconds; /* 0: none */

    double clip; /* global gradient norm; 0: none */
    int64_t seed;

    struct {
        int64_t every;        /* steps; 0: only at the end */
        int64_t every_epoch;  /* epochs; 0: none */
        int64_t sequences;    /* validation sequences per evaluation, all ranks together; 0: all */
        bool bleu;            /* sentence pairs: also translate them and compute BLEU */
        int64_t beam;         /* beam size of the translations for BLEU */
        dt_string_list tasks; /* files of evaluation tasks */
        int64_t tasks_every;  /* steps; 0: with each validation */
        dt_string_list samples; /* prompts that the model continues at each evaluation */
        int64_t samples_tokens; /* new tokens of each, at most */
        double samples_temperature;
        int64_t samples_top_k;
        double samples_top_p;
        int64_t samples_seed; /* prompt i uses this + i */
    } evaluate;

    struct {
        int64_t every;       /* steps; 0: only at the end */
        int64_t keep;        /* the newest K are kept; 0: all */
        int64_t every_epoch; /* epochs; 0: none */
        int64_t keep_epochs; /* the newest K of them are kept; 0: all */
        int64_t keep_best;   /* the K best are kept as well */
        dt_best_by best_by;
    } checkpoint;

    struct {
        int64_t every; /* steps between metrics */
        bool system;   /* record what the nodes are used for */
    } log;

    double grace_seconds; /* between SIGTERM and SIGKILL at a stop */

    struct {
        int64_t max_restarts;
        const char *launcher_lost; /* "continue" or "stop_after 10m" (dt_launcher_lost_seconds) */
        double hang_seconds;       /* shortest time without a step that counts as a hang */
    } failure;

    struct {
        dt_search_kind kind;
        int64_t count;   /* random: number of points */
        int64_t seed;    /* seed of the random choice */
        int64_t at_once; /* concurrent runs; 0: as many as free GPUs or processors allow */
        int64_t nodes;   /* nodes that each run trains on; 0: all */
    } search;

    struct {
        const char *metric; /* "": no run is stopped early */
        int64_t after;      /* steps */
        double keep;        /* fraction of the runs that continue */
    } early_stop;

    struct {
        const char *webhook; /* "" or a URL; "${env:NAME}" is filled in when it is used */
    } notify;

    struct {
        const char *run;    /* "" if the task is to train; else RUN, RUN@STEP or RUN@best */
        const char *input;  /* the file with the lines */
        const char *target; /* score, sentence pairs: the translations to score; "": none */
        const char *output; /* "": a file in the folder of the run */
        bool replace;       /* replace an existing output */
    } lines;

    struct {
        int64_t tokens; /* per line */
        int64_t batch;  /* lines decoded together */
        int64_t beam;
        double length_penalty;
        dt_string_list stop;
        bool past_end, no_special;
        double temperature;
        int64_t top_k; /* 0: all */
        double top_p, repetition_penalty;
    } generate;

    dt_string_list command; /* program and arguments; with `shell` one text for sh -c */
    bool shell;
    const char *processes; /* "gpu", "node" or a number (fields.h) */
    struct {
        const char *folder; /* absolute; "" if the task is another */
        dt_ship_kind ship;  /* send the folder to nodes that do not share it */
        int64_t max_mb;     /* most that is sent */
    } workdir;
    const char *activate;   /* a line for a login shell before setup and command; "": none */
    const char *setup;      /* for sh -c, before the first start on a node; "": none */
    dt_string_list collect; /* relative to the folder; brought to the run's folder at the end */
    dt_string_list args;    /* each "NAME=value", for {args.NAME} in command and resume */
    dt_string_list env;     /* each "NAME=value"; values may hold "${env:NAME}" */
    struct {
        dt_output_metrics_kind kind;
        const char *pattern; /* "" or an expression with named groups (base/named_groups.h) */
        const char *
            file; /* "" (output of rank 0), a file that the program writes, or a folder of event files */
    } metrics;
    struct {
        const char *path;   /* "" or a pattern of files or folders (runner/agent/program/saves.c) */
        const char *marker; /* "" or a file in each folder, which makes it complete */
        double settle_seconds;
        int64_t max_mb; /* most that is brought to the launch machine; 0: nothing is */
    } checkpoints;
    dt_string_list resume; /* words added to the command when it continues from a checkpoint */
    dt_stop_signal stop_signal;
} dt_recipe;

/* Whether tokens attend to and predict only their own document, or conversation. */
static inline bool dt_recipe_separates(const dt_recipe *recipe)
{
    return !recipe->data.cross_documents || recipe->data.format == DT_DATA_CHAT;
}

static inline const dt_mixture_part *dt_recipe_part(const dt_recipe *recipe, int64_t part)
{
    return (const dt_mixture_part *)recipe->data.mixture.items + part;
}

/* Returns the entries of data.train that are of this part. */
static inline dt_string_list dt_recipe_part_files(const dt_recipe *recipe, int64_t part)
{
    dt_string_list files = {recipe->data.train.items, dt_recipe_part(recipe, part)->files.count};

    for (int64_t i = 0; i < part; i++)
        files.items += dt_recipe_part(recipe, i)->files.count;
    return files;
}

/* Returns the share of a part in training: its weight over the sum of all. */
static inline double dt_recipe_part_share(const dt_recipe *recipe, int64_t part)
{
    double sum = 0;

    for (int64_t i = 0; i < recipe->data.mixture.count; i++)
        sum += dt_recipe_part(recipe, i)->weight;
    return dt_recipe_part(recipe, part)->weight / sum;
}

/* Returns how many of world_size ranks, at least 1, read different samples: 'tensor' ranks read the same. */
static inline int64_t dt_recipe_data_ranks(const dt_recipe *recipe, int64_t world_size)
{
    int64_t tensor = recipe->tensor.size > 1 ? recipe->tensor.size : 1;

    return world_size > tensor ? world_size / tensor : 1;
}

/* Returns among how many ranks fsdp divides what a tensor rank holds; 1: the strategy divides nothing.
 * node_ranks: ranks on each node; 0: all. */
static inline int64_t dt_recipe_shard_ranks(const dt_recipe *recipe, int64_t world_size,
                                            int64_t node_ranks)
{
    bool node = recipe->strategy.within == DT_WITHIN_NODE && node_ranks > 0;

    if (recipe->strategy.kind != DT_STRATEGY_FSDP)
        return 1;
    return dt_recipe_data_ranks(recipe, node ? node_ranks : world_size);
}

#ifdef __cplusplus
}
#endif
#endif
