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

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_string_list {
    const char **items;
    int64_t count;
} dt_string_list;

typedef enum dt_strategy_kind { DT_STRATEGY_DDP } dt_strategy_kind;
typedef enum dt_model_kind { DT_MODEL_GPT2 } dt_model_kind;
typedef enum dt_precision_kind { DT_PRECISION_FP32, DT_PRECISION_BF16 } dt_precision_kind;
typedef enum dt_tokens_kind {
    DT_TOKENS_AUTO,   /* by the file: .bin with a magic = llmc, other .bin = nanogpt, else char */
    DT_TOKENS_CHAR,   /* one token per Unicode code point of the training text */
    DT_TOKENS_BYTE,   /* 256 tokens */
    DT_TOKENS_LLMC,   /* llm.c .bin, versions 1 (uint16) and 7 (uint32) */
    DT_TOKENS_NANOGPT /* bare uint16 */
} dt_tokens_kind;
typedef enum dt_optimizer_kind { DT_OPTIMIZER_ADAMW } dt_optimizer_kind;
typedef enum dt_schedule_kind { DT_SCHEDULE_COSINE } dt_schedule_kind;

typedef struct dt_recipe {
    const char *name; /* left out: the recipe file's stem */

    dt_string_list nodes; /* left out: {"localhost"} */
    int64_t gpus;         /* per node; -1: all that are found */
    int64_t ranks;        /* CPU ranks per node where there is no GPU; default 1 */
    int64_t threads;      /* per rank; 0: the node's cores divided by its ranks */

    struct {
        dt_strategy_kind kind;
        double bucket_mb;
    } strategy;

    struct {
        dt_model_kind kind;
        const char *preset; /* "" or "gpt2-small", ...: fills the dimensions that are left out */
        int64_t layers, heads, embed;
        int64_t vocab; /* 0: taken from the data; the engine pads it to a multiple of 128 */
        double dropout;
    } model;

    struct {
        dt_precision_kind kind;
    } precision;

    struct {
        dt_string_list train;      /* absolute paths or globs, after the recipe's folder */
        dt_string_list validation; /* files; empty: split */
        double split;              /* fraction at the end of the training text that validates */
        dt_tokens_kind tokens;
    } data;

    struct {
        int64_t sequences;  /* per rank and micro-step */
        int64_t tokens;     /* per sequence (T) */
        int64_t accumulate; /* micro-steps per step */
    } batch;

    struct {
        dt_optimizer_kind kind;
        double lr, beta1, beta2, eps, weight_decay;
    } optimizer;

    struct {
        dt_schedule_kind kind;
        int64_t steps; /* of the whole run */
        int64_t warmup_steps;
        double warmup_init_lr; /* default min_lr */
        double min_lr;
        int64_t period_steps; /* 0: steps - warmup_steps */
        double period_mult, shrink;
    } schedule;

    double clip; /* global gradient norm; 0: none */
    int64_t seed;

    struct {
        int64_t every;     /* steps; 0: only at the end */
        int64_t sequences; /* validation sequences per evaluation, all ranks together; 0: all */
    } evaluate;

    struct {
        int64_t every; /* steps; 0: only at the end */
        int64_t keep;  /* the last K stay; 0: all */
    } checkpoint;

    struct {
        int64_t every; /* steps between metrics */
    } log;

    double grace_seconds; /* between SIGTERM and SIGKILL at a stop */
} dt_recipe;

#ifdef __cplusplus
}
#endif
#endif
