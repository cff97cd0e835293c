/* row: binds and reads rows as structs, by the description of their columns (DT_SQL_ROW). */
#include "store/store_int.h"

#include <string.h>

enum { VALUES_MOST = 16 };

/* The rows of queries with one column. */
const dt_sql_row dt_sql_one_int = {&(const dt_sql_member){DT_SQL_INT, 0}, 1, sizeof(int64_t)};
const dt_sql_row dt_sql_one_text = {&(const dt_sql_member){DT_SQL_TEXT, 0}, 1, sizeof(char *)};

static dt_sql_value value_of(const dt_sql_member *of, const void *item)
{
    const void *member = (const char *)item + of->offset;
    const char *text;

    switch (of->type) {
    case DT_SQL_TEXT:
        text = *(const char *const *)member;
        return (dt_sql_value)DT_TEXT(text != NULL ? text : "");
    case DT_SQL_INT:
        return (dt_sql_value)DT_INT(*(const int64_t *)member);
    case DT_SQL_INT32:
        return (dt_sql_value)DT_INT(*(const int *)member);
    case DT_SQL_REAL:
        return (dt_sql_value)DT_REAL(*(const double *)member);
    case DT_SQL_BOOL:
        return (dt_sql_value)DT_INT(*(const bool *)member);
    case DT_SQL_STATE:
        break;
    }
    return (dt_sql_value)DT_TEXT(dt_run_state_name(*(const dt_run_state *)member));
}

dt_status dt_sql_put(dt_store *store, const char *sql, const dt_sql_row *row, const void *item,
                     const char *run, const dt_sql_value *more, size_t more_count, dt_error *err)
{
    dt_sql_value values[VALUES_MOST] = {DT_INT(0)};
    size_t count = row->count;
    dt_status st = DT_OK;

    DT_ASSERT(count + 1 + more_count <= VALUES_MOST);
    for (size_t i = 0; i < count; i++)
        values[i] = value_of(&row->members[i], item);
    values[count] = (dt_sql_value)DT_INT(0);
    DT_TRY(dt_store_run_number(store, &values[count++].integer, run, err));
    for (size_t i = 0; i < more_count; i++)
        values[count++] = more[i];
    DT_TRY(dt_sql_run(store, sql, values, count, err));
out:
    return st;
}

dt_status dt_sql_read(void *item, dt_sql_rows *rows, const dt_sql_row *row, dt_error *err)
{
    for (size_t i = 0; i < row->count; i++) {
        void *member = (char *)item + row->members[i].offset;
        const char *name;

        switch (row->members[i].type) {
        case DT_SQL_TEXT:
            *(const char **)member = dt_sql_text(rows);
            break;
        case DT_SQL_INT:
            *(int64_t *)member = dt_sql_int_or(rows, 0);
            break;
        case DT_SQL_INT32:
            *(int *)member = (int)dt_sql_int_or(rows, -1);
            break;
        case DT_SQL_REAL:
            *(double *)member = dt_sql_real(rows);
            break;
        case DT_SQL_BOOL:
            *(bool *)member = dt_sql_int(rows) != 0;
            break;
        case DT_SQL_STATE:
            name = dt_sql_text(rows);
            if (!dt_run_state_parse(member, name))
                return DT_FAIL(err, DT_ERR_CORRUPT,
                               "the run store '%s' is damaged: unknown state '%s'",
                               rows->store->path, name);
        }
    }
    return DT_OK;
}

dt_status dt_sql_first(void *item, bool *found, const dt_sql_row *row, dt_store *store,
                       dt_arena *arena, const char *sql, const dt_sql_value *values, size_t count,
                       dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;

    *found = false;
    DT_TRY(dt_sql_open(&rows, store, arena, sql, values, count, err));
    DT_TRY(dt_sql_next(&rows, found, err));
    if (*found)
        DT_TRY(dt_sql_read(item, &rows, row, err));
out:
    dt_sql_close(&rows);
    return st;
}

/* Returns room for one more item. */
static char *array_grow(char *items, int64_t count, int64_t *capacity, size_t item_bytes,
                        dt_arena *arena)
{
    char *moved;

    if (count < *capacity)
        return items;
    *capacity = count > 0 ? count * 2 : 16;
    moved = dt_arena_alloc_array(arena, (size_t)*capacity, item_bytes);
    if (count > 0)
        memcpy(moved, items, (size_t)count * item_bytes);
    return moved;
}

dt_status dt_sql_list(void *out, int64_t *count, const dt_sql_row *row, dt_store *store,
                      dt_arena *arena, const char *sql, const dt_sql_value *values,
                      size_t values_count, dt_error *err)
{
    int64_t filled = 0, capacity = 0;
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    char *items = NULL;
    bool more;

    *count = 0;
    DT_TRY(dt_sql_open(&rows, store, arena, sql, values, values_count, err));
    for (;;) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        items = array_grow(items, filled, &capacity, row->bytes, arena);
        DT_TRY(dt_sql_read(items + (size_t)filled * row->bytes, &rows, row, err));
        filled++;
    }
    *count = filled;
out:
    if (st != DT_OK)
        items = NULL;
    memcpy(out, &items, sizeof(items)); /* a pointer of another type */
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_run_number(dt_store *store, int64_t *number, const char *id, dt_error *err)
{
    dt_status st = DT_OK;
    bool found;

    DT_TRY(DT_SQL_FIRST(number, &found, &dt_sql_one_int, store, NULL, err,
                        "SELECT run FROM runs WHERE id = ?1", DT_TEXT(id)));
    if (!found)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run has the id '%s'", id);
out:
    return st;
}

dt_status dt_sql_list_of_run(void *out, int64_t *count, const dt_sql_row *row, dt_store *store,
                             const char *id, dt_arena *arena, const char *sql,
                             const dt_sql_value *more, size_t more_count, dt_error *err)
{
    dt_sql_value values[VALUES_MOST] = {DT_INT(0)};
    dt_status st = dt_store_run_number(store, &values[0].integer, id, err);

    for (size_t i = 0; i < more_count; i++)
        values[i + 1] = more[i];
    if (st == DT_OK)
        return dt_sql_list(out, count, row, store, arena, sql, values, more_count + 1, err);
    memcpy(out, &(void *){NULL}, sizeof(void *));
    *count = 0;
    return st;
}
