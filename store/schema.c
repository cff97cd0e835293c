/* schema: creates the tables of an empty store, refuses a file that it cannot read, and verifies the rows
 * of one that it can.
 *
 * store/schema.sql is version 1, the format of release 0.1.0. Files of any other version are refused: no other
 * version was released. A file may come from elsewhere, so a file with a trigger, a view, a table or an index that
 * schema.sql does not make is refused too, and none of its SQL runs.
 */
#include <string.h>

#include "base/strbuf.h"
#include "store/store_int.h"

enum { FOREIGN_BYTES = 300 }; /* objects that are named */

extern const char dt_embedded_schema[];

static dt_status number_read(dt_store *store, int64_t *out, const char *sql, dt_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? DT_OK : dt_sql_fail(store, code, "open the run store", err);
}

/* Returns DT_STORE_VERSION in *version, or 0 if the file is empty; fails for other files. */
static dt_status version_read(dt_store *store, int64_t *version, dt_error *err)
{
    int64_t application, tables;
    dt_status st = DT_OK;

    DT_TRY(number_read(store, version, "PRAGMA user_version", err));
    DT_TRY(number_read(store, &application, "PRAGMA application_id", err));
    DT_TRY(number_read(store, &tables, "SELECT count(*) FROM sqlite_schema", err));
    if (application == 0 && tables == 0 && *version == 0)
        return DT_OK;
    if (application != DT_STORE_APPLICATION_ID)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot open the run store: '%s' belongs to another program (move it away, or "
                 "set XDG_STATE_HOME to another folder)",
                 store->path);
    if (*version < 1) /* both numbers are written together */
        DT_THROW(err, DT_ERR_CORRUPT,
                 "cannot open the run store: '%s' is damaged, its version is %lld (" DT_STORE_REMEDY
                 ")",
                 store->path, (long long)*version);
    if (*version != DT_STORE_VERSION)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "cannot open the run store '%s': another dtrun wrote it (version %lld, this "
                 "program reads version %d); use that dtrun, or set XDG_STATE_HOME to another "
                 "folder",
                 store->path, (long long)*version, DT_STORE_VERSION);
out:
    return st;
}

void dt_sql_harden(sqlite3 *db)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL); /* temporary views still work */
}

/* --- objects that are not of schema.sql */

/* Appends SQL without comments, blanks and quotes of names, and without IF NOT EXISTS: these differ if a tool
 * of SQLite has copied a store. */
static void add_plain(dt_strbuf *out, const char *sql)
{
    static const char optional[] = "IF NOT EXISTS";

    while (*sql != '\0')
        if (strncmp(sql, "--", 2) == 0)
            sql += strcspn(sql, "\n");
        else if (strncmp(sql, optional, sizeof(optional) - 1) == 0)
            sql += sizeof(optional) - 1;
        else if (strchr(" \t\r\n\"", *sql) != NULL)
            sql++;
        else
            dt_strbuf_add_char(out, *sql++);
}

/* Returns true if `plain` is one of the statements of schema.sql. */
static bool is_ours(const dt_strbuf *schema, const dt_strbuf *plain)
{
    const char *at = schema->data;

    while (plain->length > 0 && (at = strstr(at, plain->data)) != NULL) {
        if ((at == schema->data || at[-1] == ';') && at[plain->length] == ';')
            return true;
        at++;
    }
    return false;
}

/* Lists the objects of the file that schema.sql does not make, as in "the trigger 'x', the view 'y'". */
static dt_status list_foreign(dt_strbuf *out, dt_store *store, dt_error *err)
{
    static const char sql[] = "SELECT type, name, sql FROM sqlite_schema WHERE NOT (name GLOB"
                              " 'sqlite_*' AND type IN ('table', 'index')) ORDER BY rowid";
    dt_strbuf schema, plain;
    sqlite3_stmt *statement = NULL;
    dt_status st = DT_OK;
    int code;

    dt_strbuf_init(&schema);
    dt_strbuf_init(&plain);
    add_plain(&schema, dt_embedded_schema);
    code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 2);

        code = SQLITE_OK;
        dt_strbuf_reset(&plain);
        add_plain(&plain, text != NULL ? text : "");
        if (!is_ours(&schema, &plain) && out->length < FOREIGN_BYTES)
            dt_strbuf_add_fmt(out, "%sthe %.10s '%.100s'", out->length > 0 ? ", " : "",
                              (const char *)sqlite3_column_text(statement, 0),
                              (const char *)sqlite3_column_text(statement, 1));
    }
    sqlite3_finalize(statement);
    if (code != SQLITE_DONE)
        st = dt_sql_fail(store, code, "open the run store", err);
    dt_strbuf_release(&schema);
    dt_strbuf_release(&plain);
    return st;
}

static dt_status refuse_foreign(dt_store *store, dt_error *err)
{
    dt_strbuf found;
    dt_status st;

    dt_strbuf_init(&found);
    st = list_foreign(&found, store, err);
    if (st == DT_OK && found.length > 0)
        st = DT_FAIL(err, DT_ERR_CORRUPT,
                     "cannot open the run store: '%s' has %s, which dtrun did not make and does "
                     "not run (" DT_STORE_REMEDY ")",
                     store->path, found.data);
    dt_strbuf_release(&found);
    return st;
}

dt_status dt_store_check(dt_store *store, int64_t *version, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;

    /* one snapshot for all queries */
    DT_TRY(dt_sql_group_begin_reading(&group, store, err));
    DT_TRY(version_read(store, version, err));
    if (*version != 0)
        DT_TRY(refuse_foreign(store, err));
out:
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_create(dt_store *store, dt_error *err)
{
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    int64_t version;
    char mark[96];

    DT_TRY(dt_sql_group_begin(&group, store, err));
    /* Checked again in the transaction: another process may have created the tables. */
    DT_TRY(version_read(store, &version, err));
    if (version == 0) {
        DT_TRY(dt_sql_exec(store, dt_embedded_schema, "create the run store", err));
        sqlite3_snprintf(sizeof(mark), mark, "PRAGMA user_version = %d; PRAGMA application_id = %d",
                         DT_STORE_VERSION, DT_STORE_APPLICATION_ID);
        DT_TRY(dt_sql_exec(store, mark, "create the run store", err));
    }
out:
    return dt_sql_group_end(&group, st, err);
}

/* --- the integrity of the file, and whether its rows agree with each other */

/* SQLite's integrity check, and rows whose foreign keys point at nothing. */
static const char of_file[] =
    "SELECT replace(integrity_check, '*** in database main ***' || char(10), '')"
    " FROM pragma_integrity_check WHERE ?1 AND integrity_check <> 'ok'"
    " UNION ALL SELECT 'a row of ' || \"table\" || ' refers to a missing row'"
    " FROM pragma_foreign_key_check";

/* Checks invariant 6, bucket by bucket: level 1 against the points, each other level against the
 * level below; then buckets without anything below. Sums are not compared, since they depend on
 * the order of additions. */
static const char of_pyramid[] =
    "WITH points AS (SELECT series, attempt, 1 AS level, step >> 6 AS bucket, count(*) AS points,"
    " sum(v IS NULL) AS not_finite, min(v) AS low, max(v) AS high, min(step) AS first_step,"
    " max(step) AS last_step FROM (SELECT series, attempt, step,"
    " CASE WHEN abs(value) <= 1.7976931348623157e308 THEN value END AS v FROM metrics)"
    " GROUP BY series, attempt, step >> 6),"
    " below AS (SELECT series, attempt, level + 1 AS level, bucket >> 4 AS bucket,"
    " sum(points) AS points, sum(not_finite) AS not_finite, min(low) AS low, max(high) AS high,"
    " min(first_step) AS first_step, max(last_step) AS last_step FROM pyramid WHERE level < 4"
    " GROUP BY series, attempt, level + 1, bucket >> 4),"
    " wanted AS (SELECT * FROM points UNION ALL SELECT * FROM below),"
    " wrong AS (SELECT w.series FROM wanted w LEFT JOIN pyramid p ON p.series = w.series AND"
    " p.attempt = w.attempt AND p.level = w.level AND p.bucket = w.bucket"
    " WHERE p.points IS NOT w.points OR p.not_finite IS NOT w.not_finite OR p.low IS NOT w.low"
    " OR p.high IS NOT w.high OR p.first_step IS NOT w.first_step OR p.last_step IS NOT w.last_step"
    " UNION ALL SELECT p.series FROM pyramid p WHERE p.level = 1 AND NOT EXISTS (SELECT 1"
    " FROM metrics m WHERE m.series = p.series AND m.attempt = p.attempt"
    " AND m.step BETWEEN p.bucket << 6 AND (p.bucket << 6) + 63)"
    " UNION ALL SELECT p.series FROM pyramid p WHERE p.level > 1 AND NOT EXISTS (SELECT 1"
    " FROM pyramid b WHERE b.series = p.series AND b.attempt = p.attempt"
    " AND b.level = p.level - 1 AND b.bucket BETWEEN p.bucket << 4 AND (p.bucket << 4) + 15))"
    " SELECT 'charts of ''' || s.name || ''' of run ''' || r.id || ''' are wrong: ' || count(*) ||"
    " ' buckets of its pyramid differ from its points' FROM wrong JOIN series s USING (series)"
    " JOIN runs r USING (run) WHERE ?1 GROUP BY wrong.series ORDER BY r.id, s.name";

/* Rows that lists leave out (DT_SQL_IS_SOUND). */
static const char of_runs[] = "SELECT 'the run with the id ' || quote(r.id) || ' and the name ' || "
                              "quote(r.name) || ' has an id or numbers"
                              " that dtrun does not write: it is left out' FROM runs r LEFT JOIN "
                              "attempts a ON a.run = r.run AND"
                              " a.attempt = r.attempt WHERE ?1 AND NOT coalesce(" DT_SQL_IS_SOUND
                              ", 0) ORDER BY r.run LIMIT 100";

static dt_status texts_read(dt_store *store, const char ***out, int64_t *count, const char *sql,
                            dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST(out, count, &dt_sql_one_text, store, arena, err, sql, DT_INT(1));
}

/* The pyramids are checked only if the file is sound: rows of a damaged file prove nothing. */
dt_status dt_store_verify(dt_store *store, const char ***problems, int64_t *count, dt_arena *arena,
                          dt_error *err)
{
    dt_status st;

    DT_TRY(texts_read(store, problems, count, of_file, arena, err));
    if (*count == 0)
        DT_TRY(texts_read(store, problems, count, of_runs, arena, err));
    if (*count == 0)
        DT_TRY(texts_read(store, problems, count, of_pyramid, arena, err));
out:
    return st;
}
