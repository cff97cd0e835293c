/* metrics: finds metrics in the output of a program, keeps their limits, and sends them as events. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metric_kinds.h"
#include "runner/agent/program/program_int.h"

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

/* Returns whether another line may be sent now. */
static bool metrics_may_send(dt_output_metrics *metrics)
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

/* Adds a value to those of the step, unless it is over a limit. */
static void metrics_add(dt_output_metrics *metrics, json_t *values, const char *name, int64_t step,
                        double value)
{
    if (!is_name(name) || !take_point(metrics, name, step))
        return;
    json_object_set_new(values, name, isfinite(value) ? json_real(value) : json_null());
    if (strcmp(name, dt_metric_name(DT_METRIC_LOSS)) == 0)
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
        const char *name;
        dt_metric_id ours;
    } same[] = {{"train_loss", DT_METRIC_LOSS},      {"train/loss", DT_METRIC_LOSS},
                {"Loss/train", DT_METRIC_LOSS},      {"eval_loss", DT_METRIC_VALID_LOSS},
                {"eval/loss", DT_METRIC_VALID_LOSS}, {"val_loss", DT_METRIC_VALID_LOSS},
                {"val/loss", DT_METRIC_VALID_LOSS},  {"Loss/val", DT_METRIC_VALID_LOSS}};

    metrics_add(metrics, values, name, step, value);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const char *ours = dt_metric_name(same[i].ours);
        const json_t *last = json_object_get(metrics->steps, ours);

        /* not if the program has this name too */
        if (strcmp(name, same[i].name) == 0 && (last == NULL || json_integer_value(last) < step))
            metrics_add(metrics, values, ours, step, value);
    }
}

/* --- lines */

static void metrics_take_line(dt_output_metrics *metrics, char *line);

static void end_line(dt_output_metrics *metrics, dt_metrics_line *line)
{
    if (!line->skipping && line->text.length > 0)
        metrics_take_line(metrics, line->text.data);
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

static void metrics_look_for_bar(dt_output_metrics *metrics, const char *bytes, size_t length);

void dt_output_metrics_read_errors(dt_output_metrics *metrics, const char *bytes, size_t length)
{
    if (metrics != NULL && metrics->groups != NULL)
        read_lines(metrics, &metrics->errors, bytes, length);
    else if (metrics != NULL)
        metrics_look_for_bar(metrics, bytes, length);
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

static void report_left(const dt_output_metrics *metrics)
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

static void metrics_take_waiting(dt_output_metrics *metrics, int64_t step);

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
        metrics_take_waiting(metrics, metrics->bar.total > 0 ? metrics->bar.step : -1);
    if (ended)
        report_left(metrics);
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

/* the metrics of one line: JSON objects, a dictionary as Python prints it, or a pattern's groups */

#define NUMBER_MOST  64
#define NOT_FINITE   "NaN"
#define WAITING_MOST 16
#define INTEGER_MOST 18 /* digits that surely fit into an int64_t */

/* --- text as JSON */

/* Copies a number; one that JSON or a double does not have becomes the text NOT_FINITE. Returns what follows. */
static const char *copy_number(dt_strbuf *out, const char *at)
{
    size_t length = strspn(at, "+-.0123456789eE");
    char text[NUMBER_MOST];
    double value;

    if (length >= sizeof(text)) {
        dt_strbuf_add(out, at, length);
        return at + length;
    }
    memcpy(text, at, length);
    text[length] = '\0';
    value = strtod(text, NULL);
    if (!isfinite(value))
        dt_strbuf_add_str(out, "\"" NOT_FINITE "\"");
    else if (strcspn(text, ".eE") == length && length > INTEGER_MOST)
        dt_strbuf_add_fmt(out, "%.17e", value);
    else
        dt_strbuf_add_str(out, text);
    return at + length;
}

/* Copies a text with its quotes; Python's single ones become double ones. Returns what follows. */
static const char *copy_quoted(dt_strbuf *out, const char *at)
{
    char quote = *at++;

    dt_strbuf_add_char(out, '"');
    for (; *at != '\0' && *at != quote; at++) {
        if (at[0] == '\\' && at[1] == '\'') { /* JSON has no such escape */
            dt_strbuf_add_char(out, *++at);
        } else if (at[0] == '\\' && at[1] != '\0') {
            dt_strbuf_add_char(out, *at++);
            dt_strbuf_add_char(out, *at);
        } else {
            if (*at == '"')
                dt_strbuf_add_char(out, '\\');
            dt_strbuf_add_char(out, *at);
        }
    }
    dt_strbuf_add_char(out, '"');
    return *at != '\0' ? at + 1 : at;
}

/* Copies a word as JSON writes it: NaN and Infinity of Python's json, and the words of Python's dictionaries. A call,
 * as in np.float32(1.5), is left away with its closing parenthesis. Returns what follows. */
static const char *copy_word(dt_strbuf *out, const char *at, int *calls)
{
    static const struct {
        const char *word, *json;
    } words[] = {{"NaN", "\"" NOT_FINITE "\""},
                 {"nan", "\"" NOT_FINITE "\""},
                 {"Infinity", "\"" NOT_FINITE "\""},
                 {"inf", "\"" NOT_FINITE "\""},
                 {"True", "true"},
                 {"False", "false"},
                 {"None", "null"}};
    size_t length = 0;

    while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '.')
        length++;
    if (at[length] == '(') {
        ++*calls;
        return at + length + 1;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i].word) == length && strncmp(at, words[i].word, length) == 0) {
            dt_strbuf_add_str(out, words[i].json);
            return at + length;
        }
    dt_strbuf_add(out, at, length);
    return at + length;
}

static void copy_json(dt_strbuf *out, const char *at)
{
    int calls = 0;

    while (*at != '\0') {
        if (*at == '"' || *at == '\'') {
            at = copy_quoted(out, at);
        } else if (*at == '-' && isalpha((unsigned char)at[1])) {
            at++; /* -Infinity */
        } else if (*at == '-' || isdigit((unsigned char)*at)) {
            at = copy_number(out, at);
        } else if (isalpha((unsigned char)*at)) {
            at = copy_word(out, at, &calls);
        } else if (*at == ')' && calls > 0) {
            calls--;
            at++;
        } else {
            dt_strbuf_add_char(out, *at++);
        }
    }
}

/* Removes the escape sequences of terminals, in place. */
static void remove_escapes(char *line)
{
    char *out = line;

    for (char *at = line; *at != '\0';) {
        if (at[0] != '\x1b') {
            *out++ = *at++;
            continue;
        }
        at++;
        if (*at == '[')
            for (at++; *at != '\0' && (*at < '@' || *at > '~');)
                at++;
        at += *at != '\0';
    }
    *out = '\0';
}

/* --- objects */

/* printed: by Python, where transformers writes numbers as texts. */
static bool is_value(double *out, const json_t *value, bool printed)
{
    const char *text = json_string_value(value);
    char *end;

    if (text != NULL && strcmp(text, NOT_FINITE) == 0) {
        *out = NAN;
        return true;
    }
    if (text != NULL && printed && text[0] != '\0') {
        *out = strtod(text, &end);
        return *end == '\0' && strpbrk(text, "xX") == NULL;
    }
    *out = json_number_value(value);
    return json_is_number(value);
}

static void send_object(dt_output_metrics *metrics, const json_t *object, int64_t step,
                        bool printed)
{
    json_t *values = json_object(), *value;
    double number;
    const char *name;

    metrics->again = printed; /* several dictionaries of a step have the same epoch */
    json_object_foreach((json_t *)object, name, value) {
        if (strcmp(name, "step") == 0)
            continue;
        if (is_value(&number, value, printed)) {
            if (printed && strcmp(name, "train_loss") != 0) /* the Trainer's mean of all steps */
                dt_metrics_add_foreign(metrics, values, name, step, number);
            else
                metrics_add(metrics, values, name, step, number);
        } else if (!json_is_string(value)) {
            dt_metrics_leave(metrics, DT_METRICS_NO_NUMBER, name);
        }
    }
    metrics->again = false;
    dt_metrics_send(metrics, step, values);
}

static bool has_number(const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
        if (json_is_number(value))
            return true;
    return false;
}

/* printed: as Python prints a dictionary. */
static void take_object(dt_output_metrics *metrics, json_t *object, bool printed, const char *line)
{
    const json_t *step = json_object_get(object, "step");
    double number;

    if (is_value(&number, step, printed) && dt_metrics_is_step(number)) {
        if (metrics_may_send(metrics))
            send_object(metrics, object, (int64_t)number, printed);
    } else if (step == NULL && printed && json_object_get(object, "epoch") != NULL) {
        if (json_array_size(metrics->bar.waiting) == WAITING_MOST) {
            metrics_take_waiting(metrics, metrics->bar.total > 0 ? metrics->bar.step : -1);
            return;
        }
        json_array_append(metrics->bar.waiting, object);
        metrics->bar.since_seconds = dt_clock_monotonic_seconds();
    } else if (step != NULL || (!printed && has_number(object))) {
        dt_metrics_leave(metrics, DT_METRICS_NO_STEP,
                         line); /* programs print other dictionaries too */
    }
}

/* Takes the objects of a line, one after another. */
static void take_json(dt_output_metrics *metrics, const char *line)
{
    const char *begin = line + strspn(line, " \t"), *at;
    bool printed;
    dt_strbuf text;

    if (*begin != '{')
        return;
    printed = begin[1 + strspn(begin + 1, " ")] == '\'';
    dt_strbuf_init(&text);
    copy_json(&text, begin);
    for (at = text.data; *at == '{';) {
        json_error_t problem;
        json_t *object = json_loadb(at, text.length - (size_t)(at - text.data),
                                    JSON_DISABLE_EOF_CHECK, &problem);

        if (object == NULL) {
            if (!printed && strstr(at, "\"step\"") != NULL)
                dt_metrics_leave(metrics, DT_METRICS_UNREADABLE, line);
            break;
        }
        take_object(metrics, object, printed, line);
        json_decref(object);
        at += problem.position; /* of what was read */
        at += strspn(at, " \t,");
    }
    dt_strbuf_release(&text);
}

/* --- the progress bar of transformers */

/* Sends what waits for a state of the bar. */
static void metrics_take_waiting(dt_output_metrics *metrics, int64_t step)
{
    json_t *waiting = metrics->bar.waiting, *object;
    size_t i;

    metrics->bar.waiting = json_array();
    json_array_foreach(waiting, i, object) {
        int64_t own = step >= 0 ? step : ++metrics->counted;

        if (json_object_get(object, dt_metric_name(DT_METRIC_LOSS)) != NULL)
            metrics->bar.fixed = metrics->bar.total > 0;
        own = own > metrics->step ? own : metrics->step; /* an evaluation after the last step */
        if (metrics_may_send(metrics))
            send_object(metrics, object, own, true);
    }
    json_decref(waiting);
}

/* Reads "  17%|#6        | 5/30 [00:01<00:05": a bar without a name, as the Trainer has. */
static bool read_bar(int64_t *step, int64_t *total, const char *line)
{
    const char *at = line + strspn(line, " "), *slash;
    size_t digits = strspn(at, "0123456789");
    char *end;

    if (digits == 0 || strncmp(at + digits, "%|", 2) != 0)
        return false;
    at = strstr(at + digits + 2, "| ");
    slash = at != NULL ? strchr(at, '/') : NULL;
    if (slash == NULL)
        return false;
    *step = strtoll(at + 2, &end, 10);
    if (end != slash)
        return false;
    *total = strtoll(slash + 1, &end, 10);
    return *total > 0 && strncmp(end, " [", 2) == 0;
}

/* The bar of the training is the first one, unless only others (evaluations before it) have ended. */
static bool is_training(dt_metrics_bar *bar, int64_t step, int64_t total)
{
    if (bar->total == 0 || (!bar->fixed && bar->step == bar->total && step == 0))
        bar->total = total;
    return bar->total == total;
}

/* Looks for a state of the bar in a piece of stderr. */
static void metrics_look_for_bar(dt_output_metrics *metrics, const char *bytes, size_t length)
{
    dt_metrics_bar *bar = &metrics->bar;
    int64_t step, total;
    char *line, *rest;
    dt_strbuf text;

    if (metrics->kind != DT_OUTPUT_METRICS_JSON || memmem(bytes, length, "%|", 2) == NULL)
        return;
    dt_strbuf_init(&text);
    dt_strbuf_add(&text, bytes, length);
    for (line = strtok_r(text.data, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        if (!read_bar(&step, &total, line) || !is_training(bar, step, total))
            continue;
        bar->step = step;
        if (dt_output_metrics_waits(metrics))
            metrics_take_waiting(metrics, step);
    }
    dt_strbuf_release(&text);
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

static void take_match(dt_output_metrics *metrics, const char *line)
{
    int step_index = dt_named_groups_find(metrics->groups, "step");
    json_t *values;
    double step = 0, value;

    if (!dt_named_groups_match(metrics->groups, line))
        return;
    if (step_index >= 0 &&
        (!read_group(&step, metrics->groups, step_index, line) || !dt_metrics_is_step(step))) {
        dt_metrics_leave(metrics, DT_METRICS_NO_STEP, line);
        return;
    }
    if (step_index < 0)
        step = (double)++metrics->counted;
    if (!metrics_may_send(metrics))
        return;
    values = json_object();
    for (int i = 0; i < dt_named_groups_count(metrics->groups); i++)
        if (i != step_index && read_group(&value, metrics->groups, i, line))
            metrics_add(metrics, values, dt_named_groups_name(metrics->groups, i), (int64_t)step,
                        value);
    dt_metrics_send(metrics, (int64_t)step, values);
}

/* Takes a line, which is changed. */
static void metrics_take_line(dt_output_metrics *metrics, char *line)
{
    remove_escapes(line);
    if (metrics->groups != NULL)
        take_match(metrics, line);
    else
        take_json(metrics, line);
}
