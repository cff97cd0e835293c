#include "runner/smoke/smoke.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "recipes/fields/fields.h"
#include "recipes/fields/nodes.h"

enum {
    LAYERS = 2,
    HEADS = 2,
    WIDTH = 64,
    RANK = 8,
    SEQUENCES = 4,
    TOKENS = 64,
    CHAT_TOKENS = 256,
    MICRO_STEPS = 2,
    RANKS = 2
};
/* With a large vocabulary the output layer takes most of the time. */
enum { LARGE_VOCABULARY = 8192, FEW_SEQUENCES = 2 };
enum { SAVE_EVERY = 2, VALIDATED = 8 };
#define GRACE_SECONDS 10
/* Limits of a command: its program may need longer than an engine, and may save a checkpoint in several parts. */
#define LONGEST_GRACE_SECONDS 30.0
#define SETTLE_SECONDS        1.0
enum { RESTARTS = 1 };

/* This machine's names as one or several nodes (runner/transport/transport.c). */
static const char *here[] = {"localhost",   "localhost#2", "localhost#3", "localhost#4",
                             "localhost#5", "localhost#6", "localhost#7", "localhost#8"};
static const char *one_of_slurm[] = {"slurm:1"};

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

int64_t dt_shrink_ranks_asked(const dt_recipe *recipe)
{
    int64_t each = recipe->gpus > recipe->ranks ? recipe->gpus : recipe->ranks;

    return recipe->nodes.count * (recipe->gpus < 0 && each < RANKS ? RANKS : each);
}

/* Ranks that divide layers shrink to two, in as many groups: both axes of the mesh are tried. */
static void shrink_ranks(dt_recipe *out, const dt_recipe *recipe, int64_t ranks)
{
    int64_t most = recipe->tensor.size > 1 ? 2 * RANKS : RANKS;

    out->ranks = ranks > 0 ? ranks : at_most(dt_shrink_ranks_asked(recipe), most);
    out->tensor.size = at_most(recipe->tensor.size, at_most(out->ranks, RANKS));
    if (ranks == 0)
        out->ranks -= out->ranks % out->tensor.size;
}

/* Whether a word of the command asks for the rank or the number of a node: it is written for several. */
static bool asks_for_rank(const dt_string_list *words)
{
    for (int64_t i = 0; i < words->count; i++)
        if (strstr(words->items[i], "{node_rank}") != NULL ||
            strstr(words->items[i], "{rank}") != NULL)
            return true;
    return false;
}

/* With `processes: node` each process is a node of this machine. */
static void shrink_processes(dt_recipe *out, const dt_recipe *recipe, int64_t ranks,
                             dt_arena *arena)
{
    int64_t each = dt_recipe_processes(recipe), nodes = (int64_t)recipe->nodes.count;
    const char *first = nodes > 0 ? recipe->nodes.items[0] : "";

    if (dt_node_slurm_count(first) > 0)
        nodes = dt_node_slurm_count(first) == 1 ? 1 : RANKS;
    if (each == DT_PROCESSES_NODE) {
        if (ranks == 0)
            ranks = nodes > 1 || asks_for_rank(&recipe->command) ? RANKS : 1;
        out->nodes.count = (size_t)at_most(ranks, sizeof(here) / sizeof(here[0]));
        return;
    }
    if (each == DT_PROCESSES_GPU)
        each = recipe->gpus < 0 ? RANKS : recipe->gpus > 0 ? recipe->gpus : 1;
    ranks = ranks > 0 ? ranks : at_most(nodes * each, RANKS);
    out->processes = dt_arena_printf(arena, "%lld", (long long)ranks);
}

void dt_shrink_command(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how,
                       dt_arena *arena)
{
    *out = *recipe;
    out->notify.webhook = "";
    out->time_limit_seconds = 0;
    out->grace_seconds = fmin(recipe->grace_seconds, LONGEST_GRACE_SECONDS);
    out->failure.max_restarts = at_most(recipe->failure.max_restarts, RESTARTS);
    out->checkpoints.settle_seconds = fmin(recipe->checkpoints.settle_seconds, SETTLE_SECONDS);
    out->collect = (dt_string_list){NULL, 0};
    if (how->here)
        return;
    out->nodes = (dt_string_list){here, 1};
    out->hostfile = "";
    out->nodes_min = out->gpus = out->threads = 0;
    out->network.interface = "";
    out->slurm.options = (dt_string_list){NULL, 0};
    out->failure.launcher_lost = "continue";
    shrink_processes(out, recipe, how->ranks, arena);
}

static void shrink_place(dt_recipe *out, const dt_recipe *recipe, int64_t ranks)
{
    out->nodes = (dt_string_list){here, 1};
    out->hostfile = "";
    out->nodes_min = 0;
    out->gpus = 0;
    shrink_ranks(out, recipe, ranks);
    out->threads = 0;
    out->network.interface = "";
    out->slurm.options = (dt_string_list){NULL, 0};
    out->failure.launcher_lost = "continue";
}

void dt_shrink_to_one(dt_recipe *out, const dt_recipe *recipe)
{
    *out = *recipe;
    out->nodes.count = 1;
    if (strncmp(recipe->nodes.items[0], "slurm:", strlen("slurm:")) == 0)
        out->nodes.items = one_of_slurm;
    out->nodes_min = 0;
    out->hostfile = "";
    out->ranks = out->tensor.size = 1;
    out->gpus = recipe->gpus != 0 ? 1 : 0;
}

void dt_shrink_spread(dt_recipe *io)
{
    int64_t nodes = io->ranks / io->tensor.size;

    if (io->strategy.kind == DT_STRATEGY_DP || nodes > (int64_t)(sizeof(here) / sizeof(here[0])))
        return; /* one process, or too many */
    io->nodes = (dt_string_list){here, (size_t)nodes};
    io->ranks = io->tensor.size;
}

static void shrink_lora(dt_recipe *out)
{
    int64_t rank = at_most(out->lora.rank, RANK);

    if (rank == 0)
        return;
    out->lora.from = ""; /* as model.from */
    out->lora.alpha *= (double)rank / (double)out->lora.rank;
    out->lora.rank = rank;
}

/* Conversations have long beginnings in which nothing is trained. */
static void shrink_chats(dt_recipe *out)
{
    if (out->batch.tokens <= CHAT_TOKENS)
        return;
    out->batch.tokens = CHAT_TOKENS;
    out->data.too_long = DT_TOO_LONG_CUT;
}

/* Factors of longrope, one for each pair of rotated elements of a narrower head. */
static void shrink_factors(dt_recipe *out)
{
    int64_t width =
        out->model.head_width > 0 ? out->model.head_width : out->model.embed / out->model.heads;
    int64_t pairs = (int64_t)((double)width * out->model.rotary_share) / 2;

    out->model.rope_short_factors.count = at_most(out->model.rope_short_factors.count, pairs);
    out->model.rope_long_factors.count = at_most(out->model.rope_long_factors.count, pairs);
}

static void shrink_model(dt_recipe *out)
{
    out->model.preset = "";
    out->model.from = ""; /* its dimensions no longer match */
    shrink_lora(out);
    out->model.layers = at_most(out->model.layers, LAYERS);
    if (out->model.embed > WIDTH) {
        bool shared = out->model.kv_heads > 0 && out->model.kv_heads < out->model.heads;

        out->model.heads = at_most(out->model.heads, HEADS);
        out->model.kv_heads = shared ? 1 : 0;
        out->model.head_width = at_most(out->model.head_width, WIDTH / HEADS);
        out->model.ffn = at_most(out->model.ffn, 4 * WIDTH);
        out->model.embed = WIDTH;
        shrink_factors(out);
    }
    out->batch.sequences = at_most(out->batch.sequences,
                                   out->model.vocab > LARGE_VOCABULARY ? FEW_SEQUENCES : SEQUENCES);
    if (out->batch.max_tokens > 0) /* keep the length of sentences */
        out->batch.max_tokens = at_most(out->batch.max_tokens, FEW_SEQUENCES * out->batch.tokens);
    else if (out->data.format == DT_DATA_CHAT)
        shrink_chats(out);
    else
        out->batch.tokens = at_most(out->batch.tokens, TOKENS);
    if (out->batch.max_tokens > 0)
        out->batch.sequences = (out->batch.max_tokens + out->batch.tokens - 1) / out->batch.tokens;
    out->batch.accumulate = at_most(out->batch.accumulate, MICRO_STEPS);
    out->batch.total = 0; /* few micro-steps suffice here */
}

/* Scales a length; one that is not 0 stays at least 1 and at most `steps`. */
static int64_t scaled(int64_t length, double by, int64_t steps)
{
    int64_t out = (int64_t)llround((double)length * by);

    return length == 0 ? 0 : out < 1 ? 1 : at_most(out, steps);
}

/* If the length is given in epochs, each part of the schedule gets at most a quarter of the steps. */
static void shrink_schedule(dt_recipe *out, int64_t steps)
{
    int64_t was = out->schedule.steps, most = was > 0 ? steps : (steps + 3) / 4;
    double by = was > 0 ? (double)steps / (double)was : 1;

    out->schedule.steps = steps;
    out->schedule.epochs = 0;
    out->schedule.warmup_steps = scaled(out->schedule.warmup_steps, by, most);
    out->schedule.period_steps = scaled(out->schedule.period_steps, by, most);
    out->schedule.decay_steps = scaled(out->schedule.decay_steps, by, most);
}

/* Makes metrics and checkpoints frequent enough to check. */
static void shrink_intervals(dt_recipe *out, int64_t steps)
{
    out->log.every = 1;
    out->evaluate.every = out->evaluate.every > 0 ? (steps + 1) / 2 : 0;
    out->evaluate.every_epoch = 0;
    out->evaluate.tasks = (dt_string_list){0}; /* a smaller context would not hold their rows */
    out->evaluate.samples = (dt_string_list){0};
    out->evaluate.sequences =
        out->evaluate.sequences > 0 ? at_most(out->evaluate.sequences, VALIDATED) : VALIDATED;
    out->checkpoint.every = SAVE_EVERY;
    out->checkpoint.every_epoch = 0;
    out->checkpoint.keep = out->checkpoint.keep_epochs = 2;
    out->checkpoint.keep_best = at_most(out->checkpoint.keep_best, 1);
}

void dt_shrink_recipe(dt_recipe *out, const dt_recipe *recipe, const dt_shrink *how)
{
    *out = *recipe;
    out->notify.webhook = "";
    out->time_limit_seconds = 0;
    out->grace_seconds = GRACE_SECONDS;
    if (!how->here)
        shrink_place(out, recipe, how->ranks);
    if (!how->full)
        shrink_model(out);
    shrink_schedule(out, how->steps);
    shrink_intervals(out, how->steps);
}
