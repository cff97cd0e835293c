/* sql_views: the views of `dtrun sql`, and the connection that runs one SELECT on them. */
#include "store/sql_views.h"

#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/store_int.h"

/* --- views */

/* Formats times as dt_clock_iso does: they sort as text, and SQLite's date functions accept them. */
#define TIME(ms) "strftime('%Y-%m-%dT%H:%M:%fZ', " ms " / 1000.0, 'unixepoch')"
#define FIELD(path) \
    "CASE WHEN json_valid(a.recipe_json) THEN json_extract(a.recipe_json, '$." path "') END"
/* Seconds of a started attempt, the row `e`. */
#define ATTEMPT_SECONDS                                                    \
    "max(0, CASE WHEN e.ended_ms IS NULL"                                  \
    " THEN (julianday('now') - 2440587.5) * 86400 - e.started_ms / 1000.0" \
    " ELSE coalesce(e.elapsed_ms, e.ended_ms - e.started_ms) / 1000.0 END)"

static const dt_sql_column run_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"name", "text", "name of the run; several runs can have the same", "r.name"},
    {"task", "text",
     "`train`, or what the ranks do instead (`generate`, `score`, `evaluate`, `command`)",
     "coalesce(" FIELD("task") ", 'train')"},
    {"state", "text",
     "`waiting`, `queued`, `preparing`, `starting`, `running`, `stopping`, `finished`, `failed` or "
     "`stopped`",
     DT_SQL_SHOWN_STATE},
    {"reason", "text", "why the run failed or was stopped, else NULL",
     "nullif(" DT_SQL_SHOWN_REASON ", '')"},
    {"exit_code", "integer", "exit code of the run; NULL until it has ended",
     "CASE WHEN a.exit_code >= 0 THEN a.exit_code END"},
    {"attempt", "integer", "number of the newest attempt, from 1", "r.attempt"},
    {"created", "text", "when the run was launched", TIME("r.created_ms")},
    {"started", "text", "when the newest attempt started, or NULL", TIME("a.started_ms")},
    {"ended", "text", "when the newest attempt ended, or NULL", TIME("a.ended_ms")},
    {"elapsed_seconds", "real",
     "time of all attempts, without the time between them; NULL before the first",
     "(SELECT sum(" ATTEMPT_SECONDS
     ") FROM main.attempts e WHERE e.run = r.run AND e.started_ms IS NOT NULL)"},
    {"step", "integer", "the last step", "r.step"},
    {"steps_total", "integer", "steps of the whole run; NULL if not known yet",
     "CASE WHEN a.steps_total > 0 THEN a.steps_total END"},
    {"loss", "real",
     "newest training loss: the final loss of a finished run; Infinity: not a number", "r.loss"},
    {"valid_loss", "real", "newest validation loss", "r.valid_loss"},
    {"tokens_per_second", "real", "newest throughput over all ranks", "r.tokens_per_second"},
    {"model", "text", "`model.kind` of the recipe", FIELD("model.kind")},
    {"strategy", "text", "`strategy.kind` of the recipe", FIELD("strategy.kind")},
    {"nodes", "integer", "number of nodes of the newest attempt",
     "(SELECT nullif(count(*), 0) FROM main.nodes n WHERE n.run = a.run AND n.attempt = "
     "a.attempt)"},
    {"ranks", "integer", "number of ranks of the newest attempt",
     "(SELECT nullif(count(*), 0) FROM main.ranks k WHERE k.run = a.run AND k.attempt = "
     "a.attempt)"},
    {"tags", "text", "tags, sorted and separated by one space, or NULL", "nullif(r.tags, '')"},
    {"note", "text", "note, or NULL", "nullif(r.note, '')"},
    {"run_group", "text", "group, or NULL; `group` is an SQL keyword", "nullif(r.run_group, '')"},
    {"parent", "text", "id of the run that it was forked from, or NULL", "nullif(r.parent, '')"},
    {"parent_step", "integer", "step at which it was forked, or NULL",
     "CASE WHEN r.parent <> '' THEN r.parent_step END"},
    {"recipe_path", "text", "path of the recipe file", "r.recipe_path"},
    {"recipe", "text", "resolved recipe of the newest attempt, as JSON", "a.recipe_json"},
    {0},
};

static const dt_sql_column attempt_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"attempt", "integer", "number of the attempt, from 1: launch, then each resume or restart",
     "e.attempt"},
    {"state", "text", "as in `runs`", "e.state"},
    {"reason", "text", "why the attempt failed or was stopped, else NULL", "nullif(e.reason, '')"},
    {"exit_code", "integer", "NULL until it has ended",
     "CASE WHEN e.exit_code >= 0 THEN e.exit_code END"},
    {"start_step", "integer", "step that the attempt resumed from", "e.start_step"},
    {"created", "text", "when the attempt was requested", TIME("e.created_ms")},
    {"started", "text", "when it started, or NULL", TIME("e.started_ms")},
    {"ended", "text", "when it ended, or NULL", TIME("e.ended_ms")},
    {"elapsed_seconds", "real", "duration so far; NULL before it started",
     "CASE WHEN e.started_ms IS NOT NULL THEN " ATTEMPT_SECONDS " END"},
    {"recipe", "text", "resolved recipe, as JSON", "e.recipe_json"},
    {0},
};

/* Points that count, by the rule of curve.c. */
static const dt_sql_column point_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"metric", "text", "name of the metric: `loss`, `valid_loss`, `learning_rate`, ...", "s.name"},
    {"step", "integer", "step of the point", "m.step"},
    {"time", "text", "when the point was measured", TIME("m.time_ms")},
    {"value", "real", "value; NULL if it was not a number", "m.value"},
    {"attempt", "integer", "the attempt that measured it", "m.attempt"},
    {0},
};

static const dt_sql_column checkpoint_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"step", "integer", "step that it holds", "c.step"},
    {"attempt", "integer", "the attempt that saved it", "c.attempt"},
    {"path", "text", "its directory", "checkpoint_path(c.path, r.id)"},
    {"bytes", "integer", "size in bytes", "c.bytes"},
    {"time", "text", "when it was saved", TIME("c.time_ms")},
    {"seconds", "real", "how long the save took", "c.seconds"},
    {"valid_loss", "real", "validation loss at this step, or NULL", "c.valid_loss"},
    {"score", "real",
     "value that `checkpoint.keep_best` compares (the lowest is the best), or NULL",
     "coalesce(c.score, c.valid_loss)"},
    {"kept", "integer",
     "1 if the directory exists, 0 if it was removed (`checkpoint.keep`, `dtrun gc`)",
     "checkpoint_kept(c.path, r.id)"},
    {"digest", "text", "digest of its files", "c.digest"},
    {0},
};

static const dt_sql_column event_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"attempt", "integer", "attempt that it belongs to", "v.attempt"},
    {"node", "text", "name of the node, or NULL: the supervisor",
     "(SELECT n.name FROM main.nodes n WHERE n.run = v.run AND n.attempt = v.attempt AND n.node = "
     "v.node)"},
    {"rank", "integer", "rank, or NULL", "CASE WHEN v.rank >= 0 THEN v.rank END"},
    {"time", "text", "when it happened", TIME("v.time_ms")},
    {"event", "text", "its kind: `ready`, `checkpoint`, `exited`, ...", "v.kind"},
    {"detail", "text", "the whole event, as JSON; its fields can change in any release", "v.json"},
    {0},
};

static const dt_sql_column evaluation_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"step", "integer", "step of the checkpoint", "v.step"},
    {"attempt", "integer", "the newest attempt at that time", "v.attempt"},
    {"time", "text", "when it was computed", TIME("v.time_ms")},
    {"task", "text", "name of the task", "v.task"},
    {"rows", "integer", "rows of the task", "json_extract(v.result, '$.rows')"},
    {"metric", "text", "name of the metric: `acc`, `exact_match`, `word_perplexity`, ...", "m.key"},
    {"value", "real", "value; NULL if it was not a number", "json_extract(m.value, '$.value')"},
    {"stderr", "real", "its standard error, or NULL", "json_extract(m.value, '$.stderr')"},
    {0},
};

static const dt_sql_column sample_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"step", "integer", "step after which the text was generated", "v.step"},
    {"attempt", "integer", "attempt that generated it", "v.attempt"},
    {"time", "text", "when it was generated", TIME("v.time_ms")},
    {"place", "integer", "place of the prompt in `evaluate.samples`, from 0", "v.place"},
    {"prompt", "text", "the prompt", "v.prompt"},
    {"text", "text", "the text that the model added", "v.text"},
    {"tokens", "integer", "number of tokens that the model generated", "v.tokens"},
    {"ended", "text", "why the text ended: `tokens`, `end_of_text` or `not_finite`", "v.ended"},
    {0},
};

static const dt_sql_column confusion_columns[] = {
    {"run", "text", "id of the run", "r.id"},
    {"step", "integer", "step of the evaluation", "v.step"},
    {"attempt", "integer", "attempt that evaluated", "v.attempt"},
    {"time", "text", "when it was computed", TIME("v.time_ms")},
    {"class", "integer", "class of the rows, from 0", "c.key"},
    {"predicted", "integer", "class that the model predicts, from 0", "p.key"},
    {"rows", "integer", "number of rows", "p.value"},
    {0},
};

const dt_sql_view dt_sql_views[] = {
    {"runs", "One row for each run.",
     "main.runs r JOIN main.attempts a ON a.run = r.run AND a.attempt = r.attempt", run_columns},
    {"attempts", "One row for each attempt of a run.",
     "main.attempts e JOIN main.runs r ON r.run = e.run", attempt_columns},
    {"points",
     "One row for each point of each metric, as `dtrun metrics` lists them. Points that a resume "
     "from an earlier step undid are left out. Those of nodes (`system/`) have the time in seconds "
     "since "
     "1970 as their step.",
     "main.metrics m JOIN main.series s ON s.series = m.series JOIN main.runs r ON r.run = s.run"
     " WHERE (" DT_SQL_BY_TIME(
         "s.name") " OR NOT EXISTS (SELECT 1 FROM main.attempts b WHERE b.run = s.run"
                   " AND b.attempt > m.attempt AND b.start_step < m.step)) AND NOT EXISTS (SELECT "
                   "1 FROM main.metrics n WHERE n.series = "
                   "m.series"
                   " AND n.step = m.step AND n.attempt > m.attempt)",
     point_columns},
    {"checkpoints", "One row for each checkpoint that a run has saved.",
     "main.checkpoints c JOIN main.runs r ON r.run = c.run", checkpoint_columns},
    {"events", "One row for each event of a run.",
     "main.events v JOIN main.runs r ON r.run = v.run", event_columns},
    {"evaluations",
     "One row for each metric of each task and step (docs/evaluation.md): of the newest "
     "evaluation. "
     "Steps that a resume from an earlier step undid are left out.",
     DT_SQL_EVALUATIONS " v JOIN main.runs r ON r.run = v.run"
                        " JOIN json_each(v.result, '$.metrics') m WHERE v.newer = 0",
     evaluation_columns},
    {"samples",
     "One row for each text of `evaluate.samples` and step. Steps that a resume from an earlier "
     "step undid are left out.",
     DT_SQL_SAMPLES " v JOIN main.runs r ON r.run = v.run WHERE v.newer = 0", sample_columns},
    {"confusions",
     "One row for each class and predicted class of each evaluation of a classifier. Steps that a "
     "resume from an earlier step undid are left out.",
     DT_SQL_CONFUSIONS
     " v JOIN main.runs r ON r.run = v.run JOIN json_each(v.counts) c JOIN"
     " json_each(CASE c.type WHEN 'array' THEN c.value ELSE '[]' END) p WHERE v.newer = 0",
     confusion_columns},
    {0},
};

/* Appends the statements that make the views, as temporary ones. They call checkpoint_path(PATH, RUN) and
 * checkpoint_kept(PATH, RUN). */
static void sql_views_create(dt_strbuf *out)
{
    for (const dt_sql_view *view = dt_sql_views; view->name != NULL; view++) {
        dt_strbuf_add_fmt(out, "CREATE TEMP VIEW %s AS SELECT ", view->name);
        for (const dt_sql_column *column = view->columns; column->name != NULL; column++)
            dt_strbuf_add_fmt(out, "%s%s AS %s", column == view->columns ? "" : ", ", column->sql,
                              column->name);
        dt_strbuf_add_fmt(out, " FROM %s;\n", view->from);
    }
}

/* --- docs/sql.md */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Writes a Markdown table with padded columns, since it is also printed to a terminal. */
static void add_table(dt_strbuf *out, const dt_sql_column *columns)
{
    size_t width = strlen("column");

    for (const dt_sql_column *column = columns; column->name != NULL; column++)
        width = larger(width, strlen(column->name));
    dt_strbuf_add_fmt(out, "| %-*s | %-7s | content |\n|", (int)width, "column", "type");
    for (size_t i = 0; i < width + 2; i++)
        dt_strbuf_add_char(out, '-');
    dt_strbuf_add_str(out, "|---------|---|\n");
    for (const dt_sql_column *column = columns; column->name != NULL; column++)
        dt_strbuf_add_fmt(out, "| %-*s | %-7s | %s |\n", (int)width, column->name, column->type,
                          column->content);
}

void dt_sql_views_markdown(dt_strbuf *out)
{
    dt_strbuf_add_str(
        out,
        "# The history in SQL\n\n"
        "Written by `dtrun sql --schema`; a test compares.\n\n"
        "`dtrun sql SELECT` answers one SELECT, in the SQL of SQLite, on these views. Names and "
        "meanings\n"
        "of their columns stay the same in later releases; columns can be added at the end.\n\n"
        "```sh\n"
        "# the ten runs with the lowest validation loss\n"
        "dtrun sql 'SELECT run, name, valid_loss FROM runs WHERE valid_loss IS NOT NULL ORDER BY "
        "valid_loss LIMIT 10'\n"
        "# the best step of each run\n"
        "dtrun sql \"SELECT run, step, min(value) FROM points WHERE metric = 'valid_loss' GROUP BY "
        "run\"\n"
        "# a field of the recipe\n"
        "dtrun sql \"SELECT name, json_extract(recipe, '\\$.optimizer.lr') AS lr, loss FROM runs "
        "WHERE tags LIKE '%lr%'\"\n"
        "# space that checkpoints take\n"
        "dtrun sql 'SELECT name, sum(bytes) / 1e9 AS gb FROM checkpoints JOIN runs USING (run) "
        "WHERE kept GROUP BY run'\n"
        "# what failed this week\n"
        "dtrun sql \"SELECT name, reason FROM runs WHERE state = 'failed' AND ended > date('now', "
        "'-7 days')\"\n"
        "```\n\n"
        "Times are text in UTC, as in `2026-11-25T10:04:05.123Z`, and sort as text. `run` is the "
        "id of a run in\n"
        "every view, so that views are joined with `USING (run)`. The views hide tables of the "
        "same names.\n"
        "The tables are internal (store/schema.sql): they can change in any release, and their "
        "column "
        "`run` is a\n"
        "number. `main.runs` names the table, `runs` the view.\n");
    for (const dt_sql_view *view = dt_sql_views; view->name != NULL; view++) {
        dt_strbuf_add_fmt(out, "\n## %s\n\n%s\n\n", view->name, view->content);
        add_table(out, view->columns);
    }
}

/* query: runs one SELECT of a user on these views.
 *
 * Opens a read-only connection for this query. The views are temporary: they exist on this connection and are never
 * written to the file. An authorizer allows only reading tables and calling functions: no PRAGMA, no ATTACH, no
 * extension. The query has a time limit.
 */

enum { COLUMNS_MOST = 200, STEPS_BETWEEN = 10000, LENGTH_MOST = 64 << 20 };

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner)
{
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return strcmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

static int is_late(void *deadline)
{
    return dt_clock_monotonic_seconds() > *(const double *)deadline;
}

/* Returns the present path of the checkpoint PATH of RUN, the arguments of the function; NULL if
 * one of them is NULL. */
static const char *present_path(sqlite3_context *context, sqlite3_value **values, dt_arena *arena)
{
    const char *path = (const char *)sqlite3_value_text(values[0]);
    const char *run = (const char *)sqlite3_value_text(values[1]);

    if (path == NULL || run == NULL)
        return NULL;
    return dt_checkpoint_path(sqlite3_user_data(context), path, run, arena);
}

static void checkpoint_path(sqlite3_context *context, int count, sqlite3_value **values)
{
    dt_arena arena;

    dt_arena_init(&arena, 512);
    sqlite3_result_text(context, present_path(context, values, &arena), -1, SQLITE_TRANSIENT);
    dt_arena_release(&arena);
}

/* SQL function: returns 1 if the directory of the checkpoint exists, else 0. */
static void checkpoint_kept(sqlite3_context *context, int count, sqlite3_value **values)
{
    const char *path;
    dt_arena arena;

    dt_arena_init(&arena, 512);
    path = present_path(context, values, &arena);
    if (path != NULL)
        sqlite3_result_int(context, dt_file_exists(path));
    dt_arena_release(&arena);
}

static int make_views(sqlite3 *db, dt_store *store)
{
    int code = sqlite3_create_function(db, "checkpoint_path", 2, SQLITE_UTF8, store,
                                       checkpoint_path, NULL, NULL);
    dt_strbuf sql;

    dt_strbuf_init(&sql);
    sql_views_create(&sql);
    if (code == SQLITE_OK)
        code = sqlite3_create_function(db, "checkpoint_kept", 2, SQLITE_UTF8, store,
                                       checkpoint_kept, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, sql.data, NULL, NULL, NULL);
    dt_strbuf_release(&sql);
    return code;
}

static dt_status open_reading(sqlite3 **out, dt_store *store, dt_error *err)
{
    int code = sqlite3_open_v2(store->path, out, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

    if (code == SQLITE_OK) {
        dt_sql_harden(*out);
        sqlite3_busy_timeout(*out, store->patience_ms);
        code = make_views(*out, store);
    }
    if (code != SQLITE_OK)
        return DT_FAIL(err, DT_ERR_IO, "cannot open the run store to read: %s",
                       *out != NULL ? sqlite3_errmsg(*out) : "no memory");
    sqlite3_limit(*out, SQLITE_LIMIT_LENGTH, LENGTH_MOST);
    sqlite3_limit(*out, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(*out, authorize, NULL);
    return DT_OK;
}

static dt_status prepare(sqlite3_stmt **out, sqlite3 *db, const char *sql, dt_error *err)
{
    const char *tail = "";
    int code = sqlite3_prepare_v2(db, sql, -1, out, &tail);

    if (code == SQLITE_AUTH)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the statement: only SELECT is supported (%s)",
                       sqlite3_errmsg(db));
    if (code != SQLITE_OK)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot run the SELECT: %s ('dtrun sql --schema' lists views and columns)",
                       sqlite3_errmsg(db));
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the SELECT: it is empty");
    if (tail[strspn(tail, " \t\r\n;")] != '\0')
        return DT_FAIL(err, DT_ERR_USAGE,
                       "cannot run '%.40s': only one statement at a time is supported", tail);
    if (!sqlite3_stmt_readonly(*out))
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the statement: only SELECT is supported");
    if (sqlite3_column_count(*out) > COLUMNS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot run the SELECT: it has more than %d columns",
                       COLUMNS_MOST);
    return DT_OK;
}

static dt_query_value read_value(sqlite3_stmt *statement, int column)
{
    dt_query_value out = {.kind = DT_QUERY_NULL};

    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        out.kind = DT_QUERY_INT;
        out.integer = sqlite3_column_int64(statement, column);
        break;
    case SQLITE_FLOAT:
        out.kind = DT_QUERY_REAL;
        out.real = sqlite3_column_double(statement, column);
        break;
    case SQLITE_TEXT:
        out.kind = DT_QUERY_TEXT;
        out.text = (const char *)sqlite3_column_text(statement, column);
        break;
    default: /* the views have no blobs */
        break;
    }
    return out;
}

dt_status dt_store_query(dt_store *store, const char *sql, double seconds, dt_query_take take,
                         void *context, dt_error *err)
{
    double deadline = dt_clock_monotonic_seconds() + seconds;
    const char *names[COLUMNS_MOST];
    dt_query_value values[COLUMNS_MOST];
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;
    dt_status st = DT_OK;
    int code, count;

    DT_TRY(open_reading(&db, store, err));
    sqlite3_progress_handler(db, STEPS_BETWEEN, is_late, &deadline);
    DT_TRY(prepare(&statement, db, sql, err));
    count = sqlite3_column_count(statement);
    for (int i = 0; i < count; i++)
        names[i] = sqlite3_column_name(statement, i);
    take(context, names, NULL, count);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < count; i++)
            values[i] = read_value(statement, i);
        take(context, names, values, count);
    }
    if (code == SQLITE_INTERRUPT)
        DT_THROW(err, DT_ERR_TIMEOUT, "no answer within %g seconds", seconds);
    if (code != SQLITE_DONE)
        DT_THROW(err, DT_ERR_USAGE, "%s", sqlite3_errmsg(db));
out:
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return st;
}
