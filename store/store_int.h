/* store_int: declares what the files of store/ share: the handle, statements, rows.
 *
 * Statements  SQL texts are string constants; a handle prepares each once and finds it again by
 *             its address. A function that reads holds its statement between dt_sql_open and
 *             dt_sql_close and calls nothing that would use the same one.
 * Values      bound by position: DT_SQL_RUN(store, err, sql, DT_TEXT(id), DT_INT(step))
 * Errors      one translation from SQLite's codes, dt_sql_fail
 */
#ifndef DT_STORE_INT_H
#define DT_STORE_INT_H

#include <sqlite3.h>
#include <stddef.h>
#include <sys/types.h>

#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"

#define DT_STORE_APPLICATION_ID 0x6474726e /* "dtrn", in the file's header */
/* The remedy in messages about a damaged store. */
#define DT_STORE_REMEDY                                                                           \
    "'dtrun store repair' rebuilds it from the rows that can be read and the runs' folders, and " \
    "keeps the damaged file"
#define DT_STORE_BUSY_TIMEOUT_MS 30000
#define DT_STORE_STATEMENTS_MAX  128

/* Functions of metric.c, which collects points in memory until the transaction ends. */
typedef struct dt_store_gatherer {
    /* Writes the points, with_piles: and their pyramid. Does nothing outside a transaction. */
    dt_status (*write)(dt_store *store, bool with_piles, dt_error *err);
    void (*discard)(dt_store *store);
    void (*free)(dt_store *store);
} dt_store_gatherer;
typedef struct dt_points dt_points;
/* Which tables a statement uses: collected points, or also their pyramid, are written before it (dt_sql_open). */
typedef enum dt_sql_use { DT_SQL_NO_POINTS, DT_SQL_POINTS, DT_SQL_PYRAMID } dt_sql_use;

struct dt_store {
    sqlite3 *db;
    char *path;
    dev_t device; /* of the opened file */
    ino_t inode;
    int patience_ms;
    int watch;      /* inotify of the folder, for dt_store_wait; -1: none yet */
    bool back_owed; /* a rollback failed and has to be repeated (dt_sql_back) */
    struct {
        const char *sql; /* the key: a string constant */
        sqlite3_stmt *statement;
        dt_sql_use use;
    } statements[DT_STORE_STATEMENTS_MAX];
    int statement_count;
    const dt_store_gatherer *gatherer; /* NULL: no point was added yet */
    dt_points *points;
    int64_t point_changes; /* number of times that points were collected or written */
    bool points_lost;      /* the transaction must not commit */
};

/* The types of values, and of members of a row's struct. */
typedef enum dt_sql_type {
    DT_SQL_TEXT,  /* const char *; NULL is stored as "", SQL NULL is read as "" */
    DT_SQL_INT,   /* int64_t; SQL NULL is 0 */
    DT_SQL_INT32, /* int; SQL NULL is -1 */
    DT_SQL_REAL,  /* double; NaN is SQL NULL */
    DT_SQL_BOOL,
    DT_SQL_STATE /* dt_run_state */
} dt_sql_type;

/* --- sql.c: values in */
typedef struct dt_sql_value {
    dt_sql_type type; /* DT_SQL_TEXT, DT_SQL_INT or DT_SQL_REAL */
    const char *text; /* NULL: SQL NULL; borrowed until the statement is closed */
    int64_t integer;
    double real; /* NaN: SQL NULL */
} dt_sql_value;

#define DT_TEXT(value)                       \
    {                                        \
        .type = DT_SQL_TEXT, .text = (value) \
    }
#define DT_INT(value)                          \
    {                                          \
        .type = DT_SQL_INT, .integer = (value) \
    }
#define DT_REAL(value)                       \
    {                                        \
        .type = DT_SQL_REAL, .real = (value) \
    }
#define DT_SQL_VALUES(...)               \
    (const dt_sql_value[]){__VA_ARGS__}, \
        sizeof((const dt_sql_value[]){__VA_ARGS__}) / sizeof(dt_sql_value)

/* Runs a statement that returns no rows. */
#define DT_SQL_RUN(store, err, sql, ...) \
    dt_sql_run((store), (sql), DT_SQL_VALUES(__VA_ARGS__), (err))
dt_status dt_sql_run(dt_store *store, const char *sql, const dt_sql_value *values, size_t count,
                     dt_error *err);

/* --- sql.c: rows out; texts are copied to the arena */
typedef struct dt_sql_rows {
    dt_store *store;
    sqlite3_stmt *statement;
    dt_arena *arena;
    int column; /* the next one for dt_sql_text, _int, _real */
} dt_sql_rows;

#define DT_SQL_OPEN(rows, store, arena, err, sql, ...) \
    dt_sql_open((rows), (store), (arena), (sql), DT_SQL_VALUES(__VA_ARGS__), (err))
dt_status dt_sql_open(dt_sql_rows *rows, dt_store *store, dt_arena *arena, const char *sql,
                      const dt_sql_value *values, size_t count, dt_error *err);
/* Steps to the next row; *more: there is one. The columns are then read in order, from the first. */
dt_status dt_sql_next(dt_sql_rows *rows, bool *more, dt_error *err);
void dt_sql_close(dt_sql_rows *rows); /* accepts rows of zero bytes */

int64_t dt_sql_int(dt_sql_rows *rows); /* NULL is 0 */
double dt_sql_real(dt_sql_rows *rows); /* NULL is NaN */

/* --- sql.c: rows as structs
 * The columns of a row are listed once, with the members of its struct, whose types are those of the columns:
 *     #define NODE(X) X(dt_node, node, "node") X(dt_node, name, "name")
 *     static const dt_sql_row node_row = DT_SQL_ROW(dt_node, NODE);
 * SQL texts name the columns by DT_SQL_SELECT, DT_SQL_INSERT and DT_SQL_UPSERT, and node_row reads and binds them. */
typedef struct dt_sql_member {
    dt_sql_type type;
    size_t offset;
} dt_sql_member;
typedef struct dt_sql_row {
    const dt_sql_member *members;
    size_t count, bytes;
} dt_sql_row;
extern const dt_sql_row dt_sql_one_int, dt_sql_one_text; /* int64_t; const char * */

#define DT_SQL_NAME(row, member, sql)   sql ", "
#define DT_SQL_MARK(row, member, sql)   "?, "
#define DT_SQL_UPDATE(row, member, sql) sql " = excluded." sql ", "
/* `rest`: from FROM on. */
#define DT_SQL_SELECT(COLUMNS, rest) "SELECT " COLUMNS(DT_SQL_NAME) "0 " rest
/* `more`: "run" or "run, attempt", the columns of the row that are not members; `marks`: "?" or "?, ?". */
#define DT_SQL_INSERT(table, COLUMNS, more, marks, conflict)                                    \
    "INSERT INTO " table " (" COLUMNS(DT_SQL_NAME) more ") VALUES (" COLUMNS(DT_SQL_MARK) marks \
        ") ON CONFLICT " conflict
#define DT_SQL_UPSERT(table, COLUMNS, more, marks, key)                    \
    DT_SQL_INSERT(table, COLUMNS, more, marks, "(" key ") DO UPDATE SET ") \
    COLUMNS(DT_SQL_UPDATE) "run = excluded.run"
#define DT_SQL_MEMBER(row, member, sql) \
    {_Generic(((row *)0)->member,           \
         const char *: DT_SQL_TEXT,         \
         int64_t: DT_SQL_INT,               \
         int: DT_SQL_INT32,                 \
         double: DT_SQL_REAL,               \
         bool: DT_SQL_BOOL,                 \
         dt_run_state: DT_SQL_STATE),       \
     offsetof(row, member)},
#define DT_SQL_ROW(row, COLUMNS)                                                             \
    {                                                                                        \
        (const dt_sql_member[]){COLUMNS(DT_SQL_MEMBER)},                                     \
            sizeof((const dt_sql_member[]){COLUMNS(DT_SQL_MEMBER)}) / sizeof(dt_sql_member), \
            sizeof(row)                                                                      \
    }

/* Runs a DT_SQL_INSERT or DT_SQL_UPSERT; `more`: the values after that of "run". */
dt_status dt_sql_put(dt_store *store, const char *sql, const dt_sql_row *row, const void *item,
                     const char *run, const dt_sql_value *more, size_t more_count, dt_error *err);
/* Reads the first columns of the current row. */
dt_status dt_sql_read(void *item, dt_sql_rows *rows, const dt_sql_row *row, dt_error *err);
/* Reads the first row of a query; leaves `item` unchanged if there is none. */
#define DT_SQL_FIRST(item, found, row, store, arena, err, sql, ...) \
    dt_sql_first((item), (found), (row), (store), (arena), (sql), DT_SQL_VALUES(__VA_ARGS__), (err))
dt_status dt_sql_first(void *item, bool *found, const dt_sql_row *row, dt_store *store,
                       dt_arena *arena, const char *sql, const dt_sql_value *values, size_t count,
                       dt_error *err);
/* Reads all rows of a query into one array in the arena. out: the address of a pointer to the rows' struct. */
#define DT_SQL_LIST(out, count, row, store, arena, err, sql, ...) \
    dt_sql_list((out), (count), (row), (store), (arena), (sql), DT_SQL_VALUES(__VA_ARGS__), (err))
dt_status dt_sql_list(void *out, int64_t *count, const dt_sql_row *row, dt_store *store,
                      dt_arena *arena, const char *sql, const dt_sql_value *values,
                      size_t values_count, dt_error *err);
/* The same for the rows of a run: ?1 is its number, the values follow from ?2. */
#define DT_SQL_LIST_OF_RUN(out, count, row, store, id, arena, err, sql, ...) \
    dt_sql_list_of_run((out), (count), (row), (store), (id), (arena), (sql), \
                       DT_SQL_VALUES(__VA_ARGS__), (err))
dt_status dt_sql_list_of_run(void *out, int64_t *count, const dt_sql_row *row, dt_store *store,
                             const char *id, dt_arena *arena, const char *sql,
                             const dt_sql_value *more, size_t more_count, dt_error *err);
/* Returns the row number of a run. DT_ERR_NOT_FOUND. */
dt_status dt_store_run_number(dt_store *store, int64_t *number, const char *id, dt_error *err);

/* --- sql.c: errors and transactions */
dt_status dt_sql_fail(dt_store *store, int code, const char *doing, dt_error *err);
dt_status dt_sql_exec(dt_store *store, const char *sql, const char *doing, dt_error *err);

/* Several rows as one change: a transaction, or a savepoint inside the caller's transaction. dt_sql_group_end commits
 * if `st` is DT_OK, else it rolls back. */
typedef struct dt_sql_group {
    dt_store *store;
    bool open, nested;
    int64_t point_changes; /* of the store, at the beginning */
} dt_sql_group;
dt_status dt_sql_group_begin(dt_sql_group *group, dt_store *store, dt_error *err);
dt_status dt_sql_group_begin_reading(dt_sql_group *group, dt_store *store, dt_error *err);
dt_status dt_sql_group_end(dt_sql_group *group, dt_status st, dt_error *err);

/* Rolls back the open transaction. If there is no memory for that, the rollback is repeated before the next transaction
 * begins; until then nothing is committed. */
void dt_sql_back(dt_store *store);
/* Commits the open transaction, with the points that it has collected. */
dt_status dt_sql_commit(dt_store *store, dt_error *err);
/* Discards collected points. Call this after any end of a transaction. */
void dt_sql_after_end(dt_store *store);

/* --- curve_pyramid.c */
#define DT_PYRAMID_LEVELS 4
/* Summary of some points of a curve; all bytes zero: no points. */
typedef struct dt_pile {
    int64_t points, not_finite;
    double low, high, total; /* of the finite points; low and high NaN if there are none */
    int64_t first_step, first_ms, last_step, last_ms;
    double last;
} dt_pile;
void dt_pile_add(dt_pile *pile, int64_t step, int64_t time_ms, double value);
void dt_pile_merge(dt_pile *pile, const dt_pile *other);
/* Returns the bucket of 2^shift steps that contains a step. */
static inline int64_t dt_step_bucket(int64_t step, int shift)
{
    return step >= 0 ? step >> shift : ~(~step >> shift);
}
static inline int dt_pyramid_shift(int level)
{
    return 2 + 4 * level;
} /* level from 1 */
/* The piles of one attempt's curve that were not yet written as rows. */
typedef struct dt_open_piles {
    int64_t series, attempt;
    int64_t bucket[DT_PYRAMID_LEVELS];
    dt_pile pile[DT_PYRAMID_LEVELS]; /* points 0: empty */
} dt_open_piles;
/* Adds a point that was just added to the table metrics. */
dt_status dt_open_piles_add(dt_store *store, dt_open_piles *g, int64_t step, int64_t time_ms,
                            double value, dt_error *err);
dt_status dt_open_piles_write(dt_store *store, dt_open_piles *g, dt_error *err);
/* Builds the pyramid of a run that has none, or of all runs (run NULL), from their points. Call it in a
 * transaction. */
dt_status dt_pyramid_build(dt_store *store, const char *run, dt_error *err);

/* --- curve_pyramid.c */
typedef struct dt_step_range {
    int64_t from, to; /* both inclusive; from > to: nothing */
} dt_step_range;
typedef void (*dt_pile_take)(void *context, const dt_pile *pile);
/* Passes all points of one attempt's curve in a range to `take`, as piles that each lie in one bucket of 2^shift steps.
 * `take` must not use the store. */
dt_status dt_pyramid_read(dt_store *store, int64_t series, int64_t attempt, int shift,
                          dt_step_range of, dt_pile_take take, void *context, dt_error *err);

/* --- curve_buckets.c */
/* Returns the mean; the pile must have a finite point. */
double dt_pile_mean(const dt_pile *pile);
/* Returns the smallest shift for which a range has at most `most` buckets of 2^shift steps. */
int dt_parts_shift(dt_step_range all, int64_t most);
/* dt_curve_range narrows a range to the first and last point in it; from > to: there are none. dt_curve_piles then
 * passes the points of all attempts that count in it, as piles that each lie in one bucket of 2^shift steps. `take`
 * must not use the store. */
dt_status dt_curve_range(dt_store *store, dt_step_range *range, const dt_store_curves *curves,
                         int64_t which, dt_arena *arena, dt_error *err);
dt_status dt_curve_piles(dt_store *store, const dt_store_curves *curves, int64_t which,
                         dt_step_range range, int shift, dt_pile_take take, void *context,
                         dt_arena *arena, dt_error *err);

/* --- event.c */
/* Returns the path of a checkpoint that was saved at `path`: in the store's present folder if it was moved with the
 * store. */
const char *dt_checkpoint_path(const dt_store *store, const char *path, const char *run,
                               dt_arena *arena);

/* True for the row `r` of runs, and `a` of its newest attempt, that dtrun can have written: the id is a name without
 * a path, and numbers are in the range of steps and times. Other rows come from elsewhere: lists leave them out,
 * and schema.c reports them. */
#define DT_SQL_WHOLE(number) " AND coalesce(" number ", 0) BETWEEN 0 AND 9007199254740991"
#define DT_SQL_RUN_IS_SOUND                                                      \
    " typeof(r.id) = 'text' AND length(r.id) BETWEEN 1 AND 64 AND r.id NOT GLOB" \
    " '*[^a-zA-Z0-9._-]*' AND r.id NOT GLOB '[.-]*' AND r.attempt BETWEEN 1 AND" \
    " 2147483647" DT_SQL_WHOLE("r.step") DT_SQL_WHOLE("r.created_ms")            \
        DT_SQL_WHOLE("r.parent_step")
#define DT_SQL_ATTEMPT_IS_SOUND   \
    DT_SQL_WHOLE("a.start_step")  \
    DT_SQL_WHOLE("a.steps_total") \
    DT_SQL_WHOLE("a.created_ms")  \
    DT_SQL_WHOLE("a.started_ms")  \
    DT_SQL_WHOLE("a.first_step_ms") DT_SQL_WHOLE("a.ended_ms") DT_SQL_WHOLE("a.elapsed_ms")
#define DT_SQL_IS_SOUND DT_SQL_RUN_IS_SOUND DT_SQL_ATTEMPT_IS_SOUND

/* True for the name of a metric by time: of a node. Later attempts undo no point of it. */
#define DT_SQL_BY_TIME(name) "(" name " GLOB 'system/*_node_[0-9]*')"

/* The events of a kind that are about a step, with `step`. Steps that a resume from an earlier step undid are left
 * out. */
#define DT_SQL_EVENTS_OF_STEPS(kind)                                                               \
    "(SELECT e.run, e.event, e.attempt, e.time_ms, e.json, json_extract(e.json, '$.step') AS step" \
    " FROM (SELECT run, event, attempt, time_ms, CASE WHEN json_valid(json) THEN json END AS json" \
    " FROM main.events WHERE kind = '" kind "') e WHERE json_type(e.json, '$.step') = 'integer'"   \
    " AND NOT EXISTS (SELECT 1 FROM main.attempts b WHERE b.run = e.run"                           \
    " AND b.attempt > e.attempt AND b.start_step < json_extract(e.json, '$.step')))"

/* The results of evaluation tasks, a row for each task of each event. `newer`: number of later results of the same task and
 * step. */
#define DT_SQL_EVALUATIONS                                                              \
    "(SELECT v.run, v.event, v.attempt, v.time_ms, v.step, t.key AS task,"              \
    " t.value AS result, t.id AS place, row_number() OVER (PARTITION BY v.run, v.step," \
    " t.key ORDER BY v.event DESC) - 1 AS newer FROM " DT_SQL_EVENTS_OF_STEPS(          \
        DT_STORE_EVALUATION) " v JOIN json_each(v.json, '$.tasks') t WHERE t.type = 'object')"

/* The texts of samples, a row for each prompt of each step; `newer` as for evaluations. */
#define DT_SQL_SAMPLES                                                                             \
    "(SELECT v.run, v.event, v.attempt, v.time_ms, v.step,"                                        \
    " json_extract(t.value, '$.index') AS place, json_extract(t.value, '$.prompt') AS prompt,"     \
    " json_extract(t.value, '$.text') AS text, json_extract(t.value, '$.tokens') AS tokens,"       \
    " json_extract(t.value, '$.ended') AS ended, row_number() OVER (PARTITION BY v.run,"           \
    " v.step, json_extract(t.value, '$.index') ORDER BY v.event DESC) - 1 AS newer "               \
    "FROM " DT_SQL_EVENTS_OF_STEPS(                                                                \
        DT_STORE_SAMPLES) " v JOIN json_each(v.json, '$.samples') t WHERE t.type = 'object'"       \
                          " AND json_type(t.value, '$.index') = 'integer' AND json_type(t.value, " \
                          "'$.prompt') = 'text'"                                                   \
                          " AND json_type(t.value, '$.text') = 'text')"

/* The confusions of classifiers, a row for each event; `newer` as for evaluations. */
#define DT_SQL_CONFUSIONS                                                                        \
    "(SELECT v.run, v.event, v.attempt, v.time_ms, v.step, json_extract(v.json, '$.counts') AS"  \
    " counts, row_number() OVER (PARTITION BY v.run, v.step ORDER BY v.event DESC) - 1 AS newer" \
    " FROM " DT_SQL_EVENTS_OF_STEPS(                                                             \
        DT_STORE_CONFUSION) " v WHERE json_type(v.json, '$.counts') = 'array')"

/* State and reason of the attempt `a` as structs and views show them. The tables of version 1 have no state of a waiting
 * run: it is queued, with a reason that no other queued run has. */
#define DT_SQL_WAITING "waiting"
#define DT_SQL_SHOWN_STATE                                                                   \
    "CASE WHEN a.state = 'queued' AND a.reason = '" DT_SQL_WAITING "' THEN '" DT_SQL_WAITING \
    "' ELSE a.state END"
#define DT_SQL_SHOWN_REASON "CASE WHEN a.state = 'queued' THEN '' ELSE a.reason END"

/* --- schema.c */
#define DT_STORE_VERSION 1 /* PRAGMA user_version */
/* Refuses a file of another program (DT_ERR_CORRUPT) or another version (DT_ERR_UNSUPPORTED). Writes nothing.
 * *version: DT_STORE_VERSION, or 0 if the file is empty. */
dt_status dt_store_check(dt_store *store, int64_t *version, dt_error *err);
/* Forbids triggers, views and functions that the file itself defines, on every connection to a store. */
void dt_sql_harden(sqlite3 *db);
/* Creates the tables, unless another process has created them meanwhile. */
dt_status dt_store_create(dt_store *store, dt_error *err);

/* --- store.c */
/* Returns the name of a file system whose shared memory and locks cannot be trusted; NULL for others. `type`: statfs's
 * f_type; fuse_name: the name after "fuse." in the mount table, or "". */
const char *dt_store_file_system_refused(unsigned long type, const char *fuse_name);

/* --- run.c */
/* Returns the newest attempt of a run and its state. DT_ERR_NOT_FOUND. */
dt_status dt_store_run_newest(dt_store *store, int64_t *number, int64_t *attempt,
                              dt_run_state *state, const char *id, dt_error *err);

#endif
