/* view: draws a followed run: a block that is redrawn in a terminal, plain lines, or the lines of
 * follow.h. */
#include "runner/view/follow/follow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/metric_kinds.h"
#include "runner/cli/report.h"
#include "runner/term/screen.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"

/* view_live: draws four lines at the bottom of the terminal, one more for each node if there are several or one
 * does not respond, and above them a record of rare events (evaluations, checkpoints, trouble).
 *
 *   step 1,000  validation loss 1.9034
 *
 *   shakespeare · k3v9x2 · running · 2 ranks
 *   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸───────────────  54%  1,080 of 2,000 steps
 *   loss 1.8421 █▆▅▄▃▂▂▁   validation loss 1.9034   41.2k tokens/s
 *   elapsed 1m02s   left 53s   Ctrl-C detaches, the run continues
 */

enum { BAR_MOST = 60, BAR_LEAST = 10, BESIDE_BAR = 36, BESIDE_SPARK = 57, NODES_MOST = 16 };
enum { OUTPUT_LINES = 6, OUTPUT_BYTES = 512 };

typedef struct live_view {
    dt_view view;
    dt_term term;
    dt_live live;
    dt_strbuf above, block;
    char output[OUTPUT_LINES][OUTPUT_BYTES]; /* the last lines of a command, a ring */
    int64_t output_count;
} live_view;

static void add_above(live_view *live, const dt_frame *frame)
{
    char step[DT_FORMAT_SIZE], value[DT_FORMAT_SIZE];

    for (int64_t i = 0; i < frame->evaluations_count; i++) {
        dt_term_add(&live->above, &live->term, DT_STYLE_DIM, "step %7s  ",
                    dt_format_whole(step, sizeof(step), frame->evaluations[i].step));
        dt_evaluation_add(&live->above, &frame->evaluations[i]);
        dt_strbuf_add_char(&live->above, '\n');
    }
    for (int64_t i = 0; i < frame->checkpoints_count; i++)
        dt_term_add(&live->above, &live->term, DT_STYLE_DIM, "step %7s  checkpoint, %s\n",
                    dt_format_whole(step, sizeof(step), frame->checkpoints[i]->step),
                    dt_format_bytes(value, sizeof(value), (double)frame->checkpoints[i]->bytes));
    for (int64_t i = 0; i < frame->troubles_count; i++)
        dt_term_add(&live->above, &live->term, DT_STYLE_WARN, "%s\n", frame->troubles[i]);
}

static void add_title(live_view *live, const dt_frame *frame)
{
    const dt_run *run = frame->run;
    const char *dot = live->term.unicode ? " · " : " - ";

    dt_term_add(&live->block, &live->term, DT_STYLE_BOLD, "%s", run->name);
    dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%s", dot);
    dt_term_add(&live->block, &live->term, DT_STYLE_PLAIN, "%s", run->id);
    dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%s", dot);
    dt_term_add(&live->block, &live->term, dt_runs_activity_style(run, &frame->timing.activity),
                "%s", frame->timing.activity.words);
    if (frame->nodes.ranks_count > 0)
        dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%s%lld %s", dot,
                    (long long)frame->nodes.ranks_count,
                    frame->nodes.ranks_count == 1 ? "rank" : "ranks");
    if (run->attempt > 1)
        dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%sattempt %lld", dot,
                    (long long)run->attempt);
    dt_strbuf_add_char(&live->block, '\n');
}

static void add_progress(live_view *live, const dt_run *run, const char *unit)
{
    double share = run->steps_total > 0 ? (double)run->step / (double)run->steps_total : 0;
    int columns = live->term.columns - BESIDE_BAR;
    char step[DT_FORMAT_SIZE], total[DT_FORMAT_SIZE];

    columns = columns > BAR_MOST ? BAR_MOST : columns < BAR_LEAST ? BAR_LEAST : columns;
    if (run->steps_total == 0 && dt_runs_is_command(run)) {
        if (run->step > 0)
            dt_term_add(&live->block, &live->term, DT_STYLE_PLAIN, "step %s\n",
                        dt_format_whole(step, sizeof(step), run->step));
        return;
    }
    dt_bar_add(&live->block, &live->term, dt_runs_run_style(run), share, (size_t)columns);
    dt_term_add(&live->block, &live->term, DT_STYLE_BOLD, " %3d%%", (int)(share * 100));
    dt_term_add(&live->block, &live->term, DT_STYLE_PLAIN, "  %s",
                dt_format_whole(step, sizeof(step), run->step));
    dt_term_add(&live->block, &live->term, DT_STYLE_DIM,
                run->steps_total > 0 ? " of %s %s\n" : " of %s\n",
                dt_runs_total(total, sizeof(total), run), unit);
}

static void add_pair(live_view *live, const char *label, const char *value, const char *unit)
{
    if (label[0] != '\0')
        dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%s ", label);
    dt_term_add(&live->block, &live->term, DT_STYLE_PLAIN, "%s", value);
    dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%s   ", unit);
}

/* Adds the hint to the current line, or below it, or shortened, depending on the width of the terminal. */
static void add_hint(live_view *live)
{
    static const char *const hints[] = {"Ctrl-C detaches, the run continues", "Ctrl-C detaches",
                                        "Ctrl-C"};
    const char *line = strrchr(live->block.data, '\n');
    size_t used = dt_term_width(line != NULL ? line + 1 : live->block.data), at = 0;
    size_t room = live->term.columns > 1 ? (size_t)live->term.columns - 1 : 1;

    if (used + strlen(hints[0]) > room) {
        dt_strbuf_add_char(&live->block, '\n');
        while (at + 1 < sizeof(hints) / sizeof(hints[0]) && strlen(hints[at]) > room)
            at++;
    }
    dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "%s\n", hints[at]);
}

static void add_numbers(live_view *live, const dt_frame *frame)
{
    const dt_run *run = frame->run;
    char text[DT_FORMAT_SIZE], unit[16];
    int spark = live->term.columns - BESIDE_SPARK;

    if (!isnan(frame->timing.lines_per_second)) {
        dt_curve_add_spark(&live->block, &live->term, &frame->curve, spark > 0 ? (size_t)spark : 0);
        dt_strbuf_add_str(&live->block, live->term.unicode && spark > 0 ? "   " : "");
        add_pair(live, "", dt_format_count(text, sizeof(text), frame->timing.lines_per_second),
                 " lines/s");
    } else if (isnan(run->loss) && dt_runs_is_command(run)) {
        dt_term_add(&live->block, &live->term, DT_STYLE_PLAIN, "%s", "");
    } else if (isnan(run->loss)) {
        dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "nothing yet");
    } else {
        dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "loss ");
        dt_term_add(&live->block, &live->term, DT_STYLE_PLAIN, "%s ",
                    dt_format_loss(text, sizeof(text), run->loss));
        dt_curve_add_spark(&live->block, &live->term, &frame->curve, spark > 0 ? (size_t)spark : 0);
        dt_strbuf_add_str(&live->block, live->term.unicode && spark > 0 ? "   " : "  ");
        if (!isnan(run->valid_loss))
            add_pair(live, "validation loss", dt_format_loss(text, sizeof(text), run->valid_loss),
                     "");
        snprintf(unit, sizeof(unit), " %s", dt_runs_speed(run));
        if (!dt_runs_is_command(run) || !isnan(frame->timing.tokens_per_second))
            add_pair(live, "", dt_format_count(text, sizeof(text), frame->timing.tokens_per_second),
                     unit);
    }
    if (!dt_runs_is_command(run) || !isnan(run->loss))
        dt_strbuf_add_char(&live->block, '\n');
    add_pair(live, "elapsed", dt_format_seconds(text, sizeof(text), frame->timing.elapsed_seconds),
             "");
    if (!isnan(frame->timing.eta_seconds))
        add_pair(live, "left",
                 dt_format_seconds(text, sizeof(text), ceil(frame->timing.eta_seconds)), "");
    else if (run->first_step_ms != 0 && !dt_runs_is_command(run))
        add_pair(live, "left", "-", "");
    add_hint(live);
}

static void add_output(live_view *live, const dt_frame *frame)
{
    for (int64_t i = 0; i < frame->output_count; i++) {
        char *line = live->output[live->output_count++ % OUTPUT_LINES];

        snprintf(line, OUTPUT_BYTES, "%s", dt_frame_output(frame, i));
    }
    for (int64_t i = live->output_count - OUTPUT_LINES; i < live->output_count; i++)
        if (i >= 0)
            dt_term_add(&live->block, &live->term, DT_STYLE_DIM, "  %s\n",
                        live->output[i % OUTPUT_LINES]);
}

static void live_show(dt_view *view, const dt_frame *frame)
{
    live_view *live = (live_view *)view;

    dt_strbuf_reset(&live->above);
    dt_strbuf_reset(&live->block);
    dt_term_measure(&live->term);
    add_above(live, frame);
    dt_strbuf_add_char(&live->block, '\n'); /* empty line between the record and the block */
    add_title(live, frame);
    add_output(live, frame);
    add_progress(live, frame->run, isnan(frame->timing.lines_per_second) ? "steps" : "lines");
    add_numbers(live, frame);
    if (frame->nodes.nodes_count > 1 || frame->timing.activity.missing > 0)
        dt_node_lines_add(&live->block, &live->term, &frame->nodes, NODES_MOST);
    dt_live_draw(&live->live, live->above.data, live->block.data);
}

static void live_close(dt_view *view)
{
    live_view *live = (live_view *)view;

    dt_live_close(&live->live);
    dt_strbuf_release(&live->above);
    dt_strbuf_release(&live->block);
    free(live);
}

dt_view *dt_view_live_new(const dt_term *term)
{
    live_view *live = dt_calloc(1, sizeof(*live));

    live->view = (dt_view){live_show, live_close};
    live->term = *term;
    dt_live_open(&live->live, &live->term);
    dt_strbuf_init(&live->above);
    dt_strbuf_init(&live->block);
    return &live->view;
}

/* Plain lines, where stdout is not a terminal. */

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
    if (strcmp(frame->timing.curve, dt_metric_name(DT_METRIC_LOSS)) == 0) {
        add_place(lines, "step", newest->step, run);
        dt_term_add(
            &lines->text, &lines->term, DT_STYLE_PLAIN, "  loss %s",
            dt_format_loss(loss, sizeof(loss), isnan(newest->value) ? INFINITY : newest->value));
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

/* view_steps: prints the lines of follow.h on stdout, for --log-steps. */

typedef struct steps_view {
    dt_view view;
    dt_step_log log;
    dt_store *store;
    dt_arena arena;
    bool begun;
} steps_view;

/* Write errors and a locked store are not reported: the run continues, and the next frame reads what is
 * missing. */
static void steps_show(dt_view *view, const dt_frame *frame)
{
    steps_view *steps = (steps_view *)view;
    dt_step_lines lines = {0};
    dt_strbuf text;

    dt_arena_reset(&steps->arena);
    if (!steps->begun &&
        dt_step_log_begin_at(&steps->log, steps->store, frame->run, &steps->arena, NULL) != DT_OK)
        return;
    steps->begun = true;
    dt_strbuf_init(&text);
    if (dt_step_log_read(&steps->log, &lines, steps->store, frame->run, 0, &steps->arena, NULL) ==
        DT_OK)
        for (int64_t i = 0; i < lines.count; i++)
            dt_strbuf_add_fmt(&text, "%s\n", lines.items[i].text);
    if (text.length > 0)
        (void)dt_report_text(&text, NULL);
    dt_strbuf_release(&text);
}

static void steps_close(dt_view *view)
{
    steps_view *steps = (steps_view *)view;

    dt_arena_release(&steps->arena);
    free(steps);
}

dt_view *dt_view_steps_new(dt_store *store, bool json)
{
    steps_view *steps = dt_calloc(1, sizeof(*steps));

    steps->view = (dt_view){steps_show, steps_close};
    steps->store = store;
    dt_step_log_init(&steps->log, json);
    dt_arena_init(&steps->arena, 0);
    return &steps->view;
}
