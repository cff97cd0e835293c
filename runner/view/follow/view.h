/* view: draws a followed run; one file per kind (view.c, view.c, view.c).
 *
 * follow.c makes a frame five times a second and passes it to the view. News since the last frame is in exactly
 * one frame. Views only draw.
 */
#ifndef DT_RUNNER_VIEW_VIEW_H
#define DT_RUNNER_VIEW_VIEW_H

#include <string.h>

#include "runner/term/term.h"
#include "runner/view/compare/curve.h"
#include "runner/view/follow/log_tail.h"
#include "runner/view/runs/progress.h"
#include "store/store.h"

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
/* Prints every logged step of the newest attempt on stdout, as lines or JSON objects (log_tail.h). */
dt_view *dt_view_steps_new(dt_store *store, bool json);

#endif
