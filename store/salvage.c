/* salvage: copies the readable rows of a damaged store into a sound one.
 *
 * Rows are read one by one, by each key from both ends: an unreadable page costs its own rows and, in a curve or an
 * event list with several such pages, some of the rows between them. Runs are identified by id and curves by name;
 * existing rows are kept. The pyramid is rebuilt from the points.
 */
#include "store/repair.h"
#include "store/store_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/strbuf.h"

enum { LONG_TEXT_BYTES = 400 }; /* shorter texts are stored in the page of their row */

typedef struct salvage {
    dt_store *to;
    sqlite3 *from;
    bool with_numbers; /* runs and events keep their numbers */
    bool of_run;       /* copying rows of runs: a path in them may be any bytes */
    int64_t rows;
    dt_arena arena;
} salvage;

/* Lists the columns of a table of the damaged file, without `without`; "" if they cannot be read. */
static void columns_of(dt_strbuf *out, const salvage *s, const char *table, const char *without)
{
    sqlite3_stmt *statement = NULL;
    char sql[128];

    dt_strbuf_reset(out);
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA table_info(%s)", table);
    if (sqlite3_prepare_v2(s->from, sql, -1, &statement, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 1);

        if (name != NULL && strcmp(name, without) != 0 &&
            name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")] == '\0')
            dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? ", " : "", name);
    }
    sqlite3_finalize(statement);
}

/* Writes an INSERT of a row with the columns from ?2 on; `number`: SQL for the number of its run. */
static void write_insert(dt_strbuf *out, const char *table, const dt_strbuf *columns,
                         const char *number)
{
    int count = 0;

    dt_strbuf_add_fmt(out, "INSERT OR IGNORE INTO %s (run, ", table);
    dt_strbuf_add(out, columns->data, columns->length);
    dt_strbuf_add_fmt(out, ") SELECT %s", number);
    for (size_t i = 0; i < columns->length; i++)
        count += i == 0 || columns->data[i] == ',';
    for (int i = 0; i < count; i++)
        dt_strbuf_add_fmt(out, ", ?%d", i + 2);
}

/* Returns false if a text is not valid UTF-8 or holds a zero byte: if a page of a long text was
 * overwritten, SQLite still returns it as text. all: checks short texts too. */
static bool is_text(sqlite3_stmt *row, bool all)
{
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        const char *text;

        if (sqlite3_column_type(row, i) != SQLITE_TEXT)
            continue;
        text = (const char *)sqlite3_column_text(row, i);
        if (!all && sqlite3_column_bytes(row, i) < LONG_TEXT_BYTES)
            continue;
        if (text == NULL || strlen(text) != (size_t)sqlite3_column_bytes(row, i) ||
            dt_utf8_valid_length(text, strlen(text)) != strlen(text))
            return false;
    }
    return true;
}

/* Copies rows of `select` (?1 is `key`, ?2 is `after`) into `insert` (?1 is `number`, the
 * columns from the second on follow from ?2). The first column is the position, returned in
 * *reached. Returns true if all rows were read. An error of the sound store is returned in *st. */
static bool copy(dt_status *st, salvage *s, const char *select, const char *insert, int64_t key,
                 int64_t after, int64_t number, int64_t *reached, dt_error *err)
{
    sqlite3_stmt *read = NULL, *write = NULL;
    int code = sqlite3_prepare_v2(s->from, select, -1, &read, NULL);

    if (code == SQLITE_OK) {
        code = sqlite3_prepare_v2(s->to->db, insert, -1, &write, NULL);
        if (code != SQLITE_OK)
            *st = dt_sql_fail(s->to, code, "write the run store", err);
    }
    if (write != NULL) {
        (void)sqlite3_bind_int64(read, 1, key);
        if (sqlite3_bind_parameter_count(read) > 1)
            (void)sqlite3_bind_int64(read, 2, after);
    }
    while (*st == DT_OK && write != NULL && (code = sqlite3_step(read)) == SQLITE_ROW) {
        *reached = sqlite3_column_int64(read, 0);
        if (!is_text(read, !s->of_run))
            continue;
        (void)sqlite3_bind_int64(write, 1, number);
        for (int i = 1; i < sqlite3_column_count(read); i++)
            (void)sqlite3_bind_value(write, i + 1, sqlite3_column_value(read, i));
        code = sqlite3_step(write);
        s->rows += code == SQLITE_DONE ? sqlite3_changes(s->to->db) : 0;
        (void)sqlite3_reset(write);
        (void)sqlite3_clear_bindings(write);
        if (code != SQLITE_DONE &&
            (code & 0xff) != SQLITE_CONSTRAINT) /* a damaged row may break constraints */
            *st = dt_sql_fail(s->to, code, "write the run store", err);
    }
    sqlite3_finalize(write);
    sqlite3_finalize(read);
    return *st != DT_OK || code == SQLITE_DONE;
}

/* Copies the rows of a table with one key: forward, skipping what cannot be read, then backward
 * from the end. `order`: an integer column that orders the rows. */
static dt_status copy_of_key(bool *complete, salvage *s, const char *table, const char *key_column,
                             const char *order, const char *columns, const char *insert,
                             int64_t key, int64_t number, dt_error *err)
{
    char *forth =
        sqlite3_mprintf("SELECT %s%s%s FROM %s WHERE %s = ?1 AND %s >= ?2 ORDER BY %s", order,
                        columns[0] != '\0' ? ", " : "", columns, table, key_column, order, order);
    char *back = sqlite3_mprintf("SELECT %s%s%s FROM %s WHERE %s = ?1 ORDER BY %s DESC", order,
                                 columns[0] != '\0' ? ", " : "", columns, table, key_column, order);
    int64_t reached = -1, step = 1;
    dt_status st = forth != NULL && back != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");

    *complete = false;
    for (int64_t from = INT64_MIN; st == DT_OK; from = reached + step) {
        int64_t before = reached;

        if (copy(&st, s, forth, insert, key, from, number, &reached, err)) {
            *complete = from == INT64_MIN;
            break;
        }
        step = reached > before ? 1 : 2 * step; /* no row was found: skip further */
        if (step > (int64_t)1 << 40 || reached > INT64_MAX - step)
            break;
    }
    if (st == DT_OK && !*complete)
        (void)copy(&st, s, back, insert, key, 0, number, &reached, err);
    sqlite3_free(forth);
    sqlite3_free(back);
    return st;
}

/* Copies the rows of a table that belong to a run. */
static dt_status copy_table(salvage *s, const char *table, const char *order, int64_t run,
                            int64_t number, dt_error *err)
{
    bool numbered = strcmp(table, "events") == 0 && s->with_numbers;
    dt_strbuf columns, insert;
    dt_status st = DT_OK;
    bool complete;

    dt_strbuf_init(&columns);
    dt_strbuf_init(&insert);
    columns_of(&columns, s, table, "run");
    if (strcmp(table, "events") == 0 && !numbered) { /* events get new numbers */
        if (strncmp(columns.data, "event, ", 7) == 0)
            dt_strbuf_remove_front(&columns, 7);
    }
    if (columns.length == 0)
        goto out;
    write_insert(&insert, table, &columns, "?1");
    if (strcmp(table, "events") == 0 && !numbered) /* events of a supervisor have no key */
        dt_strbuf_add_str(&insert,
                          " WHERE ?3 >= 0 OR NOT EXISTS (SELECT 1 FROM events WHERE run = ?1 AND"
                          " node < 0 AND time_ms = ?6 AND kind = ?7 AND json = ?8)");
    DT_TRY(copy_of_key(&complete, s, table, "run", order, columns.data, insert.data, run, number,
                       err));
    if (!complete && strcmp(table, "events") == 0) /* reads again without the index */
        DT_TRY(copy_of_key(&complete, s, table, "+run", order, columns.data, insert.data, run,
                           number, err));
out:
    dt_strbuf_release(&columns);
    dt_strbuf_release(&insert);
    return st;
}

typedef struct numbered {
    int64_t number;
    const char *text;
} numbered;

static void append(numbered **out, int64_t *count, int64_t *capacity, salvage *s, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 1);
    int64_t number = sqlite3_column_int64(row, 0);

    for (int64_t i = 0; i < *count; i++)
        if ((*out)[i].number == number)
            return;
    if (text == NULL)
        return;
    *out = dt_arena_array_room(&s->arena, *out, *count + 1, capacity, sizeof(**out));
    (*out)[*count] = (numbered){number, dt_arena_strdup(&s->arena, text)};
    *count += 1;
}

/* Lists numbers and texts of a table: by an index and without, forward and backward, until one
 * of these ways reads all rows. */
static dt_status list(numbered **out, int64_t *count, salvage *s, const char *fmt, int64_t key,
                      dt_error *err)
{
    int64_t capacity = 0;
    int code = SQLITE_ROW;

    *out = NULL;
    *count = 0;
    for (int way = 0; way < 4 && code != SQLITE_DONE; way++) {
        char *sql = sqlite3_mprintf(fmt, way >= 2 ? "+" : "", way % 2 == 1 ? "DESC" : "");
        sqlite3_stmt *statement = NULL;

        if (sql == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
        code = sqlite3_prepare_v2(s->from, sql, -1, &statement, NULL);
        if (code == SQLITE_OK)
            (void)sqlite3_bind_int64(statement, 1, key);
        while (statement != NULL && (code = sqlite3_step(statement)) == SQLITE_ROW)
            append(out, count, &capacity, s, statement);
        sqlite3_finalize(statement);
        sqlite3_free(sql);
    }
    return DT_OK;
}

/* --- runs */

static int by_number(const void *a, const void *b)
{
    const numbered *left = a, *right = b;

    return left->number < right->number ? -1 : left->number > right->number;
}

/* Copies the row of the run, unless the sound store has a run with its id. */
static dt_status copy_run(salvage *s, const numbered *run, dt_error *err)
{
    dt_strbuf columns, select, insert;
    int64_t reached = 0;
    dt_status st = DT_OK;

    dt_strbuf_init(&columns);
    dt_strbuf_init(&select);
    dt_strbuf_init(&insert);
    columns_of(&columns, s, "runs", "run");
    dt_strbuf_add_str(&select, "SELECT run, ");
    dt_strbuf_add(&select, columns.data, columns.length);
    dt_strbuf_add_str(&select, " FROM runs WHERE run = ?1");
    write_insert(&insert, "runs", &columns, s->with_numbers ? "?1" : "nullif(?1, ?1)");
    s->of_run = true;
    if (columns.length > 0)
        (void)copy(&st, s, select.data, insert.data, run->number, 0, run->number, &reached, err);
    s->of_run = false;
    dt_strbuf_release(&columns);
    dt_strbuf_release(&select);
    dt_strbuf_release(&insert);
    return st;
}

static dt_status copy_curves(salvage *s, const numbered *run, int64_t number, dt_error *err)
{
    static const char insert[] =
        "INSERT OR IGNORE INTO metrics (series, step, attempt, value, time_ms)"
        " SELECT ?1, ?2, ?3, ?4, ?5 WHERE typeof(?2) = 'integer' AND typeof(?3) = 'integer' AND"
        " typeof(?4) IN ('real', 'integer', 'null') AND typeof(?5) = 'integer' AND EXISTS"
        " (SELECT 1 FROM attempts a JOIN series s USING (run) WHERE s.series = ?1 AND"
        " a.attempt = ?3)";
    numbered *curves;
    int64_t count;
    dt_status st = DT_OK;

    DT_TRY(list(&curves, &count, s,
                "SELECT series, name FROM series WHERE %srun = ?1 ORDER BY series %s", run->number,
                err));
    for (int64_t i = 0; i < count; i++) {
        dt_sql_rows rows = {0};
        int64_t series = 0;
        bool more = false, complete;

        DT_TRY(DT_SQL_RUN(s->to, err, "INSERT OR IGNORE INTO series (run, name) VALUES (?1, ?2)",
                          DT_INT(number), DT_TEXT(curves[i].text)));
        st = DT_SQL_OPEN(&rows, s->to, NULL, err,
                         "SELECT series FROM series WHERE run = ?1 AND name = ?2", DT_INT(number),
                         DT_TEXT(curves[i].text));
        if (st == DT_OK)
            st = dt_sql_next(&rows, &more, err);
        if (st == DT_OK && more)
            series = dt_sql_int(&rows);
        dt_sql_close(&rows);
        if (st == DT_OK && more)
            st =
                copy_of_key(&complete, s, "metrics", "series", "step",
                            "step, attempt, value, time_ms", insert, curves[i].number, series, err);
        DT_TRY(st);
    }
out:
    return st;
}

static dt_status copy_all_of(salvage *s, const numbered *run, dt_error *err)
{
    dt_error unknown = DT_ERROR_INIT;
    int64_t number;
    dt_status st;

    DT_TRY(copy_run(s, run, err));
    st = dt_store_run_number(s->to, &number, run->text, &unknown);
    if (st == DT_ERR_NOT_FOUND) /* the row was refused by a constraint */
        return DT_OK;
    if (st != DT_OK)
        DT_THROW(err, st, "%s", unknown.message);
    DT_TRY(copy_table(s, "attempts", "attempt", run->number, number, err));
    DT_TRY(copy_table(s, "nodes", "attempt", run->number, number, err));
    DT_TRY(copy_table(s, "ranks", "attempt", run->number, number, err));
    DT_TRY(copy_table(s, "checkpoints", "step", run->number, number, err));
    DT_TRY(copy_table(s, "events", "event", run->number, number, err));
    DT_TRY(copy_curves(s, run, number, err));
out:
    return st;
}

dt_status dt_store_salvage(int64_t *rows, dt_store *to, const char *from, bool with_numbers,
                           dt_error *err)
{
    salvage s = {.to = to, .with_numbers = with_numbers};
    dt_sql_group group = {0};
    numbered *runs;
    int64_t count;
    dt_status st = DT_OK;

    *rows = 0;
    dt_arena_init(&s.arena, 0);
    if (sqlite3_open_v2(from, &s.from, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", from, sqlite3_errmsg(s.from));
    sqlite3_busy_timeout(s.from, DT_STORE_BUSY_TIMEOUT_MS);
    dt_sql_harden(s.from);
    (void)sqlite3_db_config(s.from, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_exec(s.from, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
    DT_TRY(dt_sql_group_begin(&group, to, err));
    st = list(&runs, &count, &s, "SELECT run, id FROM runs WHERE %srun >= ?1 ORDER BY run %s",
              INT64_MIN, err);
    if (st == DT_OK && count > 1)
        qsort(runs, (size_t)count, sizeof(*runs), by_number);
    for (int64_t i = 0; i < count && st == DT_OK; i++)
        st = copy_all_of(&s, &runs[i], err);
    if (st == DT_OK)
        st = DT_SQL_RUN(
            to, err,
            "DELETE FROM runs WHERE run IN (SELECT r.run FROM runs r LEFT JOIN attempts a"
            " ON a.run = r.run AND a.attempt = r.attempt WHERE ?1 AND NOT coalesce(" DT_SQL_IS_SOUND
            ", 1))",
            DT_INT(1));
    st = dt_sql_group_end(&group, st, err);
    *rows = s.rows;
out:
    sqlite3_close(s.from);
    dt_arena_release(&s.arena);
    return st;
}

/* --- runs without an attempt */

dt_status dt_store_runs_incomplete(dt_store *store, const char ***ids, int64_t *count,
                                   dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST(ids, count, &dt_sql_one_text, store, arena, err,
                       "SELECT id FROM runs r WHERE ?1 AND (SELECT count(*) FROM attempts a"
                       " WHERE a.run = r.run AND a.attempt <= r.attempt) < max(r.attempt, 1)"
                       " ORDER BY r.run",
                       DT_INT(1));
}

#define ATTEMPTS_MOST "10000" /* per run; a greater number is treated as damage */

dt_status dt_store_run_complete(dt_store *store, const char *run, dt_error *err)
{
    dt_status st = DT_OK;

    /* a damaged number would hide the run, or ask for a huge number of attempts */
    DT_TRY(DT_SQL_RUN(store, err,
                      "UPDATE runs SET attempt = max(1, min(" ATTEMPTS_MOST ", ifnull((SELECT"
                      " max(a.attempt) FROM attempts a WHERE a.run = runs.run), 1)))"
                      " WHERE id = ?1 AND (attempt < 1 OR attempt > " ATTEMPTS_MOST ")",
                      DT_TEXT(run)));
    DT_TRY(DT_SQL_RUN(
        store, err,
        "WITH RECURSIVE n (attempt) AS (SELECT 1 UNION ALL SELECT attempt + 1 FROM n WHERE attempt "
        "<"
        " (SELECT attempt FROM runs WHERE id = ?1))"
        " INSERT OR IGNORE INTO attempts (run, attempt, state, start_step, steps_total, created_ms,"
        " ended_ms, exit_code, reason, recipe_json, recipe_hash)"
        " SELECT r.run, n.attempt, 'stopped', 0, r.step, r.created_ms, r.created_ms, 4,"
        " 'the record of this attempt was damaged', '{}', '' FROM runs r, n"
        " WHERE r.id = ?1",
        DT_TEXT(run)));
out:
    return st;
}

dt_status dt_store_attempt_clear(dt_store *store, const char *run, int64_t attempt, dt_error *err)
{
    dt_status st;

    DT_TRY(DT_SQL_RUN(store, err,
                      "DELETE FROM metrics WHERE series IN (SELECT series FROM series JOIN runs"
                      " USING (run) WHERE id = ?1) AND attempt = ?2 AND (attempt > 1 OR"
                      " step > coalesce((SELECT parent_step FROM runs WHERE id = ?1"
                      " AND parent <> ''), -1))",
                      DT_TEXT(run), DT_INT(attempt)));
    DT_TRY(DT_SQL_RUN(store, err,
                      "DELETE FROM events WHERE run = (SELECT run FROM runs WHERE id = ?1)"
                      " AND attempt = ?2 AND node >= 0",
                      DT_TEXT(run), DT_INT(attempt)));
out:
    return st;
}

dt_status dt_store_pyramid_renew(dt_store *store, const char *run, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_sql_group_begin(&group, store, err));
    st = DT_SQL_RUN(store, err,
                    "DELETE FROM pyramid WHERE ?1 IS NULL OR series IN (SELECT series FROM series"
                    " JOIN runs USING (run) WHERE id = ?1)",
                    DT_TEXT(run));
    if (st == DT_OK)
        st = dt_pyramid_build(store, run, err);
    st = dt_sql_group_end(&group, st, err);
out:
    return st;
}
