/* node: stores the nodes of an attempt, with the acknowledged number of their journals, and its ranks. */
#include "store/store_int.h"

#define NODE(X)                              \
    X(dt_node, node, "node")                 \
    X(dt_node, name, "name")                 \
    X(dt_node, state, "state")               \
    X(dt_node, acknowledged, "acknowledged") \
    X(dt_node, boot_id, "boot_id")
#define RANK(X)                            \
    X(dt_rank, rank, "rank")               \
    X(dt_rank, node, "node")               \
    X(dt_rank, local_rank, "local_rank")   \
    X(dt_rank, pid, "pid")                 \
    X(dt_rank, device, "device")           \
    X(dt_rank, state, "state")             \
    X(dt_rank, exit_code, "exit_code")     \
    X(dt_rank, exit_signal, "exit_signal") \
    X(dt_rank, log_bytes, "log_bytes")

static const dt_sql_row node_row = DT_SQL_ROW(dt_node, NODE), rank_row = DT_SQL_ROW(dt_rank, RANK);

dt_status dt_store_node_set(dt_store *store, const char *run, int64_t attempt, const dt_node *node,
                            dt_error *err)
{
    return dt_sql_put(store,
                      DT_SQL_UPSERT("nodes", NODE, "run, attempt", "?, ?", "run, attempt, node"),
                      &node_row, node, run, DT_SQL_VALUES(DT_INT(attempt)), err);
}

dt_status dt_store_rank_set(dt_store *store, const char *run, int64_t attempt, const dt_rank *rank,
                            dt_error *err)
{
    return dt_sql_put(store,
                      DT_SQL_UPSERT("ranks", RANK, "run, attempt", "?, ?", "run, attempt, rank"),
                      &rank_row, rank, run, DT_SQL_VALUES(DT_INT(attempt)), err);
}

dt_status dt_store_node_list(dt_store *store, dt_node **out, int64_t *count, const char *run,
                             int64_t attempt, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(
        out, count, &node_row, store, run, arena, err,
        DT_SQL_SELECT(NODE, "FROM nodes WHERE run = ?1 AND attempt = ?2 ORDER BY node"),
        DT_INT(attempt));
}

dt_status dt_store_rank_list(dt_store *store, dt_rank **out, int64_t *count, const char *run,
                             int64_t attempt, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(
        out, count, &rank_row, store, run, arena, err,
        DT_SQL_SELECT(RANK, "FROM ranks WHERE run = ?1 AND attempt = ?2 ORDER BY rank"),
        DT_INT(attempt));
}
