/* fairseq: converts command lines of fairseq-train to recipes. */
#ifndef DT_RUNNER_CONVERT_FAIRSEQ_H
#define DT_RUNNER_CONVERT_FAIRSEQ_H

#include "runner/convert/launcher.h"

/* The settings of an architecture of transformer_lm. */
typedef struct dt_fairseq_arch {
    const char *name;
    int layers, heads, embed, ffn;
    double dropout, attention_dropout;
    const char *activation; /* in fairseq's words */
    bool learned_positions, tied;
    /* settings that dtrun does not support */
    bool adaptive, no_final_norm;
    double activation_dropout;
} dt_fairseq_arch;

extern const dt_fairseq_arch dt_fairseq_archs[];
extern const size_t dt_fairseq_archs_count;
extern const dt_flag_table dt_fairseq_flags;

/* Returns the architecture of this name; NULL: unknown; *meant: the closest name, or NULL. */
const dt_fairseq_arch *dt_fairseq_arch_find(const char *name, const char **meant);

/* fairseq_*.c: each converts a part of the flags. */
dt_status dt_fairseq_model(dt_draft *draft, const dt_flags *flags, dt_error *err);
void dt_fairseq_schedule(dt_draft *draft, const dt_flags *flags);
dt_status dt_fairseq_optimizer(dt_draft *draft, const dt_flags *flags, dt_error *err);
/* Returns a description of the task: "--arch transformer, --task translation". */
const char *dt_fairseq_subject(const dt_flags *flags);
/* Returns the dimension from its flag, else from the architecture. */
double dt_fairseq_dimension(dt_draft *draft, const dt_flags *flags, const char *path,
                            const char *flag, double of_arch, const char *arch);
void dt_fairseq_activation(dt_draft *draft, const dt_flags *flags, const char *of_arch,
                           const char *from);
/* Lists the architecture's dropout inside the multi-layer perceptron as not carried, unless a flag sets it. */
void dt_fairseq_activation_dropout(dt_draft *draft, const dt_flags *flags, double of_arch,
                                   const char *from);
/* *step_tokens: tokens of one rank in a step. */
dt_status dt_fairseq_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                           dt_error *err);
void dt_fairseq_precision(dt_draft *draft, const dt_flags *flags, const dt_launcher *launcher,
                          double step_tokens);
dt_status dt_fairseq_length(dt_draft *draft, const dt_flags *flags, dt_error *err);
void dt_fairseq_data(dt_draft *draft, const dt_flags *flags);
/* Returns the operand: one folder, or several as "a:b"; lists other operands as not carried. */
const char *dt_fairseq_folder(dt_draft *draft, const dt_flags *flags);
/* Sets the files of every subset ("valid,valid1") in every folder, with the ending. */
void dt_fairseq_files(dt_draft *draft, const char *path, const char *folders, const char *subsets,
                      const char *ending, const char *from);
void dt_fairseq_evaluation(dt_draft *draft, const dt_flags *flags);
void dt_fairseq_checkpoints(dt_draft *draft, const dt_flags *flags);

/* --- fairseq_bleu.c */
/* Converts the flags of BLEU, and of the best checkpoint. */
void dt_fairseq_bleu(dt_draft *draft, const dt_flags *flags);
/* fairseq_pairs.c: returns true for the task translation, by --task or else by the architecture. */
bool dt_fairseq_is_pairs(const dt_flags *flags);
dt_status dt_fairseq_pairs_model(dt_draft *draft, const dt_flags *flags, dt_error *err);
void dt_fairseq_pairs_data(dt_draft *draft, const dt_flags *flags);
dt_status dt_fairseq_pairs_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                                 dt_error *err);
/* Returns the first of "[1,2]" or "1,2"; adds a note if there are more. */
dt_status dt_fairseq_first(double *out, const dt_flags *flags, const char *name, double fallback,
                           dt_error *err);

#endif
