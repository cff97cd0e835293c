/* nanogpt: converts nanoGPT's settings to a recipe. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "runner/convert/nanogpt.h"
#include "runner/convert/tool.h"

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
        dt_draft_left(
            draft, from,
            "weights are not downloaded: set 'model.from' to a folder with them (docs/weights.md)");
    else if (strcmp(init, "resume") == 0)
        dt_draft_left(draft, from, "dtrun does not read nanoGPT's checkpoints");
    else if (strcmp(init, "scratch") != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "init_from: expected scratch, resume or gpt2*, got '%s'",
                       init);
    if (dt_flags_number(flags, "bias", 0) == 0)
        dt_draft_left(draft, dt_flags_about(flags, "bias"),
                      "bias is False, but dtrun's gpt2 has biases, initialized to 0");
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
                      "the run ends before this warm-up");
    }
    if (decay > steps && decay > warmup)
        dt_draft_number(draft, "schedule.period_steps", decay - warmup, "%s, less warmup_iters",
                        dt_flags_from(flags, "lr_decay_iters"));
    else if (decay < steps)
        dt_draft_left(draft, dt_flags_about(flags, "lr_decay_iters"),
                      "the learning rate would stay at its lowest from there; dtrun's cosine ends "
                      "with the run");
}

static dt_status set_devices(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                             dt_error *err)
{
    const char *device = dt_flags_text(flags, "device", "cuda");
    const char *dtype = dt_flags_text(flags, "dtype", "bfloat16");
    const char *from = dt_flags_from(flags, "dtype");

    if (dt_launcher_carry(launcher, draft, err) != DT_OK)
        return err->code;
    if (strcmp(device, "cpu") == 0)
        dt_draft_word(draft, "gpus", "none", "%s", dt_flags_from(flags, "device"));
    else if (strncmp(device, "cuda", 4) != 0)
        dt_draft_left(draft, dt_flags_about(flags, "device"),
                      "dtrun supports NVIDIA GPUs and CPUs");
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

/* nanoGPT reads the vocabulary size from data/NAME/meta.pkl, and uses 50304 without this file. The meta.pkl of its
 * character-level prepare.py has the number of ids, which is also dtrun's default. */
static void set_vocab(dt_draft *draft, const dt_flags *flags, const char *name, const char *folder)
{
    const char *base = folder != NULL ? folder : ".", *suffix = "_char";
    const char *meta = dt_arena_printf(draft->arena, "%s/data/%s/meta.pkl", base, name);
    size_t length = strlen(name);
    bool there = dt_file_exists(meta);
    bool chars = length >= strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0;

    if (dt_flags_given(flags, "vocab_size") ||
        strncmp(dt_flags_text(flags, "init_from", "scratch"), "gpt2", 4) == 0)
        return;
    if (there)
        dt_draft_note(draft, meta,
                      "'model.vocab' is left out: it is the largest id of the data plus one");
    else if (chars)
        dt_draft_note(
            draft, "model.vocab",
            "it is left out, as if data/%s had a meta.pkl: without that file nanoGPT uses 50304",
            name);
    else
        dt_draft_number(draft, "model.vocab", 50304, "nanoGPT's without data/%s/meta.pkl", name);
}

static void set_data(dt_draft *draft, const dt_flags *flags, const char *folder)
{
    const char *name = dt_flags_text(flags, "dataset", "openwebtext");
    const char *from = dt_flags_from(flags, "dataset");
    const char *train = dt_arena_printf(draft->arena, "data/%s/train.bin", name);
    const char *val = dt_arena_printf(draft->arena, "data/%s/val.bin", name);

    dt_draft_text(draft, "data.train", train, "%s", from);
    dt_draft_text(draft, "data.validation", val, "%s", from);
    dt_draft_word(draft, "data.tokens", "nanogpt", "its .bin files");
    set_vocab(draft, flags, name, folder);
}

static void set_saving(dt_draft *draft, const dt_flags *flags)
{
    bool always = dt_flags_number(flags, "always_save_checkpoint", 1) != 0;
    const char *from = dt_flags_from(flags, "always_save_checkpoint");

    dt_flags_set_number(draft, flags, "evaluate.every", "eval_interval", 2000);
    if (always)
        dt_flags_set_number(draft, flags, "checkpoint.every", "eval_interval", 2000);
    dt_draft_number(draft, "checkpoint.keep", 1, "nanoGPT always uses it");
    dt_draft_number(draft, "checkpoint.keep_best", always ? 0 : 1, "%s", from);
    dt_flags_set_number(draft, flags, "log.every", "log_interval", 1);
}

static dt_status convert(dt_draft *draft, const dt_launcher *launcher, const char *folder,
                         dt_error *err)
{
    dt_status st = DT_OK;
    dt_flags flags;

    DT_TRY(dt_nanogpt_read_settings(&flags, draft, launcher, folder, err));
    DT_TRY(set_devices(draft, &flags, launcher, err));
    DT_TRY(set_model(draft, &flags, err));
    set_data(draft, &flags, folder);
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

static bool ends_in_py(const char *word)
{
    size_t length = strlen(word);

    return length > 3 && strcmp(word + length - 3, ".py") == 0;
}

/* Returns true for a name that only nanoGPT's settings have. */
static bool is_own(const char *name, size_t length)
{
    static const char own[] =
        " n_layer n_head n_embd decay_lr lr_decay_iters always_save_checkpoint eval_iters "
        "wandb_log warmup_iters ";
    const char *found = own;

    while ((found = strchr(found, ' ')) != NULL && *++found != '\0')
        if (strcspn(found, " ") == length && memcmp(found, name, length) == 0)
            return true;
    return false;
}

/* Returns true for a file that sets a name that only nanoGPT has. */
static bool is_config(const char *path, const char *folder)
{
    dt_error err = DT_ERROR_INIT;
    bool found = false;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (dt_nanogpt_read_text(&text, path, folder, &err) == DT_OK && text.length > 0)
        for (const char *at = text.data; at != NULL && !found;
             at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL)
            found = is_own(at, strspn(at, "abcdefghijklmnopqrstuvwxyz_"));
    dt_strbuf_release(&text);
    return found;
}

/* Recognizes nanoGPT's train.py, since many programs have a file of this name: its configurator accepts only Python files
 * and --name=value with names that it knows. Unless the user says so, one of these must be a name, or a file with a name,
 * that nothing else has. */
static bool knows(const dt_launcher *launcher)
{
    size_t known = 0, unknown = 0, files = 0;
    bool own = false;

    if (strcmp(dt_launcher_name(launcher->program), "train.py") != 0)
        return false;
    for (size_t i = 0; i < launcher->count; i++) {
        const char *word = launcher->words[i].text;
        size_t length = strcspn(word, "="), row;

        if (strcmp(word, "--") == 0)
            continue;
        if (ends_in_py(word) && word[0] != '-') {
            files++;
            own = own || is_config(word, launcher->folder);
            continue;
        }
        if (strncmp(word, "--", 2) != 0 || word[length] != '=')
            return false;
        row = dt_flags_row(&dt_nanogpt_flags, word + 2, length - 2);
        known += row < dt_nanogpt_flags.count;
        unknown += row == dt_nanogpt_flags.count;
        own = own || is_own(word + 2, length - 2);
    }
    if (launcher->named)
        return files > 0 || known > 0 || unknown == 0;
    return own && unknown == 0;
}

const dt_convert_tool dt_tool_nanogpt = {
    .name = "nanogpt",
    .what = "nanoGPT train.py command",
    .hint = ": expected Python config files and --name=value with nanoGPT's names; other programs "
            "called train.py are not supported",
    .flags = &dt_nanogpt_flags,
    .knows = knows,
    .convert = convert};
