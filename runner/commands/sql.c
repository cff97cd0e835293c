/* dtrun sql: a question to the history, for scripts. */
#include <string.h>

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/term/format.h"
#include "store/store.h"

#include "base/banned.h"

typedef struct answer {
    bool json;
    dt_strbuf csv;
    json_t *columns, *rows;
} answer;

/* As csv has it: in quotes where it must be, these doubled. */
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

static const dt_option options[] = {
    {.name = "limit",
     .kind = DT_OPTION_NUMBER,
     .value = "SECONDS",
     .fallback = "30",
     .low = 0.001,
     .high = 86400,
     .help = "how long an answer may take"},
    {0},
};

const dt_command dt_command_sql = {
    .name = "sql",
    .summary = "ask the history in SQL, which only reads",
    .operands = "SELECT",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "The answer is csv with a line of names, with --json {columns, rows}. The tables (runs,\n"
        "attempts, metrics, events, ...) are those of store/schema.sql, and may be others in the\n"
        "next dtrun: 'dtrun list --json' and 'dtrun metrics' stay as they are.\n",
    .run = query,
};
