/* fields: defines each field of a recipe: its path, type, limits, default and help. */
#include "recipes/fields/fields.h"

#include "recipes/fields/presets.h"

/* In the order of the enumerations of recipe.h. */
static const char *const strategies[] = {"dp", "ddp", "fsdp", NULL};
static const char *const precisions[] = {"fp32", "bf16", "fp16", NULL};
static const char *const tokenizer_words[] = {"char", "byte", NULL};
static const char *const token_kinds[] = {"auto",  "char",  "byte",  "llmc",  "nanogpt", "uint8",
                                          "int32", "int64", "pairs", "chats", NULL};
#define NAMED(KIND, name, ...) #name,
static const char *const models[] = {DT_MODELS(NAMED) NULL};
static const char *const optimizers[] = {DT_OPTIMIZERS(NAMED) NULL};
static const char *const adjust_lrs[] = {"original", "match_rms_adamw", NULL};
static const char *const moments[] = {"fp32", "bf16", NULL};
static const char *const variants[] = {"pytorch", "fairseq", NULL};
static const char *const schedules[] = {"cosine",   "inverse_sqrt",        "linear", "polynomial",
                                        "constant", "warmup_stable_decay", NULL};
static const char *const decays[] = {"matrices", "all", NULL};
static const char *const shards[] = {"full", "gradients", "optimizer", NULL};
static const char *const withins[] = {"run", "node", NULL};
static const char *const best_bys[] = {"valid_loss", "valid_bleu", NULL};
static const char *const reduces[] = {"fp32", "bf16", NULL};
static const char *const positions[] = {"learned", "sinusoidal", NULL};
static const char *const activations[] = {"gelu_tanh", "gelu", "relu", "tanh", NULL};
static const char *const rope_scalings[] = {"none",     "linear",  "llama3", "yarn",
                                            "longrope", "dynamic", NULL};
static const char *const block_norms[] = {"before", "after", "both", NULL};
static const char *const gates[] = {"silu", "gelu_tanh", "gelu", NULL};
static const char *const norms[] = {"post", "pre", NULL};
static const char *const losses[] = {"cross_entropy", "squared_error", NULL};
static const char *const recomputes[] = {"none", "selective", "full", "keep_all", NULL};
static const char *const tasks[] = {"train", "generate", "score", "command", "evaluate", NULL};
static const char *const output_metrics[] = {"none", "json", "tensorboard", NULL};
static const char *const stop_signals[] = {"TERM", "INT", "HUP", "USR1", "USR2", "QUIT", NULL};
static const char *const searches[] = {"grid", "zip", "random", NULL};
static const char *const tails[] = {"wrap", "drop", NULL};
static const char *const empties[] = {"refuse", "drop", NULL};
static const char *const too_longs[] = {"refuse", "drop", "cut", NULL};
static const char *const data_formats[] = {"text", "chat", NULL};
static const char *const loss_means[] = {"token", "conversation", NULL};
static const char *const ships[] = {"auto", "never", NULL};
#define NAME(preset, ...) preset,
static const char *const presets[] = {DT_PRESETS(NAME) NULL};

/* Other names of a field, as in recipes of other programs. */
#define ALSO(...)                    \
    .aliases = (const char *const[]) \
    {                                \
        __VA_ARGS__, NULL            \
    }

#define AT(member) .offset = offsetof(dt_recipe, member)

#define MILLION 1e6
#define BILLION 1e9

#define IN(type, member) .offset = offsetof(type, member)

/* clang-format off */ /* one paragraph for each field */
static const dt_field mixture_fields[] = {
    {.path = "name",
     .type = DT_FIELD_STRING,
     IN(dt_mixture_part, name),
     .fallback = "",
     .help = "the part's name where shares are shown; by default that of its first file"},
    {.path = "files",
     .type = DT_FIELD_STRINGS,
     IN(dt_mixture_part, files),
     .low = 1,
     .high = 10000,
     .paths = true,
     .help = "the part's files, as in data.train"},
    {.path = "weight",
     .type = DT_FIELD_NUMBER,
     IN(dt_mixture_part, weight),
     .low = 0,
     .low_open = true,
     .high = 1e15,
     .help = "its share is this over the sum of all weights"},
};
static const dt_field_table mixture_parts = {
    mixture_fields, sizeof(mixture_fields) / sizeof(mixture_fields[0]), sizeof(dt_mixture_part)};

const dt_field dt_fields[] = {
    {.path = "name",
     .type = DT_FIELD_STRING,
     AT(name),
     .derived = "the file's name without its ending",
     .help = "the name of the run in lists: 1 to 64 letters, digits, '.', '_' or '-'"},
    {.path = "task",
     .type = DT_FIELD_CHOICE,
     AT(task),
     .choices = tasks,
     .fallback = "train",
     .help = "what the ranks do: train; generate or score lines of a file, or evaluate tasks, with "
             "another run's checkpoint; or run another program, which 'command' implies"},

    {.path = "nodes",
     .type = DT_FIELD_STRINGS,
     AT(nodes),
     .low = 1,
     .high = 1024,
     .fallback = "localhost",
     .help = "machines that train: ssh destinations, ranges like gpu[01-16]; slurm:4 for "
             "four nodes of a Slurm cluster, slurm for the job that dtrun runs in"},
    {.path = "hostfile",
     .type = DT_FIELD_STRING,
     AT(hostfile),
     .fallback = "",
     .paths = true,
     .help = "a file with one node a line, \"host slots=8\"; instead of nodes"},
    {.path = "nodes_min",
     .type = DT_FIELD_INT,
     AT(nodes_min),
     .unit = "nodes",
     .low = 0,
     .high = 1024,
     .fallback = "0",
     .help = "a run that lost nodes continues if at least this many are left; 0: all are "
             "needed"},
    {.path = "preempt",
     .type = DT_FIELD_BOOL,
     AT(preempt),
     .fallback = "true",
     .help = "the queue may stop the run for one of a higher priority, and continues it later; a "
             "command only if it has 'checkpoints' (docs/queue.md)"},
    {.path = "gpus",
     .type = DT_FIELD_INT,
     AT(gpus),
     .unit = "per node",
     .low = -1,
     .high = 1024,
     .fallback = "-1",
     .zero_word = "none",
     .count_of = "how many, not which ones; -1: all",
     .help = "devices that train, one rank each; -1 uses all devices found, or the CPU if "
             "there are none; 0 or 'none': the CPU"},
    {.path = "ranks",
     .type = DT_FIELD_INT,
     AT(ranks),
     .unit = "per node",
     .low = 1,
     .high = 1024,
     .fallback = "1",
     .help = "processes that train on the CPU of a node, each with its share of the batch; "
             "if more than 'gpus', they share the devices"},
    {.path = "threads",
     .type = DT_FIELD_INT,
     AT(threads),
     .unit = "per rank",
     .low = 0,
     .high = 1024,
     .fallback = "0",
     .help = "0 divides the cores of a node among its ranks"},
    {.path = "tensor.size",
     .type = DT_FIELD_INT,
     AT(tensor.size),
     .unit = "ranks",
     .low = 1,
     .high = 1024,
     .fallback = "1",
     .shorthand = true,
     .help = "ranks of a node that divide every layer among them and read the same samples (tensor "
             "parallelism); divides the ranks of each node"},
    {.path = "tensor.across_nodes",
     .type = DT_FIELD_BOOL,
     AT(tensor.across_nodes),
     .fallback = "false",
     .help = "ranks that divide layers may be on several nodes, which then exchange every "
             "sum within a layer; size then divides the ranks of all nodes"},
    {.path = "network.interface",
     .type = DT_FIELD_STRING,
     AT(network.interface),
     .fallback = "",
     .shorthand = true,
     .help = "interface between ranks of different nodes: a name, an address or a subnet; "
             "by default the one that ssh reached the node by"},
    {.path = "slurm.options",
     .type = DT_FIELD_STRINGS,
     AT(slurm.options),
     .low = 0,
     .high = 64,
     .fallback = "[]",
     .shorthand = true,
     .help = "options of sbatch for the job that 'nodes: slurm:N' submits, for example "
             "[--partition=gpu, --time=12:00:00, --gres=gpu:8]"},

    {.path = "strategy.kind",
     .type = DT_FIELD_CHOICE,
     AT(strategy.kind),
     .choices = strategies,
     .fallback = "ddp",
     .shorthand = true,
     .help = "how the ranks share the work; ddp gives each rank a copy of the model and "
             "sums the gradients while they are computed"},
    {.path = "strategy.bucket_mb",
     .type = DT_FIELD_NUMBER,
     AT(strategy.bucket_mb),
     .unit = "MB",
     .low = 0,
     .low_open = true,
     .high = 65536,
     .fallback = "25",
     .help = "gradients are sent in buckets of at most this size"},
    {.path = "strategy.first_bucket_mb",
     .type = DT_FIELD_NUMBER,
     AT(strategy.first_bucket_mb),
     .unit = "MB",
     .low = 0,
     .low_open = true,
     .high = 65536,
     .fallback = "1",
     .help = "size of the first bucket, smaller so that sending starts early"},
    {.path = "strategy.shard",
     .type = DT_FIELD_CHOICE,
     AT(strategy.shard),
     .choices = shards,
     .fallback = "full",
     .help = "fsdp: what is divided among the ranks; full: parameters, gradients and "
             "optimizer state; gradients: all but the parameters; optimizer: only its state"},
    {.path = "strategy.within",
     .type = DT_FIELD_CHOICE,
     AT(strategy.within),
     .choices = withins,
     .fallback = "run",
     .help = "fsdp: group of ranks that shares one copy; run: all ranks; node: those of a "
             "node, so that each node has a copy (hybrid sharding)"},
    {.path = "strategy.reshard_after_forward",
     .type = DT_FIELD_BOOL,
     AT(strategy.reshard_after_forward),
     .fallback = "true",
     .help = "fsdp with shard full: gathered parameters are freed after the forward pass "
             "and gathered again for the backward pass"},
    {.path = "strategy.reduce_dtype",
     .type = DT_FIELD_CHOICE,
     AT(strategy.reduce_dtype),
     .choices = reduces,
     .fallback = "fp32",
     .help = "type in which gradients are sent"},
    {.path = "strategy.reduce_each_micro_step",
     .type = DT_FIELD_BOOL,
     AT(strategy.reduce_each_micro_step),
     .fallback = "true",
     .help = "fsdp: gradients are divided after every micro-step, which saves memory; false "
             "divides them only after the last one, which sends less"},

#include "recipes/fields/fields_model.inc"
    {.path = "activation_checkpointing",
     .type = DT_FIELD_CHOICE,
     AT(activation_checkpointing),
     .choices = recomputes,
     .fallback = "none",
     .help = "which activations are recomputed in the backward pass instead of kept; "
             "none: only outputs of GELU, ReLU and gates; selective: cheap ones; full: all but the "
             "input of each block; keep_all: nothing, which takes more memory than none"},
    {.path = "cuda_graphs",
     .type = DT_FIELD_BOOL,
     AT(cuda_graphs),
     .fallback = "true",
     .help = "GPUs: steps are recorded and launched as CUDA graphs; false: kernel by "
             "kernel, for debugging"},

    {.path = "precision.kind",
     .type = DT_FIELD_CHOICE,
     AT(precision.kind),
     .choices = precisions,
     .fallback = "fp32",
     .shorthand = true,
     .help = "type of activations and of the weights in products; bf16 keeps parameters, "
             "gradients and sums in fp32"},
    {.path = "precision.loss_scale",
     .type = DT_FIELD_NUMBER,
     AT(precision.loss_scale),
     .low = 0,
     .low_open = true,
     .high = 4294967296,
     .fallback = "65536",
     .help = "fp16: initial factor of the loss, so that small gradients do not vanish"},
    {.path = "precision.scale_window",
     .type = DT_FIELD_INT,
     AT(precision.scale_window),
     .unit = "steps",
     .low = 1,
     .high = BILLION,
     .fallback = "2000",
     .help = "fp16: steps without overflow before the scale doubles"},
    {.path = "precision.min_loss_scale",
     .type = DT_FIELD_NUMBER,
     AT(precision.min_loss_scale),
     .low = 0,
     .high = 4294967296,
     .fallback = "1e-4",
     .help = "fp16: the run fails when the scale falls below this"},
    {.path = "precision.tf32",
     .type = DT_FIELD_BOOL,
     AT(precision.tf32),
     .fallback = "false",
     .help = "fp32 on GPUs: products may round their inputs to 10 bits of mantissa, which "
             "is several times faster"},

#include "recipes/fields/fields_data.inc"
#include "recipes/fields/fields_optimizer.inc"
    {.path = "time_limit",
     .type = DT_FIELD_DURATION,
     AT(time_limit_seconds),
     .low = 0,
     .high = 3153600000,
     .fallback = "0",
     .help = "the run saves and ends after this time; 0: no limit"},

    {.path = "clip",
     .type = DT_FIELD_NUMBER,
     AT(clip),
     .low = 0,
     .high = MILLION,
     .fallback = "1",
     ALSO("grad_clip", "max_grad_norm"),
     .help = "largest global gradient norm; a larger gradient is scaled down to it; 0: no "
             "clipping"},
    {.path = "seed",
     .type = DT_FIELD_INT,
     AT(seed),
     .low = 0,
     .high = 9007199254740991.0,
     .fallback = "1337",
     .help = "seed of initial weights, order of the data and dropout"},

    {.path = "evaluate.every",
     .type = DT_FIELD_INT,
     AT(evaluate.every),
     .unit = "steps",
     .low = 0,
     .high = BILLION,
     .fallback = "250",
     .shorthand = true,
     .help = "steps between validations; 0: only at the end, and as every_epoch sets"},
    {.path = "evaluate.every_epoch",
     .type = DT_FIELD_INT,
     AT(evaluate.every_epoch),
     .unit = "epochs",
     .low = 0,
     .high = MILLION,
     .fallback = "0",
     .help = "epochs between additional validations, each after the step that ends an "
             "epoch; 0: none"},
    {.path = "evaluate.sequences",
     .type = DT_FIELD_INT,
     AT(evaluate.sequences),
     .unit = "all ranks together",
     .low = 0,
     .high = BILLION,
     .fallback = "256",
     .help = "validation sequences that each evaluation uses; 0: all"},
    {.path = "evaluate.bleu",
     .type = DT_FIELD_BOOL,
     AT(evaluate.bleu),
     .fallback = "false",
     .help = "sentence pairs: evaluations also translate their sentences and report BLEU as "
             "valid_bleu"},
    {.path = "evaluate.beam",
     .type = DT_FIELD_INT,
     AT(evaluate.beam),
     .low = 1,
     .high = 64,
     .fallback = "1",
     .help = "beam size of the translations for BLEU; 1: greedy"},
    {.path = "evaluate.tasks",
     .type = DT_FIELD_STRINGS,
     AT(evaluate.tasks),
     .low = 0,
     .high = 256,
     .fallback = "[]",
     .paths = true,
     .help = "files of evaluation tasks (docs/evaluation.md), evaluated during training and at "
             "its end"},
    {.path = "evaluate.tasks_every",
     .type = DT_FIELD_INT,
     AT(evaluate.tasks_every),
     .unit = "steps",
     .low = 0,
     .high = BILLION,
     .fallback = "0",
     .help = "steps between evaluations of tasks; 0: with each validation"},
    {.path = "evaluate.samples",
     .type = DT_FIELD_STRINGS,
     AT(evaluate.samples),
     .low = 0,
     .high = 256,
     .fallback = "[]",
     .empties = true,
     .help = "prompts: at each evaluation the model generates a text for each of them; with "
             "'data.format: chat' each is the message of a user"},
    {.path = "evaluate.samples_tokens",
     .type = DT_FIELD_INT,
     AT(evaluate.samples_tokens),
     .unit = "per prompt",
     .low = 1,
     .high = 16384,
     .fallback = "100",
     .help = "maximum number of new tokens of a sample"},
    {.path = "evaluate.samples_temperature",
     .type = DT_FIELD_NUMBER,
     AT(evaluate.samples_temperature),
     .low = 0,
     .high = 100,
     .fallback = "0",
     .help = "0 takes the likeliest token, 1 samples from the learned distribution"},
    {.path = "evaluate.samples_top_k",
     .type = DT_FIELD_INT,
     AT(evaluate.samples_top_k),
     .low = 0,
     .high = 16777216,
     .fallback = "0",
     .help = "sample only from this many likeliest tokens; 0: all"},
    {.path = "evaluate.samples_top_p",
     .type = DT_FIELD_NUMBER,
     AT(evaluate.samples_top_p),
     .low = 1e-9,
     .high = 1,
     .fallback = "1",
     .help = "sample only from the likeliest tokens whose probabilities add up to this"},
    {.path = "evaluate.samples_seed",
     .type = DT_FIELD_INT,
     AT(evaluate.samples_seed),
     .low = 0,
     .high = 9007199254740992.0 - 256,
     .fallback = "1337",
     .help = "seed of the sampling; prompt i, counted from 0, uses this seed plus i"},

    {.path = "checkpoint.every",
     .type = DT_FIELD_INT,
     AT(checkpoint.every),
     .unit = "steps",
     .low = 0,
     .high = BILLION,
     .fallback = "0",
     .shorthand = true,
     .help = "steps between checkpoints; 0: only at the end, besides those of every_epoch "
             "and keep_best"},
    {.path = "checkpoint.keep",
     .type = DT_FIELD_INT,
     AT(checkpoint.keep),
     .low = 0,
     .high = MILLION,
     .fallback = "2",
     .help = "this many of the newest checkpoints are kept; 0: all"},
    {.path = "checkpoint.every_epoch",
     .type = DT_FIELD_INT,
     AT(checkpoint.every_epoch),
     .unit = "epochs",
     .low = 0,
     .high = MILLION,
     .fallback = "0",
     .help = "epochs between additional checkpoints; 0: none"},
    {.path = "checkpoint.keep_epochs",
     .type = DT_FIELD_INT,
     AT(checkpoint.keep_epochs),
     .low = 0,
     .high = MILLION,
     .fallback = "0",
     .help = "this many of the newest checkpoints of every_epoch are kept; 0: all"},
    {.path = "checkpoint.keep_best",
     .type = DT_FIELD_INT,
     AT(checkpoint.keep_best),
     .low = 0,
     .high = MILLION,
     .fallback = "1",
     .help = "an evaluation that is the best so far saves a checkpoint, and this many of "
             "the best are kept; 0: none"},
    {.path = "checkpoint.best_by",
     .type = DT_FIELD_CHOICE,
     AT(checkpoint.best_by),
     .choices = best_bys,
     .fallback = "valid_loss",
     .help = "metric of the best checkpoint: the lowest valid_loss, or the highest "
             "valid_bleu"},

    {.path = "log.every",
     .type = DT_FIELD_INT,
     AT(log.every),
     .unit = "steps",
     .low = 1,
     .high = MILLION,
     .fallback = "10",
     .shorthand = true,
     .help = "steps between points of the metrics"},
    {.path = "log.system",
     .type = DT_FIELD_BOOL,
     AT(log.system),
     .fallback = "true",
     .help = "record what processors, memory, disks, network and GPUs of each node are used for, every 10 seconds"},

    {.path = "grace_seconds",
     .type = DT_FIELD_NUMBER,
     AT(grace_seconds),
     .unit = "seconds",
     .low = 0,
     .high = 86400,
     .fallback = "30",
     .help = "how long a stop waits for the checkpoint before it kills the ranks"},

#include "recipes/fields/fields_failure.inc"
    {.path = "search.kind",
     .type = DT_FIELD_CHOICE,
     AT(search.kind),
     .choices = searches,
     .fallback = "grid",
     .shorthand = true,
     .help = "points of a sweep; grid: all combinations of the values; zip: the first "
             "values, the second values, ...; random: some points of the grid"},
    {.path = "search.count",
     .type = DT_FIELD_INT,
     AT(search.count),
     .unit = "points",
     .low = 0,
     .high = 10000,
     .fallback = "0",
     .help = "random: number of different points"},
    {.path = "search.seed",
     .type = DT_FIELD_INT,
     AT(search.seed),
     .low = 0,
     .high = 9007199254740991.0,
     .fallback = "1",
     .help = "random: seed of the choice"},
    {.path = "search.at_once",
     .type = DT_FIELD_INT,
     AT(search.at_once),
     .unit = "runs",
     .low = 0,
     .high = 64,
     .fallback = "1",
     .help = "runs of a sweep at the same time, never two on one GPU; 0: as many as free "
             "GPUs, or processors for CPU ranks, allow"},
    {.path = "search.nodes",
     .type = DT_FIELD_INT,
     AT(search.nodes),
     .unit = "nodes",
     .low = 0,
     .high = 1024,
     .fallback = "0",
     .help = "how many of 'nodes' each run of a sweep trains on, disjoint from other runs "
             "of the sweep; 0: all"},
    {.path = "early_stop.metric",
     .type = DT_FIELD_STRING,
     AT(early_stop.metric),
     .fallback = "",
     .shorthand = true,
     .help = "metric to compare runs of a sweep, for example valid_loss; lower is better, "
             "except BLEU, accuracies and rates; empty: no early stop"},
    {.path = "early_stop.after",
     .type = DT_FIELD_INT,
     AT(early_stop.after),
     .unit = "steps",
     .low = 0,
     .high = BILLION,
     .fallback = "0",
     .help = "step of the first comparison; repeated at twice this step, and so on"},
    {.path = "early_stop.keep",
     .type = DT_FIELD_NUMBER,
     AT(early_stop.keep),
     .low = 0,
     .low_open = true,
     .high = 1,
     .fallback = "0.5",
     .help = "fraction of the runs that continues after each comparison; the others are "
             "stopped, with a checkpoint"},

    {.path = "notify.webhook",
     .type = DT_FIELD_STRING,
     AT(notify.webhook),
     .fallback = "",
     .shorthand = true,
     .keeps_references = true,
     .help = "a URL that gets a POST when the run finishes, fails or restarts; write a "
             "secret in it as \"${env:NAME}\", literal secrets are refused"},

#include "recipes/fields/fields_command.inc"
#include "recipes/fields/fields_task.inc"
};
/* clang-format on */

const size_t dt_fields_count = sizeof(dt_fields) / sizeof(dt_fields[0]);
_Static_assert(sizeof(dt_fields) / sizeof(dt_fields[0]) <= DT_FIELDS_MAX, "raise DT_FIELDS_MAX");
