/* follow: shows a run until it ends or the user detaches: its steps, its output as lines, and the block
 * that is redrawn in a terminal.
 *
 * Reads the store five times a second. Checks the supervisor every two seconds and replaces one that was
 * killed. Ctrl-C detaches; the run continues.
 */
#ifndef DT_RUNNER_VIEW_FOLLOW_FOLLOW_H
#define DT_RUNNER_VIEW_FOLLOW_FOLLOW_H

#include <string.h>

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/term/term.h"
#include "runner/view/compare/compare.h"
#include "runner/view/runs/runs.h"
#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"

/* upkeep: checks the supervisor of a run while a command waits for the run. Starts a missing supervisor and finds
 * out why the run makes no progress, every two seconds.
 *
 * Errors  DT_ERR_IO if supervisors of the run end at once; then none is started any more and waiting is pointless
 */

#define DT_UPKEEP_BYTES 1024

typedef struct dt_upkeep {
    double looked_seconds; /* 0: not yet */
    int64_t troubles;      /* consecutive checks that found a problem */
    char message[DT_UPKEEP_BYTES];
} dt_upkeep; /* starts zeroed */

/* *news: a sentence about the run's supervisor that differs from the last one, valid until the next
 * call; else NULL. A problem is reported if two checks in a row find one. */
dt_status dt_upkeep_look(const char **news, dt_upkeep *upkeep, const dt_run *run, dt_error *err);

typedef enum dt_follow_view {
    DT_FOLLOW_AUTO, /* live on a terminal, else lines */
    DT_FOLLOW_LINES,
    DT_FOLLOW_STEPS, /* all steps on stdout: --log-steps */
    DT_FOLLOW_QUIET
} dt_follow_view;

typedef enum dt_follow_from {
    DT_FOLLOW_FROM_START, /* from the start of the attempt: launch, resume */
    DT_FOLLOW_FROM_NOW    /* status --watch */
} dt_follow_from;

/* The exit code of an ended run: its own, or one derived from its state. */
int dt_follow_exit_code(const dt_run *run);

/* Follows a run for launch, resume and status --watch, prints its summary or JSON, and sets the exit code of
 * the call. */
dt_status dt_follow_to_end(dt_store *store, const char *run, dt_follow_view view,
                           dt_follow_from from, dt_call *call, dt_error *err);

/* follow_options: defines and handles --wait, --detach and --log-steps of launch, resume and fork. */

#define DT_FOLLOW_OPTIONS                                                                   \
    {.name = "wait",                                                                        \
     .kind = DT_OPTION_FLAG,                                                                \
     .help = "print plain lines until the run ends, instead of the live view; with --json " \
             "print only the final object"},                                                \
        {.name = "log-steps",                                                               \
         .kind = DT_OPTION_FLAG,                                                            \
         .help = "print every logged step, evaluation and checkpoint as a line on stdout; " \
                 "with --json as one object each, before the final one"},                   \
    {                                                                                       \
        .name = "detach", .letter = 'd', .kind = DT_OPTION_FLAG,                            \
        .help = "print the id and return as soon as the run is supervised"                  \
    }

/* Checks the options before anything is done. DT_ERR_USAGE if they cannot be combined. */
dt_status dt_follow_options_check(const dt_call *call, dt_error *err);

/* Follows a run that was started, or with --detach prints its id and returns. attempt: the one that was started, which may
 * have failed by now, so that the run is back at the one before. */
dt_status dt_follow_as_asked(dt_store *store, const char *run, int64_t attempt, dt_call *call,
                             dt_error *err);

/* task_end: follows a run of generate or score (runner/launch/task.h) and prints its output. */

/* Follows the run as --wait, --detach and --json ask, and sets the exit code. If the run finished,
 * *text is its output, which is printed unless a file was named for it. With --json *object is the
 * summary (new reference, printed by the caller), else NULL. */
dt_status dt_task_follow(dt_strbuf *text, json_t **object, dt_store *store, const char *run,
                         dt_call *call, dt_error *err);

/* log_tail: reads a run as lines: the output of its ranks (log_tail.c) and its history (step_log.c).
 *
 * runs/ID/logs/rank-N.log has lines "TIME TEXT" of all attempts and is valid up to the length in the store. A
 * supervisor that died before its transaction may have written more.
 *
 * Order  by time over all ranks. Live lines are held back for two polls, because lines of other nodes with
 *        earlier times may still arrive. This also hides small differences between clocks.
 */

/* step_log: reads the history of a run as lines: logged steps, evaluations, checkpoints and failures.
 *
 *   step 740/2000  loss 1.7000  learning rate 0.0006  gradient norm 0.61  16.6k tokens/s
 *   step 750/2000  validation loss 1.7519
 *   step 750/2000  checkpoint saved, 3.21 MB
 *   attempt 2 continues from step 750: rank 1 on gpu-b was killed by signal 9 (SIGKILL)
 *
 * or each as a JSON object: time, kind ("step", "evaluation", "checkpoint", "restart", "checkpoint_failed"), attempt,
 * step, steps_total, and for a step "values", all metrics that were reported with its loss. Values that are not
 * finite are null.
 *
 * Order      by time. A step that a later attempt repeated is read from that attempt only, unless the earlier one
 *            was read already: a followed log shows both.
 * Ownership  texts live in the arena of the call
 */

typedef struct dt_step_line {
    int64_t time_ms, number; /* number: order of reading */
    const char *text;        /* without line break; names are not escaped */
    bool incident;           /* a sentence, which may be long */
} dt_step_line;

typedef struct dt_step_log {
    bool json;
    bool without_restarts;                               /* the caller prints restarts itself */
    int64_t attempt;                                     /* the newest one read; 0: none yet */
    int64_t step, valid_step, checkpoint_step, event_id; /* read up to here */
} dt_step_log;

typedef struct dt_step_lines {
    dt_step_line *items;
    int64_t count, capacity;
} dt_step_lines;

/* The next dt_step_log_read reads everything. */
void dt_step_log_init(dt_step_log *log, bool json);
/* The next dt_step_log_read starts at the newest attempt. */
dt_status dt_step_log_begin_at(dt_step_log *log, dt_store *store, const dt_run *run,
                               dt_arena *arena, dt_error *err);
/* Reads all new lines since the last call; most > 0: skips older steps than the last `most`. */
dt_status dt_step_log_read(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                           int64_t most, dt_arena *arena, dt_error *err);

#define DT_LOG_TAIL_LOOKS 2 /* polls for which a live line is held back */

typedef struct dt_log_line {
    int64_t rank;     /* -1: a line of the run (dt_log_lines_join) */
    const char *node; /* name of the node in the newest attempt that has the rank */
    const char *text; /* with its time, without the line end */
    bool incident;    /* a sentence on the run, which may be long */
} dt_log_line;

typedef struct dt_log_reader {
    int64_t rank, offset;             /* read up to here */
    int64_t limit;                    /* valid up to here */
    int64_t dropped;                  /* bytes at the start that were discarded */
    int64_t known[DT_LOG_TAIL_LOOKS]; /* limits of previous polls, oldest first */
    const char *path, *node;
} dt_log_reader;

typedef struct dt_log_tail {
    dt_log_reader *readers;
    int64_t count, capacity, rank, attempt; /* rank -1: all; attempt: the newest one read */
    bool several_nodes;
    dt_arena *arena; /* of readers and names */
} dt_log_tail;

typedef enum dt_log_amount {
    DT_LOG_LAST, /* the last `most` lines (0: all) */
    DT_LOG_LIVE, /* new lines since the last call that were held back long enough */
    DT_LOG_REST, /* all new lines: the run has ended */
} dt_log_amount;

/* Opens one reader for each rank of any attempt, or only for `rank` (-1: all). DT_ERR_USAGE if the run has no
 * such rank. The arena outlives the tail. */
dt_status dt_log_tail_init(dt_log_tail *out, dt_store *store, const dt_run *run, int64_t rank,
                           dt_arena *arena, dt_error *err);

/* Reads lines, oldest first, also of attempts, ranks and nodes that are new. Texts live in the arena. */
dt_status dt_log_tail_read(dt_log_tail *tail, dt_log_line **lines, int64_t *count,
                           dt_log_amount amount, int64_t most, dt_store *store, const dt_run *run,
                           dt_arena *arena, dt_error *err);

/* Merges the lines of the ranks and of the run by time; most > 0: keeps only the last `most`. */
void dt_log_lines_join(dt_log_line **lines, int64_t *count, const dt_step_lines *steps,
                       int64_t most, dt_arena *arena);

/* view: draws a followed run, as a block that is redrawn, as plain lines, or as the lines of step_log (view.c).
 *
 * follow.c makes a frame five times a second and passes it to the view. News since the last frame is in exactly
 * one frame. Views only draw.
 */

typedef struct dt_frame {
    const dt_run *run;
    dt_timing timing;
    dt_node_lines nodes;
    dt_curve curve;     /* the whole curve of the loss */
    double now_seconds; /* monotonic */

    /* New since the last frame, oldest first. */
    const dt_metric *losses;
    const dt_evaluation *evaluations;
    int64_t losses_count, evaluations_count;
    const dt_store_checkpoint *const *checkpoints;
    int64_t checkpoints_count;
    /* of a command: what rank 0 printed, with its time */
    const dt_log_line *output;
    int64_t output_count;
    const char *const *troubles; /* sentences: a checkpoint that failed, a rank that died */
    int64_t troubles_count;
} dt_frame;

/* Returns the text of a line of output, without its time. */
static inline const char *dt_frame_output(const dt_frame *frame, int64_t index)
{
    const char *blank = strchr(frame->output[index].text, ' ');

    return blank != NULL ? blank + 1 : "";
}

typedef struct dt_view dt_view;
struct dt_view {
    void (*show)(dt_view *view, const dt_frame *frame);
    void (*close)(dt_view *view); /* restores the terminal and frees the view */
};

/* Redraws in place, for terminals that support it. */
dt_view *dt_view_live_new(const dt_term *term);
/* Prints plain lines for logs and pipes: at most one step a second, and all rare events. */
dt_view *dt_view_lines_new(const dt_term *term);
/* Prints every logged step of the newest attempt on stdout, as lines or JSON objects. */
dt_view *dt_view_steps_new(dt_store *store, bool json);

#endif
