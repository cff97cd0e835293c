/* slow_int: what the files of slow share: slow.c makes windows and judges, slow_findings.c finds. Each function adds a
 * finding to those of the current judgement, if the windows show one. */
#ifndef DT_RUNNER_SUPERVISOR_POLICY_SLOW_INT_H
#define DT_RUNNER_SUPERVISOR_POLICY_SLOW_INT_H

#include "runner/supervisor/policy/slow.h"

/* Returns the own time of a window, in seconds a step; `which` is not used. */
double dt_slow_own(const dt_slow_reading *window, int which);
/* Returns whether the current judgement has a finding with one of these causes. */
bool dt_slow_has(const dt_slow *slow, dt_slow_cause first, dt_slow_cause last);

void dt_slow_judge_last(dt_slow *slow);
void dt_slow_judge_place(dt_slow *slow, dt_slow_part part, dt_slow_cause cause, const char *words);
void dt_slow_judge_processor(dt_slow *slow);
void dt_slow_judge_messages(dt_slow *slow);
void dt_slow_judge_programs(dt_slow *slow);

#endif
