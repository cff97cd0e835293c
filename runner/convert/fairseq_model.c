/* fairseq_model: converts the model of a fairseq-train command line, with the dimensions of fairseq's
 * language models (fairseq/models/transformer_lm.py). */
#include <string.h>

#include "runner/cli/options.h"
#include "runner/convert/convert_int.h"

/* one architecture per line */
/* clang-format off */
const dt_fairseq_arch dt_fairseq_archs[] = {
    /*                          layers heads embed    ffn  dropout attention activation learned tied   adaptive no_norm dropped */
    {"transformer_lm",               6,   8,   512,  2048, 0.1, 0.0, "relu", false, false, false, false, 0.0},
    {"transformer_lm_big",          12,  16,  1024,  4096, 0.1, 0.0, "relu", false, false, false, false, 0.0},
    {"transformer_lm_wiki103",      16,   8,  1024,  4096, 0.3, 0.1, "relu", false, false, true,  true,  0.1},
    {"transformer_lm_baevski_wiki103", 16, 8, 1024,  4096, 0.3, 0.1, "relu", false, false, true,  true,  0.1},
    {"transformer_lm_gbw",          12,  16,   512,  4096, 0.1, 0.1, "relu", false, false, false, true,  0.0},
    {"transformer_lm_baevski_gbw",  12,  16,   512,  4096, 0.1, 0.1, "relu", false, false, false, true,  0.0},
    {"transformer_lm_gpt",          12,  12,   768,  3072, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt2_tiny",     2,   1,    64,    64, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt2_small",   24,  16,  1024,  4096, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt2_medium",  36,  20,  1280,  5120, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt2_big",     48,  25,  1600,  6400, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt2_big_wide", 24, 32,  2048,  8192, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt2_bigger",  48,  32,  2048,  8192, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_gpt3_small",   12,  12,   768,  3072, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_medium",  24,  16,  1024,  4096, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_large",   24,  16,  1536,  6144, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_xl",      24,  32,  2048,  8192, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_2_7",     32,  32,  2560, 10240, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_6_7",     32,  32,  4096, 16384, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_13",      40,  40,  5120, 20480, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    {"transformer_lm_gpt3_175",     96,  96, 12288, 49152, 0.0, 0.0, "gelu", true,  true, false, false, 0.0},
    /* fairseq/model_parallel/models/transformer_lm.py */
    {"transformer_lm_megatron",     72,  32,  3072, 12288, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
    {"transformer_lm_megatron_11b", 72,  32,  3072, 18432, 0.1, 0.1, "gelu", false, false, false, false, 0.0},
};
/* clang-format on */

enum { COUNT = sizeof(dt_fairseq_archs) / sizeof(dt_fairseq_archs[0]) };
const size_t dt_fairseq_archs_count = COUNT;

/* Returns the architecture of this name; NULL: unknown; *meant: the closest name, or NULL. */
static const dt_fairseq_arch *fairseq_arch_find(const char *name, const char **meant)
{
    const char *names[COUNT + 1] = {NULL};

    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(dt_fairseq_archs[i].name, name) == 0)
            return &dt_fairseq_archs[i];
        names[i] = dt_fairseq_archs[i].name;
    }
    *meant = dt_suggest(name, names);
    return NULL;
}

const char *dt_fairseq_subject(const dt_flags *flags)
{
    if (!dt_flags_given(flags, "--task"))
        return dt_flags_from(flags, "--arch");
    return dt_arena_printf(flags->draft->arena, "%s, %s", dt_flags_from(flags, "--arch"),
                           dt_flags_from(flags, "--task"));
}

double dt_fairseq_dimension(dt_draft *draft, const dt_flags *flags, const char *path,
                            const char *flag, double of_arch, const char *arch)
{
    double value = dt_flags_number(flags, flag, of_arch);

    dt_draft_number(draft, path, value, "%s",
                    dt_flags_given(flags, flag) ? dt_flags_from(flags, flag) : arch);
    return value;
}

/* Sets a width of the multi-layer perceptron that is not the default, and reports widths for which the kind gpt2 has no
 * fields. */
static void set_widths(dt_draft *draft, const dt_flags *flags, const dt_fairseq_arch *arch,
                       double embed, const char *from)
{
    static const char *const names[] = {"--decoder-input-dim", "--decoder-output-dim", NULL};
    double own = strstr(arch->name, "gpt3") != NULL ? embed * 4 : arch->ffn;
    double ffn = dt_flags_number(flags, "--decoder-ffn-embed-dim", own);

    if (ffn != embed * 4)
        dt_draft_number(draft, "model.ffn", ffn, "%s",
                        dt_flags_given(flags, "--decoder-ffn-embed-dim")
                            ? dt_flags_from(flags, "--decoder-ffn-embed-dim")
                            : from);
    for (size_t i = 0; names[i] != NULL; i++)
        if (dt_flags_number(flags, names[i], embed) != embed)
            dt_draft_left(draft, dt_flags_about(flags, names[i]),
                          "embeddings are as wide as the model, %.0f", embed);
}

void dt_fairseq_activation(dt_draft *draft, const dt_flags *flags, const char *of_arch,
                           const char *from)
{
    static const struct {
        const char *theirs, *ours;
    } names[] = {{"relu", "relu"},
                 {"gelu", "gelu"},
                 {"gelu_fast", "gelu_tanh"},
                 {"gelu_accurate", "gelu_tanh"},
                 {"tanh", "tanh"}};
    const char *name = dt_flags_text(flags, "--activation-fn", of_arch);

    if (dt_flags_given(flags, "--activation-fn"))
        from = dt_flags_from(flags, "--activation-fn");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].theirs, name) == 0) {
            dt_draft_word(draft, "model.activation", names[i].ours, "%s", from);
            return;
        }
    dt_draft_left(draft, from, "supported: relu, gelu, gelu_tanh and tanh");
}

void dt_fairseq_activation_dropout(dt_draft *draft, const dt_flags *flags, double of_arch,
                                   const char *from)
{
    if (of_arch > 0 && !dt_flags_given(flags, "--activation-dropout"))
        dt_draft_left(draft, from,
                      "it has dropout %g inside the multi-layer perceptron (activation_dropout), "
                      "dtrun has none",
                      of_arch);
}

static void set_ways(dt_draft *draft, const dt_flags *flags, const dt_fairseq_arch *arch,
                     const char *from)
{
    static const char share[] = "--share-decoder-input-output-embed";
    static const char learned[] = "--decoder-learned-pos", plain[] = "--no-scale-embedding";
    bool tied = arch->tied || dt_flags_given(flags, share);

    dt_draft_word(draft, "model.tied", tied ? "true" : "false", "%s%s",
                  dt_flags_given(flags, share) || arch->tied ? "" : "without ",
                  arch->tied ? from : share);
    dt_draft_word(
        draft, "model.positions",
        arch->learned_positions || dt_flags_given(flags, learned) ? "learned" : "sinusoidal",
        "%s%s", arch->learned_positions || dt_flags_given(flags, learned) ? "" : "without ",
        arch->learned_positions ? from : learned);
    dt_draft_word(draft, "model.scale_embedding", dt_flags_given(flags, plain) ? "false" : "true",
                  "%s%s", dt_flags_given(flags, plain) ? "" : "without ", plain);
}

dt_status dt_fairseq_model(dt_draft *draft, const dt_flags *flags, dt_error *err)
{
    const char *name = dt_flags_text(flags, "--arch", NULL), *meant = NULL;
    const dt_fairseq_arch *arch;
    const char *from;
    double embed;

    if (name == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "--arch is missing: it names the model");
    arch = fairseq_arch_find(name, &meant);
    if (arch == NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unsupported --arch '%s'%s%s%s; supported: the transformer_lm family", name,
                       meant != NULL ? " (did you mean '" : "", meant != NULL ? meant : "",
                       meant != NULL ? "'?)" : "");
    from = dt_flags_from(flags, "--arch");
    dt_draft_word(draft, "model.kind", "gpt2", "%s", dt_fairseq_subject(flags));
    dt_fairseq_dimension(draft, flags, "model.layers", "--decoder-layers", arch->layers, from);
    dt_fairseq_dimension(draft, flags, "model.heads", "--decoder-attention-heads", arch->heads,
                         from);
    embed =
        dt_fairseq_dimension(draft, flags, "model.embed", "--decoder-embed-dim", arch->embed, from);
    dt_fairseq_dimension(draft, flags, "model.dropout", "--dropout", arch->dropout, from);
    dt_fairseq_dimension(draft, flags, "model.attention_dropout", "--attention-dropout",
                         arch->attention_dropout, from);
    set_widths(draft, flags, arch, embed, from);
    dt_fairseq_activation(draft, flags, arch->activation, from);
    set_ways(draft, flags, arch, from);
    if (dt_flags_given(flags, "--max-target-positions"))
        dt_draft_left(draft, dt_flags_about(flags, "--max-target-positions"),
                      "the number of positions is 'batch.tokens'");
    if (arch->adaptive)
        dt_draft_left(
            draft, from,
            "it has adaptive inputs and softmax; dtrun has one embedding table and one softmax");
    if (arch->no_final_norm && !dt_flags_given(flags, "--no-decoder-final-norm"))
        dt_draft_left(draft, from, "it has no norm after the last block (no_decoder_final_norm)");
    dt_fairseq_activation_dropout(draft, flags, arch->activation_dropout, from);
    return DT_OK;
}
