/* llmc_flags: lists what each flag of llm.c's train_gpt2cu becomes, one flag per line. */
#include "runner/convert/llmc.h"

#define NO_SKIP "only steps with gradients that are not finite are skipped"
#define FINDS   "dtrun finds ports and addresses itself"

/* clang-format off */
static const dt_flag rows[] = {
    {"-i", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "data.train", NULL},
    {"-j", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "data.validation", NULL},
    {"-e", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "model.*: dimensions of d12, gpt2:d12, gpt3:c768 and the like", NULL},
    {"-o", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "a run has a folder of its own", NULL},
    {"-n", NULL, DT_TAKES_INT, DT_FLAG_PART, "checkpoint.every", NULL},
    {"-nk", NULL, DT_TAKES_INT, DT_FLAG_PART, "checkpoint.keep", NULL},
    {"-nm", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "dtrun does not keep checkpoints by their step number", "0"},
    {"-y", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "'dtrun resume' continues from the last checkpoint", "0"},
    {"-b", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.sequences", NULL},
    {"-t", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.tokens", NULL},
    {"-d", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.accumulate: this number divided by the tokens of all ranks", NULL},
    {"-x", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.steps; -1 or missing: one epoch", NULL},
    {"-k", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "schedule.kind; wsd is warmup_stable_decay", NULL},
    {"-l", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.lr", NULL},
    {"-u", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.warmup_steps", NULL},
    {"-q", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "schedule.min_lr: this fraction of -l", NULL},
    {"-c", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.weight_decay", NULL},
    {"-sl", NULL, DT_TAKES_NUMBER, DT_FLAG_LEFT, NO_SKIP, "0"},
    {"-sg", NULL, DT_TAKES_NUMBER, DT_FLAG_LEFT, NO_SKIP, "0"},
    {"-v", NULL, DT_TAKES_INT, DT_FLAG_PART, "evaluate.every", NULL},
    {"-m", NULL, DT_TAKES_INT, DT_FLAG_PART, "evaluate.sequences: this number of batches of all ranks", NULL},
    {"-s", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "'dtrun generate RUN' generates text from a checkpoint", "0"},
    {"-g", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "'dtrun generate RUN --tokens N' generates text from a checkpoint", NULL},
    {"-h", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "dtrun does not run HellaSwag; 'dtrun export --to hf' exports the model for other evaluators", "0"},
    {"-a", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "every step uses new samples", "0"},
    {"-f", NULL, DT_TAKES_INT, DT_FLAG_PART, "precision.tf32 of fp32", NULL},
    {"-w", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "parameters are always kept in fp32 as well", "1"},
    {"-ge", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "dtrun chooses the matrix multiplication algorithm", NULL},
    {"-z", NULL, DT_TAKES_INT, DT_FLAG_PART, "strategy: 0 is ddp; 1, 2, 3 are fsdp with shard: optimizer, gradients, full", NULL},
    {"-r", NULL, DT_TAKES_INT, DT_FLAG_PART, "activation_checkpointing: 0 and 1 (GELU) are none, 2 (norms) is selective", NULL},
    {"-pn", NULL, DT_TAKES_INT, DT_FLAG_PART, "gpus: processes of all nodes", NULL},
    {"-pg", NULL, DT_TAKES_INT, DT_FLAG_PART, "gpus", NULL},
    {"-pr", NULL, DT_TAKES_INT, DT_FLAG_LEFT, "one launch starts all ranks", NULL},
    {"-pi", "-pm", DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"-ps", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"-pf", "-pp", DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
};
/* clang-format on */

const dt_flag_table dt_llmc_flags = {
    .program = "llm.c", .flags = rows, .count = sizeof(rows) / sizeof(rows[0])};
