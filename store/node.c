/* node: stores the nodes of an attempt, with the acknowledged number of their journals, and its ranks. */
#include "store/store_int.h"

#include "base/banned.h"

dt_status dt_store_node_set(dt_store *store, const char *run, int64_t attempt, const dt_node *node,
                            dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "INSERT INTO nodes (run, attempt, node, name, state, acknowledged,"
                      " boot_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, ''))"
                      " ON CONFLICT (run, attempt, node) DO UPDATE SET name = excluded.name,"
                      " state = excluded.state, acknowledged = excluded.acknowledged,"
                      " boot_id = excluded.boot_id",
                      DT_INT(number), DT_INT(attempt), DT_INT(node->node), DT_TEXT(node->name),
                      DT_TEXT(node->state), DT_INT(node->acknowledged), DT_TEXT(node->boot_id)));
out:
    return st;
}

dt_status dt_store_rank_set(dt_store *store, const char *run, int64_t attempt, const dt_rank *rank,
                            dt_error *err)
{
    dt_status st = DT_OK;
    int64_t number;

    DT_TRY(dt_store_run_number(store, &number, run, err));
    DT_TRY(DT_SQL_RUN(store, err,
                      "INSERT INTO ranks (run, attempt, rank, node, local_rank, pid, device, state,"
                      " exit_code, exit_signal, log_bytes)"
                      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, ''), ?8, ?9, ?10, ?11)"
                      " ON CONFLICT (run, attempt, rank) DO UPDATE SET node = excluded.node,"
                      " local_rank = excluded.local_rank, pid = excluded.pid,"
                      " device = excluded.device, state = excluded.state,"
                      " exit_code = excluded.exit_code, exit_signal = excluded.exit_signal,"
                      " log_bytes = excluded.log_bytes",
                      DT_INT(number), DT_INT(attempt), DT_INT(rank->rank), DT_INT(rank->node),
                      DT_INT(rank->local_rank), DT_INT(rank->pid), DT_TEXT(rank->device),
                      DT_TEXT(rank->state), DT_INT(rank->exit_code), DT_INT(rank->exit_signal),
                      DT_INT(rank->log_bytes)));
out:
    return st;
}

static dt_status node_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_node *node = item;

    node->node = dt_sql_int(rows);
    node->name = dt_sql_text(rows);
    node->state = dt_sql_text(rows);
    node->acknowledged = dt_sql_int(rows);
    node->boot_id = dt_sql_text(rows);
    return DT_OK;
}

dt_status dt_store_node_list(dt_store *store, dt_node **out, int64_t *count, const char *run,
                             int64_t attempt, dt_arena *arena, dt_error *err)
{
    const dt_sql_selection selection = {
        .sql = "SELECT node, name, state, acknowledged, boot_id FROM nodes"
               " WHERE run = ?1 AND attempt = ?2 ORDER BY node",
        .item_bytes = sizeof(**out),
        .read = node_read,
        .more = {DT_INT(attempt)},
        .more_count = 1,
    };
    void *items;
    dt_status st = dt_sql_list_of_run(store, &items, count, run, &selection, arena, err);

    *out = items;
    return st;
}

static dt_status rank_read(void *item, dt_sql_rows *rows, dt_error *err)
{
    dt_rank *rank = item;

    rank->rank = dt_sql_int(rows);
    rank->node = dt_sql_int(rows);
    rank->local_rank = dt_sql_int(rows);
    rank->pid = dt_sql_int(rows);
    rank->device = dt_sql_text(rows);
    rank->state = dt_sql_text(rows);
    rank->exit_code = (int)dt_sql_int(rows);
    rank->exit_signal = (int)dt_sql_int(rows);
    rank->log_bytes = dt_sql_int(rows);
    return DT_OK;
}

dt_status dt_store_rank_list(dt_store *store, dt_rank **out, int64_t *count, const char *run,
                             int64_t attempt, dt_arena *arena, dt_error *err)
{
    const dt_sql_selection selection = {
        .sql = "SELECT rank, node, local_rank, pid, device, state, exit_code, exit_signal,"
               " log_bytes FROM ranks WHERE run = ?1 AND attempt = ?2 ORDER BY rank",
        .item_bytes = sizeof(**out),
        .read = rank_read,
        .more = {DT_INT(attempt)},
        .more_count = 1,
    };
    void *items;
    dt_status st = dt_sql_list_of_run(store, &items, count, run, &selection, arena, err);

    *out = items;
    return st;
}
