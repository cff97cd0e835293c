/* halving: decides which run of a sweep is stopped early. */
#include <math.h>

#include "runner/sweep/sweep_int.h"

static bool is_better(double a, double b)
{
    return !isnan(a) && (isnan(b) || a < b);
}

static bool competes(const dt_halving_run *run, int64_t rung)
{
    return run->there && (run->cut == 0 || run->cut >= rung);
}

bool dt_halving_cuts(const dt_halving_run *runs, int64_t count, int64_t which, int64_t rung,
                     double keep)
{
    int64_t reached = 0, ahead = 0, uncut_ahead = 0, places;

    if (!competes(&runs[which], rung))
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (!competes(&runs[i], rung))
            continue;
        reached++;
        if (i != which && (is_better(runs[i].value, runs[which].value) ||
                           (i < which && !is_better(runs[which].value, runs[i].value)))) {
            ahead++;
            uncut_ahead += runs[i].cut == 0;
        }
    }
    places = (int64_t)ceil(keep * (double)reached - 1e-9);
    return uncut_ahead > 0 && ahead >= (places > 1 ? places : 1);
}
