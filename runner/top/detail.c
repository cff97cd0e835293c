#include "runner/top/top.h"

#include <math.h>
#include <string.h>

#include "runner/term/term.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

enum { BAR_COLUMNS = 20, HEAD_ROWS = 5, PLOT_LEAST = 5, LOG_LEAST = 3 };

/* --- reading */

static dt_status read_lines(dt_top_detail *out, dt_store *store, int64_t most, dt_arena *arena,
                            dt_error *err)
{
    dt_step_lines steps = {0};
    dt_status st = DT_OK;
    dt_step_log log;
    dt_log_tail tail;

    dt_step_log_init(&log, false);
    DT_TRY(dt_log_tail_init(&tail, store, &out->run, -1, arena, err));
    DT_TRY(dt_log_tail_read(&tail, &out->lines, &out->lines_count, DT_LOG_LAST, most, store,
                            &out->run, arena, err));
    DT_TRY(dt_step_log_read(&log, &steps, store, &out->run, most, arena, err));
    dt_log_lines_join(&out->lines, &out->lines_count, &steps, most, arena);
    out->several_ranks = tail.count > 1;
out:
    return st;
}

/* Reads the other runs that still exist. */
static dt_status read_others(dt_top_detail *out, dt_store *store, const char *const *others,
                             size_t count, const dt_term *term, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < count && out->others_count < DT_TOP_OTHERS_MOST; i++) {
        dt_top_other *other = &out->others[out->others_count];

        if (strcmp(others[i], out->run.id) == 0 ||
            dt_store_run_find(store, &other->run, others[i], arena, NULL) != DT_OK)
            continue;
        DT_TRY(dt_curve_sketch(&other->curve, store, other->run.id, out->metric,
                               dt_plot_buckets(term->columns), arena, err));
        out->others_count++;
    }
out:
    return st;
}

dt_status dt_top_detail_read(dt_top_detail *out, dt_store *store, const char *run,
                             const char *const *others, size_t others_count, const char *metric,
                             const dt_term *term, int64_t now_ms, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_top_detail){.metric = metric};
    DT_TRY(dt_store_run_find(store, &out->run, run, arena, err));
    DT_TRY(dt_timing_read(&out->timing, store, &out->run, now_ms, arena, err));
    DT_TRY(dt_store_metric_names(store, &out->names, &out->names_count, out->run.id, arena, err));
    DT_TRY(dt_curve_sketch(&out->curve, store, out->run.id, metric, dt_plot_buckets(term->columns),
                           arena, err));
    DT_TRY(read_others(out, store, others, others_count, term, arena, err));
    DT_TRY(read_lines(out, store, term->rows, arena, err));
out:
    return st;
}

/* --- drawing */

static void add_title(dt_strbuf *out, const dt_term *term, const dt_run *run,
                      const dt_activity *activity)
{
    dt_term_add(out, term, DT_STYLE_BOLD, "%s ", run->name);
    dt_term_add(out, term, DT_STYLE_PLAIN, "%s ", run->id);
    dt_term_add(out, term, dt_runs_activity_style(run, activity), "%s",
                dt_runs_shown_state(run, activity));
    if (run->attempt > 1)
        dt_term_add(out, term, DT_STYLE_DIM, ", attempt %lld", (long long)run->attempt);
    dt_strbuf_add_char(out, '\n');
    dt_term_add_wrapped(out, term, DT_STYLE_WARN, 2, (size_t)term->columns, run->reason);
}

static void add_progress(dt_strbuf *out, const dt_term *term, const dt_run *run)
{
    double share = run->steps_total > 0 ? (double)run->step / (double)run->steps_total : 0;
    char step[DT_FORMAT_SIZE];

    if (run->steps_total == 0 && dt_runs_is_command(run)) {
        if (run->step > 0)
            dt_term_add(out, term, DT_STYLE_PLAIN, "step %s\n",
                        dt_runs_progress(step, sizeof(step), " of ", run));
        return;
    }
    dt_bar_add(out, term, dt_runs_run_style(run), share, BAR_COLUMNS);
    dt_term_add(out, term, DT_STYLE_PLAIN, " %d%%  %s\n", (int)(share * 100),
                dt_runs_progress(step, sizeof(step), " of ", run));
}

static void add_numbers(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail)
{
    const dt_run *run = &detail->run;
    bool command = dt_runs_is_command(run);
    char text[DT_FORMAT_SIZE];

    if (!command || !isnan(run->loss))
        dt_term_add(out, term, DT_STYLE_PLAIN, "loss %s  ",
                    dt_format_loss(text, sizeof(text), run->loss));
    if (!isnan(run->valid_loss))
        dt_term_add(out, term, DT_STYLE_PLAIN, "validation loss %s  ",
                    dt_format_loss(text, sizeof(text), run->valid_loss));
    if (!command || !isnan(detail->timing.tokens_per_second))
        dt_term_add(out, term, DT_STYLE_PLAIN, "%s %s  ",
                    dt_format_count(text, sizeof(text), detail->timing.tokens_per_second),
                    dt_runs_timed_speed(run));
    dt_term_add(out, term, DT_STYLE_DIM, "elapsed %s",
                dt_format_seconds(text, sizeof(text), detail->timing.elapsed_seconds));
    if (!dt_run_state_is_terminal(run->state) && !isnan(detail->timing.eta_seconds))
        dt_term_add(out, term, DT_STYLE_DIM, "  left %s",
                    dt_format_seconds(text, sizeof(text), ceil(detail->timing.eta_seconds)));
    else if (!dt_run_state_is_terminal(run->state) && run->first_step_ms != 0 && !command)
        dt_term_add(out, term, DT_STYLE_DIM, "  left -");
    dt_strbuf_add_char(out, '\n');
}

static void add_ends(dt_strbuf *out, const dt_term *term, const dt_curve *curve)
{
    if (curve->last.step >= 0)
        dt_term_add(out, term, DT_STYLE_DIM, "  last %.6g  lowest %.6g  highest %.6g",
                    curve->last.value, curve->lowest.value, curve->highest.value);
    else
        dt_term_add(out, term, DT_STYLE_DIM, "  no points%s",
                    curve->count > 0 ? " that are numbers" : "");
}

static void add_metric(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail)
{
    int64_t at = 0;

    dt_term_add(out, term, DT_STYLE_ACCENT, "%s", detail->metric);
    while (at < detail->names_count && strcmp(detail->names[at], detail->metric) != 0)
        at++;
    if (at < detail->names_count)
        dt_term_add(out, term, DT_STYLE_DIM, " (%lld of %lld)", (long long)at + 1,
                    (long long)detail->names_count);
    if (detail->others_count == 0)
        add_ends(out, term, &detail->curve);
    dt_strbuf_add_char(out, '\n');
}

/* Adds a line for each curve of the plot, if there are several: how it is drawn, its run and its values. */
static void add_legend(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail)
{
    size_t count = detail->others_count + 1;

    for (size_t i = 0; i < count && count > 1; i++) {
        const dt_run *run = i == 0 ? &detail->run : &detail->others[i - 1].run;
        const char *mark;
        dt_style style = dt_plot_style(&mark, term, i, count);

        dt_term_add(out, term, style, "%s", mark);
        dt_term_add(out, term, DT_STYLE_PLAIN, " %s", run->id);
        add_ends(out, term, i == 0 ? &detail->curve : &detail->others[i - 1].curve);
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s\n", run->name); /* last: it can be long */
    }
}

/* The steps of all curves of the plot. */
static void find_extent(dt_plot *plot, const dt_top_detail *detail)
{
    bool any = false;

    for (size_t i = 0; i <= detail->others_count; i++) {
        const dt_curve *curve = i == 0 ? &detail->curve : &detail->others[i - 1].curve;

        if (curve->buckets == 0)
            continue;
        if (!any || curve->first_step < plot->first_step)
            plot->first_step = curve->first_step;
        if (!any || curve->last_step > plot->last_step)
            plot->last_step = curve->last_step;
        any = true;
    }
}

/* Returns the step in the middle of bucket `at`, of `count` that divide the steps first to last. */
static double step_of(size_t at, size_t count, int64_t first, int64_t last)
{
    return (double)first + ((double)at + 0.5) * (double)(last - first + 1) / (double)count;
}

static size_t bucket_of(double step, size_t count, int64_t first, int64_t last)
{
    double at = (step - (double)first) * (double)count / (double)(last - first + 1);

    return at <= 0 ? 0 : at >= (double)count ? count - 1 : (size_t)at;
}

/* Returns the curve in the buckets of the plot, so that equal steps of all curves are in the same column. */
static const double *align(const dt_curve *curve, const dt_plot *plot, dt_arena *arena)
{
    double *out = dt_arena_alloc_array(arena, plot->buckets + 1, sizeof(out[0]));

    for (size_t i = 0; i < plot->buckets; i++) {
        double step = step_of(i, plot->buckets, plot->first_step, plot->last_step);

        out[i] = NAN;
        if (curve->buckets > 0 && step >= (double)curve->first_step &&
            step <= (double)curve->last_step + 1)
            out[i] =
                curve->means[bucket_of(step, curve->buckets, curve->first_step, curve->last_step)];
    }
    for (size_t i = 0; i < curve->buckets; i++) { /* also one that is narrower than a bucket */
        double *at = &out[bucket_of(step_of(i, curve->buckets, curve->first_step, curve->last_step),
                                    plot->buckets, plot->first_step, plot->last_step)];

        if (isnan(*at))
            *at = curve->means[i];
    }
    return out;
}

static bool any_value(const dt_top_detail *detail)
{
    bool any = detail->curve.last.step >= 0;

    for (size_t i = 0; i < detail->others_count; i++)
        any = any || detail->others[i].curve.last.step >= 0;
    return any;
}

static void add_curve(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail, int rows,
                      dt_arena *arena)
{
    const double *curves[DT_TOP_OTHERS_MOST + 1] = {detail->curve.means};
    dt_plot plot = {curves,
                    1 + detail->others_count,
                    detail->curve.buckets,
                    detail->curve.first_step,
                    detail->curve.last_step,
                    term->columns,
                    rows};

    if (!any_value(detail))
        return;
    if (detail->others_count > 0) {
        plot.buckets = dt_plot_buckets(term->columns);
        find_extent(&plot, detail);
        for (size_t i = 0; i < plot.curves_count; i++)
            curves[i] = align(i == 0 ? &detail->curve : &detail->others[i - 1].curve, &plot, arena);
    }
    dt_plot_add(out, term, &plot, arena);
}

/* Returns a log line without its date. */
static const char *without_date(const char *text)
{
    const char *time = strchr(text, 'T'), *blank = strchr(text, ' ');

    return time != NULL && blank != NULL && time < blank ? time + 1 : text;
}

static int lines_of(const char *text)
{
    int count = 0;

    for (; (text = strchr(text, '\n')) != NULL; text++)
        count++;
    return count;
}

/* Adds a line. The screen truncates lines of ranks and steps; sentences are wrapped. */
static void add_line(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail,
                     const dt_log_line *line)
{
    if (line->incident) {
        dt_term_add_wrapped(out, term, DT_STYLE_PLAIN, 0, (size_t)term->columns,
                            without_date(line->text));
        return;
    }
    if (line->rank >= 0 && detail->several_ranks)
        dt_term_add(out, term, DT_STYLE_DIM, "[rank %lld] ", (long long)line->rank);
    dt_term_add(out, term, line->rank >= 0 ? DT_STYLE_DIM : DT_STYLE_PLAIN, "%s\n",
                without_date(line->text));
}

/* Adds the newest lines that fit. */
static void add_lines(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail, int rows)
{
    int64_t first = detail->lines_count;
    dt_strbuf one;

    dt_strbuf_init(&one);
    for (int used = 0; first > 0; first--) {
        dt_strbuf_reset(&one);
        add_line(&one, term, detail, &detail->lines[first - 1]);
        used += lines_of(one.data);
        if (used > rows)
            break;
    }
    dt_strbuf_release(&one);
    for (int64_t i = first; i < detail->lines_count; i++)
        add_line(out, term, detail, &detail->lines[i]);
}

void dt_top_detail_add(dt_strbuf *out, const dt_term *term, const dt_top_detail *detail, int rows,
                       dt_arena *arena)
{
    int room, plot;

    add_title(out, term, &detail->run, &detail->timing.activity);
    room = rows - HEAD_ROWS - (lines_of(out->data) - 1); /* the reason takes more lines */
    if (detail->others_count > 0)
        room -= (int)detail->others_count + 1;
    plot = room * 3 / 5;
    add_progress(out, term, &detail->run);
    add_numbers(out, term, detail);
    dt_strbuf_add_char(out, '\n');
    add_metric(out, term, detail);
    add_legend(out, term, detail);
    if (room - plot < LOG_LEAST)
        plot = room - LOG_LEAST;
    if (plot >= PLOT_LEAST)
        add_curve(out, term, detail, plot, arena);
    else
        plot = 0;
    add_lines(out, term, detail, room - plot > 0 ? room - plot : 0);
}
