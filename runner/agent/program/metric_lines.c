/* metric_lines: reads the metrics of one line: JSON objects, a dictionary as Python prints it, or a pattern's groups. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runner/agent/program/program_int.h"

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
                dt_metrics_add(metrics, values, name, step, number);
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
        if (dt_metrics_may_send(metrics))
            send_object(metrics, object, (int64_t)number, printed);
    } else if (step == NULL && printed && json_object_get(object, "epoch") != NULL) {
        if (json_array_size(metrics->bar.waiting) == WAITING_MOST) {
            dt_metrics_take_waiting(metrics, metrics->bar.total > 0 ? metrics->bar.step : -1);
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

void dt_metrics_take_waiting(dt_output_metrics *metrics, int64_t step)
{
    json_t *waiting = metrics->bar.waiting, *object;
    size_t i;

    metrics->bar.waiting = json_array();
    json_array_foreach(waiting, i, object) {
        int64_t own = step >= 0 ? step : ++metrics->counted;

        if (json_object_get(object, "loss") != NULL)
            metrics->bar.fixed = metrics->bar.total > 0;
        own = own > metrics->step ? own : metrics->step; /* an evaluation after the last step */
        if (dt_metrics_may_send(metrics))
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

void dt_metrics_look_for_bar(dt_output_metrics *metrics, const char *bytes, size_t length)
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
            dt_metrics_take_waiting(metrics, step);
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
    if (!dt_metrics_may_send(metrics))
        return;
    values = json_object();
    for (int i = 0; i < dt_named_groups_count(metrics->groups); i++)
        if (i != step_index && read_group(&value, metrics->groups, i, line))
            dt_metrics_add(metrics, values, dt_named_groups_name(metrics->groups, i), (int64_t)step,
                           value);
    dt_metrics_send(metrics, (int64_t)step, values);
}

void dt_metrics_take_line(dt_output_metrics *metrics, char *line)
{
    remove_escapes(line);
    if (metrics->groups != NULL)
        take_match(metrics, line);
    else
        take_json(metrics, line);
}
