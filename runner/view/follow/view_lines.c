#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "runner/term/format.h"
#include "runner/view/follow/view.h"
#include "runner/view/runs/runs.h"

#define STEP_GAP_SECONDS 1.0

typedef struct lines_view {
    dt_view view;
    dt_term term;
    dt_strbuf text;
    char activity[200];     /* printed last */
    double printed_seconds; /* when a step was last printed */
} lines_view;

static void add_state(lines_view *lines, const dt_frame *frame)
{
    const char *words = frame->timing.activity.words;

    if (strncmp(lines->activity, words, sizeof(lines->activity) - 1) == 0)
        return;
    snprintf(lines->activity, sizeof(lines->activity), "%s", words);
    dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "%s %s\n", frame->run->id, words);
}

static void add_place(lines_view *lines, const char *what, int64_t step, const dt_run *run)
{
    dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN,
                run->steps_total > 0 ? "%s %lld/%lld" : "%s %lld", what, (long long)step,
                (long long)run->steps_total);
}

static void add_step(lines_view *lines, const dt_frame *frame)
{
    const dt_run *run = frame->run;
    char loss[DT_FORMAT_SIZE], speed[DT_FORMAT_SIZE], left[DT_FORMAT_SIZE];

    if (frame->losses_count == 0 || frame->now_seconds - lines->printed_seconds < STEP_GAP_SECONDS)
        return;
    const dt_metric *newest = &frame->losses[frame->losses_count - 1];
    lines->printed_seconds = frame->now_seconds;
    if (strcmp(frame->timing.curve, DT_CURVE_LOSS) == 0) {
        add_place(lines, "step", newest->step, run);
        dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "  loss %s",
                    dt_format_loss(loss, sizeof(loss),
                                   isnan(newest->value) ? INFINITY : newest->value));
        if (!dt_runs_is_command(run) || !isnan(frame->timing.tokens_per_second))
            dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "  %s %s",
                        dt_format_count(speed, sizeof(speed), frame->timing.tokens_per_second),
                        dt_runs_speed(run));
    } else {
        add_place(lines, "line", newest->step, run);
        dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "  %s lines/s",
                    dt_format_count(speed, sizeof(speed), newest->value));
    }
    if (!isnan(frame->timing.eta_seconds))
        dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "  %s left",
                    dt_format_seconds(left, sizeof(left), ceil(frame->timing.eta_seconds)));
    dt_strbuf_add_char(&lines->text, '\n');
}

static void add_rare(lines_view *lines, const dt_frame *frame)
{
    char text[DT_FORMAT_SIZE];

    for (int64_t i = 0; i < frame->evaluations_count; i++) {
        add_place(lines, "step", frame->evaluations[i].step, frame->run);
        dt_strbuf_add_str(&lines->text, "  ");
        dt_evaluation_add(&lines->text, &frame->evaluations[i]);
        dt_strbuf_add_char(&lines->text, '\n');
    }
    for (int64_t i = 0; i < frame->checkpoints_count; i++) {
        add_place(lines, "step", frame->checkpoints[i]->step, frame->run);
        dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "  checkpoint saved, %s\n",
                    dt_format_bytes(text, sizeof(text), (double)frame->checkpoints[i]->bytes));
    }
    for (int64_t i = 0; i < frame->troubles_count; i++)
        dt_term_add(&lines->text, &lines->term, DT_STYLE_WARN, "%s\n", frame->troubles[i]);
}

/* Write errors are ignored: the run continues without a reader. */
static void lines_show(dt_view *view, const dt_frame *frame)
{
    lines_view *lines = (lines_view *)view;
    bool ended = dt_run_state_is_terminal(frame->run->state);

    if (!ended)
        add_state(lines, frame);
    for (int64_t i = 0; i < frame->output_count; i++)
        dt_term_add(&lines->text, &lines->term, DT_STYLE_PLAIN, "%s\n", dt_frame_output(frame, i));
    add_step(lines, frame);
    add_rare(lines, frame);
    if (ended)
        add_state(lines, frame);
    (void)dt_file_write_all(lines->term.fd, lines->text.data, lines->text.length, NULL);
    dt_strbuf_reset(&lines->text);
}

static void lines_close(dt_view *view)
{
    lines_view *lines = (lines_view *)view;

    dt_strbuf_release(&lines->text);
    free(lines);
}

dt_view *dt_view_lines_new(const dt_term *term)
{
    lines_view *lines = dt_calloc(1, sizeof(*lines));

    lines->view = (dt_view){lines_show, lines_close};
    lines->term = *term;
    lines->printed_seconds = -STEP_GAP_SECONDS;
    dt_strbuf_init(&lines->text);
    return &lines->view;
}
