#include "store_support.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int test_store_setup(void **state)
{
    test_store *t = calloc(1, sizeof(*t));

    snprintf(t->folder, sizeof(t->folder), "/tmp/dtrun-store-XXXXXX");
    if (mkdtemp(t->folder) == NULL)
        return -1;
    snprintf(t->path, sizeof(t->path), "%s/store.db", t->folder);
    dt_arena_init(&t->arena, 0);
    *state = t;
    return dt_store_open(&t->store, t->path, &t->err) == DT_OK ? 0 : -1;
}

int test_store_teardown(void **state)
{
    test_store *t = *state;

    dt_store_close(t->store);
    dt_arena_release(&t->arena);
    dt_file_remove_tree(t->folder, NULL);
    free(t);
    return 0;
}

void test_store_reopen(test_store *t)
{
    dt_store_close(t->store);
    t->store = NULL;
    assert_good(t, dt_store_open(&t->store, t->path, &t->err));
}

void assert_good_at(test_store *t, dt_status st, const char *what, const char *file, int line)
{
    if (st != DT_OK)
        print_error("%s: %s\n", what, t->err.message);
    _assert_true(st == DT_OK, what, file, line);
}

void assert_fails_at(test_store *t, dt_status st, dt_status code, const char *words,
                     const char *file, int line)
{
    if (st != code || strstr(t->err.message, words) == NULL)
        print_error("status %s, message: %s\n", dt_status_name(st), t->err.message);
    _assert_int_equal(code, st, file, line);
    _assert_true(strstr(t->err.message, words) != NULL, words, file, line);
    dt_error_clear(&t->err);
}

void test_store_run(test_store *t, const char *id, const char *name)
{
    dt_run run = {.id = id,
                  .name = name,
                  .created_ms = 1000,
                  .steps_total = 100,
                  .recipe_path = "/r.yaml",
                  .recipe_text = "name: x\n",
                  .recipe_json = "{}",
                  .recipe_hash = "h"};

    assert_good(t, dt_store_run_add(t->store, &run, &t->err));
}

int64_t test_store_number(test_store *t, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_open(t->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

void test_store_run_sql(test_store *t, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(t->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}
