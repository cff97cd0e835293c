/* program_int: declares what the files of a program of the user share.
 *
 *   program_plan.c    what the programs of a node share     program.c      one rank, from its start to its end
 *   invocation.c      its words and its environment         metrics.c      metrics in its output
 *   metric_files.c    metrics in files                      saves.c        checkpoints that it writes
 *   last_error.c      the error at the end of its stderr
 *
 * Threads  a value of a type below is used by one thread at a time: by the agent's loop, or, what reads files, by the
 *          thread of dt_program_look
 */
#ifndef DT_RUNNER_AGENT_PROGRAM_PROGRAM_INT_H
#define DT_RUNNER_AGENT_PROGRAM_PROGRAM_INT_H

#include <stdatomic.h>
#include <time.h>

#include "base/json.h"
#include "base/named_groups.h"
#include "base/strbuf.h"
#include "runner/agent/program/program.h"

/* --- program_plan.c: reports */

void dt_reports_send(const dt_reports *reports, json_t *event);
void dt_reports_warn(const dt_reports *reports, const char *format, ...) DT_PRINTF(2, 3);

/* --- invocation.c: the words of the program for one rank
 *
 * Replaced  {nnodes}, {node_rank}, {nproc}, {world_size}, {rank}, {local_rank}, {master_addr}, {master_port}, {run}, and
 *           {args.NAME} by the value of the recipe's `args`
 * Resume    an attempt after the first adds the recipe's `resume`, with {checkpoint}; not before the first checkpoint,
 *           if the recipe names checkpoints. For a shell it is appended as text, with the path as a variable
 * Activate  with the recipe's `activate` the first words are a login shell that runs it and then becomes the program
 */
typedef struct dt_words_facts {
    int64_t rank;
    int64_t local_ranks;        /* ranks of the plan on the same node */
    const char *master_address; /* of the node of rank 0 */
    int64_t master_port;
} dt_words_facts;

/* Returns the words and NULL, in the arena; the first is the program, or /bin/sh. */
const char **dt_program_words(const dt_plan *plan, const dt_words_facts *facts, dt_arena *arena);
/* Returns the text with {run} replaced. */
const char *dt_program_replace_run(const dt_plan *plan, const char *text, dt_arena *arena);
/* Returns a path of the recipe with {run} replaced, below the recipe's folder unless it is absolute. pattern: it is for
 * glob(), so that the folder's own characters * ? [ are escaped. */
const char *dt_program_path(const dt_plan *plan, const char *path, bool pattern, dt_arena *arena);

/* --- invocation.c: the environment of the program
 *
 * That of the rank, with the variables of torchrun's contract and dtrun's, then the recipe's `env`. "${env:NAME}" is the
 * value that the launch had: the supervisor sends it as DTRUN_SECRET_NAME, which the program does not get.
 * CUDA_VISIBLE_DEVICES has all GPUs that the run uses on the node, since programs choose theirs by LOCAL_RANK.
 */
dt_status dt_program_variables(dt_environment *out, const dt_environment *of_rank,
                               const dt_plan *plan, const dt_words_facts *facts, dt_error *err);

/* --- metrics.c: reads metrics from lines of the output, keeps the limits, and sends
 *
 * Lines    end with a newline or, for progress bars, with a carriage return; longer ones than 64 KiB are skipped.
 *          Escape sequences of terminals are ignored
 * json     JSON objects with a whole number "step": each of their other numbers is a metric. NaN, Infinity and numbers
 *          beyond a double are values that are not finite; texts are ignored. The same of dictionaries as Python prints
 *          them; one with an "epoch" and no step, as of transformers' Trainer, has the step of the progress bar on
 *          stderr, or without a bar the number of the line
 * pattern  an expression for lines of stdout and stderr; each group but "step" is a metric. Without a group "step" the
 *          lines are counted
 * Limits   256 names, 200 lines a second (the first 1000 are always taken), a step of a metric once and not below
 *          the last one. What is left out is reported at once, and counted at the end
 */

/* Why something is left out. */
typedef enum dt_metrics_left {
    DT_METRICS_UNREADABLE, /* a line that looks like JSON and is not */
    DT_METRICS_NO_STEP,    /* an object without a whole number "step" */
    DT_METRICS_NO_NUMBER,  /* a value that is neither a number nor a text */
    DT_METRICS_LEFT_COUNT
} dt_metrics_left;

typedef struct dt_metrics_line {
    dt_strbuf text;
    bool skipping; /* inside a line that is too long */
} dt_metrics_line;

/* transformers' Trainer prints values without their step: it is that of the progress bar, which is drawn again after
 * each line of values. */
typedef struct dt_metrics_bar {
    int64_t step, total; /* of the bar; total 0: none was seen */
    bool fixed;          /* values of the training were printed with this bar */
    json_t *waiting;     /* values whose step the next state of the bar has */
    double since_seconds;
} dt_metrics_bar;

typedef struct dt_output_metrics {
    dt_output_metrics_kind kind;
    dt_named_groups *groups; /* NULL: no pattern */
    const dt_reports *reports;
    dt_metrics_line out, errors; /* lines of stdout and stderr */
    dt_metrics_bar bar;
    int64_t
        counted; /* lines that matched a pattern without a step, from the step that the program continues at */
    int64_t first_step;
    json_t *steps; /* name → its last step */
    int64_t step;
    double loss;
    double credit, credited_seconds; /* lines that may be taken now */
    bool again;                      /* a file is read again: earlier steps are no news */
    int64_t names_left, lines_left, points_left, left[DT_METRICS_LEFT_COUNT];
} dt_output_metrics;

/* *out: NULL if the recipe asks for no metrics. first_step: the one that the program continues at. */
dt_status dt_output_metrics_open(dt_output_metrics **out, const dt_recipe *recipe,
                                 int64_t first_step, const dt_reports *reports, dt_error *err);
/* Frees; accepts NULL, as the functions below do up to dt_output_metrics_step. */
void dt_output_metrics_close(dt_output_metrics *metrics);
void dt_output_metrics_read(dt_output_metrics *metrics, const char *bytes, size_t length);
/* Reads a piece of stderr: for a pattern, and the state of a progress bar. */
void dt_output_metrics_read_errors(dt_output_metrics *metrics, const char *bytes, size_t length);
/* Takes values that have waited too long for a progress bar. ended: also the last line, without its end, and reports
 * what was left out. */
void dt_output_metrics_settle(dt_output_metrics *metrics, bool ended);
/* Returns whether dt_output_metrics_settle has to be called soon. */
bool dt_output_metrics_waits(const dt_output_metrics *metrics);
/* Returns the last step, and the last loss (NaN: none). */
int64_t dt_output_metrics_step(const dt_output_metrics *metrics, double *loss);

/* Returns whether the number can be a step. */
bool dt_metrics_is_step(double number);
/* Adds a value of another program's own names, and the same as `loss` or `valid_loss` if it is one. */
void dt_metrics_add_foreign(dt_output_metrics *metrics, json_t *values, const char *name,
                            int64_t step, double value);
/* Sends the values and releases them. */
void dt_metrics_send(dt_output_metrics *metrics, int64_t step, json_t *values);
/* Counts what is left out, and reports the first. */
void dt_metrics_leave(dt_output_metrics *metrics, dt_metrics_left why, const char *sample);

/* --- metric_files.c: follows a file that a program writes metrics to
 *
 * Path      may have * and ? (glob(7)): the newest file that matches is followed
 * Lines     what the file has when the program starts is skipped: it is of an earlier run or attempt. A file that is
 *           replaced or made shorter is read from its beginning
 * .csv      as of Lightning: the first line has the names, of which one is `step`; cells may be empty. If the first line
 *           changes, the file is read again
 * trainer_state.json, of transformers' Trainer: its log_history is read whenever the file has changed
 */
typedef struct dt_metrics_file {
    const char *path;             /* NULL: none */
    bool pattern;                 /* it is for glob() */
    int fd;                       /* -1: the file does not exist yet */
    int64_t offset;               /* of the next byte */
    struct timespec opened, read; /* when the program started; change of the file that was read */
    dt_strbuf header, row;        /* of a .csv file */
} dt_metrics_file;

/* Borrows the path. pattern: it is for glob(). */
void dt_metrics_file_open(dt_metrics_file *out, const char *path, bool pattern);
void dt_metrics_file_close(dt_metrics_file *file);
/* Reads what was appended. A file that cannot be read counts as missing. */
void dt_metrics_file_read(dt_metrics_file *file, dt_output_metrics *metrics);

/* --- metric_files.c: follows the event files of TensorBoard that a program writes below a folder
 *
 * Files of an earlier run or attempt are not read: what they have when the program starts is skipped. Scalars are
 * metrics with their tag as name; a new file is found within five seconds. Hidden folders are left out.
 */
typedef struct dt_metrics_board dt_metrics_board;

void dt_metrics_board_open(dt_metrics_board **out, const char *folder); /* borrows the folder */
void dt_metrics_board_close(dt_metrics_board *board);                   /* accepts NULL */
/* Reads what was added. ended: looks for new files now. */
void dt_metrics_board_read(dt_metrics_board *board, dt_output_metrics *metrics, bool ended);

/* --- saves.c: finds the checkpoints that a program writes, and sends a `checkpoint` event for each complete one
 *
 * Pattern   relative to the recipe's folder, or absolute: * ? [..] as in a shell, {step} a number, {run} the run's id
 * Complete  no file changed for `settle` seconds while the program ran, or the marker exists; if the program ended
 *           well, all that exist. If it died or was stopped, those whose marker is not older than their files; a
 *           checkpoint that was being written then is never reported
 * Old ones  those that exist before the program starts are reported only if they change
 * Step      the number at {step}; else the last step of the metrics when the files last changed; else the last
 *           number in the name; else 0
 * Limits    10,000 paths; paths that are not UTF-8 are left out, with a warning
 */
typedef struct dt_saves dt_saves;

/* Notes the files that exist. *out: NULL if the recipe names no checkpoints. The other arguments must outlive it.
 * step: the last step of the metrics, which another thread may set. */
void dt_saves_open(dt_saves **out, const dt_plan *plan, const atomic_int_fast64_t *step,
                   const dt_reports *reports, dt_arena *arena);
void dt_saves_close(dt_saves *saves); /* accepts NULL, as the functions below do */
/* Looks at the files, if it is time to. pid: of the program; after its death no time passes for what it was writing. */
void dt_saves_look(dt_saves *saves, pid_t pid);
/* Looks a last time. ended_well: the program is done with all its files. */
void dt_saves_end(dt_saves *saves, bool ended_well);
/* Returns the time between two looks. */
double dt_saves_interval_seconds(const dt_recipe *recipe);

/* Returns whether `path` matches a pattern; *step: the number at {step}, -1 without {step}. */
bool dt_saves_match(int64_t *step, const char *pattern, const char *path);

/* --- last_error.c: keeps the end of a program's stderr, and finds the error in it
 *
 * Found      the last exception of a Python traceback, without the prefix "[rank1]: " of PyTorch; else the last line.
 *            torchrun's report of a failed child is not an error of its own
 * Warnings   of Python (a leaked semaphore, a process group that was not destroyed), of logs, and exceptions that
 *            Python ignores at its end are not the last line
 * Secondary  an exception that another rank's death causes (connection closed by peer, a collective that timed out):
 *            an exception that is not secondary is preferred, and a process whose errors are all secondary is not the
 *            first cause of a failure
 */
#define DT_LAST_ERROR_AT \
    " at " /* between the error of faulthandler and its place; the supervisor looks for it */
#define DT_LAST_ERROR_BYTES ((size_t)64 << 10) /* of stderr that are kept */

typedef struct dt_last_error {
    char *text; /* [DT_LAST_ERROR_BYTES], a ring */
    size_t at, length;
} dt_last_error;

void dt_last_error_init(dt_last_error *out);
void dt_last_error_release(dt_last_error *last); /* accepts a zeroed struct */
void dt_last_error_add(dt_last_error *last, const char *bytes, size_t length);
/* Returns the error as one line of valid UTF-8; NULL: stderr had no text. */
const char *dt_last_error_find(bool *secondary, const dt_last_error *last, dt_arena *arena);
/* Returns whether Python's faulthandler wrote the error, which tells why a signal ended the program. */
bool dt_last_error_is_fatal(const char *text);

#endif
