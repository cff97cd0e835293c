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
    /* what dtrun does not have */
    bool adaptive, no_final_norm;
    double activation_dropout;
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
/* "--arch transformer, --task translation" */
const char *dt_fairseq_subject(const dt_flags *flags);
/* A dimension by its flag, or else the architecture's. */
double dt_fairseq_dimension(dt_draft *draft, const dt_flags *flags, const char *path,
                            const char *flag, double of_arch, const char *arch);
void dt_fairseq_activation(dt_draft *draft, const dt_flags *flags, const char *of_arch,
                           const char *from);
/* Lists what the architecture drops inside of the perceptron, if no flag says another number. */
void dt_fairseq_activation_dropout(dt_draft *draft, const dt_flags *flags, double of_arch,
                                   const char *from);
/* *step_tokens: those of a step of one rank. */
dt_status dt_fairseq_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                           dt_error *err);
void dt_fairseq_precision(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                          double step_tokens);
void dt_fairseq_length(dt_draft *draft, const dt_flags *flags);
void dt_fairseq_data(dt_draft *draft, const dt_flags *flags);
/* The operand: one folder, or several as "a:b"; what else stands there is told. */
const char *dt_fairseq_folder(dt_draft *draft, const dt_flags *flags);
/* Of every folder the files of every subset ("valid,valid1"), with the ending. */
void dt_fairseq_files(dt_draft *draft, const char *path, const char *folders, const char *subsets,
                      const char *ending, const char *from);
void dt_fairseq_evaluation(dt_draft *draft, const dt_flags *flags);
void dt_fairseq_checkpoints(dt_draft *draft, const dt_flags *flags);

/* --- fairseq_bleu.c */
/* What translations are measured by, and which checkpoint is the best. */
void dt_fairseq_bleu(dt_draft *draft, const dt_flags *flags);
/* fairseq_pairs.c: the task translation. By --task, and without it by the architecture. */
bool dt_fairseq_is_pairs(const dt_flags *flags);
dt_status dt_fairseq_pairs_model(dt_draft *draft, const dt_flags *flags, dt_error *err);
void dt_fairseq_pairs_data(dt_draft *draft, const dt_flags *flags);
dt_status dt_fairseq_pairs_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                                 dt_error *err);
/* The first of "[1,2]" or "1,2"; more than one is told. */
dt_status dt_fairseq_first(double *out, const dt_flags *flags, const char *name, double fallback,
                           dt_error *err);

#endif
