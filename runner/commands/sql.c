/* dtrun sql: answers a SELECT on the history, for scripts, and prints what can be selected. */
#include <string.h>

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "store/sql_views.h"
#include "store/store.h"

typedef struct answer {
    bool json;
    dt_strbuf csv;
    json_t *columns, *rows;
} answer;

/* Appends a CSV cell: in quotes if it needs them, with quotes inside it doubled. */
static void add_text(dt_strbuf *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        dt_strbuf_add_str(out, text);
        return;
    }
    dt_strbuf_add_char(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            dt_strbuf_add_char(out, '"');
        dt_strbuf_add_char(out, *text);
    }
    dt_strbuf_add_char(out, '"');
}

static void add_csv(dt_strbuf *out, const dt_query_value *value)
{
    char number[DT_FORMAT_SIZE];

    if (value->kind == DT_QUERY_INT)
        dt_strbuf_add_fmt(out, "%lld", (long long)value->integer);
    else if (value->kind == DT_QUERY_REAL)
        dt_strbuf_add_str(out, dt_format_exact(number, sizeof(number), value->real));
    else if (value->kind == DT_QUERY_TEXT)
        add_text(out, value->text);
}

static json_t *to_json(const dt_query_value *value)
{
    switch (value->kind) {
    case DT_QUERY_INT:
        return json_integer(value->integer);
    case DT_QUERY_REAL:
        return dt_json_number(value->real);
    case DT_QUERY_TEXT:
        return dt_json_text(value->text);
    default:
        return json_null();
    }
}

/* values NULL: before the first row. */
static void take(void *context, const char *const *names, const dt_query_value *values, int count)
{
    answer *out = context;
    json_t *row = out->json ? json_array() : NULL;

    for (int i = 0; i < count; i++) {
        const dt_query_value name = {.kind = DT_QUERY_TEXT, .text = names[i]};
        const dt_query_value *value = values != NULL ? &values[i] : &name;

        if (out->json) {
            json_array_append_new(row, to_json(value));
            continue;
        }
        if (i > 0)
            dt_strbuf_add_char(&out->csv, ',');
        add_csv(&out->csv, value);
    }
    if (!out->json)
        dt_strbuf_add_char(&out->csv, '\n');
    else if (values == NULL)
        json_array_extend(out->columns, row);
    else
        json_array_append(out->rows, row);
    json_decref(row);
}

static json_t *columns_to_json(const dt_sql_column *column)
{
    json_t *array = json_array();

    for (; column->name != NULL; column++)
        json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "column", column->name, "type",
                                               column->type, "content", column->content));
    return array;
}

static dt_status schema(dt_call *call, dt_error *err)
{
    json_t *object, *views;
    dt_strbuf text;
    dt_status st;

    if (!call->json) {
        dt_strbuf_init(&text);
        dt_sql_views_markdown(&text);
        st = dt_report_text(&text, err);
        dt_strbuf_release(&text);
        return st;
    }
    object = dt_report_object();
    views = json_array();
    for (const dt_sql_view *view = dt_sql_views; view->name != NULL; view++)
        json_array_append_new(views,
                              json_pack("{s:s, s:s, s:o}", "view", view->name, "content",
                                        view->content, "columns", columns_to_json(view->columns)));
    json_object_set_new(object, "views", views);
    return dt_report_json(object, err);
}

static dt_status query(dt_call *call, dt_error *err)
{
    double seconds = dt_arguments_get(call->args, "limit")->number;
    answer out = {.json = call->json, .columns = json_array(), .rows = json_array()};
    dt_store *store = NULL;
    dt_status st = DT_OK;
    json_t *object;

    dt_strbuf_init(&out.csv);
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(dt_store_query(store, call->args->operands[0], seconds, take, &out, err));
    if (call->json) {
        object = dt_report_object();
        json_object_set(object, "columns", out.columns);
        json_object_set(object, "rows", out.rows);
        DT_TRY(dt_report_json(object, err));
    } else {
        DT_TRY(dt_report_text(&out.csv, err));
    }
out:
    json_decref(out.columns);
    json_decref(out.rows);
    dt_strbuf_release(&out.csv);
    dt_store_close(store);
    return st;
}

static dt_status sql(dt_call *call, dt_error *err)
{
    bool asked = call->args->operands_count > 0,
         described = dt_arguments_flag(call->args, "schema");

    if (asked && described)
        return DT_FAIL(err, DT_ERR_USAGE, "--schema and SELECT cannot be combined");
    if (!asked && !described)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "SELECT is missing ('dtrun sql --schema' lists views and columns)");
    return described ? schema(call, err) : query(call, err);
}

static const dt_option options[] = {
    {.name = "schema",
     .kind = DT_OPTION_FLAG,
     .help = "print the views and their columns, with examples"},
    {.name = "limit",
     .kind = DT_OPTION_NUMBER,
     .value = "SECONDS",
     .fallback = "30",
     .low = 0.001,
     .high = 86400,
     .help = "time limit for the answer"},
    {0},
};

const dt_command dt_command_sql = {
    .name = "sql",
    .summary = "run a read-only SQL query on the history",
    .operands = "[SELECT]",
    .runs = DT_RUNS_LOCAL,
    .operands_max = 1,
    .options = options,
    .notes =
        "Prints CSV with a header line, with --json {columns, rows}. SELECT reads the views runs,\n"
        "attempts, points, checkpoints and events (docs/sql.md, or --schema), whose names and\n"
        "columns stay the same in later releases. Examples:\n"
        "  dtrun sql 'SELECT run, name, loss FROM runs ORDER BY loss LIMIT 10'\n"
        "  dtrun sql \"SELECT step, value FROM points WHERE run = 'k3f9a2'\"\n"
        "  dtrun sql 'SELECT run, path FROM checkpoints WHERE kept'\n",
    .run = sql,
};
