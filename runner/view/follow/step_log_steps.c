/* step_log_steps: reads the steps of a run with all metrics of each, one window of points at a time. */
#include <stdlib.h>
#include <string.h>

#include "runner/term/format.h"
#include "runner/view/follow/step_log_int.h"
#include "runner/view/runs/runs.h"

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
        const char *name, *words;
    } usual[] = {{"learning_rate", "learning rate"}, {"gradient_norm", "gradient norm"}};
    const dt_metric *speed = find_point(points, count, "tokens_per_second");
    char number[DT_FORMAT_SIZE];

    dt_strbuf_add_str(text, "  loss ");
    dt_step_log_add_loss(text, find_point(points, count, "loss")->value);
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        const dt_metric *point = find_point(points, count, usual[i].name);

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
    json_t *object = dt_step_log_object(r, "step", main->time_ms, main->attempt, main->step);
    json_object_set_new(object, "values", values);
    return dt_step_log_add_json(r, main->time_ms, object, err);
}

/* Adds one step. Runs with losses print the usual metrics; runs without (imported ones) print all. */
static dt_status add_step(dt_step_reading *r, const dt_metric *points, int64_t count, bool losses,
                          dt_error *err)
{
    const dt_metric *main = losses ? find_point(points, count, "loss") : points;
    char number[DT_FORMAT_SIZE];
    dt_strbuf text;

    if (main == NULL)
        return DT_OK;
    if (r->log->json)
        return add_step_json(r, points, count, main, err);
    dt_strbuf_init(&text);
    dt_step_log_add_place(&text, r, main->step);
    if (losses)
        add_usual(&text, r, points, count);
    for (int64_t i = 0; i < count && !losses; i++)
        dt_strbuf_add_fmt(&text, "  %s %s", points[i].name,
                          dt_format_exact(number, sizeof(number), points[i].value));
    dt_step_log_add_text(r, main->time_ms, &text);
    return DT_OK;
}

static bool gather(void *context, const dt_metric *point)
{
    window *w = context;

    if (w->count == w->capacity) {
        int64_t wider = w->capacity == 0 ? 1024 : w->capacity * 2;
        dt_metric *room = dt_arena_alloc_array(w->arena, (size_t)wider, sizeof(room[0]));

        if (w->count > 0)
            memcpy(room, w->points, (size_t)w->count * sizeof(room[0]));
        w->points = room;
        w->capacity = wider;
    }
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

dt_status dt_step_log_read_steps(dt_step_reading *r, const dt_store_curves *curves, dt_error *err)
{
    bool losses = false;
    dt_status st = DT_OK;
    window w;

    for (int64_t i = 0; i < curves->count; i++)
        losses = losses || strcmp(curves->curves[i].name, "loss") == 0;
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
