/* speed: computes the tokens per second of a whole run.
 *
 * Points   for a fork only its own: those up to parent_step were copied from the parent
 * Formula  (number of points) / (sum over buckets of points / mean). Every point has the same number of tokens, so this
 *          is all tokens over the time of all steps. If a bucket has several points, its mean replaces them,
 *          which is too fast by the square of their relative spread (5 %: 0.25 %).
 */
#include "store/store_int.h"

#include "base/banned.h"

#define BUCKETS_MOST 2000

dt_status dt_store_run_mean_speed(dt_store *store, double *out, const dt_run *run, dt_arena *arena,
                                  dt_error *err)
{
    double taken = 0, seconds_per_token = 0;
    dt_store_curves curves;
    dt_bucket *buckets;
    dt_status st = DT_OK;
    int64_t count = 0;

    *out = run->tokens_per_second;
    DT_TRY(dt_store_curves_find(store, &curves, run->id, "tokens_per_second", arena, err));
    if (curves.count > 0)
        DT_TRY(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, run->parent_step + 1,
                                      INT64_MAX, BUCKETS_MOST, arena, err));
    for (int64_t i = 0; i < count; i++) {
        double points = (double)(buckets[i].points - buckets[i].not_finite);

        if (buckets[i].mean > 0) {
            seconds_per_token += points / buckets[i].mean;
            taken += points;
        }
    }
    if (taken > 0)
        *out = taken / seconds_per_token;
out:
    return st;
}
