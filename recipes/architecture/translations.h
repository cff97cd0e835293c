/* translations: configures a translating model that generates config.sequences sentences at once, each in
 * config.versions hypotheses of a beam search (engine/search/translator.h).
 */
#ifndef DT_RECIPES_ARCHITECTURE_TRANSLATIONS_H
#define DT_RECIPES_ARCHITECTURE_TRANSLATIONS_H

#include "recipes/architecture/architecture.h"

/* Number of hypotheses up to which CPU products compute each row with the same bits, independent of the other
 * rows (engine/ops/cpu/matmul_int.h). */
#define DT_TRANSLATIONS_EXACT 64
/* Number of hypotheses that evaluate.bleu decodes together: their caches take memory from training. */
#define DT_TRANSLATIONS_IN_TRAINING 16

/* Returns the sentences of this many hypotheses each that have at most `rows` in total, at least one. */
static inline int64_t dt_translations_within(int64_t rows, int64_t versions)
{
    return versions < rows ? rows / versions : 1;
}

static inline int64_t dt_translations_sentences(const dt_model_config *config)
{
    return config->sequences > 0 ? config->sequences : 1;
}

static inline int64_t dt_translations_versions(const dt_model_config *config)
{
    return config->versions > 0 ? config->versions : 1;
}

/* Returns the rows of a pass that adds a token to each hypothesis of all sentences. */
static inline int64_t dt_translations_rows(const dt_model_config *config)
{
    return dt_translations_sentences(config) * dt_translations_versions(config);
}

/* Changes the config of an inferring model to that of a translating one. */
static inline void dt_translations_configure(dt_model_config *config, int64_t sentences,
                                             int64_t versions)
{
    config->incremental = true;
    config->sequences = sentences;
    config->versions = versions;
    /* a pass over one token of each hypothesis has the rows of this many samples */
    config->batch = (sentences * versions + config->tokens - 1) / config->tokens;
}

#endif
