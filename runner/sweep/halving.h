/* halving: which run of a sweep is stopped early. A pure function of what runs have reached.
 *
 * Rungs      after, 2 after, 4 after, ... steps. At a rung a run has the last value of the metric up to there
 * Rule       of all runs that have reached a rung, ended ones too, the best `keep` of them (rounded up, at least
 *            one) continue; a run that is not among them is stopped. It is asked again at every look, so that runs
 *            one after another are judged by those before them: successive halving (Jamieson and Talwalkar
 *            2016) without waiting for each other (Li et al. 2018)
 * Ties       the earlier point wins; a value that is no number is the worst
 */
#ifndef DT_SWEEP_HALVING_H
#define DT_SWEEP_HALVING_H

#include <stdbool.h>
#include <stdint.h>

/* Values of all runs at one rung, NaN: no number; there[i]: run i has reached it. */
bool dt_halving_cuts(const double *values, const bool *there, int64_t count, int64_t which,
                     double keep);

#endif
