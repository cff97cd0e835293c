/* verify: checks the integrity of the file, and that its rows agree with each other. */
#include "store/store_int.h"

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
