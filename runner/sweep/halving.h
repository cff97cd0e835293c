/* halving: which run of a sweep is stopped early. A pure function of what runs have reached.
 *
 * Rungs      after, 2 after, 4 after, ... steps. At a rung a run has the last value of the metric up to there
 * Rule       of all runs that have reached a rung, ended ones too, the best `keep` of them (rounded up, at least
 *            one) continue; a run that is not among them is stopped. A run that was cut at an earlier rung does not
 *            compete, though it may come so far before it has ended. A run is cut only if a run that was not cut is
 *            better at the rung: the best of those always continues, so that never all are cut. It is asked again at every look, so that runs
 *            one after another are judged by those before them: successive halving (Jamieson and Talwalkar
 *            2016) without waiting for each other (Li et al. 2018)
 * Ties       the earlier point wins; a value that is no number is the worst
 */
#ifndef DT_SWEEP_HALVING_H
#define DT_SWEEP_HALVING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_halving_run {
    double value; /* at the rung; NaN: no number */
    bool there;   /* it has reached the rung */
    int64_t cut;  /* the rung that it was cut at; 0: it was not */
} dt_halving_run;

/* Whether the run `which`, which was not cut, is stopped at the rung. */
bool dt_halving_cuts(const dt_halving_run *runs, int64_t count, int64_t which, int64_t rung,
                     double keep);

#endif
