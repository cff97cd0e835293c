/* watch: whether training makes steps, told from the events of rank 0.
 *
 *   phase      from              a hang is silence longer than
 *   set-up     the beginning     60 x hang_seconds (reading and preparing the data may take long)
 *   first      "train"           10 x hang_seconds: all is read, the first step is being made
 *   train      the first step    5 x the longest of the last 8 gaps between steps, and hang_seconds
 *   evaluate   "phase"           5 x the longest yet, and 10 x hang_seconds
 *   save       "phase"           the same of its own
 *   ending     "finished"        10 x hang_seconds
 *
 * Gaps are measured by the clock of rank 0's node, silence by our own since the news came: what a
 * cut connection held back is never taken for a hang.
 * Units      seconds; time_ms of events
 * Threads    none of its own
 */
#ifndef DT_SUPERVISOR_WATCH_H
#define DT_SUPERVISOR_WATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dt_watch_phase {
    DT_WATCH_SETUP,
    DT_WATCH_FIRST,
    DT_WATCH_TRAIN,
    DT_WATCH_EVALUATE,
    DT_WATCH_SAVE,
    DT_WATCH_ENDING,
    DT_WATCH_PHASE_COUNT
} dt_watch_phase;

enum { DT_WATCH_GAPS = 8 };

typedef struct dt_watch {
    double hang_seconds;
    dt_watch_phase phase;
    double since_seconds; /* of our clock: the last sign of progress */
    int64_t since_ms;     /* the same by the node's; 0: none yet */
    int64_t step;
    double gaps[DT_WATCH_GAPS];
    int64_t gaps_count;
    double longest[DT_WATCH_PHASE_COUNT]; /* of evaluate and save */
} dt_watch;

void dt_watch_init(dt_watch *watch, double hang_seconds, double now_seconds);
void dt_watch_step(dt_watch *watch, int64_t step, int64_t time_ms, double now_seconds);
/* As the engine names it; one that is not known changes nothing. */
void dt_watch_enter(dt_watch *watch, const char *phase, int64_t time_ms, double now_seconds);
void dt_watch_finished(dt_watch *watch, double now_seconds);
/* What is silent now is silent for another reason: the clock begins anew. */
void dt_watch_excuse(dt_watch *watch, double now_seconds);

const char *dt_watch_phase_name(dt_watch_phase phase); /* "training", "saving", ... */
double dt_watch_limit(const dt_watch *watch);
double dt_watch_silent(const dt_watch *watch, double now_seconds);

#endif
