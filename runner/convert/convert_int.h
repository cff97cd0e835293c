/* convert_int: what the files of this folder and their tests share: the scanner of scripts, values of
 * Python files, the parts of fairseq's conversion, recorded commands. */
#ifndef DT_RUNNER_CONVERT_CONVERT_INT_H
#define DT_RUNNER_CONVERT_CONVERT_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/cli/command.h"
#include "runner/convert/launcher.h"
#include "runner/convert/script.h"

/* script_int: declares what the reader of a script, the expansion of words and the table of commands share. */

#define DT_SCRIPT_WORD_MOST \
    65536 /* bytes; variables that are built from each other can double with every line */

typedef struct dt_script_scanner {
    dt_script *script;
    const char *at, *end;
    int line;
    dt_shell_command command; /* the command that is being read */
    dt_strbuf word;
    int word_line;
    bool in_word, in_path;
    size_t plain; /* bytes of the word before its first quote or expansion */
    size_t redirections;
    dt_error *err;
} dt_script_scanner;

/* "SOURCE:LINE: WHAT; 'dtrun import --record ...'". */
dt_status dt_script_refuse(dt_script_scanner *s, int line, const char *what);

void dt_script_begin_word(dt_script_scanner *s);
dt_status dt_script_end_word(dt_script_scanner *s);
/* Marks the word as no longer plain. */
void dt_script_not_plain(dt_script_scanner *s);
/* Adds text that only a shell can expand, with the reason. */
void dt_script_add_open(dt_script_scanner *s, const char *end, const char *reason);
/* At '$' or '`'. */
dt_status dt_script_expand(dt_script_scanner *s, bool in_quotes);
/* Returns the position after the bracket that closes the one at `at`, or NULL. */
const char *dt_script_after_bracket(const char *at, const char *end);
/* Returns the value without marks; *open: the reason of its first open part, or NULL. */
const char *dt_script_plain(const dt_script *script, const char *value, const char **open);

/* script_commands.c: takes a command that has ended. */
dt_status dt_script_take_command(dt_script_scanner *s);

/* python_values: reads the assignments of a Python settings file, without running it.
 *
 * Known      NAME = VALUE at the beginning of a line, where VALUE is a number, a text, True, False, None, a name
 *            from above, or these with + - * / // % ** and parentheses
 * Not known  every other statement: it is kept with its line, and a name that it changes becomes unknown
 * Errors     DT_ERR_USAGE with source and line: an unclosed string or parenthesis
 * Ownership  text lives in the arena
 */

typedef enum dt_python_kind {
    DT_PYTHON_UNKNOWN,
    DT_PYTHON_NUMBER,
    DT_PYTHON_TEXT,
    DT_PYTHON_BOOL,
    DT_PYTHON_NONE
} dt_python_kind;

typedef struct dt_python_value {
    dt_python_kind kind;
    double number;    /* for a bool: 0 or 1 */
    const char *text; /* for a text */
} dt_python_value;

typedef struct dt_python_statement {
    const char *name; /* the assigned name; NULL: not an assignment */
    dt_python_value value;
    const char *shown; /* the source text, on one line */
    int line;
} dt_python_statement;

typedef struct dt_python_file {
    dt_arena *arena;
    dt_python_statement *statements;
    size_t count;
    int64_t capacity;
} dt_python_file;

void dt_python_init(dt_python_file *out, dt_arena *arena);
/* Appends the statements of the text, which ends with a NUL. */
dt_status dt_python_read(dt_python_file *file, const char *text, size_t length, const char *source,
                         dt_error *err);
/* Evaluates an expression with the names of the file; false: unknown. */
bool dt_python_evaluate(dt_python_value *out, const dt_python_file *file, const char *expression);
/* Returns the value as text, such as "1024", "True" or "gpt2". */
const char *dt_python_text(const dt_python_value *value, dt_arena *arena);

/* fairseq: converts command lines of fairseq-train to recipes. */

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
/* Sets the fields of `batch`. *step_tokens: tokens of one rank in a step. */
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

/* --- fairseq_data.c */
/* Converts the flags of BLEU, and of the best checkpoint. */
void dt_fairseq_bleu(dt_draft *draft, const dt_flags *flags);
/* --- fairseq_pairs.c, fairseq_training.c */
/* Returns true for the task translation, by --task or else by the architecture. */
bool dt_fairseq_is_pairs(const dt_flags *flags);
dt_status dt_fairseq_pairs_model(dt_draft *draft, const dt_flags *flags, dt_error *err);
void dt_fairseq_pairs_data(dt_draft *draft, const dt_flags *flags);
dt_status dt_fairseq_pairs_batch(double *step_tokens, dt_draft *draft, const dt_flags *flags,
                                 dt_error *err);
/* Returns the first of "[1,2]" or "1,2"; adds a note if there are more. */
dt_status dt_fairseq_first(double *out, const dt_flags *flags, const char *name, double fallback,
                           dt_error *err);

/* record: runs a script with stand-ins for launchers, which note their exact words instead of starting a training.
 *
 * Stand-ins  torchrun, accelerate, deepspeed, mpirun, mpiexec, srun, sbatch, fairseq-train, and python only for
 *            "-m torch.distributed.*"; first in PATH, and functions of bash, which also count after the script changed
 *            PATH. Each notes its arguments, environment and folder, and ends with 0.
 * Runs       everything else of the script, really; also a launcher that is called by its path
 * Ownership  records live in the arena
 */

typedef struct dt_record {
    char **words;
    int count;
    dt_shell_words changed; /* variables NAME=value that the script set */
    const char *folder;     /* NULL: that in which the script was started */
} dt_record;

typedef struct dt_records {
    dt_record *items;
    size_t count;
} dt_records;

/* Asks, unless --yes is given, and runs the command. DT_ERR_USAGE: refused, interrupted, or nothing was noted. */
dt_status dt_record_run(dt_records *out, char **words, int count, dt_call *call, dt_error *err);

#endif
