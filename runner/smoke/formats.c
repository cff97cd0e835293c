#include "runner/smoke/formats.h"

#include <string.h>

const char *dt_smoke_verdict_name(dt_smoke_verdict verdict)
{
    static const char *const names[] = {"good", "failed", "skipped"};

    return names[verdict];
}

void dt_smoke_add_line(dt_strbuf *out, const dt_term *term, const dt_smoke_result *result)
{
    static const dt_style styles[] = {DT_STYLE_GOOD, DT_STYLE_BAD, DT_STYLE_DIM};

    dt_strbuf_add_str(out, "  ");
    dt_term_add(out, term, styles[result->verdict], "%-8s", dt_smoke_verdict_name(result->verdict));
    dt_term_add(out, term, DT_STYLE_BOLD, "%-10s", result->check);
    dt_term_add(out, term, DT_STYLE_DIM, " %5.1f s  ", result->seconds);
    dt_term_add(out, term, DT_STYLE_PLAIN, "%s\n", result->figure);
}

/* --- TAP */

/* Escapes '#', which starts a directive, and replaces line breaks. */
static void add_tap_text(dt_strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '#' || *text == '\\')
            dt_strbuf_add_char(out, '\\');
        dt_strbuf_add_char(out, *text == '\n' ? ' ' : *text);
    }
}

/* Writes a JSON string, which is valid YAML. */
static void add_tap_value(dt_strbuf *out, const char *key, const char *text)
{
    json_t *value = dt_json_text(text);

    dt_strbuf_add_fmt(out, "  %s: ", key);
    dt_json_write(out, value);
    dt_strbuf_add_char(out, '\n');
    json_decref(value);
}

void dt_smoke_add_tap(dt_strbuf *out, int64_t number, const char *recipe,
                      const dt_smoke_result *result)
{
    bool failed = result->verdict == DT_SMOKE_FAILED;

    dt_strbuf_add_fmt(out, "%s %lld - ", failed ? "not ok" : "ok", (long long)number);
    add_tap_text(out, recipe);
    dt_strbuf_add_fmt(out, ": %s: ", result->check);
    add_tap_text(out, failed ? result->promise : result->figure);
    dt_strbuf_add_str(out, result->verdict == DT_SMOKE_SKIPPED ? " # SKIP\n" : "\n");
    if (!failed)
        return;
    dt_strbuf_add_str(out, "  ---\n");
    add_tap_value(out, "message", result->figure);
    dt_strbuf_add_fmt(out, "  seconds: %.3f\n  ...\n", result->seconds);
}

/* --- JUnit XML */

static void add_xml(dt_strbuf *out, const char *text)
{
    json_t *valid = dt_json_text(text); /* UTF-8 */

    for (text = json_string_value(valid); *text != '\0'; text++) {
        if (*text == '&')
            dt_strbuf_add_str(out, "&amp;");
        else if (*text == '<')
            dt_strbuf_add_str(out, "&lt;");
        else if (*text == '>')
            dt_strbuf_add_str(out, "&gt;");
        else if (*text == '"')
            dt_strbuf_add_str(out, "&quot;");
        else if (*text == '\n')
            dt_strbuf_add_str(out, "&#10;");
        else
            dt_strbuf_add_char(out, (unsigned char)*text < ' ' ? '?' : *text);
    }
    json_decref(valid);
}

static void add_case(dt_strbuf *out, const char *recipe, const dt_smoke_result *result)
{
    static const char *const elements[] = {"system-out", "failure", "skipped"};

    dt_strbuf_add_str(out, "    <testcase classname=\"");
    add_xml(out, recipe);
    dt_strbuf_add_str(out, "\" name=\"");
    add_xml(out, result->check);
    dt_strbuf_add_fmt(out, "\" time=\"%.3f\">", result->seconds);
    dt_strbuf_add_fmt(out, "<%s", elements[result->verdict]);
    if (result->verdict == DT_SMOKE_GOOD) {
        dt_strbuf_add_char(out, '>');
        add_xml(out, result->figure);
        dt_strbuf_add_str(out, "</system-out>");
    } else {
        dt_strbuf_add_str(out, " message=\"");
        add_xml(out, result->figure);
        dt_strbuf_add_str(out, "\"/>");
    }
    dt_strbuf_add_str(out, "</testcase>\n");
}

static size_t skipped(const dt_smoke_report *report)
{
    size_t count = 0;

    for (size_t i = 0; i < report->count; i++)
        count += report->results[i].verdict == DT_SMOKE_SKIPPED;
    return count;
}

void dt_smoke_add_junit(dt_strbuf *out, const dt_smoke_report *reports, size_t count)
{
    dt_strbuf_add_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t i = 0; i < count; i++) {
        dt_strbuf_add_str(out, "  <testsuite name=\"");
        add_xml(out, reports[i].path);
        dt_strbuf_add_fmt(out, "\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
                          reports[i].count, reports[i].failed, skipped(&reports[i]),
                          reports[i].seconds);
        for (size_t j = 0; j < reports[i].count; j++)
            add_case(out, reports[i].path, &reports[i].results[j]);
        dt_strbuf_add_str(out, "  </testsuite>\n");
    }
    dt_strbuf_add_str(out, "</testsuites>\n");
}

/* --- JSON */

json_t *dt_smoke_to_json(const dt_smoke_report *report)
{
    json_t *object = json_object(), *checks = json_array();

    json_object_set_new(object, "recipe", dt_json_text(report->path));
    json_object_set_new(object, "good", json_boolean(report->failed == 0 && !report->interrupted));
    json_object_set_new(object, "seconds", dt_json_number(report->seconds));
    json_object_set_new(object, "folder",
                        report->folder != NULL ? dt_json_text(report->folder) : json_null());
    for (size_t i = 0; i < report->count; i++) {
        const dt_smoke_result *result = &report->results[i];
        json_t *check = json_object();

        json_object_set_new(check, "check", dt_json_text(result->check));
        json_object_set_new(check, "promise", dt_json_text(result->promise));
        json_object_set_new(check, "verdict", json_string(dt_smoke_verdict_name(result->verdict)));
        json_object_set_new(check, "figure", dt_json_text(result->figure));
        json_object_set_new(check, "seconds", dt_json_number(result->seconds));
        json_array_append_new(checks, check);
    }
    json_object_set_new(object, "checks", checks);
    return object;
}
