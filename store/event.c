/* event: stores what an attempt's nodes report: nodes and ranks, events, checkpoints. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "store/repair.h"
#include "store/store_int.h"

/* --- nodes, with the acknowledged number of their journals, and ranks */

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

/* --- events, in order of arrival. An event with a known journal number is ignored, so that nodes can send
 * it again. */

#define EVENT(X)                            \
    X(dt_store_event, attempt, "attempt")   \
    X(dt_store_event, node, "node")         \
    X(dt_store_event, sequence, "sequence") \
    X(dt_store_event, rank, "rank")         \
    X(dt_store_event, time_ms, "time_ms")   \
    X(dt_store_event, kind, "kind")         \
    X(dt_store_event, json, "json")
#define STORED_EVENT(X) X(dt_store_event, id, "event") EVENT(X)

static const dt_sql_row event_row = DT_SQL_ROW(dt_store_event, EVENT),
                        stored_row = DT_SQL_ROW(dt_store_event, STORED_EVENT);

dt_status dt_store_event_add(dt_store *store, const char *run, const dt_store_event *event,
                             dt_error *err)
{
    return dt_sql_put(store,
                      DT_SQL_INSERT("events", EVENT, "run", "?",
                                    "(run, attempt, node, sequence) WHERE node >= 0 DO NOTHING"),
                      &event_row, event, run, NULL, 0, err);
}

dt_status dt_store_event_has(dt_store *store, bool *has, const char *run,
                             const dt_store_event *event, dt_error *err)
{
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    *has = false;
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT 1 FROM events e JOIN runs r USING (run) WHERE r.id = ?1 AND"
                       " e.attempt = ?2 AND e.node = ?3 AND e.sequence = ?4 AND e.node >= 0 AND"
                       " e.kind = ?5",
                       DT_TEXT(run), DT_INT(event->attempt), DT_INT(event->node),
                       DT_INT(event->sequence), DT_TEXT(event->kind)));
    DT_TRY(dt_sql_next(&rows, has, err));
out:
    dt_sql_close(&rows);
    return st;
}

dt_status dt_store_event_list(dt_store *store, dt_store_event **out, int64_t *count,
                              const char *run, int64_t after_id, int64_t limit, dt_arena *arena,
                              dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(
        out, count, &stored_row, store, run, arena, err,
        DT_SQL_SELECT(STORED_EVENT,
                      "FROM events WHERE run = ?1 AND event > ?2 ORDER BY event LIMIT ?3"),
        DT_INT(after_id), DT_INT(limit > 0 ? limit : -1));
}

dt_status dt_store_event_list_of_kind(dt_store *store, dt_store_event **out, int64_t *count,
                                      const char *run, const char *kind, dt_arena *arena,
                                      dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(
        out, count, &stored_row, store, run, arena, err,
        DT_SQL_SELECT(STORED_EVENT, "FROM events WHERE run = ?1 AND kind = ?2 ORDER BY event"),
        DT_TEXT(kind));
}

/* checkpoint: records saved checkpoints. A directory that is written again (a resumed run passes the same step)
 * replaces the older checkpoint.
 *
 * Paths are absolute, from the time of the save. The store's folder can be moved later: a path that ends in
 * "/runs/ID/checkpoints/NAME" is searched in the store's present folder, and returned unchanged if it is not there.
 */

#define CHECKPOINT(X)                                \
    X(dt_store_checkpoint, attempt, "attempt")       \
    X(dt_store_checkpoint, step, "step")             \
    X(dt_store_checkpoint, bytes, "bytes")           \
    X(dt_store_checkpoint, time_ms, "time_ms")       \
    X(dt_store_checkpoint, path, "path")             \
    X(dt_store_checkpoint, digest, "digest")         \
    X(dt_store_checkpoint, valid_loss, "valid_loss") \
    X(dt_store_checkpoint, seconds, "seconds")       \
    X(dt_store_checkpoint, score, "score")

static const dt_sql_row checkpoint_row = DT_SQL_ROW(dt_store_checkpoint, CHECKPOINT);

/* Returns the end of the path if it is "/runs/ID/checkpoints/NAME"; NULL for paths elsewhere. */
static const char *own_tail(const char *path, const char *run, dt_arena *arena)
{
    const char *name = strrchr(path, '/');
    const char *tail =
        name != NULL ? dt_arena_printf(arena, "/runs/%s/checkpoints%s", run, name) : NULL;
    size_t length = tail != NULL ? strlen(tail) : 0, all = strlen(path);

    return tail != NULL && all >= length && strcmp(path + all - length, tail) == 0
               ? path + all - length
               : NULL;
}

const char *dt_checkpoint_path(const dt_store *store, const char *path, const char *run,
                               dt_arena *arena)
{
    const char *tail = own_tail(path, run, arena), *slash = strrchr(store->path, '/');
    const char *here;

    if (tail == NULL || slash == NULL)
        return path;
    here = dt_arena_printf(arena, "%.*s%s", (int)(slash - store->path), store->path, tail);
    return access(here, F_OK) == 0 ? here : path;
}

dt_status dt_store_checkpoint_add(dt_store *store, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err)
{
    dt_store_checkpoint stored = *checkpoint;
    dt_sql_group group = {0};
    dt_status st = DT_OK;
    const char *tail;
    dt_arena arena;
    int64_t number;

    dt_arena_init(&arena, 512);
    DT_TRY(dt_sql_group_begin(&group, store, err));
    DT_TRY(dt_store_run_number(store, &number, run, err));
    tail = own_tail(checkpoint->path, run, &arena);
    /* Removes the same checkpoint under the path it had before the folder was moved. */
    if (tail != NULL)
        DT_TRY(DT_SQL_RUN(store, err,
                          "DELETE FROM checkpoints WHERE run = ?1 AND path <> ?2"
                          " AND substr(path, -length(?3)) = ?3",
                          DT_INT(number), DT_TEXT(checkpoint->path), DT_TEXT(tail)));
    if (isnan(stored.seconds))
        stored.seconds = 0;
    DT_TRY(dt_sql_put(store, DT_SQL_UPSERT("checkpoints", CHECKPOINT, "run", "?", "run, path"),
                      &checkpoint_row, &stored, run, NULL, 0, err));
out:
    dt_arena_release(&arena);
    return dt_sql_group_end(&group, st, err);
}

dt_status dt_store_checkpoint_has(dt_store *store, bool *has, const char *run,
                                  const dt_store_checkpoint *checkpoint, dt_error *err)
{
    const char *name = strrchr(checkpoint->path, '/');
    dt_status st = DT_OK;
    dt_sql_rows rows = {0};

    *has = false;
    DT_TRY(DT_SQL_OPEN(&rows, store, NULL, err,
                       "SELECT 1 FROM checkpoints c JOIN runs r USING (run) WHERE r.id = ?1"
                       " AND substr(c.path, -length(?2)) = ?2",
                       DT_TEXT(run), DT_TEXT(name != NULL ? name : checkpoint->path)));
    DT_TRY(dt_sql_next(&rows, has, err));
out:
    dt_sql_close(&rows);
    return st;
}

bool dt_store_checkpoint_exists(const dt_store_checkpoint *checkpoint)
{
    return checkpoint->digest[0] == '\0' || access(checkpoint->path, F_OK) == 0;
}

dt_status dt_store_checkpoint_list(dt_store *store, dt_store_checkpoint **out, int64_t *count,
                                   const char *run, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_SQL_LIST_OF_RUN(
        out, count, &checkpoint_row, store, run, arena, err,
        DT_SQL_SELECT(CHECKPOINT,
                      "FROM checkpoints WHERE run = ?1 ORDER BY step DESC, attempt DESC"));

    for (int64_t i = 0; i < *count; i++) {
        dt_store_checkpoint *one = *out + i;

        one->path = dt_checkpoint_path(store, one->path, run, arena);
        if (isnan(one->score))
            one->score = one->valid_loss;
    }
    return st;
}
