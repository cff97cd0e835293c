/* smoke: runs the checks of a recipe, and writes their results as lines, TAP, JUnit XML or JSON. */
#include "runner/smoke/smoke.h"

#include <string.h>

#include "base/clock.h"
#include "recipes/architecture/architecture.h"
#include "runner/cli/command.h"
#include "runner/smoke/smoke_int.h"

/* "good", "failed", "skipped". */
static const char *smoke_verdict_name(dt_smoke_verdict verdict)
{
    static const char *const names[] = {"good", "failed", "skipped"};

    return names[verdict];
}

void dt_smoke_add_line(dt_strbuf *out, const dt_term *term, const dt_smoke_result *result)
{
    static const dt_style styles[] = {DT_STYLE_GOOD, DT_STYLE_BAD, DT_STYLE_DIM};

    dt_strbuf_add_str(out, "  ");
    dt_term_add(out, term, styles[result->verdict], "%-8s", smoke_verdict_name(result->verdict));
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
        json_object_set_new(check, "verdict", json_string(smoke_verdict_name(result->verdict)));
        json_object_set_new(check, "figure", dt_json_text(result->figure));
        json_object_set_new(check, "seconds", dt_json_number(result->seconds));
        json_array_append_new(checks, check);
    }
    json_object_set_new(object, "checks", checks);
    return object;
}

typedef struct check {
    const char *name, *promise;
    dt_smoke_look *look;
    bool after_training; /* needs the run of the first check */
} check;

static const check training[] = {
    {"masks", "only the assistant's turns and their ends are trained", dt_smoke_masks, false},
    {"trains", "it trains, and every loss is finite", dt_smoke_trains, false},
    {"evaluates", "it is validated", dt_smoke_evaluates, true},
    {"generates", "its checkpoint generates text", dt_smoke_generates, true},
    {"memory", "no rank needs more memory than predicted", dt_smoke_memory, true},
    {"learns", "its loss falls on repeated samples", dt_smoke_learns, true},
    {"agrees", "its ranks reach the losses of one process", dt_smoke_agrees, true},
    {"resumes", "after a rank is killed, it reaches the same bits", dt_smoke_resumes, true},
    {"stops", "it stops, and no process is left", dt_smoke_stops, true},
};

static const check of_command[] = {
    {"starts", "its program is found, and every process starts", dt_smoke_starts, false},
    {"measures", "a metric is read", dt_smoke_measures, true},
    {"saves", "a checkpoint appears", dt_smoke_saves, true},
    {"resumes", "after a rank is killed, it continues from its checkpoint", dt_smoke_continues,
     true},
    {"stops", "it stops as asked, and no process is left", dt_smoke_ends_command, true},
};

enum {
    TRAINING_COUNT = sizeof(training) / sizeof(training[0]),
    COMMAND_COUNT = sizeof(of_command) / sizeof(of_command[0])
};

static void add_result(dt_smoke_report *report, const dt_smoke_result *result,
                       const dt_smoke_wish *wish)
{
    report->results[report->count++] = *result;
    report->failed += result->verdict == DT_SMOKE_FAILED;
    if (wish->on_result != NULL)
        wish->on_result(wish->context, result);
}

/* Runs one check, or tests a fault, and adds its result. */
static void look(dt_smoke_report *report, dt_smoke *smoke, const check *which,
                 const dt_smoke_fault *fault)
{
    dt_smoke_result result = {.check = fault != NULL ? fault->name : which->name,
                              .promise = fault != NULL ? fault->kind->promise : which->promise,
                              .figure = ""};
    bool needs = fault != NULL || which->after_training;
    double start = dt_clock_monotonic_seconds();
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (fault != NULL && smoke->command)
        dt_smoke_skip(&result, smoke, "not applicable to a command: only dtrun's engine has it");
    else if (needs && smoke->trained.row.id == NULL)
        dt_smoke_skip(&result, smoke, "it does not %s", smoke->command ? "start" : "train");
    else if (fault != NULL)
        st = dt_smoke_survives(&result, smoke, fault, &problem);
    else
        st = which->look(&result, smoke, &problem);
    report->interrupted = dt_interrupt_seen();
    if (st != DT_OK)
        dt_smoke_fail(&result, smoke, "%s", problem.message);
    result.seconds = dt_clock_monotonic_seconds() - start;
    if (!report->interrupted)
        add_result(report, &result, smoke->wish);
}

static void report_init(dt_smoke_report *out, const char *path, size_t count, dt_arena *arena)
{
    *out = (dt_smoke_report){.path = path};
    out->results = dt_arena_alloc_array(arena, count, sizeof(out->results[0]));
}

/* Checks the shrunk recipe, its data and memory before anything is started. */
static dt_status prepare(dt_smoke *smoke, const dt_recipe *recipe, const dt_recipe_source *source,
                         dt_error *err)
{
    smoke->command = recipe->task == DT_TASK_COMMAND;
    if (smoke->command) {
        if (smoke->wish->how.here && recipe->workdir.ship == DT_SHIP_NEVER)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "with 'workdir.ship: never' the test would write into '%s' of each "
                           "node: use --set workdir.ship=auto, or leave out --here",
                           recipe->workdir.folder);
        dt_shrink_command(&smoke->recipe, recipe, &smoke->wish->how, smoke->arena);
        return dt_preflight_recipe(&smoke->flight, &smoke->recipe, source, smoke->arena, err);
    }
    dt_shrink_recipe(&smoke->recipe, recipe, &smoke->wish->how);
    smoke->ranks = smoke->recipe.ranks; /* with --here: set after the first run */
    smoke->rows = dt_architecture_find(recipe->model.kind)->reads_rows;
    smoke->pairs = dt_architecture_find(recipe->model.kind)->reads_pairs;
    return dt_preflight_recipe(&smoke->flight, &smoke->recipe, source, smoke->arena, err);
}

static void run_all(dt_smoke_report *out, dt_smoke *smoke)
{
    const check *checks = smoke->command ? of_command : training;
    size_t count = smoke->command ? COMMAND_COUNT : TRAINING_COUNT;

    for (size_t i = 0; i < count && !out->interrupted; i++)
        if (checks[i].look != dt_smoke_masks || smoke->asked->data.format == DT_DATA_CHAT)
            look(out, smoke, &checks[i], NULL);
    for (size_t i = 0; i < smoke->wish->faults_count && !out->interrupted; i++)
        look(out, smoke, NULL, &smoke->wish->faults[i]);
}

dt_status dt_smoke_recipe(dt_smoke_report *out, const dt_recipe *recipe,
                          const dt_recipe_source *source, const dt_smoke_wish *wish,
                          dt_arena *arena, dt_error *err)
{
    dt_smoke smoke = {.wish = wish, .asked = recipe, .arena = arena};
    double start = dt_clock_monotonic_seconds();
    dt_status st = DT_OK, closed;

    report_init(out, source->path, TRAINING_COUNT + wish->faults_count, arena);
    DT_TRY(prepare(&smoke, recipe, source, err));
    DT_TRY(dt_smoke_place_open(&smoke.place, wish->limit_seconds, arena, err));
    smoke.place.remove_runs = smoke.command && wish->how.here;
    DT_TRY(dt_smoke_base(&smoke, err));
    run_all(out, &smoke);
    out->seconds = dt_clock_monotonic_seconds() - start;
out:
    if (smoke.place.folder != NULL) {
        bool keep = wish->keep || (out->failed > 0 && !out->interrupted);

        closed = dt_smoke_place_close(&smoke.place, keep, err);
        out->folder = keep || closed != DT_OK ? smoke.place.folder : NULL;
        st = st == DT_OK ? closed : st;
    }
    return st;
}

void dt_smoke_unread(dt_smoke_report *out, const char *path, const dt_error *why, dt_arena *arena)
{

    report_init(out, path, 1, arena);
    out->count = out->failed = 1;
    out->results[0] = (dt_smoke_result){.check = "recipe",
                                        .promise = "it can be read, and its data are there",
                                        .verdict = DT_SMOKE_FAILED,
                                        .figure = dt_arena_strdup(arena, why->message)};
}
