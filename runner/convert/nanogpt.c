/* nanogpt: reads nanoGPT's settings as its configurator.py does, and converts them to a recipe. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "runner/convert/convert_int.h"
#include "runner/convert/launcher.h"
#include "runner/convert/tool.h"

extern const dt_flag_table dt_nanogpt_flags;

/* The table: what each name in a file of settings becomes, one name per line. */

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

/* Reading: files of assignments, followed by --name=value. */

#define FILE_MOST ((size_t)1 << 20)

/* Returns an integer setting as text. A value such as "0.03 * max_iters" is often not an integer;
 * nanoGPT compares it with the step, so it is rounded up. */
static const char *whole_text(dt_draft *draft, const dt_flag *flag, const dt_python_value *value,
                              const char *place)
{
    double number = value->number, nearest = round(number);

    if (flag->takes != DT_TAKES_INT || value->kind != DT_PYTHON_NUMBER || number == nearest ||
        !(fabs(number) < 1e15))
        return dt_python_text(value, draft->arena);
    if (fabs(number - nearest) > 1e-9 * fabs(number)) {
        nearest = ceil(number);
        dt_draft_note(draft, place, "it is %g, and %.0f is used", number, nearest);
    }
    return dt_arena_printf(draft->arena, "%.0f", nearest);
}

static dt_status set_one(dt_flags *flags, const char *name, const dt_python_value *value,
                         const char *shown, const char *place, dt_error *err)
{
    size_t row = dt_flags_row(&dt_nanogpt_flags, name, strlen(name));
    dt_shell_word word = {0};
    dt_status st;

    if (row == dt_nanogpt_flags.count) {
        dt_draft_left(flags->draft, place, "unknown name%s", dt_flags_suggestion(flags, name));
        return DT_OK;
    }
    if (value->kind == DT_PYTHON_UNKNOWN) {
        flags->uses[row] = (dt_flag_use){0};
        dt_draft_left(flags->draft, place,
                      "only Python can evaluate this; nanoGPT's default is used");
        return DT_OK;
    }
    word.text = whole_text(flags->draft, &dt_nanogpt_flags.flags[row], value, place);
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

/* Reads a file of settings, of the current folder or else of `folder` (NULL: only there). */
static dt_status nanogpt_read_text(dt_strbuf *out, const char *path, const char *folder,
                                   dt_error *err)
{
    dt_strbuf beside;
    dt_status st;

    dt_strbuf_init(&beside);
    if (folder != NULL && path[0] != '/' && !dt_file_exists(path)) {
        dt_strbuf_add_fmt(&beside, "%s/%s", folder, path);
        if (dt_file_exists(beside.data))
            path = beside.data;
    }
    st = dt_file_read(out, path, FILE_MOST, err);
    dt_strbuf_release(&beside);
    return st;
}

static dt_status take_file(dt_flags *flags, const char *path, const char *folder, dt_error *err)
{
    dt_draft *draft = flags->draft;
    dt_python_file file;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_python_init(&file, draft->arena);
    DT_TRY(nanogpt_read_text(&text, path, folder, err));
    DT_TRY(dt_python_read(&file, text.data, text.length, path, err));
    for (size_t i = 0; i < file.count; i++) {
        const dt_python_statement *s = &file.statements[i];
        const char *place = dt_arena_printf(draft->arena, "%s:%d: %s", path, s->line, s->shown);

        if (s->name == NULL)
            dt_draft_left(draft, place, "it is not a plain assignment, and Python code is not run");
        else
            DT_TRY(set_one(flags, s->name, &s->value, shown_as(draft, s->name, &s->value), place,
                           err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

/* Sets an option "--key=value". The value is a Python literal, or else a text. */
static dt_status take_option(dt_flags *flags, const char *word, dt_error *err)
{
    dt_arena *arena = flags->draft->arena;
    size_t length = strcspn(word + 2, "=");
    char *name = dt_arena_strndup(arena, word + 2, length);
    dt_python_file none;
    dt_python_value value;

    if (word[2 + length] != '=')
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected --name=value", word);
    dt_python_init(&none, arena);
    if (!dt_python_evaluate(&value, &none, word + 2 + length + 1))
        value = (dt_python_value){.kind = DT_PYTHON_TEXT, .text = word + 2 + length + 1};
    return set_one(flags, name, &value, word, word, err);
}

/* Reads the words after train.py: files, which can be in `folder` (NULL: none), and options. A later
 * setting replaces an earlier one. Values that only a shell or Python can evaluate go to the draft's
 * `left`. */
static dt_status nanogpt_read_settings(dt_flags *flags, dt_draft *draft,
                                       const dt_launcher *launcher, const char *folder,
                                       dt_error *err)
{
    dt_status st = dt_flags_read(flags, &dt_nanogpt_flags, NULL, 0, draft, err);

    for (size_t i = 0; i < launcher->count && st == DT_OK; i++) {
        const dt_shell_word *word = &launcher->words[i];

        if (strncmp(word->text, "--", 2) == 0 && word->text[2] != '\0')
            st = take_option(flags, word->text, err);
        else if (strcmp(word->text, "--") != 0)
            st = take_file(flags, word->text, folder, err);
    }
    return st;
}

/* Conversion. */

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

    DT_TRY(nanogpt_read_settings(&flags, draft, launcher, folder, err));
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
    if (nanogpt_read_text(&text, path, folder, &err) == DT_OK && text.length > 0)
        for (const char *at = text.data; at != NULL && !found;
             at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL)
            found = is_own(at, strspn(at, "abcdefghijklmnopqrstuvwxyz_"));
    dt_strbuf_release(&text);
    return found;
}

/* Recognizes nanoGPT's train.py, since many programs have a file of this name: its configurator accepts
 * only Python files and --name=value with names that it knows. Unless the user says so, one of these must
 * be a name, or a file with a name, that nothing else has. */
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
