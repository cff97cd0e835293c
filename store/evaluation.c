/* evaluation: stores results of evaluation tasks (engine/evaluation/) as events of a run, and lists them.
 *
 * An event, of a rank in training or of `dtrun evaluate`:
 *   {"event": "evaluation", "step", "tasks": {NAME: {"kind", "rows", "cut", "metrics": {NAME: {"value", "stderr"}}}}}
 */
#include "base/clock.h"
#include "base/strbuf.h"
#include "store/store_int.h"

#define EVALUATION(X)                          \
    X(dt_store_evaluation, attempt, "attempt") \
    X(dt_store_evaluation, step, "step")       \
    X(dt_store_evaluation, time_ms, "time_ms") \
    X(dt_store_evaluation, task, "task")       \
    X(dt_store_evaluation, result, "result")

static const dt_sql_row evaluation_row = DT_SQL_ROW(dt_store_evaluation, EVALUATION);

dt_status dt_store_evaluation_list(dt_store *store, dt_store_evaluation **out, int64_t *count,
                                   const char *run, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(out, count, &evaluation_row, store, run, arena, err,
                              DT_SQL_SELECT(EVALUATION, "FROM " DT_SQL_EVALUATIONS
                                                        " WHERE run = ?1 AND newer = 0"
                                                        " ORDER BY step, event, place"));
}

dt_status dt_store_evaluation_add(dt_store *store, const char *run, int64_t attempt, int64_t step,
                                  const char *tasks, dt_error *err)
{
    dt_store_event event = {.attempt = attempt,
                            .node = -1,
                            .rank = -1,
                            .time_ms = dt_clock_wall_ms(),
                            .kind = DT_STORE_EVALUATION};
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(
        &text, "{\"event\":\"" DT_STORE_EVALUATION "\",\"step\":%lld,\"tasks\":", (long long)step);
    dt_strbuf_add_str(&text, tasks);
    dt_strbuf_add_char(&text, '}');
    event.json = text.data;
    st = dt_store_event_add(store, run, &event, err);
    dt_strbuf_release(&text);
    return st;
}
