#include "engine/program/output_metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/named_groups.h"
#include "base/strbuf.h"
#include "engine/channel/activity.h"

#include "base/banned.h"

#define LINE_MOST        ((size_t)64 << 10)
#define NAMES_MOST       256
#define NAME_MOST        128
#define LINES_AT_ONCE    1000.0
#define LINES_PER_SECOND 200.0
#define STEP_MOST        9007199254740992.0 /* the largest whole number that a double holds exactly */
#define NUMBER_MOST      64
#define NOT_FINITE       "NaN"

struct dt_output_metrics {
    dt_output_metrics_kind kind;
    dt_named_groups *groups; /* NULL: no pattern */
    dt_events *events;
    dt_strbuf line;
    bool skipping; /* inside a line that is too long */
    json_t *steps; /* name → its last step */
    int64_t step;
    double loss;
    double credit, credited_seconds; /* lines that may be taken now */
    int64_t names_left, lines_left, points_left;
};

dt_status dt_output_metrics_open(dt_output_metrics **out, const dt_recipe *recipe,
                                 dt_events *events, dt_error *err)
{
    dt_output_metrics *metrics;
    dt_status st = DT_OK;

    *out = NULL;
    if (recipe->metrics.kind == DT_OUTPUT_METRICS_NONE && recipe->metrics.pattern[0] == '\0' &&
        recipe->metrics.file[0] == '\0')
        return DT_OK;
    metrics = dt_calloc(1, sizeof(*metrics));
    metrics->kind = recipe->metrics.kind;
    metrics->events = events;
    metrics->steps = json_object();
    metrics->loss = NAN;
    metrics->credit = LINES_AT_ONCE;
    metrics->credited_seconds = dt_clock_monotonic_seconds();
    dt_strbuf_init(&metrics->line);
    if (recipe->metrics.pattern[0] != '\0')
        DT_TRY(dt_named_groups_open(&metrics->groups, recipe->metrics.pattern, err));
    *out = metrics;
    metrics = NULL;
out:
    dt_output_metrics_close(metrics);
    return st;
}

/* --- limits */

/* Returns whether another line may be sent. */
static bool take_credit(dt_output_metrics *metrics)
{
    double now = dt_clock_monotonic_seconds();

    metrics->credit += (now - metrics->credited_seconds) * LINES_PER_SECOND;
    metrics->credited_seconds = now;
    if (metrics->credit > LINES_AT_ONCE)
        metrics->credit = LINES_AT_ONCE;
    if (metrics->credit < 1) {
        if (metrics->lines_left++ == 0)
            dt_log_warn("more than %g lines of metrics a second: some are left out",
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
            dt_log_warn("more than %d names of metrics: '%.64s' and later ones are left out",
                        NAMES_MOST, name);
        return false;
    }
    if (last != NULL && json_integer_value(last) >= step) {
        if (metrics->points_left++ == 0)
            dt_log_warn(
                "metric '%.64s' has step %lld after step %lld: points of a step that is not "
                "above the last one are left out",
                name, (long long)step, (long long)json_integer_value(last));
        return false;
    }
    json_object_set_new(metrics->steps, name, json_integer(step));
    return true;
}

/* --- values of a line */

static void add_value(dt_output_metrics *metrics, json_t *values, const char *name, int64_t step,
                      double value)
{
    if (!is_name(name) || !take_point(metrics, name, step))
        return;
    json_object_set_new(values, name, isfinite(value) ? json_real(value) : json_null());
    if (strcmp(name, "loss") == 0)
        metrics->loss = value;
}

static dt_status send(dt_output_metrics *metrics, int64_t step, json_t *values, dt_error *err)
{
    if (json_object_size(values) == 0) {
        json_decref(values);
        return DT_OK;
    }
    metrics->step = step > metrics->step ? step : metrics->step;
    dt_activity_step(metrics->step);
    return dt_events_send(metrics->events,
                          json_pack("{s:s, s:I, s:o}", "event", "metrics", "step", (json_int_t)step,
                                    "values", values),
                          err);
}

/* --- JSON */

/* Copies the line, with NaN, Infinity and -Infinity outside of texts as the text NOT_FINITE. */
static void copy_json(dt_strbuf *out, const char *line)
{
    static const char *const words[] = {"NaN", "-Infinity", "Infinity"};
    bool inside = false;

    while (*line != '\0') {
        size_t skip = 0;

        for (size_t i = 0; !inside && i < sizeof(words) / sizeof(words[0]); i++)
            if (strncmp(line, words[i], strlen(words[i])) == 0)
                skip = strlen(words[i]);
        if (skip > 0) {
            dt_strbuf_add_str(out, "\"" NOT_FINITE "\"");
            line += skip;
            continue;
        }
        if (inside && line[0] == '\\' && line[1] != '\0')
            dt_strbuf_add_char(out, *line++);
        else if (*line == '"')
            inside = !inside;
        dt_strbuf_add_char(out, *line++);
    }
}

static bool is_step(double number)
{
    return number >= 0 && number <= STEP_MOST && number == floor(number);
}

static bool is_value(double *out, const json_t *value)
{
    bool not_finite = json_is_string(value) && strcmp(json_string_value(value), NOT_FINITE) == 0;

    *out = not_finite ? NAN : json_number_value(value);
    return not_finite || json_is_number(value);
}

static dt_status take_json(dt_output_metrics *metrics, const char *line, dt_error *err)
{
    json_t *object = NULL, *values, *value;
    const json_t *step;
    dt_status st = DT_OK;
    const char *name;
    dt_strbuf text;
    double number;

    if (line[strspn(line, " \t")] != '{' || strstr(line, "\"step\"") == NULL)
        return DT_OK;
    dt_strbuf_init(&text);
    copy_json(&text, line);
    if (dt_json_parse(&object, text.data, text.length, "line", NULL) != DT_OK)
        goto out;
    step = json_object_get(object, "step");
    if (!json_is_number(step) || !is_step(json_number_value(step)) || !take_credit(metrics))
        goto out;
    values = json_object();
    json_object_foreach(object, name, value)
        if (strcmp(name, "step") != 0 && is_value(&number, value))
            add_value(metrics, values, name, (int64_t)json_number_value(step), number);
    DT_TRY(send(metrics, (int64_t)json_number_value(step), values, err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    return st;
}

/* --- a pattern */

/* Reads the number in a group. */
static bool read_group(double *out, const dt_named_groups *groups, int index, const char *line)
{
    size_t length;
    const char *text = dt_named_groups_text(groups, index, line, &length);
    char number[NUMBER_MOST], *end;

    if (text == NULL || length == 0 || length >= sizeof(number))
        return false;
    memcpy(number, text, length);
    number[length] = '\0';
    *out = strtod(number, &end);
    return *end == '\0' && strchr(number, 'x') == NULL;
}

static dt_status take_match(dt_output_metrics *metrics, const char *line, dt_error *err)
{
    int step_index = dt_named_groups_find(metrics->groups, "step");
    json_t *values;
    double step, value;

    if (!dt_named_groups_match(metrics->groups, line) || step_index < 0 ||
        !read_group(&step, metrics->groups, step_index, line) || !is_step(step) ||
        !take_credit(metrics))
        return DT_OK;
    values = json_object();
    for (int i = 0; i < dt_named_groups_count(metrics->groups); i++)
        if (i != step_index && read_group(&value, metrics->groups, i, line))
            add_value(metrics, values, dt_named_groups_name(metrics->groups, i), (int64_t)step,
                      value);
    return send(metrics, (int64_t)step, values, err);
}

/* --- lines */

static dt_status end_line(dt_output_metrics *metrics, dt_error *err)
{
    dt_status st = DT_OK;

    if (!metrics->skipping && metrics->line.length > 0)
        st = metrics->groups != NULL ? take_match(metrics, metrics->line.data, err)
                                     : take_json(metrics, metrics->line.data, err);
    metrics->skipping = false;
    dt_strbuf_reset(&metrics->line);
    return st;
}

dt_status dt_output_metrics_read(dt_output_metrics *metrics, const char *bytes, size_t length,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    const char *end = bytes + length;

    while (bytes < end) {
        const char *stop = bytes;

        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        if (!metrics->skipping && metrics->line.length + (size_t)(stop - bytes) <= LINE_MOST) {
            dt_strbuf_add(&metrics->line, bytes, (size_t)(stop - bytes));
        } else {
            metrics->skipping = true;
            dt_strbuf_reset(&metrics->line);
        }
        if (stop < end)
            DT_TRY(end_line(metrics, err));
        bytes = stop + 1;
    }
out:
    return st;
}

int64_t dt_output_metrics_step(const dt_output_metrics *metrics, double *loss)
{
    *loss = metrics != NULL ? metrics->loss : NAN;
    return metrics != NULL ? metrics->step : 0;
}

void dt_output_metrics_close(dt_output_metrics *metrics)
{
    if (metrics == NULL)
        return;
    (void)end_line(metrics, NULL);
    if (metrics->names_left + metrics->lines_left + metrics->points_left > 0)
        dt_log_warn(
            "metrics left out: %lld points beyond %d names, %lld lines beyond %g a second, %lld "
            "points of an earlier step",
            (long long)metrics->names_left, NAMES_MOST, (long long)metrics->lines_left,
            LINES_PER_SECOND, (long long)metrics->points_left);
    dt_named_groups_close(metrics->groups);
    json_decref(metrics->steps);
    dt_strbuf_release(&metrics->line);
    free(metrics);
}
