/* Buckets of random curves compared with their points. */
#include "store_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/store_int.h"

#define CURVES 40
#define ZOOMS  60

static uint64_t seed;

static int64_t dice(int64_t sides)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)sides);
}

static double any_value(void)
{
    switch (dice(40)) {
    case 0:
        return NAN;
    case 1:
        return dice(2) == 0 ? INFINITY : -INFINITY;
    default:
        return (double)(dice(2000001) - 1000000) / 1000.0;
    }
}

static void add(test_store *t, const char *run, int64_t attempt, int64_t step, double value)
{
    assert_good(
        t, dt_store_metric_add(t->store, run, attempt, step, "loss", value, step * 10, &t->err));
}

/* Adds some hundreds of points: at regular steps with gaps, some late, some twice, in one or several transactions. */
static void add_attempt(test_store *t, const char *run, int64_t attempt, int64_t from)
{
    int64_t every = 1 + dice(2) * dice(300), points = dice(1500), step = from;

    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t i = 0; i < points; i++) {
        step += every + (dice(100) == 0 ? dice(20000) : 0);
        if (dice(200) == 0) {
            assert_good(t, dt_store_commit(t->store, &t->err));
            assert_good(t, dt_store_begin(t->store, &t->err));
        }
        add(t, run, attempt, step, any_value());
        if (dice(30) == 0)
            add(t, run, attempt, dice(step + 1), any_value());
        if (dice(30) == 0)
            add(t, run, attempt, step, any_value());
    }
    if (dice(3) == 0)
        add(t, run, attempt, from, any_value()); /* at its start step */
    assert_good(t, dt_store_commit(t->store, &t->err));
}

static void next_attempt(test_store *t, const char *run, int64_t from)
{
    int64_t attempt;

    assert_good(t, dt_store_run_set_state(t->store, run, DT_RUN_STOPPED, 4, "", 1, &t->err));
    assert_good(t, dt_store_attempt_add(t->store, run, from, 100, "{}", "h", 2, &attempt, &t->err));
}

static void add_run(test_store *t, const char *run)
{
    int64_t attempts = 1 + dice(4);

    test_store_run(t, run, "n");
    for (int64_t attempt = 1; attempt <= attempts; attempt++) {
        int64_t from = attempt == 1 ? 0 : dice(dice(2) == 0 ? 3000 : 100000);

        if (attempt > 1)
            next_attempt(t, run, from);
        add_attempt(t, run, attempt, from);
    }
}

/* Compares a bucket with its points. */
static void assert_bucket(const dt_bucket *bucket, const dt_metric *points, int64_t count)
{
    double low = INFINITY, high = -INFINITY, total = 0;
    int64_t finite = 0;

    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(points[i].value))
            continue;
        low = fmin(low, points[i].value);
        high = fmax(high, points[i].value);
        total += points[i].value;
        finite++;
    }
    assert_int_equal(bucket->points, count);
    assert_int_equal(bucket->not_finite, count - finite);
    assert_int_equal(bucket->first_step, points[0].step);
    assert_int_equal(bucket->first_ms, points[0].time_ms);
    assert_int_equal(bucket->last_step, points[count - 1].step);
    assert_int_equal(bucket->last_ms, points[count - 1].time_ms);
    assert_true(isnan(points[count - 1].value) ? isnan(bucket->last)
                                               : bucket->last == points[count - 1].value);
    if (finite == 0) {
        assert_true(isnan(bucket->min) && isnan(bucket->max) && isnan(bucket->mean));
        return;
    }
    assert_true(bucket->min == low && bucket->max == high);
    assert_true(bucket->min <= bucket->mean && bucket->mean <= bucket->max);
    assert_true(fabs(bucket->mean - total / (double)finite) < 1e-6);
}

static dt_bucket *buckets_of(test_store *t, const char *run, int64_t from, int64_t to, int64_t most,
                             int64_t *count)
{
    dt_store_curves curves;
    dt_bucket *buckets;

    assert_good(t, dt_store_curves_find(t->store, &curves, run, "loss", &t->arena, &t->err));
    *count = 0;
    if (curves.count > 0)
        assert_good(t, dt_store_curve_buckets(t->store, &buckets, count, &curves, 0, from, to, most,
                                              &t->arena, &t->err));
    return *count > 0 ? buckets : NULL;
}

static void assert_zoom(test_store *t, const char *run, const dt_metric *points, int64_t count,
                        int64_t from, int64_t to, int64_t most)
{
    int64_t buckets_count, at = 0, end;
    dt_bucket *buckets = buckets_of(t, run, from, to, most, &buckets_count);

    while (at < count && points[at].step < from)
        at++;
    for (end = at; end < count && points[end].step <= to; end++)
        ;
    assert_true(buckets_count <= most);
    if (end - at <= most)
        assert_int_equal(buckets_count, end - at);
    for (int64_t i = 0; i < buckets_count; i++) {
        assert_true(buckets[i].points > 0 && at + buckets[i].points <= end);
        assert_bucket(&buckets[i], &points[at], buckets[i].points);
        at += buckets[i].points;
    }
    assert_int_equal(at, end); /* no point is missing */
}

static void assert_run(test_store *t, const char *run)
{
    dt_metric *points;
    int64_t count, last;

    assert_good(t, dt_store_metric_list(t->store, &points, &count, run, "loss", -1, false,
                                        &t->arena, &t->err));
    last = count > 0 ? points[count - 1].step : 0;
    assert_zoom(t, run, points, count, 0, INT64_MAX, 2000);
    assert_zoom(t, run, points, count, INT64_MIN, INT64_MAX, 1);
    for (int zoom = 0; zoom < ZOOMS; zoom++) {
        int64_t from = dice(last + 100), to = from + dice(dice(2) == 0 ? 500 : last + 100);

        assert_zoom(t, run, points, count, from, to, 1 + dice(dice(2) == 0 ? 10 : 2000));
    }
    dt_arena_reset(&t->arena);
}

static void test_any_zoom_of_any_curve_agrees_with_its_points(void **state)
{
    test_store *t = *state;

    for (seed = 1; seed <= CURVES; seed++) {
        uint64_t kept = seed;
        char run[32];

        snprintf(run, sizeof(run), "r%d", (int)seed);
        add_run(t, run);
        assert_run(t, run);
        seed = kept;
    }
}

/* --- bands over several runs */

#define BANDED 5

/* Compares a part of a band with all points of the runs. */
static void assert_band(const dt_band *band, dt_metric *const *points, const int64_t *counts)
{
    int64_t all = 0, finite = 0, runs = 0;
    double low = INFINITY, high = -INFINITY, means = 0, seconds = 0;

    for (int run = 0; run < BANDED; run++) {
        double total = 0, last_ms = 0;
        int64_t own = 0;

        for (int64_t i = 0; i < counts[run]; i++) {
            const dt_metric *point = &points[run][i];

            if (point->step < band->first_step || point->step > band->last_step)
                continue;
            all++;
            last_ms = (double)point->time_ms;
            if (!isfinite(point->value))
                continue;
            own++;
            total += point->value;
            low = fmin(low, point->value);
            high = fmax(high, point->value);
        }
        finite += own;
        runs += own > 0;
        means += own > 0 ? total / (double)own : 0;
        seconds += own > 0 ? last_ms / 1000 : 0;
    }
    assert_int_equal(band->points, all);
    assert_int_equal(band->not_finite, all - finite);
    assert_int_equal(band->runs, runs);
    if (runs == 0) {
        assert_true(isnan(band->min) && isnan(band->max) && isnan(band->mean));
        return;
    }
    assert_true(band->min == low && band->max == high);
    assert_true(fabs(band->mean - means / (double)runs) < 1e-6);
    assert_true(fabs(band->seconds - seconds / (double)runs) < 1e-3);
}

static void assert_bands(test_store *t, const char *const *runs, int64_t from, int64_t to,
                         int64_t most)
{
    int64_t counts[BANDED], count, inside = 0, banded = 0;
    dt_metric *points[BANDED];
    dt_band *bands;

    for (int run = 0; run < BANDED; run++) {
        assert_good(t, dt_store_metric_list(t->store, &points[run], &counts[run], runs[run], "loss",
                                            -1, false, &t->arena, &t->err));
        for (int64_t i = 0; i < counts[run]; i++)
            inside += points[run][i].step >= from && points[run][i].step <= to;
    }
    assert_good(t, dt_store_band(t->store, &bands, &count, runs, BANDED, "loss", from, to, most,
                                 &t->arena, &t->err));
    assert_true(count <= most);
    for (int64_t i = 0; i < count; i++) {
        assert_true(bands[i].first_step >= from && bands[i].last_step <= to);
        assert_true(i == 0 || bands[i].first_step > bands[i - 1].last_step);
        assert_band(&bands[i], points, counts);
        banded += bands[i].points;
    }
    assert_int_equal(banded, inside); /* none is missing */
    dt_arena_reset(&t->arena);
}

static void test_any_zoom_of_a_band_agrees_with_the_points_of_its_runs(void **state)
{
    static const char *const runs[BANDED] = {"a", "b", "c", "d", "e"};
    test_store *t = *state;

    seed = 77;
    for (int run = 0; run < BANDED - 1; run++)
        add_run(t, runs[run]);
    test_store_run(t, runs[BANDED - 1], "without points");
    test_store_run_sql(t, "UPDATE attempts SET created_ms = 0, started_ms = NULL");
    assert_bands(t, runs, 0, INT64_MAX, 2000);
    assert_bands(t, runs, 0, INT64_MAX, 1);
    for (int zoom = 0; zoom < ZOOMS; zoom++) {
        int64_t from = dice(200000);

        assert_bands(t, runs, from, from + dice(dice(2) == 0 ? 500 : 300000),
                     1 + dice(dice(2) == 0 ? 10 : 2000));
    }
}

#define BUILT                                                                                      \
    "SELECT count(*) FROM (SELECT series, attempt, l.column1 AS level,"                            \
    " step >> (2 + 4 * l.column1) AS bucket, count(*) AS points, min(step) AS first,"              \
    " max(step) AS last, min(CASE WHEN abs(value) < 1e300 THEN value END) AS low,"                 \
    " max(CASE WHEN abs(value) < 1e300 THEN value END) AS high FROM metrics,"                      \
    " (VALUES (1), (2), (3), (4)) l GROUP BY 1, 2, 3, 4) m JOIN pyramid p USING (series, attempt," \
    " level, bucket) WHERE p.points = m.points AND p.first_step = m.first AND p.last_step ="       \
    " m.last AND p.low IS m.low AND p.high IS m.high"

static void assert_rows(test_store *t)
{
    int64_t rows = test_store_number(t, "SELECT count(*) FROM pyramid");

    assert_int_equal(test_store_number(t, BUILT), rows);
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM (SELECT 1 FROM metrics GROUP BY"
                                          " series, attempt, step >> 6)"),
                     test_store_number(t, "SELECT count(*) FROM pyramid WHERE level = 1"));
    assert_int_equal(test_store_number(t, "SELECT count(*) FROM metrics"),
                     test_store_number(t, "SELECT sum(points) FROM pyramid WHERE level = 4"));
}

static void test_what_is_taken_back_leaves_nothing_in_the_pyramid(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    add(t, "aa", 1, 1, 1);
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 2; step < 500; step++)
        add(t, "aa", 1, step, -1);
    dt_store_rollback(t->store);
    assert_rows(t);
    assert_good(t, dt_store_begin(t->store, &t->err));
    add(t, "aa", 1, 2, 3);
    add(t, "aa", 1, 1, 9); /* exists already */
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_rows(t);
    assert_run(t, "aa");
}

/* SQLite rolls back by itself when the disk is full. */
static void test_a_transaction_that_ended_by_itself_leaves_nothing(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 0; step < 100; step++)
        add(t, "aa", 1, step, -1);
    assert_int_equal(sqlite3_exec(t->store->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    add(t, "aa", 1, 100, 1);
    assert_rows(t);
    assert_run(t, "aa");
    assert_good(t, dt_store_begin(t->store, &t->err));
    add(t, "aa", 1, 101, 1);
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_rows(t);
}

static void test_points_of_an_open_transaction_count(void **state)
{
    test_store *t = *state;

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 0; step < 5000; step++) {
        add(t, "aa", 1, step, (double)step);
        if (step == 3000)
            assert_run(t, "aa");
    }
    assert_run(t, "aa");
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_rows(t);
    assert_run(t, "aa");
}

static void test_a_run_that_moves_takes_its_pyramid_along(void **state)
{
    test_store *t = *state;
    static const char *const files[] = {"", "-wal", "-shm"};
    char path[128];

    seed = 11;
    add_run(t, "aa");
    add_run(t, "bb");
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s%s", t->path, files[i]);
        assert_int_equal(unlink(path), 0); /* the open store keeps the file */
    }
    assert_good(t, dt_store_move_run(t->store, "bb", &t->err));
    test_store_reopen(t);
    assert_rows(t);
    assert_run(t, "bb");
}

/* Returns the problems that verify finds after a statement on a separate connection. */
static int64_t problems_after(test_store *t, const char *sql, const char *words)
{
    const char **problems;
    int64_t count;

    if (sql != NULL)
        test_store_run_sql(t, sql);
    assert_good(t, dt_store_verify(t->store, &problems, &count, &t->arena, &t->err));
    if (words != NULL) {
        assert_int_equal(count, 1);
        assert_non_null(strstr(problems[0], words));
    }
    return count;
}

static void test_the_check_finds_each_bucket_that_is_wrong(void **state)
{
    static const char *const damages[] = {
        "UPDATE pyramid SET points = points + 1",
        "UPDATE pyramid SET not_finite = not_finite + 1",
        "UPDATE pyramid SET low = low - 1",
        "UPDATE pyramid SET high = NULL",
        "UPDATE pyramid SET first_step = first_step + 1",
        "UPDATE pyramid SET last_step = last_step + 1",
        "DELETE FROM pyramid",
    };
    test_store *t = *state;
    char sql[200];

    test_store_run(t, "aa", "n");
    assert_good(t, dt_store_begin(t->store, &t->err));
    for (int64_t step = 0; step < 3000; step++)
        add(t, "aa", 1 + step % 2, step,
            step % 7 == 0    ? NAN
            : step % 11 == 0 ? INFINITY
                             : (double)step);
    assert_good(t, dt_store_commit(t->store, &t->err));
    assert_int_equal(problems_after(t, NULL, NULL), 0);
    test_store_run_sql(t, "CREATE TABLE kept AS SELECT * FROM pyramid");
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
        for (int level = 1; level <= 4; level++) {
            snprintf(
                sql, sizeof(sql),
                "%s WHERE (series, attempt, level, bucket) = (SELECT series, attempt, level,"
                " max(bucket) FROM pyramid WHERE level = %d AND attempt = 2 AND high IS NOT NULL)",
                damages[i], level);
            problems_after(t, sql, "of run 'aa' are wrong");
            test_store_run_sql(t, "DELETE FROM pyramid; INSERT INTO pyramid SELECT * FROM kept");
        }
    problems_after(t,
                   "INSERT INTO pyramid SELECT series, attempt, level, bucket + 500, points,"
                   " not_finite, low, high, total, first_step, first_ms, last_step, last_ms, last"
                   " FROM pyramid WHERE attempt = 1 AND level = 4",
                   "1 buckets");
    test_store_run_sql(t, "DELETE FROM pyramid; INSERT INTO pyramid SELECT * FROM kept");
    problems_after(t, "DELETE FROM metrics WHERE step = 1000", "1 buckets");
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, test_store_setup, test_store_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(test_any_zoom_of_any_curve_agrees_with_its_points),
        WITH_STORE(test_any_zoom_of_a_band_agrees_with_the_points_of_its_runs),
        WITH_STORE(test_what_is_taken_back_leaves_nothing_in_the_pyramid),
        WITH_STORE(test_a_transaction_that_ended_by_itself_leaves_nothing),
        WITH_STORE(test_points_of_an_open_transaction_count),
        WITH_STORE(test_a_run_that_moves_takes_its_pyramid_along),
        WITH_STORE(test_the_check_finds_each_bucket_that_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
