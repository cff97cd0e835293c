/* fairseq: recipes of fairseq-train's command lines. */
#ifndef DT_RUNNER_CONVERT_FAIRSEQ_H
#define DT_RUNNER_CONVERT_FAIRSEQ_H

#include "runner/convert/launcher.h"

/* An architecture of transformer_lm: what its name stands for. */
typedef struct dt_fairseq_arch {
    const char *name;
    int layers, heads, embed, ffn;
    double dropout, attention_dropout;
    const char *activation; /* fairseq's word */
    bool learned_positions, tied;
    const char *lacks; /* what of it dtrun has not; NULL: nothing */
} dt_fairseq_arch;

extern const dt_fairseq_arch dt_fairseq_archs[];
extern const size_t dt_fairseq_archs_count;
extern const dt_flag_table dt_fairseq_flags;

/* NULL where there is none of that name; *meant: the nearest one, or NULL. */
const dt_fairseq_arch *dt_fairseq_arch_find(const char *name, const char **meant);

/* fairseq_*.c: parts of a recipe. */
dt_status dt_fairseq_model(dt_draft *draft, const dt_flags *flags, dt_error *err);
void dt_fairseq_schedule(dt_draft *draft, const dt_flags *flags);
dt_status dt_fairseq_optimizer(dt_draft *draft, const dt_flags *flags, dt_error *err);
/* *step_tokens: those of a step of one rank. */
dt_status dt_fairseq_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                           dt_error *err);
void dt_fairseq_precision(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                          double step_tokens);
void dt_fairseq_length(dt_draft *draft, const dt_flags *flags);
void dt_fairseq_data(dt_draft *draft, const dt_flags *flags);
void dt_fairseq_evaluation(dt_draft *draft, const dt_flags *flags);
void dt_fairseq_checkpoints(dt_draft *draft, const dt_flags *flags);
/* The first of "[1,2]" or "1,2"; more than one is told. */
dt_status dt_fairseq_first(double *out, const dt_flags *flags, const char *name, double fallback,
                           dt_error *err);

#endif
