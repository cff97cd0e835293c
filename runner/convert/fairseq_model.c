/* fairseq_model: converts the model of a fairseq-train command line. */
#include <string.h>

#include "runner/convert/fairseq.h"

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
    arch = dt_fairseq_arch_find(name, &meant);
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
