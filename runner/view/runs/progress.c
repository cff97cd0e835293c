/* progress: computes elapsed and remaining time and speed of a run, reads its evaluations, and prints its
 * nodes. */
#include "runner/view/runs/runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/metric_kinds.h"
#include "runner/supervisor/supervisor.h"
#include "runner/term/term.h"
#include "store/curve.h"

static double elapsed(const dt_run *run, int64_t now_ms)
{
    double seconds = dt_run_elapsed_seconds(run, now_ms);

    return isnan(seconds) ? 0 : seconds;
}

/* The first point of the newest attempt in the window, and its newest two. */
typedef struct ends {
    const dt_run *run;
    dt_metric first; /* attempt 0: no point */
    dt_last_points last;
} ends;

static bool take_first(void *context, const dt_metric *point)
{
    ends *of = context;
    bool own = point->attempt == of->run->attempt && point->time_ms >= of->run->started_ms;

    if (own)
        of->first = *point;
    return !own;
}

static double eta(const ends *of, int64_t now_ms)
{
    int64_t last_step = of->last.step[0], last_ms = of->last.time_ms[0];
    double step_seconds, since, due, left;

    if (of->run->steps_total == 0 || of->first.attempt == 0 || of->last.count < 2 ||
        last_step <= of->first.step || last_ms <= of->first.time_ms)
        return NAN;
    step_seconds =
        (double)(last_ms - of->first.time_ms) * 1e-3 / (double)(last_step - of->first.step);
    since = (double)(now_ms - last_ms) * 1e-3;
    due = (double)(last_step - of->last.step[1]) * step_seconds;
    left = (double)(of->run->steps_total - last_step) * step_seconds - (since < due ? since : due);
    return left > 0 ? left : 0;
}

/* Reads only the points at the ends of the window. */
static dt_status read_ends(ends *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err)
{
    int64_t window = run->steps_total / 10 > 100 ? run->steps_total / 10 : 100;
    dt_store_curves curves;
    dt_status st = DT_OK;

    *out = (ends){.run = run};
    DT_TRY(dt_last_points_read(&out->last, store, run, err));
    DT_TRY(dt_store_curves_find(store, &curves, run->id, out->last.curve, arena, err));
    if (curves.count == 1 && out->last.count > 0)
        DT_TRY(dt_store_curve_scan(store, &curves, 0, run->step - window - 1, INT64_MAX, take_first,
                                   out, err));
out:
    return st;
}

dt_status dt_timing_read(dt_timing *out, dt_store *store, const dt_run *run, int64_t now_ms,
                         dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    ends of;

    out->elapsed_seconds = elapsed(run, now_ms);
    out->eta_seconds = out->lines_per_second = NAN;
    DT_TRY(dt_progress_curve(&out->curve, store, run, err));
    DT_TRY(dt_activity_read(&out->activity, store, run, now_ms, arena, err));
    out->tokens_per_second = out->activity.steps ? run->tokens_per_second : NAN;
    if (run->state == DT_RUN_FINISHED)
        out->eta_seconds = 0;
    if (dt_run_state_is_terminal(run->state))
        return dt_store_run_mean_speed(store, &out->tokens_per_second, run, arena, err);
    if (!out->activity.steps)
        goto out;
    DT_TRY(read_ends(&of, store, run, arena, err));
    out->eta_seconds = eta(&of, now_ms);
    if (strcmp(out->curve, dt_metric_name(DT_METRIC_LINES_PER_SECOND)) == 0)
        out->lines_per_second = of.last.value;
out:
    return st;
}

/* Returns the value at `step`, or NaN if there is none. */
static double at_step(const dt_metric *points, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++)
        if (points[i].step == step)
            return points[i].value;
    return NAN;
}

dt_status dt_evaluations_read(dt_evaluation **out, int64_t *count, int64_t *after_step,
                              dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    dt_metric *losses, *bleus;
    dt_status st = DT_OK;
    int64_t bleus_count;

    DT_TRY(dt_store_metric_list(store, &losses, count, run, dt_metric_name(DT_METRIC_VALID_LOSS),
                                *after_step, false, arena, err));
    DT_TRY(dt_store_metric_list(store, &bleus, &bleus_count, run,
                                dt_metric_name(DT_METRIC_VALID_BLEU), *after_step, false, arena,
                                err));
    *out = dt_arena_alloc_array(arena, (size_t)*count + 1, sizeof((*out)[0]));
    for (int64_t i = 0; i < *count; i++) {
        const dt_metric *p = &losses[i];

        (*out)[i] = (dt_evaluation){p->attempt, p->step, p->time_ms, p->value,
                                    at_step(bleus, bleus_count, p->step)};
        *after_step = p->step;
    }
out:
    return st;
}

void dt_evaluation_add(dt_strbuf *out, const dt_evaluation *evaluation)
{
    char number[DT_FORMAT_SIZE];

    dt_strbuf_add_fmt(out, "validation loss %s",
                      isfinite(evaluation->loss)
                          ? dt_format_loss(number, sizeof(number), evaluation->loss)
                          : dt_format_exact(number, sizeof(number), evaluation->loss));
    if (!isnan(evaluation->bleu))
        dt_strbuf_add_fmt(out, "  BLEU %.2f", evaluation->bleu);
}

enum { KINDS_MAX = 8, STATE_COLUMNS = 13 };

#define SLOWEST_SHARE 0.05 /* of a step: shorter waits are not reported */

/* Finds the newest point of this attempt; *found is false if there is none. */
static dt_status newest(double *out, bool *found, dt_store *store, const dt_run *run,
                        const char *name, dt_arena *arena, dt_error *err)
{
    dt_metric *points;
    int64_t count;
    dt_status st;

    *found = false;
    DT_TRY(dt_store_metric_list(store, &points, &count, run->id, name, -1, 1, arena, err));
    if (count > 0 && points[count - 1].attempt == run->attempt) {
        *out = points[count - 1].value;
        *found = true;
    }
out:
    return st;
}

dt_status dt_node_lines_read(dt_node_lines *out, dt_store *store, const dt_run *run,
                             const dt_activity *activity, dt_arena *arena, dt_error *err)
{
    double rank = -1, seconds = 0, step_seconds = 0;
    bool ranked, timed, stepped;
    dt_status st;

    *out = (dt_node_lines){.activity = *activity, .slowest_rank = -1};
    DT_TRY(dt_store_node_list(store, &out->nodes, &out->nodes_count, run->id, run->attempt, arena,
                              err));
    DT_TRY(dt_store_rank_list(store, &out->ranks, &out->ranks_count, run->id, run->attempt, arena,
                              err));
    DT_TRY(newest(&rank, &ranked, store, run, dt_metric_name(DT_METRIC_SLOWEST_RANK), arena, err));
    DT_TRY(newest(&seconds, &timed, store, run, dt_metric_name(DT_METRIC_SLOWEST_SECONDS), arena,
                  err));
    DT_TRY(newest(&step_seconds, &stepped, store, run, dt_metric_name(DT_METRIC_STEP_SECONDS),
                  arena, err));
    if (ranked && timed && activity->steps &&
        (!stepped || seconds > SLOWEST_SHARE * step_seconds)) {
        out->slowest_rank = (int64_t)rank;
        out->slowest_seconds = seconds;
    }
out:
    return st;
}

static const char *node_of(const dt_node_lines *lines, int64_t rank)
{
    for (int64_t i = 0; i < lines->ranks_count; i++)
        for (int64_t n = 0; n < lines->nodes_count && lines->ranks[i].rank == rank; n++)
            if (lines->nodes[n].node == lines->ranks[i].node)
                return lines->nodes[n].name;
    return "";
}

/* Reads an event of rank 0, which may only know which rank failed, or of that rank. */
static dt_status read_unsaved(dt_unsaved *out, const dt_store_event *event,
                              const dt_node_lines *lines, dt_arena *arena, dt_error *err)
{
    json_t *json = NULL;
    const char *message;
    long long named;
    dt_status st = DT_OK;

    DT_TRY(dt_json_parse(&json, event->json, strlen(event->json), "event", err));
    DT_TRY(dt_json_get_int_or(&out->step, json, "step", -1, "event", err));
    message = json_string_value(json_object_get(json, "message"));
    out->message = dt_arena_strdup(arena, message != NULL ? message : "");
    out->rank = sscanf(out->message, "rank %lld failed to", &named) == 1 ? named : event->rank;
    out->node = node_of(lines, out->rank);
out:
    json_decref(json);
    return st;
}

dt_status dt_unsaved_find(dt_unsaved *out, dt_store *store, const dt_run *run,
                          const dt_node_lines *lines, dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *saved;
    dt_store_event *failed;
    dt_unsaved last = {.step = -1};
    int64_t count, saves;
    dt_status st = DT_OK;

    *out = (dt_unsaved){.step = -1, .node = "", .message = ""};
    DT_TRY(dt_store_event_list_of_kind(store, &failed, &count, run->id, "checkpoint_failed", arena,
                                       err));
    if (count == 0 || failed[count - 1].attempt != run->attempt)
        goto out;
    DT_TRY(read_unsaved(out, &failed[count - 1], lines, arena, err));
    for (int64_t i = count - 2; i >= 0 && i > count - 2 - lines->ranks_count; i--) {
        DT_TRY(read_unsaved(&last, &failed[i], lines, arena, err));
        if (last.step == out->step && failed[i].rank == last.rank)
            *out = last; /* it knows why */
    }
    DT_TRY(dt_store_checkpoint_list(store, &saved, &saves, run->id, arena, err));
    if (saves > 0 && saved[0].step >= out->step)
        out->step = -1;
out:
    return st;
}

static dt_style style_of(const dt_node *node)
{
    return strcmp(node->state, "running") == 0                         ? DT_STYLE_ACCENT
           : strcmp(node->state, "lost") == 0 || dt_node_is_away(node) ? DT_STYLE_BAD
                                                                       : DT_STYLE_PLAIN;
}

/* The state in one or two words; `why` becomes the text that explains it, "" if there is none. */
static const char *state_words(dt_strbuf *why, const dt_node *node)
{
    if (dt_node_is_away(node)) {
        dt_strbuf_add_str(why, node->state + strlen(DT_NODE_NOT_REACHABLE));
        if (why->length > 3) { /* " (REASON)" */
            why->data[why->length - 1] = '\0';
            memmove(why->data, why->data + 2, why->length - 2);
        }
        return DT_NODE_NOT_REACHABLE;
    }
    if (strchr(node->state, ' ') == NULL)
        return node->state;
    dt_strbuf_add_str(why, node->state); /* the progress of its preparation */
    return "preparing";
}

const char *dt_node_lines_rank(const dt_node_lines *lines, const dt_rank *rank)
{
    for (int64_t n = 0; n < lines->nodes_count; n++)
        if (lines->nodes[n].node == rank->node)
            return dt_activity_of_rank(&lines->activity, &lines->nodes[n], rank);
    return rank->state;
}

/* "8 ranks training" or "8 ranks: 7 training, 1 failed". */
static void add_ranks(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines, int64_t node)
{
    struct {
        const char *state;
        int64_t count;
    } kinds[KINDS_MAX];
    int64_t total = 0, kinds_count = 0, k;

    for (int64_t i = 0; i < lines->ranks_count; i++) {
        const char *state = dt_node_lines_rank(lines, &lines->ranks[i]);

        if (lines->ranks[i].node != node)
            continue;
        total++;
        for (k = 0; k < kinds_count && strcmp(kinds[k].state, state) != 0; k++)
            ;
        if (k == KINDS_MAX)
            continue;
        if (k == kinds_count) {
            kinds[kinds_count].state = state;
            kinds[kinds_count++].count = 0;
        }
        kinds[k].count++;
    }
    dt_term_add(out, term, DT_STYLE_PLAIN, "%lld rank%s", (long long)total, total == 1 ? "" : "s");
    for (k = 0; k < kinds_count; k++) {
        bool bad = strcmp(kinds[k].state, "failed") == 0;

        if (kinds_count > 1)
            dt_term_add(out, term, bad ? DT_STYLE_BAD : DT_STYLE_DIM, "%s %lld", k == 0 ? ":" : ",",
                        (long long)kinds[k].count);
        dt_term_add(out, term, bad ? DT_STYLE_BAD : DT_STYLE_DIM, " %s", kinds[k].state);
    }
}

static bool is_on(const dt_node_lines *lines, int64_t rank, int64_t node)
{
    for (int64_t i = 0; i < lines->ranks_count; i++)
        if (lines->ranks[i].rank == rank)
            return lines->ranks[i].node == node;
    return false;
}

void dt_node_lines_add_slowest(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines)
{
    if (lines->slowest_rank >= 0)
        dt_term_add(out, term, DT_STYLE_WARN, "slowest: rank %lld; the others wait %.3g ms a step",
                    (long long)lines->slowest_rank, 1e3 * lines->slowest_seconds);
}

static void add_line(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines,
                     const dt_node *node, size_t width)
{
    const char *state;
    dt_strbuf why;

    dt_strbuf_init(&why);
    state = state_words(&why, node);
    dt_term_add(out, term, DT_STYLE_PLAIN, "  %-*s  ", (int)width, node->name);
    dt_term_add(out, term, style_of(node), "%-*s  ", STATE_COLUMNS, state);
    add_ranks(out, term, lines, node->node);
    if (is_on(lines, lines->slowest_rank, node->node)) {
        dt_strbuf_add_str(out, "   ");
        dt_node_lines_add_slowest(out, term, lines);
    }
    dt_strbuf_add_char(out, '\n');
    dt_term_add_wrapped(out, term, DT_STYLE_DIM, width + 4,
                        term->seen ? (size_t)term->columns - 1 : 0, why.data);
    dt_strbuf_release(&why);
}

/* Whether the node must be shown even if there are too many nodes. */
static bool matters(const dt_node_lines *lines, const dt_node *node)
{
    return strcmp(node->state, "running") != 0 || is_on(lines, lines->slowest_rank, node->node);
}

void dt_node_lines_add(dt_strbuf *out, const dt_term *term, const dt_node_lines *lines,
                       int64_t most)
{
    int64_t shown = 0, matter = 0, calm_left;
    size_t width = 0;

    for (int64_t i = 0; i < lines->nodes_count; i++) {
        size_t length = strlen(lines->nodes[i].name);
        width = length > width ? length : width;
        matter += matters(lines, &lines->nodes[i]) ? 1 : 0;
    }
    if (most <= 0 || most >= lines->nodes_count)
        most = lines->nodes_count;
    calm_left = most - matter; /* lines for nodes that run well */
    for (int64_t i = 0; i < lines->nodes_count && shown < most; i++) {
        const dt_node *node = &lines->nodes[i];

        if (!matters(lines, node) && calm_left-- <= 0)
            continue;
        add_line(out, term, lines, node, width);
        shown++;
    }
    if (shown < lines->nodes_count)
        dt_term_add(out, term, DT_STYLE_DIM, "  and %lld other nodes\n",
                    (long long)(lines->nodes_count - shown));
}
