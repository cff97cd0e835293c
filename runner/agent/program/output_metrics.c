#include "runner/agent/program/program_int.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/clock.h"

#define LINE_MOST        ((size_t)64 << 10)
#define NAMES_MOST       256
#define NAME_MOST        128
#define LINES_AT_ONCE    1000.0
#define LINES_PER_SECOND 200.0
#define STEP_MOST        9007199254740992.0 /* the largest whole number that a double holds exactly */
#define BAR_SECONDS      2.0 /* in which a progress bar is drawn again after a line */

dt_status dt_output_metrics_open(dt_output_metrics **out, const dt_recipe *recipe,
                                 int64_t first_step, const dt_reports *reports, dt_error *err)
{
    dt_output_metrics *metrics;
    dt_status st = DT_OK;

    *out = NULL;
    if (recipe->metrics.kind == DT_OUTPUT_METRICS_NONE && recipe->metrics.pattern[0] == '\0' &&
        recipe->metrics.file[0] == '\0')
        return DT_OK;
    metrics = dt_calloc(1, sizeof(*metrics));
    metrics->kind = recipe->metrics.kind;
    metrics->reports = reports;
    metrics->steps = json_object();
    metrics->bar.waiting = json_array();
    metrics->loss = NAN;
    metrics->counted = metrics->first_step = first_step;
    metrics->credit = LINES_AT_ONCE;
    metrics->credited_seconds = dt_clock_monotonic_seconds();
    dt_strbuf_init(&metrics->out.text);
    dt_strbuf_init(&metrics->errors.text);
    if (recipe->metrics.pattern[0] != '\0')
        DT_TRY(dt_named_groups_open(&metrics->groups, recipe->metrics.pattern, err));
    *out = metrics;
    metrics = NULL;
out:
    dt_output_metrics_close(metrics);
    return st;
}

/* --- limits */

bool dt_metrics_may_send(dt_output_metrics *metrics)
{
    double now = dt_clock_monotonic_seconds();

    metrics->credit += (now - metrics->credited_seconds) * LINES_PER_SECOND;
    metrics->credited_seconds = now;
    if (metrics->credit > LINES_AT_ONCE)
        metrics->credit = LINES_AT_ONCE;
    if (metrics->credit < 1) {
        if (metrics->lines_left++ == 0)
            dt_reports_warn(metrics->reports,
                            "more than %g lines of metrics a second: some are left out",
                            LINES_PER_SECOND);
        return false;
    }
    metrics->credit -= 1;
    return true;
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);

    for (const char *at = name; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            return false;
    return length > 0 && length <= NAME_MOST;
}

/* Returns whether the metric is new at this step, and remembers it. */
static bool take_point(dt_output_metrics *metrics, const char *name, int64_t step)
{
    const json_t *last = json_object_get(metrics->steps, name);

    if (last == NULL && json_object_size(metrics->steps) >= NAMES_MOST) {
        if (metrics->names_left++ == 0)
            dt_reports_warn(metrics->reports,
                            "more than %d names of metrics: '%.64s' and later ones are left out",
                            NAMES_MOST, name);
        return false;
    }
    if (last != NULL && json_integer_value(last) >= step) {
        if (metrics->again)
            return false;
        if (metrics->points_left++ == 0)
            dt_reports_warn(
                metrics->reports,
                "metric '%.64s' has step %lld after step %lld: points of a step that is not "
                "above the last one are left out",
                name, (long long)step, (long long)json_integer_value(last));
        return false;
    }
    json_object_set_new(metrics->steps, name, json_integer(step));
    return true;
}

bool dt_metrics_is_step(double number)
{
    return number >= 0 && number <= STEP_MOST && number == floor(number);
}

void dt_metrics_leave(dt_output_metrics *metrics, dt_metrics_left why, const char *sample)
{
    static const char *const words[DT_METRICS_LEFT_COUNT] = {
        [DT_METRICS_UNREADABLE] = "a line of metrics is not valid JSON",
        [DT_METRICS_NO_STEP] = "a line of metrics has no whole number 'step'",
        [DT_METRICS_NO_NUMBER] = "a value of a metric is not a number",
    };

    if (metrics->left[why]++ == 0)
        dt_reports_warn(metrics->reports, "%s and is left out: %.200s", words[why], sample);
}

/* --- values of a line */

void dt_metrics_add(dt_output_metrics *metrics, json_t *values, const char *name, int64_t step,
                    double value)
{
    if (!is_name(name) || !take_point(metrics, name, step))
        return;
    json_object_set_new(values, name, isfinite(value) ? json_real(value) : json_null());
    if (strcmp(name, "loss") == 0)
        metrics->loss = value;
}

void dt_metrics_send(dt_output_metrics *metrics, int64_t step, json_t *values)
{
    if (json_object_size(values) == 0) {
        json_decref(values);
        return;
    }
    metrics->step = step > metrics->step ? step : metrics->step;
    dt_reports_send(metrics->reports, json_pack("{s:s, s:I, s:o}", "event", "metrics", "step",
                                                (json_int_t)step, "values", values));
}

void dt_metrics_add_foreign(dt_output_metrics *metrics, json_t *values, const char *name,
                            int64_t step, double value)
{
    static const struct {
        const char *name, *ours;
    } same[] = {{"train_loss", "loss"},      {"train/loss", "loss"},
                {"Loss/train", "loss"},      {"eval_loss", "valid_loss"},
                {"eval/loss", "valid_loss"}, {"val_loss", "valid_loss"},
                {"val/loss", "valid_loss"},  {"Loss/val", "valid_loss"}};

    dt_metrics_add(metrics, values, name, step, value);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const json_t *last = json_object_get(metrics->steps, same[i].ours);

        /* not if the program has this name too */
        if (strcmp(name, same[i].name) == 0 && (last == NULL || json_integer_value(last) < step))
            dt_metrics_add(metrics, values, same[i].ours, step, value);
    }
}

/* --- lines */

static void end_line(dt_output_metrics *metrics, dt_metrics_line *line)
{
    if (!line->skipping && line->text.length > 0)
        dt_metrics_take_line(metrics, line->text.data);
    line->skipping = false;
    dt_strbuf_reset(&line->text);
}

static void read_lines(dt_output_metrics *metrics, dt_metrics_line *line, const char *bytes,
                       size_t length)
{
    const char *end = bytes + length;

    while (bytes < end) {
        const char *stop = bytes;

        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        if (!line->skipping && line->text.length + (size_t)(stop - bytes) <= LINE_MOST) {
            dt_strbuf_add(&line->text, bytes, (size_t)(stop - bytes));
        } else {
            line->skipping = true;
            dt_strbuf_reset(&line->text);
        }
        if (stop < end)
            end_line(metrics, line);
        bytes = stop + 1;
    }
}

void dt_output_metrics_read(dt_output_metrics *metrics, const char *bytes, size_t length)
{
    if (metrics != NULL)
        read_lines(metrics, &metrics->out, bytes, length);
}

void dt_output_metrics_read_errors(dt_output_metrics *metrics, const char *bytes, size_t length)
{
    if (metrics != NULL && metrics->groups != NULL)
        read_lines(metrics, &metrics->errors, bytes, length);
    else if (metrics != NULL)
        dt_metrics_look_for_bar(metrics, bytes, length);
}

bool dt_output_metrics_waits(const dt_output_metrics *metrics)
{
    return metrics != NULL && json_array_size(metrics->bar.waiting) > 0;
}

int64_t dt_output_metrics_step(const dt_output_metrics *metrics, double *loss)
{
    *loss = metrics != NULL ? metrics->loss : NAN;
    return metrics != NULL ? metrics->step : 0;
}

static void say_left(const dt_output_metrics *metrics)
{
    const struct {
        int64_t count;
        const char *words;
    } kinds[] = {
        {metrics->names_left, "points beyond 256 names"},
        {metrics->lines_left, "lines beyond 200 a second"},
        {metrics->points_left, "points of an earlier step"},
        {metrics->left[DT_METRICS_UNREADABLE], "lines that are not valid JSON"},
        {metrics->left[DT_METRICS_NO_STEP], "lines without a whole number 'step'"},
        {metrics->left[DT_METRICS_NO_NUMBER], "values that are not numbers"},
    };
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].count > 0)
            dt_strbuf_add_fmt(&text, "%s%lld %s", text.length > 0 ? ", " : "",
                              (long long)kinds[i].count, kinds[i].words);
    if (text.length > 0)
        dt_reports_warn(metrics->reports, "metrics left out: %s", text.data);
    dt_strbuf_release(&text);
}

void dt_output_metrics_settle(dt_output_metrics *metrics, bool ended)
{
    if (metrics == NULL)
        return;
    if (ended) {
        end_line(metrics, &metrics->out);
        end_line(metrics, &metrics->errors);
    }
    if (dt_output_metrics_waits(metrics) &&
        (ended || dt_clock_monotonic_seconds() - metrics->bar.since_seconds > BAR_SECONDS))
        dt_metrics_take_waiting(metrics, metrics->bar.total > 0 ? metrics->bar.step : -1);
    if (ended)
        say_left(metrics);
}

void dt_output_metrics_close(dt_output_metrics *metrics)
{
    if (metrics == NULL)
        return;
    dt_named_groups_close(metrics->groups);
    json_decref(metrics->steps);
    json_decref(metrics->bar.waiting);
    dt_strbuf_release(&metrics->out.text);
    dt_strbuf_release(&metrics->errors.text);
    free(metrics);
}
