/* metrics_int: declares what the files of the metrics of a program share: output_metrics.c keeps the limits and sends,
 * metric_lines.c reads lines, metrics_file.c and metrics_board.c read files.
 */
#ifndef DT_ENGINE_PROGRAM_METRICS_INT_H
#define DT_ENGINE_PROGRAM_METRICS_INT_H

#include "base/json.h"
#include "base/named_groups.h"
#include "base/strbuf.h"
#include "engine/program/output_metrics.h"

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

struct dt_output_metrics {
    dt_output_metrics_kind kind;
    dt_named_groups *groups; /* NULL: no pattern */
    dt_events *events;
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
};

/* --- output_metrics.c */
/* Returns whether another line may be sent now. */
bool dt_metrics_may_send(dt_output_metrics *metrics);
/* Returns whether the number can be a step. */
bool dt_metrics_is_step(double number);
/* Adds a value to those of the step, unless it is over a limit. */
void dt_metrics_add(dt_output_metrics *metrics, json_t *values, const char *name, int64_t step,
                    double value);
/* Adds a value of another program's own names, and the same as `loss` or `valid_loss` if it is one. */
void dt_metrics_add_foreign(dt_output_metrics *metrics, json_t *values, const char *name,
                            int64_t step, double value);
/* Sends the values and releases them. */
dt_status dt_metrics_send(dt_output_metrics *metrics, int64_t step, json_t *values, dt_error *err);
/* Counts what is left out, and logs the first. */
void dt_metrics_leave(dt_output_metrics *metrics, dt_metrics_left why, const char *sample);

/* --- metric_lines.c */
/* Takes a line, which is changed. */
dt_status dt_metrics_take_line(dt_output_metrics *metrics, char *line, dt_error *err);
/* Sends what waits for a state of the bar. */
dt_status dt_metrics_take_waiting(dt_output_metrics *metrics, int64_t step, dt_error *err);
/* Looks for a state of the bar in a piece of stderr. */
dt_status dt_metrics_look_for_bar(dt_output_metrics *metrics, const char *bytes, size_t length,
                                  dt_error *err);

#endif
