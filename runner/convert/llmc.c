/* llmc: converts the command lines of llm.c's train_gpt2cu, with the table of its flags. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/convert/launcher.h"
#include "runner/convert/tool.h"

extern const dt_flag_table dt_llmc_flags;

/* What each flag becomes, one flag per line. */

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
    {"-r", NULL, DT_TAKES_INT, DT_FLAG_PART, "activation_checkpointing: 0 is keep_all, 1 (GELU) none, 2 (norms) selective", NULL},
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

static const struct {
    const char *name;
    int layers, heads, embed;
} models[] = {
    {"d6", 6, 6, 384},
    {"d12", 12, 12, 768},
    {"d24", 24, 16, 1024},
    {"d36", 36, 20, 1280},
    {"d48", 48, 25, 1600},
    {"d60", 60, 30, 1920},
    {"d72", 72, 30, 2880},
    {"d84", 84, 36, 3456},
    {"gpt3:c384", 6, 6, 384},
    {"gpt3:c768", 12, 12, 768},
    {"gpt3:c1024", 24, 16, 1024},
    {"gpt3:c1536", 24, 16, 1536},
    {"gpt3:c2048", 24, 16, 2048},
    {"gpt3:c2560", 32, 32, 2560},
    {"gpt3:c4096", 32, 32, 4096},
    {"gpt3:c12288", 96, 96, 12288},
    {"gpt2_124M", 12, 12, 768},
    {"gpt2_350M", 24, 16, 1024},
    {"gpt2_774M", 36, 20, 1280},
    {"gpt2_1558M", 48, 25, 1600},
};

/* Sets the model. Names such as d12, gpt2:d12 and gpt3:c768 begin with random weights; files such
 * as gpt2_124M_bf16.bin and out/gpt2_124M.bin have weights. */
static dt_status set_model(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    const char *text = dt_flags_text(flags, "-e", "gpt2_124M_bf16.bin");
    const char *from = dt_flags_from(flags, "-e"), *name = dt_launcher_name(text);
    bool weights = strstr(name, ".bin") != NULL;
    size_t row = 0, count = sizeof(models) / sizeof(models[0]), length;

    if (strncmp(name, "gpt2:", 5) == 0)
        name += 5;
    for (; row < count; row++) {
        length = strlen(models[row].name);
        if (weights
                ? strncmp(name, models[row].name, length) == 0 && strchr("_.", name[length]) != NULL
                : strcmp(name, models[row].name) == 0)
            break;
    }
    if (row == count)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unknown model '%s' (-e): expected d6 to d84, gpt2:d12, "
                       "gpt3:c768 and the like, or a file gpt2_124M*.bin",
                       text);
    if (weights)
        dt_draft_left(draft, from,
                      "the model has these dimensions and random weights; 'model.from' starts from "
                      "the file's weights");
    dt_draft_word(draft, "model.kind", "gpt2", "%s", from);
    dt_draft_number(draft, "model.layers", models[row].layers, "%s", from);
    dt_draft_number(draft, "model.heads", models[row].heads, "%s", from);
    dt_draft_number(draft, "model.embed", models[row].embed, "%s", from);
    dt_draft_number(draft, "model.vocab", 50257, "GPT-2's");
    return DT_OK;
}

static dt_status set_batch(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                           dt_error *err)
{
    double world = (double)dt_launcher_world(launcher), ranks = world > 0 ? world : 1;
    double pass = dt_flags_number(flags, "-b", 4) * dt_flags_number(flags, "-t", 1024) * ranks;
    double wanted = dt_flags_number(flags, "-d", pass);

    if (pass < 1 || wanted < pass || fmod(wanted, pass) != 0)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "-d %.0f is not a multiple of %.0f, the tokens of -b times -t times %.0f process%s",
            wanted, pass, ranks, ranks == 1 ? "" : "es");
    dt_flags_set_number(draft, flags, "batch.sequences", "-b", 4);
    dt_flags_set_number(draft, flags, "batch.tokens", "-t", 1024);
    dt_draft_number(draft, "batch.accumulate", wanted / pass, "%s", dt_flags_from(flags, "-d"));
    dt_draft_number(draft, "evaluate.sequences",
                    fmax(dt_flags_number(flags, "-m", 20), 0) * dt_flags_number(flags, "-b", 4) *
                        ranks,
                    "%s, times -b and ranks", dt_flags_from(flags, "-m"));
    return DT_OK;
}

static void set_schedule(dt_draft *draft, const dt_flags *flags)
{
    const char *kind = dt_flags_text(flags, "-k", "cosine");
    double lr = dt_flags_number(flags, "-l", 3e-4), part = dt_flags_number(flags, "-q", 1);
    double steps = dt_flags_number(flags, "-x", -1), warmup = dt_flags_number(flags, "-u", 0);
    bool stable = strcmp(kind, "wsd") == 0;

    dt_flags_set_number(draft, flags, "optimizer.lr", "-l", 3e-4);
    if (strcmp(kind, "cosine") != 0 && strcmp(kind, "linear") != 0 &&
        strcmp(kind, "constant") != 0 && !stable) {
        dt_draft_left(draft, dt_flags_about(flags, "-k"),
                      "supported: cosine, linear, constant, wsd");
        kind = "constant";
    }
    dt_draft_word(draft, "schedule.kind", stable ? "warmup_stable_decay" : kind, "%s",
                  dt_flags_from(flags, "-k"));
    if (strcmp(kind, "constant") != 0)
        dt_draft_number(draft, "schedule.min_lr", lr * part, "%s", dt_flags_from(flags, "-q"));
    if (warmup > 0 && strcmp(kind, "constant") != 0) {
        dt_flags_set_number(draft, flags, "schedule.warmup_steps", "-u", 0);
        dt_draft_number(draft, "schedule.warmup_init_lr", lr / warmup,
                        "llm.c's first step: -l / -u");
    } else if (warmup > 0) {
        dt_draft_left(draft, dt_flags_about(flags, "-u"), "llm.c's constant has no warm-up");
    }
    if (steps > 0)
        dt_flags_set_number(draft, flags, "schedule.steps", "-x", steps);
    else
        dt_draft_number(draft, "schedule.epochs", 1, "%s", dt_flags_from(flags, "-x"));
    if (stable && steps > 0)
        dt_draft_number(draft, "schedule.decay_steps", steps - floor(0.8 * steps),
                        "llm.c's last fifth");
    if (stable)
        dt_draft_left(draft, dt_flags_about(flags, "-k"),
                      "llm.c's wsd decays by a square root, dtrun's linearly");
}

static dt_status set_devices(dt_draft *draft, const dt_flags *flags, dt_launcher *launcher,
                             dt_error *err)
{
    static const char *const shards[] = {NULL, "optimizer", "gradients", "full"};
    double stage = dt_flags_number(flags, "-z", 0), again = dt_flags_number(flags, "-r", 1);
    double total = dt_flags_number(flags, "-pn", 0), per_node = dt_flags_number(flags, "-pg", 8);

    if (stage < 0 || stage > 3)
        return DT_FAIL(err, DT_ERR_USAGE, "-z: expected 0 to 3, got %.0f", stage);
    if (total > 0 && dt_launcher_devices(launcher) == 0) {
        launcher->per_node = (int64_t)fmin(total, fmax(per_node, 1));
        launcher->nodes = (int64_t)ceil(total / fmax(per_node, 1));
        launcher->from = launcher->nodes_from = dt_flags_from(flags, "-pn");
    }
    if (launcher->nodes > 1024)
        return DT_FAIL(err, DT_ERR_USAGE, "-pn: that is more than 1,024 nodes");
    if (dt_launcher_carry(launcher, draft, err) != DT_OK)
        return err->code;
    dt_draft_word(draft, "strategy.kind", stage > 0 ? "fsdp" : "ddp", "%s",
                  dt_flags_from(flags, "-z"));
    if (stage > 0)
        dt_draft_word(draft, "strategy.shard", shards[(int)stage], "%s",
                      dt_flags_from(flags, "-z"));
    dt_draft_word(draft, "activation_checkpointing",
                  again >= 2   ? "selective"
                  : again >= 1 ? "none"
                               : "keep_all",
                  "%s", dt_flags_from(flags, "-r"));
    return DT_OK;
}

static void set_precision(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher)
{
    bool fp32 = strstr(launcher->program, "fp32") != NULL;

    dt_draft_word(draft, "precision.kind", fp32 ? "fp32" : "bf16", "%s",
                  fp32 ? launcher->program : "llm.c's default build");
    if (fp32)
        dt_draft_word(draft, "precision.tf32",
                      dt_flags_number(flags, "-f", 1) != 0 ? "true" : "false", "%s",
                      dt_flags_from(flags, "-f"));
}

static dt_status convert(dt_draft *draft, const dt_launcher *launched, const char *folder,
                         dt_error *err)
{
    dt_launcher launcher = *launched;
    dt_status st = DT_OK;
    dt_flags flags;

    (void)folder;
    DT_TRY(dt_flags_read(&flags, &dt_llmc_flags, launcher.words, launcher.count, draft, err));
    for (size_t i = 0; i < flags.operands.count; i++)
        dt_draft_left(draft, flags.operands.words[i].text, "it is not the value of a flag");
    DT_TRY(set_devices(draft, &flags, &launcher, err));
    DT_TRY(set_model(draft, &flags, err));
    set_precision(draft, &flags, &launcher);
    dt_draft_text(
        draft, "data.train",
        dt_flags_text(&flags, "-i", "dev/data/tinyshakespeare/tiny_shakespeare_train.bin"), "%s",
        dt_flags_from(&flags, "-i"));
    dt_draft_text(draft, "data.validation",
                  dt_flags_text(&flags, "-j", "dev/data/tinyshakespeare/tiny_shakespeare_val.bin"),
                  "%s", dt_flags_from(&flags, "-j"));
    dt_draft_word(draft, "data.tokens", "llmc", "its .bin files");
    DT_TRY(set_batch(draft, &flags, &launcher, err));
    dt_draft_word(draft, "optimizer.kind", "adamw", "llm.c's");
    dt_draft_number(draft, "optimizer.beta1", 0.9, "llm.c's");
    dt_draft_number(draft, "optimizer.beta2", 0.95, "llm.c's");
    dt_flags_set_number(draft, &flags, "optimizer.weight_decay", "-c", 0);
    set_schedule(draft, &flags);
    dt_draft_number(draft, "clip", 1, "llm.c's");
    dt_flags_set_number(draft, &flags, "evaluate.every", "-v", 20);
    dt_flags_set_number(draft, &flags, "checkpoint.every", "-n", 0);
    dt_flags_set_number(draft, &flags, "checkpoint.keep", "-nk", 0);
    dt_draft_number(draft, "checkpoint.keep_best", 0, "llm.c's");
    dt_draft_number(draft, "log.every", 1, "llm.c's");
    dt_flags_carry(&flags);
out:
    return st;
}

static bool knows(const dt_launcher *launcher)
{
    const char *name = dt_launcher_name(launcher->program);

    return strcmp(name, "train_gpt2cu") == 0 || strcmp(name, "train_gpt2fp32cu") == 0 ||
           strcmp(name, "train_gpt2") == 0;
}

const dt_convert_tool dt_tool_llmc = {.name = "llm.c",
                                      .what = "train_gpt2cu command",
                                      .flags = &dt_llmc_flags,
                                      .knows = knows,
                                      .convert = convert};
