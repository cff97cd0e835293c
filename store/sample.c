/* sample: lists the texts that a run has generated for its prompts.
 *
 * Stored as events of rank 0, of which a step can have several:
 *   {"event": "samples", "step", "samples": [{"index", "prompt", "text", "tokens", "ended"}]}
 */
#include "store/store_int.h"

#define SAMPLE(X)                          \
    X(dt_store_sample, attempt, "attempt") \
    X(dt_store_sample, step, "step")       \
    X(dt_store_sample, time_ms, "time_ms") \
    X(dt_store_sample, place, "place")     \
    X(dt_store_sample, prompt, "prompt")   \
    X(dt_store_sample, text, "text")       \
    X(dt_store_sample, tokens, "tokens")   \
    X(dt_store_sample, ended, "ended")

static const dt_sql_row sample_row = DT_SQL_ROW(dt_store_sample, SAMPLE);

dt_status dt_store_sample_list(dt_store *store, dt_store_sample **out, int64_t *count,
                               const char *run, int64_t step, dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(out, count, &sample_row, store, run, arena, err,
                              DT_SQL_SELECT(SAMPLE,
                                            "FROM " DT_SQL_SAMPLES
                                            " WHERE run = ?1 AND newer = 0 AND ?2 IN (step, -1)"
                                            " ORDER BY step, place"),
                              DT_INT(step));
}

dt_status dt_store_sample_steps(dt_store *store, int64_t **out, int64_t *count, const char *run,
                                dt_arena *arena, dt_error *err)
{
    return DT_SQL_LIST_OF_RUN(out, count, &dt_sql_one_int, store, run, arena, err,
                              "SELECT DISTINCT step FROM " DT_SQL_EVENTS_OF_STEPS(
                                  DT_STORE_SAMPLES) " WHERE run = ?1 ORDER BY step");
}
