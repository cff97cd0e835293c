/* fairseq_pairs: converts translation models (fairseq/models/transformer), their folders of
 * sentence pairs and their batches. */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "runner/cli/options.h"
#include "runner/convert/convert_int.h"

typedef struct pairs_arch {
    const char *name;
    int layers, heads, embed, ffn;
    double dropout, attention_dropout, activation_dropout;
    bool before; /* layer norms come before each block */
} pairs_arch;

/* one architecture per line */
/* clang-format off */
static const pairs_arch archs[] = {
    /*                            layers heads embed   ffn  dropout attention activation before */
    {"transformer",                   6,   8,   512,  2048, 0.1, 0.0, 0.0, false},
    {"transformer_tiny",              2,   2,    64,    64, 0.1, 0.0, 0.0, false},
    {"transformer_iwslt_de_en",       6,   4,   512,  1024, 0.1, 0.0, 0.0, false},
    {"transformer_wmt_en_de",         6,   8,   512,  2048, 0.1, 0.0, 0.0, false},
    {"transformer_vaswani_wmt_en_de_big", 6, 16, 1024, 4096, 0.3, 0.0, 0.0, false},
    {"transformer_vaswani_wmt_en_fr_big", 6, 16, 1024, 4096, 0.1, 0.0, 0.0, false},
    {"transformer_wmt_en_de_big",     6,  16,  1024,  4096, 0.3, 0.1, 0.0, false},
    {"transformer_wmt_en_de_big_t2t", 6,  16,  1024,  4096, 0.3, 0.1, 0.1, true},
};
/* clang-format on */

enum { COUNT = sizeof(archs) / sizeof(archs[0]) };

static const pairs_arch *find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(archs[i].name, name) == 0)
            return &archs[i];
    return NULL;
}

bool dt_fairseq_is_pairs(const dt_flags *flags)
{
    const char *task = dt_flags_text(flags, "--task", NULL);

    if (task != NULL)
        return strcmp(task, "translation") == 0;
    return find(dt_flags_text(flags, "--arch", "")) != NULL;
}

/* --- model */

/* Sets a dimension that fairseq has for the encoder and the decoder, and dtrun only once: uses the
 * encoder's flag, else the architecture's value, and reports a decoder that differs. */
static void dimension(dt_draft *draft, const dt_flags *flags, const char *path, const char *encoder,
                      const char *decoder, double of_arch, const char *from)
{
    double value = dt_flags_number(flags, encoder, of_arch);
    double other = dt_flags_number(flags, decoder, of_arch);
    bool given = dt_flags_given(flags, encoder);

    dt_draft_number(draft, path, value, "%s", given ? dt_flags_from(flags, encoder) : from);
    if (other != value)
        dt_draft_left(
            draft, dt_flags_about(flags, decoder),
            "the encoder's value, %.0f, is used: '%s' is one number for encoder and decoder", value,
            path);
}

static void set_layers(dt_draft *draft, const dt_flags *flags, const pairs_arch *arch,
                       const char *from)
{
    static const char encoder[] = "--encoder-layers", decoder[] = "--decoder-layers";
    double layers = dt_flags_number(flags, encoder, arch->layers);
    double others = dt_flags_number(flags, decoder, arch->layers);

    dt_draft_number(draft, "model.layers", layers, "%s",
                    dt_flags_given(flags, encoder) ? dt_flags_from(flags, encoder) : from);
    if (others != layers)
        dt_draft_number(draft, "model.decoder_layers", others, "%s",
                        dt_flags_given(flags, decoder) ? dt_flags_from(flags, decoder) : from);
}

/* Returns true if the architecture or the flags of both sides have the setting; *shown: the source. Lists a
 * flag of only one side as not carried. */
static bool both(dt_draft *draft, const dt_flags *flags, const char *encoder, const char *decoder,
                 bool of_arch, const char *from, const char **shown)
{
    bool one = dt_flags_given(flags, encoder), other = dt_flags_given(flags, decoder);

    *shown = of_arch ? from : one && !other ? decoder : encoder;
    if (!of_arch && one != other)
        dt_draft_left(draft, one ? encoder : decoder,
                      "encoder and decoder have the same setting: the flag must be given for both");
    return of_arch || (one && other);
}

static void set_ways(dt_draft *draft, const dt_flags *flags, const pairs_arch *arch,
                     const char *from)
{
    static const char all[] = "--share-all-embeddings",
                      out[] = "--share-decoder-input-output-embed";
    static const char plain[] = "--no-scale-embedding";
    bool shared = dt_flags_given(flags, all), tied = shared || dt_flags_given(flags, out);
    const char *shown;
    bool is = both(draft, flags, "--encoder-normalize-before", "--decoder-normalize-before",
                   arch->before, from, &shown);

    dt_draft_word(draft, "model.norm", is ? "pre" : "post", "%s%s", is ? "" : "without ", shown);
    is = both(draft, flags, "--encoder-learned-pos", "--decoder-learned-pos", false, from, &shown);
    dt_draft_word(draft, "model.positions", is ? "learned" : "sinusoidal", "%s%s",
                  is ? "" : "without ", shown);
    dt_draft_word(draft, "model.scale_embedding", dt_flags_given(flags, plain) ? "false" : "true",
                  "%s%s", dt_flags_given(flags, plain) ? "" : "without ", plain);
    dt_draft_word(draft, "model.tied", tied ? "true" : "false", "%s%s", tied ? "" : "without ",
                  shared ? all : out);
    if (shared)
        dt_draft_word(draft, "model.shared_embeddings", "true", "%s", all);
}

static void set_loss(dt_draft *draft, const dt_flags *flags)
{
    const char *criterion = dt_flags_text(flags, "--criterion", "cross_entropy");
    double smoothing = dt_flags_number(flags, "--label-smoothing", 0);

    if (strcmp(criterion, "cross_entropy") == 0 && smoothing > 0)
        dt_draft_left(draft, dt_flags_about(flags, "--label-smoothing"),
                      "it has no effect without --criterion label_smoothed_cross_entropy");
    if (strcmp(criterion, "cross_entropy") == 0) {
        if (dt_flags_given(flags, "--criterion"))
            dt_draft_same(draft, dt_flags_about(flags, "--criterion"),
                          "dtrun always uses this loss");
        return;
    }
    if (strcmp(criterion, "label_smoothed_cross_entropy") != 0)
        dt_draft_left(draft, dt_flags_about(flags, "--criterion"),
                      "the loss is cross entropy, with 'model.label_smoothing'");
    if (smoothing <= 0) {
        dt_draft_same(draft, dt_flags_about(flags, "--criterion"), "nothing is smoothed");
        return;
    }
    dt_draft_number(draft, "model.label_smoothing", smoothing, "%s, %s",
                    dt_flags_from(flags, "--label-smoothing"), dt_flags_from(flags, "--criterion"));
    dt_draft_note(draft, dt_flags_about(flags, "--label-smoothing"),
                  "fairseq spreads it over all tokens but the target, dtrun over all: multiply by "
                  "V / (V - 1), for V tokens, for the same loss");
}

dt_status dt_fairseq_pairs_model(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    const char *name = dt_flags_text(flags, "--arch", "transformer"), *from, *meant;
    const char *names[COUNT + 1] = {NULL};
    const pairs_arch *arch = find(name);

    for (size_t i = 0; i < COUNT; i++)
        names[i] = archs[i].name;
    meant = dt_suggest(name, names);
    if (arch == NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unsupported --arch '%s'%s%s%s; supported: the transformer family", name,
                       meant != NULL ? " (did you mean '" : "", meant != NULL ? meant : "",
                       meant != NULL ? "'?)" : "");
    from = dt_flags_from(flags, "--arch");
    dt_draft_word(draft, "model.kind", "transformer", "%s", dt_fairseq_subject(flags));
    set_layers(draft, flags, arch, from);
    dimension(draft, flags, "model.heads", "--encoder-attention-heads", "--decoder-attention-heads",
              arch->heads, from);
    dimension(draft, flags, "model.embed", "--encoder-embed-dim", "--decoder-embed-dim",
              arch->embed, from);
    dimension(draft, flags, "model.ffn", "--encoder-ffn-embed-dim", "--decoder-ffn-embed-dim",
              arch->ffn, from);
    dt_fairseq_dimension(draft, flags, "model.dropout", "--dropout", arch->dropout, from);
    dt_fairseq_dimension(draft, flags, "model.attention_dropout", "--attention-dropout",
                         arch->attention_dropout, from);
    dt_fairseq_activation(draft, flags, "relu", from);
    set_ways(draft, flags, arch, from);
    dt_fairseq_activation_dropout(draft, flags, arch->activation_dropout, from);
    set_loss(draft, flags);
    return DT_OK;
}

/* --- data */

/* Finds "de" and "en" in "train.de-en.de.idx", as fairseq's infer_language_pair does: in the second
 * part of the name, which has one dash. */
static bool split(dt_draft *draft, const char *name, const char **source, const char **target)
{
    const char *part = strchr(name, '.'), *end, *dash;

    end = part != NULL ? strchr(part + 1, '.') : NULL;
    dash = end != NULL ? memchr(part + 1, '-', (size_t)(end - part - 1)) : NULL;
    if (dash == NULL || dash == part + 1 || dash + 1 == end ||
        memchr(dash + 1, '-', (size_t)(end - dash - 1)) != NULL)
        return false;
    *source = dt_arena_strndup(draft->arena, part + 1, (size_t)(dash - part - 1));
    *target = dt_arena_strndup(draft->arena, dash + 1, (size_t)(end - dash - 1));
    return true;
}

/* Infers the languages from the names of existing files, as fairseq does. Returns NULL if there are
 * none. */
static const char *infer(dt_draft *draft, const char *folder, const char *subset,
                         const char **source, const char **target)
{
    const char *pattern = dt_arena_printf(draft->arena, "%s/%s.*-*.*.idx", folder, subset);
    const char *from = NULL;
    glob_t found = {0};

    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && from == NULL; i++)
            if (split(draft, strrchr(found.gl_pathv[i], '/') + 1, source, target))
                from = "from the names of the files";
    globfree(&found);
    return from;
}

static void set_languages(dt_draft *draft, const dt_flags *flags, const char *folder,
                          const char *subset)
{
    const char *source = dt_flags_text(flags, "--source-lang", NULL), *guessed[2];
    const char *target = dt_flags_text(flags, "--target-lang", NULL), *from = NULL;

    if (source == NULL || target == NULL)
        from = infer(draft, folder, subset, &guessed[0], &guessed[1]);
    if (from == NULL && (source == NULL || target == NULL)) {
        dt_draft_note(
            draft, "--source-lang, --target-lang",
            "they are missing, and '%s' has no file '%s.SOURCE-TARGET.*' here, whose name would "
            "give them: put the languages into 'data.source' and 'data.target'",
            folder, subset);
        guessed[0] = "SOURCE";
        guessed[1] = "TARGET";
        from = "put it in";
    }
    dt_draft_text(draft, "data.source", source != NULL ? source : guessed[0], "%s",
                  source != NULL ? dt_flags_from(flags, "--source-lang") : from);
    dt_draft_text(draft, "data.target", target != NULL ? target : guessed[1], "%s",
                  target != NULL ? dt_flags_from(flags, "--target-lang") : from);
}

void dt_fairseq_pairs_data(dt_draft *draft, const dt_flags *flags)
{
    static const char skip[] = "--skip-invalid-size-inputs-valid-test";
    const char *folders = dt_fairseq_folder(draft, flags);
    const char *subset = dt_flags_text(flags, "--train-subset", "train");
    bool skips;
    const char *first = dt_arena_strndup(draft->arena, folders, strcspn(folders, ":"));

    while (strlen(first) > 1 && first[strlen(first) - 1] == '/')
        first = dt_arena_strndup(draft->arena, first, strlen(first) - 1);
    dt_fairseq_files(draft, "data.train", folders, subset, "", "the data folder");
    dt_fairseq_files(draft, "data.validation", first,
                     dt_flags_text(flags, "--valid-subset", "valid"), "", "in the data folder");
    set_languages(draft, flags, first, subset);
    dt_draft_text(draft, "data.tokenizer", first, "its dict.LANGUAGE.txt");
    skips = dt_flags_given(flags, skip);
    dt_draft_word(draft, "data.too_long", "drop", "%s",
                  skips ? skip : "fairseq's default: they are left out");
    if (!skips)
        dt_draft_note(draft, "data.too_long",
                      "without --skip-invalid-size-inputs-valid-test fairseq refuses validation "
                      "pairs that are too long; 'refuse' would also refuse them in training");
}

/* --- batch */

dt_status dt_fairseq_pairs_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                                 dt_error *err)
{
    enum { LENGTH = 64 };
    double longest = dt_flags_number(flags, "--max-source-positions", 1024), accumulate;
    double target = dt_flags_number(flags, "--max-target-positions", 1024);
    double tokens = dt_flags_number(flags, "--max-tokens", 0);
    double pairs = dt_flags_number(flags, "--batch-size", 0);
    dt_status st = dt_fairseq_first(&accumulate, flags, "--update-freq", 1, err);

    if (st != DT_OK)
        return st;
    if (longest < 1 || target < 1)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--max-source-positions, --max-target-positions: expected 1 or more");
    dt_draft_number(draft, "batch.tokens", longest > target ? longest : target, "%s",
                    dt_flags_from(flags, longest > target ? "--max-source-positions"
                                                          : "--max-target-positions"));
    if (longest != target)
        dt_draft_left(draft,
                      dt_flags_about(flags, longest > target ? "--max-target-positions"
                                                             : "--max-source-positions"),
                      "'batch.tokens' is one number for both sides");
    if (tokens <= 0 && pairs <= 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "neither --max-tokens nor --batch-size is given, and fairseq requires one");
    if (tokens > 0 && pairs > 0)
        dt_draft_left(draft, dt_flags_about(flags, "--batch-size"),
                      "a batch ends at 'batch.max_tokens'");
    if (tokens <= 0) {
        tokens = pairs * LENGTH;
        dt_draft_note(
            draft, dt_flags_about(flags, "--batch-size"),
            "batches of pairs are counted in tokens: this is --batch-size times %d tokens", LENGTH);
    }
    dt_draft_number(draft, "batch.max_tokens", tokens, "%s",
                    dt_flags_from(flags, dt_flags_given(flags, "--max-tokens") ? "--max-tokens"
                                                                               : "--batch-size"));
    dt_draft_number(draft, "batch.accumulate", accumulate, "%s",
                    dt_flags_from(flags, "--update-freq"));
    *step_tokens = tokens * accumulate;
    return DT_OK;
}
