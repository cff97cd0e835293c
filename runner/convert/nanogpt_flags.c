/* nanogpt_flags: lists what each name in nanoGPT's settings files becomes, one name per line. */
#include "runner/convert/nanogpt.h"

#define OWN_LOG "dtrun keeps its history itself; 'dtrun serve' shows it"

/* clang-format off */
static const dt_flag rows[] = {
    {"dataset", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "data.train, data.validation: data/NAME/train.bin, val.bin", NULL},
    {"batch_size", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.sequences", NULL},
    {"block_size", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.tokens", NULL},
    {"gradient_accumulation_steps", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.accumulate: nanoGPT's value divided by the ranks", NULL},
    {"n_layer", NULL, DT_TAKES_INT, DT_FLAG_PART, "model.layers", NULL},
    {"n_head", NULL, DT_TAKES_INT, DT_FLAG_PART, "model.heads", NULL},
    {"n_embd", NULL, DT_TAKES_INT, DT_FLAG_PART, "model.embed", NULL},
    {"dropout", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "model.dropout, attention_dropout", NULL},
    {"bias", NULL, DT_TAKES_BOOL, DT_FLAG_PART, "nothing if it is True; dtrun's gpt2 has biases", NULL},
    {"vocab_size", NULL, DT_TAKES_INT, DT_FLAG_FIELD, "model.vocab", NULL},
    {"init_from", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "model.*: dimensions of gpt2, gpt2-medium and so on", NULL},
    {"learning_rate", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.lr", NULL},
    {"weight_decay", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.weight_decay", NULL},
    {"beta1", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.beta1", NULL},
    {"beta2", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.beta2", NULL},
    {"grad_clip", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "clip", NULL},
    {"decay_lr", NULL, DT_TAKES_BOOL, DT_FLAG_PART, "schedule.kind: cosine; False: constant", NULL},
    {"warmup_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.warmup_steps", NULL},
    {"lr_decay_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "nothing if it is max_iters; otherwise schedule.period_steps", NULL},
    {"min_lr", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "schedule.min_lr", NULL},
    {"max_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.steps", NULL},
    {"eval_interval", NULL, DT_TAKES_INT, DT_FLAG_PART, "evaluate.every", NULL},
    {"eval_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "evaluate.sequences: times batch_size", NULL},
    {"eval_only", NULL, DT_TAKES_BOOL, DT_FLAG_LEFT, "a run trains", "False"},
    {"always_save_checkpoint", NULL, DT_TAKES_BOOL, DT_FLAG_PART, "checkpoint: at every evaluation; False: only the best", NULL},
    {"log_interval", NULL, DT_TAKES_INT, DT_FLAG_PART, "log.every", NULL},
    {"seed", NULL, DT_TAKES_INT, DT_FLAG_FIELD, "seed", NULL},
    {"dtype", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "precision", NULL},
    {"device", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "cpu: gpus: none", NULL},
    {"compile", NULL, DT_TAKES_BOOL, DT_FLAG_LEFT, "dtrun's steps are compiled", "False"},
    {"backend", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "NCCL between GPUs, Gloo between CPUs", "nccl"},
    {"out_dir", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "a run has a folder of its own", NULL},
    {"wandb_log", NULL, DT_TAKES_BOOL, DT_FLAG_LEFT, OWN_LOG, "False"},
    {"wandb_project", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, OWN_LOG, NULL},
    {"wandb_run_name", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, OWN_LOG, NULL},
};
/* clang-format on */

const dt_flag_table dt_nanogpt_flags = {
    .program = "nanoGPT", .flags = rows, .count = sizeof(rows) / sizeof(rows[0])};
