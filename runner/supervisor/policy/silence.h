/* silence: measures how long no step has come, and how long that usually takes, from the events of rank 0.
 *
 *   phase      from              a silence is unusual after
 *   set-up     the start         60 x hang_seconds (reading and preparing the data may take long)
 *   first      "train"           10 x hang_seconds, and 5 x the fastest possible step
 *   train      the first step    hang_seconds, and 5 x the longest of the last 8 gaps between steps
 *   evaluate   "phase"           10 x hang_seconds, and 5 x the longest evaluation so far
 *   save       "phase"           10 x hang_seconds, and 5 x the longest save so far
 *   ending     "finished"        10 x hang_seconds
 *
 * "and" means the longer of the two. An unusual silence is not a verdict: watchdog.h decides what it means.
 *
 * Gaps are measured by the clock of rank 0's node. Silence is the sum of the times that its agent reported
 * (dt_silence_pass): delays by a cut connection, or by a pause of this process or the whole machine, do not
 * count as silence.
 * Units      seconds; time_ms of events
 * Threads    no locks of its own
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
    double ideal_step_seconds; /* least duration of a step, as reported by the engine; 0: unknown */
    dt_silence_phase phase;
    double seconds;   /* time that passed since the last step or phase */
    bool recalled;    /* the steps come from the history: the current phase is not known yet */
    bool counts;      /* the next reported time began after the last step or phase */
    int64_t since_ms; /* time of the last step or phase, by the node's clock; 0: none yet */
    int64_t step;
    double gaps[DT_SILENCE_GAPS];
    int64_t gaps_count;
    double longest[DT_SILENCE_PHASE_COUNT]; /* longest evaluation and save so far */
    /* whether one has ended: `longest` of a short one is 0 */
    bool ended[DT_SILENCE_PHASE_COUNT];
} dt_silence;

void dt_silence_init(dt_silence *silence, double hang_seconds);
/* Returns true if the step is new. */
bool dt_silence_step(dt_silence *silence, int64_t step, int64_t time_ms);
/* Enters a phase by the engine's name for it. Returns false, and changes nothing, for an unknown
 * name. */
bool dt_silence_enter(dt_silence *silence, const char *phase, int64_t time_ms);
void dt_silence_finished(dt_silence *silence);
/* Marks the steps so far as coming from the history, which does not record phases. */
void dt_silence_recall(dt_silence *silence);
/* Adds time in which a step would have been heard. */
void dt_silence_pass(dt_silence *silence, double seconds);

const char *dt_silence_phase_name(dt_silence_phase phase); /* "training", "saving", ... */
double dt_silence_limit(const dt_silence *silence);
/* Returns the longest recent duration of a step or of the current phase; if none is known yet
 * (first step, first save), how long it may take. */
double dt_silence_usual(const dt_silence *silence);

#endif
