/* silence: how long no step has come, and how long that is usual, told from the events of rank 0.
 *
 *   phase      from              silence is unusual after
 *   set-up     the beginning     60 x hang_seconds (reading and preparing the data may take long)
 *   first      "train"           10 x hang_seconds: all is read, the first step is being made
 *   train      the first step    5 x the longest of the last 8 gaps between steps, and hang_seconds
 *   evaluate   "phase"           5 x the longest yet, and 10 x hang_seconds
 *   save       "phase"           the same of its own
 *   ending     "finished"        10 x hang_seconds
 *
 * Before the first gap is known, no less than 5 x what the engine says a step takes at least.
 * Unusual is no verdict: watchdog.h decides what it means.
 *
 * Gaps are measured by the clock of rank 0's node. Silence is the sum of what its agent has seen
 * pass (dt_silence_pass): what a cut connection holds back, or a pause of this process or of the
 * whole machine, is no silence.
 * Units      seconds; time_ms of events
 * Threads    none of its own
 */
#ifndef DT_POLICY_SILENCE_H
#define DT_POLICY_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dt_silence_phase {
    DT_SILENCE_SETUP,
    DT_SILENCE_FIRST,
    DT_SILENCE_TRAIN,
    DT_SILENCE_EVALUATE,
    DT_SILENCE_SAVE,
    DT_SILENCE_ENDING,
    DT_SILENCE_PHASE_COUNT
} dt_silence_phase;

enum { DT_SILENCE_GAPS = 8 };

typedef struct dt_silence {
    double hang_seconds;
    double ideal_step_seconds; /* what the engine says that a step takes at least; 0: not known */
    dt_silence_phase phase;
    double seconds;   /* that were seen to pass since the last step or phase */
    bool recalled;    /* the steps are those of the history: what it is at now was not heard yet */
    bool counts;      /* the next that pass began after it */
    int64_t since_ms; /* when that came, by the node's clock; 0: none yet */
    int64_t step;
    double gaps[DT_SILENCE_GAPS];
    int64_t gaps_count;
    double longest[DT_SILENCE_PHASE_COUNT]; /* of evaluate and save */
    bool ended[DT_SILENCE_PHASE_COUNT];     /* whether one has: `longest` is 0 ms for a short one */
} dt_silence;

void dt_silence_init(dt_silence *silence, double hang_seconds);
/* True where the step is new. */
bool dt_silence_step(dt_silence *silence, int64_t step, int64_t time_ms);
/* As the engine names it; one that is not known changes nothing and gives false. */
bool dt_silence_enter(dt_silence *silence, const char *phase, int64_t time_ms);
void dt_silence_finished(dt_silence *silence);
/* What was taken so far came from the history, which knows of steps alone. */
void dt_silence_recall(dt_silence *silence);
/* So much time has passed in which a step would have been heard. */
void dt_silence_pass(dt_silence *silence, double seconds);

const char *dt_silence_phase_name(dt_silence_phase phase); /* "training", "saving", ... */
double dt_silence_limit(const dt_silence *silence);
/* How long a step, or the phase that it is in, took at most of late; where none is known yet, as of the first
 * step or the first save, how long it may take. */
double dt_silence_usual(const dt_silence *silence);

#endif
