/* nanoGPT: recipes of its files of settings, and of what stands behind train.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "runner/convert/python_values.h"
#include "runner/convert/tool.h"

#include "base/banned.h"

#define FILE_MOST ((size_t)1 << 20)
#define OWN_LOG   "dtrun keeps its history itself; 'dtrun serve' shows it"

/* a line a name */
/* clang-format off */
static const dt_flag rows[] = {
    {"dataset", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "data.train, data.validation: data/NAME/train.bin, val.bin", NULL},
    {"batch_size", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.sequences", NULL},
    {"block_size", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.tokens", NULL},
    {"gradient_accumulation_steps", NULL, DT_TAKES_INT, DT_FLAG_PART, "batch.accumulate: nanoGPT's over the ranks", NULL},
    {"n_layer", NULL, DT_TAKES_INT, DT_FLAG_PART, "model.layers", NULL},
    {"n_head", NULL, DT_TAKES_INT, DT_FLAG_PART, "model.heads", NULL},
    {"n_embd", NULL, DT_TAKES_INT, DT_FLAG_PART, "model.embed", NULL},
    {"dropout", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "model.dropout, attention_dropout", NULL},
    {"bias", NULL, DT_TAKES_BOOL, DT_FLAG_PART, "nothing where it is True; dtrun's gpt2 has biases", NULL},
    {"vocab_size", NULL, DT_TAKES_INT, DT_FLAG_FIELD, "model.vocab", NULL},
    {"init_from", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "model.*: dimensions of gpt2, gpt2-medium and so on", NULL},
    {"learning_rate", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.lr", NULL},
    {"weight_decay", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.weight_decay", NULL},
    {"beta1", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.beta1", NULL},
    {"beta2", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "optimizer.beta2", NULL},
    {"grad_clip", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "clip", NULL},
    {"decay_lr", NULL, DT_TAKES_BOOL, DT_FLAG_PART, "schedule.kind: cosine; False: constant", NULL},
    {"warmup_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.warmup_steps", NULL},
    {"lr_decay_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.period_steps, where it is not max_iters", NULL},
    {"min_lr", NULL, DT_TAKES_NUMBER, DT_FLAG_PART, "schedule.min_lr", NULL},
    {"max_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "schedule.steps", NULL},
    {"eval_interval", NULL, DT_TAKES_INT, DT_FLAG_PART, "evaluate.every", NULL},
    {"eval_iters", NULL, DT_TAKES_INT, DT_FLAG_PART, "evaluate.sequences: times batch_size", NULL},
    {"eval_only", NULL, DT_TAKES_BOOL, DT_FLAG_LEFT, "a run trains", "False"},
    {"always_save_checkpoint", NULL, DT_TAKES_BOOL, DT_FLAG_PART, "checkpoint: at every evaluation; False: the best", NULL},
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

static const dt_flag_table table = {
    .program = "nanoGPT", .flags = rows, .count = sizeof(rows) / sizeof(rows[0])};

/* --- settings --- */

static dt_status set_one(dt_flags *flags, const char *name, const dt_python_value *value,
                         const char *shown, const char *place, dt_error *err)
{
    size_t row = dt_flags_row(&table, name, strlen(name));
    dt_shell_word word = {.open = value->kind == DT_PYTHON_UNKNOWN};
    dt_status st;

    if (row == table.count) {
        dt_draft_left(flags->draft, place, "this name is not known%s", dt_flags_meant(flags, name));
        return DT_OK;
    }
    if (word.open) {
        flags->uses[row] = (dt_flag_use){0};
        dt_draft_left(flags->draft, place,
                      "only Python knows this value; nanoGPT's default is taken");
        return DT_OK;
    }
    word.text = dt_python_text(value, flags->draft->arena);
    st = dt_flags_set(flags, row, &word, shown, err);
    if (st != DT_OK)
        dt_error_prefix(err, "%s", place);
    return st;
}

static const char *shown_as(dt_draft *draft, const char *name, const dt_python_value *value)
{
    const char *text =
        value->kind == DT_PYTHON_UNKNOWN
            ? name
            : dt_arena_printf(draft->arena, "%s = %s", name, dt_python_text(value, draft->arena));

    return text != NULL ? text : name;
}

static dt_status read_text(dt_strbuf *out, const char *path, const char *folder, dt_arena *arena,
                           dt_error *err)
{
    const char *beside = folder != NULL ? dt_arena_printf(arena, "%s/%s", folder, path) : NULL;

    if (beside != NULL && path[0] != '/' && !dt_file_exists(path) && dt_file_exists(beside))
        path = beside;
    return dt_file_read(out, path, FILE_MOST, err);
}

static dt_status take_file(dt_flags *flags, const char *path, const char *folder, dt_error *err)
{
    dt_draft *draft = flags->draft;
    dt_python_file file;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_python_init(&file, draft->arena);
    DT_TRY(read_text(&text, path, folder, draft->arena, err));
    DT_TRY(dt_python_read(&file, text.data, text.length, path, err));
    for (size_t i = 0; i < file.count; i++) {
        const dt_python_statement *s = &file.statements[i];
        const char *place = dt_arena_printf(draft->arena, "%s:%d: %s", path, s->line, s->shown);

        if (place == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        if (s->name == NULL)
            dt_draft_left(draft, place, "it is no plain assignment, and nothing is run");
        else
            DT_TRY(set_one(flags, s->name, &s->value, shown_as(draft, s->name, &s->value), place,
                           err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

/* "--key=value": a literal of Python, or a text. */
static dt_status take_option(dt_flags *flags, const char *word, dt_error *err)
{
    dt_arena *arena = flags->draft->arena;
    size_t length = strcspn(word + 2, "=");
    char *name = dt_arena_strndup(arena, word + 2, length);
    dt_python_file none;
    dt_python_value value;

    if (name == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    if (word[2 + length] != '=')
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected --name=value", word);
    dt_python_init(&none, arena);
    if (!dt_python_evaluate(&value, &none, word + 2 + length + 1))
        value = (dt_python_value){.kind = DT_PYTHON_TEXT, .text = word + 2 + length + 1};
    return set_one(flags, name, &value, word, word, err);
}

static dt_status read_settings(dt_flags *flags, dt_draft *draft, const dt_launcher *launcher,
                               const char *folder, dt_error *err)
{
    dt_status st = dt_flags_read(flags, &table, NULL, 0, draft, err);

    for (size_t i = 0; i < launcher->count && st == DT_OK; i++) {
        const dt_shell_word *word = &launcher->words[i];

        if (word->open)
            dt_draft_left(draft, word->text, "only a shell knows this: put it in yourself");
        else if (strncmp(word->text, "--", 2) == 0 && word->text[2] != '\0')
            st = take_option(flags, word->text, err);
        else if (strcmp(word->text, "--") != 0)
            st = take_file(flags, word->text, folder, err);
    }
    return st;
}

/* --- the recipe --- */

static dt_status set_model(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    static const struct {
        const char *name;
        int layers, heads, embed;
    } published[] = {{"gpt2", 12, 12, 768},
                     {"gpt2-medium", 24, 16, 1024},
                     {"gpt2-large", 36, 20, 1280},
                     {"gpt2-xl", 48, 25, 1600}};
    const char *init = dt_flags_text(flags, "init_from", "scratch");
    const char *from = dt_flags_from(flags, "init_from");

    dt_draft_word(draft, "model.kind", "gpt2", "nanoGPT's");
    dt_flags_set_number(draft, flags, "model.layers", "n_layer", 12);
    dt_flags_set_number(draft, flags, "model.heads", "n_head", 12);
    dt_flags_set_number(draft, flags, "model.embed", "n_embd", 768);
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
        if (strcmp(published[i].name, init) == 0) {
            dt_draft_number(draft, "model.layers", published[i].layers, "%s", from);
            dt_draft_number(draft, "model.heads", published[i].heads, "%s", from);
            dt_draft_number(draft, "model.embed", published[i].embed, "%s", from);
        }
    if (strncmp(init, "gpt2", 4) == 0)
        dt_draft_left(draft, from,
                      "weights are not fetched: put a folder of these into 'model.from', as in "
                      "docs/weights.md");
    else if (strcmp(init, "resume") == 0)
        dt_draft_left(draft, from, "dtrun does not read nanoGPT's checkpoints");
    else if (strcmp(init, "scratch") != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "init_from: expected scratch, resume or gpt2*, got '%s'",
                       init);
    if (dt_flags_number(flags, "bias", 0) == 0)
        dt_draft_left(draft, dt_flags_about(flags, "bias"),
                      "bias is False, and dtrun's gpt2 has biases, which begin at 0");
    dt_draft_word(draft, "model.activation", "gelu", "nanoGPT's");
    dt_flags_set_number(draft, flags, "model.dropout", "dropout", 0);
    dt_flags_set_number(draft, flags, "model.attention_dropout", "dropout", 0);
    return DT_OK;
}

static dt_status set_batch(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                           dt_error *err)
{
    double world = (double)dt_launcher_world(launcher), ranks = world > 0 ? world : 1;
    double all = dt_flags_number(flags, "gradient_accumulation_steps", 40);

    if (fmod(all, ranks) != 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "gradient_accumulation_steps %.0f cannot be divided among %.0f ranks", all,
                       ranks);
    dt_flags_set_number(draft, flags, "batch.sequences", "batch_size", 12);
    dt_flags_set_number(draft, flags, "batch.tokens", "block_size", 1024);
    dt_draft_number(draft, "batch.accumulate", all / ranks, "%s, over %.0f rank%s",
                    dt_flags_from(flags, "gradient_accumulation_steps"), ranks,
                    ranks == 1 ? "" : "s");
    if (world == 0 && all > 1)
        dt_draft_note(draft, dt_flags_about(flags, "gradient_accumulation_steps"),
                      "nanoGPT divides it by the number of GPUs: with N of them divide "
                      "'batch.accumulate' by N");
    dt_draft_number(draft, "evaluate.sequences",
                    fmax(dt_flags_number(flags, "eval_iters", 200), 0) *
                        dt_flags_number(flags, "batch_size", 12),
                    "%s, times batch_size", dt_flags_from(flags, "eval_iters"));
    return DT_OK;
}

static void set_schedule(dt_draft *draft, const dt_flags *flags)
{
    double steps = dt_flags_number(flags, "max_iters", 600000);
    double warmup = dt_flags_number(flags, "warmup_iters", 2000);
    double decay = dt_flags_number(flags, "lr_decay_iters", 600000);

    dt_flags_set_number(draft, flags, "schedule.steps", "max_iters", 600000);
    if (dt_flags_number(flags, "decay_lr", 1) == 0) {
        dt_draft_word(draft, "schedule.kind", "constant", "%s", dt_flags_from(flags, "decay_lr"));
        return;
    }
    dt_draft_word(draft, "schedule.kind", "cosine", "%s", dt_flags_from(flags, "decay_lr"));
    dt_flags_set_number(draft, flags, "schedule.min_lr", "min_lr", 6e-5);
    if (warmup > 0 && warmup <= steps) {
        dt_flags_set_number(draft, flags, "schedule.warmup_steps", "warmup_iters", 2000);
        dt_draft_number(draft, "schedule.warmup_init_lr", 0, "nanoGPT's");
    } else if (warmup > steps) {
        dt_draft_left(draft, dt_flags_about(flags, "warmup_iters"),
                      "the run is over before this warm-up is");
    }
    if (decay > steps && decay > warmup)
        dt_draft_number(draft, "schedule.period_steps", decay - warmup, "%s, less warmup_iters",
                        dt_flags_from(flags, "lr_decay_iters"));
    else if (decay < steps)
        dt_draft_left(draft, dt_flags_about(flags, "lr_decay_iters"),
                      "the rate would be lowest from there on; dtrun's cosine ends with the run");
}

static dt_status set_devices(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                             dt_error *err)
{
    const char *device = dt_flags_text(flags, "device", "cuda");
    const char *dtype = dt_flags_text(flags, "dtype", "bfloat16");
    const char *from = dt_flags_from(flags, "dtype");

    dt_launcher_carry(launcher, draft);
    if (strcmp(device, "cpu") == 0)
        dt_draft_word(draft, "gpus", "none", "%s", dt_flags_from(flags, "device"));
    else if (strncmp(device, "cuda", 4) != 0)
        dt_draft_left(draft, dt_flags_about(flags, "device"), "dtrun has NVIDIA's GPUs and CPUs");
    if (strcmp(dtype, "float16") == 0)
        dt_draft_word(draft, "precision.kind", "fp16", "%s", from);
    else if (strcmp(dtype, "bfloat16") == 0)
        dt_draft_word(draft, "precision.kind", "bf16", "%s", from);
    else if (strcmp(dtype, "float32") == 0)
        dt_draft_word(draft, "precision.kind", "fp32", "%s", from);
    else
        return DT_FAIL(err, DT_ERR_USAGE, "dtype: expected float32, bfloat16 or float16, got '%s'",
                       dtype);
    return DT_OK;
}

static void set_data(dt_draft *draft, const dt_flags *flags)
{
    const char *name = dt_flags_text(flags, "dataset", "openwebtext");
    const char *from = dt_flags_from(flags, "dataset");
    const char *train = dt_arena_printf(draft->arena, "data/%s/train.bin", name);
    const char *val = dt_arena_printf(draft->arena, "data/%s/val.bin", name);

    if (train != NULL)
        dt_draft_text(draft, "data.train", train, "%s", from);
    if (val != NULL)
        dt_draft_text(draft, "data.validation", val, "%s", from);
    dt_draft_word(draft, "data.tokens", "nanogpt", "its .bin files");
}

static void set_saving(dt_draft *draft, const dt_flags *flags)
{
    bool always = dt_flags_number(flags, "always_save_checkpoint", 1) != 0;
    const char *from = dt_flags_from(flags, "always_save_checkpoint");

    dt_flags_set_number(draft, flags, "evaluate.every", "eval_interval", 2000);
    if (always)
        dt_flags_set_number(draft, flags, "checkpoint.every", "eval_interval", 2000);
    dt_draft_number(draft, "checkpoint.keep", 1, "nanoGPT has one");
    dt_draft_number(draft, "checkpoint.keep_best", always ? 0 : 1, "%s", from);
    dt_flags_set_number(draft, flags, "log.every", "log_interval", 1);
}

static dt_status convert(dt_draft *draft, const dt_launcher *launcher, const char *folder,
                         dt_error *err)
{
    dt_status st = DT_OK;
    dt_flags flags;

    DT_TRY(read_settings(&flags, draft, launcher, folder, err));
    DT_TRY(set_devices(draft, &flags, launcher, err));
    DT_TRY(set_model(draft, &flags, err));
    set_data(draft, &flags);
    DT_TRY(set_batch(draft, &flags, launcher, err));
    dt_draft_word(draft, "optimizer.kind", "adamw", "nanoGPT's");
    dt_flags_set_number(draft, &flags, "optimizer.lr", "learning_rate", 6e-4);
    dt_flags_set_number(draft, &flags, "optimizer.weight_decay", "weight_decay", 0.1);
    dt_flags_set_number(draft, &flags, "optimizer.beta1", "beta1", 0.9);
    dt_flags_set_number(draft, &flags, "optimizer.beta2", "beta2", 0.95);
    set_schedule(draft, &flags);
    dt_flags_set_number(draft, &flags, "clip", "grad_clip", 1);
    set_saving(draft, &flags);
    dt_flags_carry(&flags);
out:
    return st;
}

static bool knows(const dt_launcher *launcher)
{
    return strcmp(dt_launcher_name(launcher->program), "train.py") == 0;
}

const dt_convert_tool dt_tool_nanogpt = {.name = "nanogpt",
                                         .what = "train.py of nanoGPT",
                                         .flags = &table,
                                         .knows = knows,
                                         .convert = convert};
