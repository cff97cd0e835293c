/* step_log: reads the history of a run as lines: steps, evaluations, checkpoints and failures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/metric_kinds.h"
#include "base/strbuf.h"
#include "runner/term/term.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

/* The state of a dt_step_log_read. */

typedef struct dt_step_reading {
    dt_step_log *log;
    dt_store *store;
    const dt_run *run;
    dt_step_lines *out;
    dt_arena *arena;
} dt_step_reading;

/* Whether the metric belongs to an evaluation, which has its own line. */
static inline bool dt_step_log_is_evaluation(const char *metric)
{
    return strcmp(metric, dt_metric_name(DT_METRIC_VALID_LOSS)) == 0 ||
           strcmp(metric, dt_metric_name(DT_METRIC_VALID_BLEU)) == 0;
}

/* Lines of the log, as text or JSON objects. */

/* Adds a line. */
static void step_log_add_line(dt_step_reading *r, int64_t time_ms, const char *text)
{
    dt_step_lines *out = r->out;

    out->items = dt_arena_array_room(r->arena, out->items, out->count + 1, &out->capacity,
                                     sizeof(out->items[0]));
    out->items[out->count] = (dt_step_line){time_ms, out->count, text, false};
    out->count++;
}

/* Adds a line and releases `text`. */
static void step_log_add_text(dt_step_reading *r, int64_t time_ms, dt_strbuf *text)
{
    step_log_add_line(r, time_ms, dt_arena_strdup(r->arena, text->data));
    dt_strbuf_release(text);
}

/* Returns an object with the common keys. New reference. */
static json_t *step_log_object(const dt_step_reading *r, const char *kind, int64_t time_ms,
                               int64_t attempt, int64_t step)
{
    char time[DT_CLOCK_ISO_SIZE];

    return json_pack("{ss ss sI sI so}", "time", dt_clock_iso(time, time_ms), "kind", kind,
                     "attempt", (json_int_t)attempt, "step", (json_int_t)step, "steps_total",
                     r->run->steps_total > 0 ? json_integer(r->run->steps_total) : json_null());
}

/* Adds `object` as a line and releases it. */
static dt_status step_log_add_json(dt_step_reading *r, int64_t time_ms, json_t *object,
                                   dt_error *err)
{
    dt_strbuf text;

    if (object == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    dt_strbuf_init(&text);
    dt_json_write(&text, object);
    json_decref(object);
    step_log_add_text(r, time_ms, &text);
    return DT_OK;
}

/* Adds "step 740/2000". */
static void step_log_add_place(dt_strbuf *text, const dt_step_reading *r, int64_t step)
{
    dt_strbuf_add_fmt(text, r->run->steps_total > 0 ? "step %lld/%lld" : "step %lld",
                      (long long)step, (long long)r->run->steps_total);
}

static void step_log_add_loss(dt_strbuf *text, double value)
{
    char number[DT_FORMAT_SIZE];

    dt_strbuf_add_str(text, isfinite(value) ? dt_format_loss(number, sizeof(number), value)
                                            : dt_format_exact(number, sizeof(number), value));
}

/* Steps with all metrics of each, one window of points at a time. */

/* Points of a metric in one window. */
#define WINDOW_POINTS 512

typedef struct window {
    dt_metric *points;
    int64_t count, capacity;
    int64_t of_curve, last_step; /* points of the current curve; last step of the window */
    dt_arena *arena;
} window;

static const dt_metric *find_point(const dt_metric *points, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++)
        if (strcmp(points[i].name, name) == 0)
            return &points[i];
    return NULL;
}

static void add_usual(dt_strbuf *text, const dt_step_reading *r, const dt_metric *points,
                      int64_t count)
{
    static const struct {
        dt_metric_id id;
        const char *words;
    } usual[] = {{DT_METRIC_LEARNING_RATE, "learning rate"},
                 {DT_METRIC_GRADIENT_NORM, "gradient norm"}};
    const dt_metric *speed = find_point(points, count, dt_metric_name(DT_METRIC_TOKENS_PER_SECOND));
    char number[DT_FORMAT_SIZE];

    dt_strbuf_add_str(text, "  loss ");
    step_log_add_loss(text, find_point(points, count, dt_metric_name(DT_METRIC_LOSS))->value);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        const dt_metric *point = find_point(points, count, dt_metric_name(usual[i].id));

        if (point != NULL)
            dt_strbuf_add_fmt(text, "  %s %.4g", usual[i].words, point->value);
    }
    if (speed != NULL)
        dt_strbuf_add_fmt(text, "  %s %s", dt_format_count(number, sizeof(number), speed->value),
                          dt_runs_speed(r->run));
}

static dt_status add_step_json(dt_step_reading *r, const dt_metric *points, int64_t count,
                               const dt_metric *main, dt_error *err)
{
    json_t *values = json_object();

    for (int64_t i = 0; i < count; i++)
        if (points[i].time_ms == main->time_ms) { /* other points were not reported with the loss */
            json_t *name = dt_json_text(points[i].name);

            json_object_set_new(values, json_string_value(name), dt_json_number(points[i].value));
            json_decref(name);
        }
    json_t *object = step_log_object(r, "step", main->time_ms, main->attempt, main->step);
    json_object_set_new(object, "values", values);
    return step_log_add_json(r, main->time_ms, object, err);
}

/* Adds one step. Runs with losses print the usual metrics; runs without (imported ones) print all. */
static dt_status add_step(dt_step_reading *r, const dt_metric *points, int64_t count, bool losses,
                          dt_error *err)
{
    const dt_metric *main =
        losses ? find_point(points, count, dt_metric_name(DT_METRIC_LOSS)) : points;
    char number[DT_FORMAT_SIZE];
    dt_strbuf text;

    if (main == NULL)
        return DT_OK;
    if (r->log->json)
        return add_step_json(r, points, count, main, err);
    dt_strbuf_init(&text);
    step_log_add_place(&text, r, main->step);
    if (losses)
        add_usual(&text, r, points, count);
    for (int64_t i = 0; i < count && !losses; i++)
        dt_strbuf_add_fmt(&text, "  %s %s", points[i].name,
                          dt_format_exact(number, sizeof(number), points[i].value));
    step_log_add_text(r, main->time_ms, &text);
    return DT_OK;
}

static bool gather(void *context, const dt_metric *point)
{
    window *w = context;

    w->points =
        dt_arena_array_room(w->arena, w->points, w->count + 1, &w->capacity, sizeof(w->points[0]));
    w->points[w->count++] = *point;
    if (++w->of_curve == WINDOW_POINTS && point->step < w->last_step)
        w->last_step = point->step; /* other curves are read up to here only */
    return w->of_curve < WINDOW_POINTS;
}

static int by_step(const void *a, const void *b)
{
    const dt_metric *left = a, *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* Reads the points of the next steps; w->count is 0 after the last. */
static dt_status fill_window(window *w, const dt_step_reading *r, const dt_store_curves *curves,
                             dt_error *err)
{
    dt_status st = DT_OK;

    *w = (window){.arena = r->arena, .last_step = INT64_MAX};
    for (int64_t i = 0; i < curves->count; i++) {
        w->of_curve = 0;
        if (dt_step_log_is_evaluation(curves->curves[i].name))
            continue;
        DT_TRY(
            dt_store_curve_scan(r->store, curves, i, r->log->step, w->last_step, gather, w, err));
    }
    if (w->count > 1)
        qsort(w->points, (size_t)w->count, sizeof(w->points[0]), by_step);
    while (w->count > 0 && w->points[w->count - 1].step > w->last_step)
        w->count--;
out:
    return st;
}

static dt_status step_log_read_steps(dt_step_reading *r, const dt_store_curves *curves,
                                     dt_error *err)
{
    bool losses = false;
    dt_status st = DT_OK;
    window w;

    for (int64_t i = 0; i < curves->count; i++)
        losses = losses || strcmp(curves->curves[i].name, dt_metric_name(DT_METRIC_LOSS)) == 0;
    do {
        DT_TRY(fill_window(&w, r, curves, err));
        for (int64_t i = 0, next; i < w.count; i = next) {
            for (next = i + 1; next < w.count && w.points[next].step == w.points[i].step;)
                next++;
            DT_TRY(add_step(r, &w.points[i], next - i, losses, err));
            r->log->step = w.points[i].step;
        }
    } while (w.count > 0 && w.last_step < INT64_MAX);
out:
    return st;
}

/* Evaluations, checkpoints and failures. */

static dt_status step_log_read_evaluations(dt_step_reading *r, dt_error *err)
{
    dt_evaluation *all;
    dt_status st = DT_OK;
    dt_strbuf text;
    int64_t count;

    DT_TRY(dt_evaluations_read(&all, &count, &r->log->valid_step, r->store, r->run->id, r->arena,
                               err));
    for (int64_t i = 0; i < count; i++) {
        const dt_evaluation *e = &all[i];

        if (r->log->json) {
            json_t *object = step_log_object(r, "evaluation", e->time_ms, e->attempt, e->step);

            json_object_set_new(object, dt_metric_name(DT_METRIC_VALID_LOSS),
                                dt_json_number(e->loss));
            if (!isnan(e->bleu))
                json_object_set_new(object, dt_metric_name(DT_METRIC_VALID_BLEU),
                                    dt_json_number(e->bleu));
            DT_TRY(step_log_add_json(r, e->time_ms, object, err));
            continue;
        }
        dt_strbuf_init(&text);
        step_log_add_place(&text, r, e->step);
        dt_strbuf_add_str(&text, "  ");
        dt_evaluation_add(&text, e);
        step_log_add_text(r, e->time_ms, &text);
    }
out:
    return st;
}

static dt_status add_checkpoint(dt_step_reading *r, const dt_store_checkpoint *c, dt_error *err)
{
    const char *slash = strrchr(c->path, '/');
    char size[DT_FORMAT_SIZE];
    json_t *object;
    dt_strbuf text;

    if (r->log->json) {
        object = step_log_object(r, "checkpoint", c->time_ms, c->attempt, c->step);
        json_object_set_new(object, "checkpoint",
                            dt_json_text(slash != NULL ? slash + 1 : c->path));
        json_object_set_new(object, "bytes", json_integer(c->bytes));
        json_object_set_new(object, dt_metric_name(DT_METRIC_VALID_LOSS),
                            dt_json_number(c->valid_loss));
        json_object_set_new(object, "seconds", dt_json_number(c->seconds));
        return step_log_add_json(r, c->time_ms, object, err);
    }
    dt_strbuf_init(&text);
    step_log_add_place(&text, r, c->step);
    dt_strbuf_add_fmt(&text, "  checkpoint saved, %s",
                      dt_format_bytes(size, sizeof(size), (double)c->bytes));
    step_log_add_text(r, c->time_ms, &text);
    return DT_OK;
}

static dt_status step_log_read_checkpoints(dt_step_reading *r, dt_error *err)
{
    int64_t *after = &r->log->checkpoint_step, before = *after, count;
    dt_store_checkpoint *all;
    dt_status st = DT_OK;

    DT_TRY(dt_store_checkpoint_list(r->store, &all, &count, r->run->id, r->arena, err));
    for (int64_t i = count - 1; i >= 0; i--) {
        if (all[i].step <= before)
            continue;
        *after = all[i].step > *after ? all[i].step : *after;
        DT_TRY(add_checkpoint(r, &all[i], err));
    }
out:
    return st;
}

static dt_status step_log_read_incidents(dt_step_reading *r, int64_t since_ms, dt_error *err)
{
    dt_store_event *events;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(dt_store_event_list(r->store, &events, &count, r->run->id, r->log->event_id, 0, r->arena,
                               err));
    for (int64_t i = 0; i < count; i++) {
        const char *sentence = dt_incident_sentence(&events[i], r->arena);
        json_t *object;

        r->log->event_id = events[i].id;
        if (sentence == NULL || events[i].time_ms < since_ms ||
            (r->log->without_restarts && strcmp(events[i].kind, "restart") == 0))
            continue;
        if (!r->log->json) {
            step_log_add_line(r, events[i].time_ms, sentence);
            r->out->items[r->out->count - 1].incident = true;
            continue;
        }
        object =
            step_log_object(r, events[i].kind, events[i].time_ms, events[i].attempt, r->run->step);
        json_object_set_new(object, "message", dt_json_text(sentence));
        DT_TRY(step_log_add_json(r, events[i].time_ms, object, err));
    }
out:
    return st;
}

void dt_step_log_init(dt_step_log *log, bool json)
{
    *log = (dt_step_log){.json = json, .step = -1, .valid_step = -1, .checkpoint_step = -1};
}

static dt_status start_step(int64_t *out, dt_store *store, const dt_run *run, dt_arena *arena,
                            dt_error *err)
{
    dt_attempt *attempts;
    dt_status st = DT_OK;
    int64_t count;

    *out = 0;
    DT_TRY(dt_store_attempt_list(store, &attempts, &count, run->id, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (attempts[i].attempt == run->attempt)
            *out = attempts[i].start_step;
out:
    return st;
}

static void go_back(dt_step_log *log, int64_t step)
{
    log->step = log->step < step ? log->step : step;
    log->valid_step = log->valid_step < step ? log->valid_step : step;
    log->checkpoint_step = log->checkpoint_step < step ? log->checkpoint_step : step;
}

dt_status dt_step_log_begin_at(dt_step_log *log, dt_store *store, const dt_run *run,
                               dt_arena *arena, dt_error *err)
{
    dt_store_event *events;
    dt_status st = DT_OK;
    int64_t step, count;

    DT_TRY(start_step(&step, store, run, arena, err));
    log->attempt = run->attempt;
    log->step = log->valid_step = log->checkpoint_step = step;
    DT_TRY(dt_store_event_list(store, &events, &count, run->id, 0, 0, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (events[i].attempt < run->attempt)
            log->event_id = events[i].id;
out:
    return st;
}

/* Skips all but the last `most` logged steps, by the metric with the most recent points. */
static dt_status skip_old(dt_step_reading *r, const dt_store_curves *curves, int64_t most,
                          dt_error *err)
{
    dt_status st = DT_OK;
    int64_t step;

    for (int64_t i = 0; i < curves->count; i++) {
        if (dt_step_log_is_evaluation(curves->curves[i].name))
            continue;
        DT_TRY(dt_store_curve_back(r->store, curves, i, most, &step, err));
        r->log->step = step > r->log->step ? step : r->log->step;
    }
    r->log->valid_step = r->log->checkpoint_step = r->log->step;
out:
    return st;
}

static int by_time(const void *a, const void *b)
{
    const dt_step_line *left = a, *right = b;

    if (left->time_ms != right->time_ms)
        return left->time_ms < right->time_ms ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static dt_status read_all(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                          int64_t most, dt_arena *arena, dt_error *err)
{
    dt_step_reading r = {.log = log, .store = store, .run = run, .out = out, .arena = arena};
    int64_t step, since_ms = 0;
    dt_store_curves curves;
    dt_status st = DT_OK;

    DT_TRY(dt_store_curves_find(store, &curves, run->id, NULL, arena, err));
    if (log->attempt != 0 && log->attempt != run->attempt) {
        DT_TRY(start_step(&step, store, run, arena, err));
        go_back(log, step);
    }
    log->attempt = run->attempt;
    if (most > 0)
        DT_TRY(skip_old(&r, &curves, most, err));
    DT_TRY(step_log_read_steps(&r, &curves, err));
    if (most > 0 && out->count >= most)
        since_ms = out->items[0].time_ms;
    DT_TRY(step_log_read_evaluations(&r, err));
    DT_TRY(step_log_read_checkpoints(&r, err));
    DT_TRY(step_log_read_incidents(&r, since_ms, err));
    if (out->count > 1)
        qsort(out->items, (size_t)out->count, sizeof(out->items[0]), by_time);
out:
    return st;
}

/* Reads in one transaction: otherwise a step could be read before its loss was written. */
dt_status dt_step_log_read(dt_step_log *log, dt_step_lines *out, dt_store *store, const dt_run *run,
                           int64_t most, dt_arena *arena, dt_error *err)
{
    dt_status st;

    *out = (dt_step_lines){0};
    st = dt_store_begin_reading(store, err);
    if (st != DT_OK)
        return st;
    st = read_all(log, out, store, run, most, arena, err);
    dt_store_rollback(store);
    return st;
}
