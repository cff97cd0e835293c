/* fairseq_archs: declares the dimensions of fairseq's language models
 * (fairseq/models/transformer_lm.py). */
#include <string.h>

#include "runner/cli/suggest.h"
#include "runner/convert/fairseq.h"

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

const dt_fairseq_arch *dt_fairseq_arch_find(const char *name, const char **meant)
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
