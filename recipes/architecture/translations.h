/* translations: a config of a kind that translates, whose sentences grow side by side, each in versions that a
 * search compares (engine/search/translator.h): config.sequences of them, of config.versions each.
 */
#ifndef DT_RECIPES_ARCHITECTURE_TRANSLATIONS_H
#define DT_RECIPES_ARCHITECTURE_TRANSLATIONS_H

#include "recipes/architecture/architecture.h"

/* Versions of all sentences that products of a CPU take row by row, each in the same bits whatever the others
 * are (engine/ops/cpu/matmul_int.h). */
#define DT_TRANSLATIONS_EXACT 16

/* Of each sentence so many versions: as many sentences as are exact, one at least. */
static inline int64_t dt_translations_exact(int64_t versions)
{
    return versions < DT_TRANSLATIONS_EXACT ? DT_TRANSLATIONS_EXACT / versions : 1;
}

static inline int64_t dt_translations_sentences(const dt_model_config *config)
{
    return config->sequences > 0 ? config->sequences : 1;
}

static inline int64_t dt_translations_versions(const dt_model_config *config)
{
    return config->versions > 0 ? config->versions : 1;
}

/* Of all sentences: rows of the pass that adds a token to each. */
static inline int64_t dt_translations_rows(const dt_model_config *config)
{
    return dt_translations_sentences(config) * dt_translations_versions(config);
}

/* The config of one that infers becomes that of one that translates. */
static inline void dt_translations_configure(dt_model_config *config, int64_t sentences,
                                             int64_t versions)
{
    config->incremental = true;
    config->sequences = sentences;
    config->versions = versions;
    /* a pass over a token of each version has as many rows as one over so many samples */
    config->batch = (sentences * versions + config->tokens - 1) / config->tokens;
}

#endif
