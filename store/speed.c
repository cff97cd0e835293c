/* speed: tokens per second of a whole run.
 *
 * Formula  points / sum of 1 / each: every point stands for as many tokens, so this is all tokens
 * by the time of all steps. Points of a long run are thinned evenly, which changes nothing.
 */
#include "store/store_int.h"

#include "base/banned.h"

#define SPEEDS_MOST 2000

dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err)
{
    double seconds_per_token = 0;
    dt_metric *points;
    dt_status st = DT_OK;
    int64_t count, taken = 0;

    *out = run->tokens_per_second;
    DT_TRY(dt_store_metric_list(store, &points, &count, run->id, "tokens_per_second", -1,
                                SPEEDS_MOST, arena, err));
    for (int64_t i = 0; i < count; i++)
        if (points[i].value > 0) {
            seconds_per_token += 1 / points[i].value;
            taken++;
        }
    if (taken > 0)
        *out = (double)taken / seconds_per_token;
out:
    return st;
}
