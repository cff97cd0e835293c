/* watchdog: ranks that slow down the others (straggler), make no step for unusually long (silence), or hang
 * (watchdog). Pure functions of facts; no clock, no locks.
 *
 * A pure function of facts: it has no clock but the seconds given with the facts. Facts come with every
 * `alive` of an agent (runner/PROTOCOL.md); each is compared with the previous one of the same rank:
 *
 *   between two facts                                  the rank  it hangs after
 *   its progress count moved (micro-step, layer, op,   ADVANCES  never
 *     piece of a collective or a checkpoint)
 *   no progress, but it used processor time            RUNS      10 x the longest legitimate op,
 *                                                                in processor time
 *   no processor time, although runnable               STARVES   never
 *   no processor time, a disk or swap served it        WORKS     never
 *   no processor time, stopped by a signal             STOPPED   limit; inside a collective only
 *                                                                if all others wait or sleep
 *   no processor time, in an uninterruptible wait or   BLOCKED   2 x limit, 10 x hang_seconds
 *     held by a debugger
 *   no processor time, waits for other ranks           WAITS     2 x limit, if no other rank runs,
 *   no processor time, sleeps                          SLEEPS      starves or works
 *   the same two, computing on a device that it may              5 x limit, 10 x hang_seconds
 *     be waiting for
 *
 * limit: of the silence (below). With two times, the longer counts. A rank that advances clears all ranks: those
 * that wait for it do not hang either. The longest legitimate op is the longest of hang_seconds, the least
 * duration of a step on all threads of the rank, and the most processor time seen between two signs of
 * progress. It is compared with processor time, so a rank that gets a tenth of a processor has ten times
 * as long. A rank without facts is unknown, and a paused or unreachable machine sends no facts: then
 * nothing is decided.
 *
 * On a device, ops are counted when they are submitted, so one long kernel looks like SLEEPS or, if the
 * driver polls, like RUNS: hence the last line. (Not yet observed on a GPU.)
 */
#ifndef DT_RUNNER_SUPERVISOR_POLICY_WATCHDOG_H
#define DT_RUNNER_SUPERVISOR_POLICY_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

/* straggler: finds the rank that slows down the others. A pure function of the waits that ranks report.
 *
 * Ranks wait for each other in the collectives of a step, so all take as long as the slowest; the slowest
 * itself waits least. Every rank reports from time to time how long it waits per step. Once all ranks have
 * reported, a finding is made and the next one begins:
 *
 *   rank      the rank that waits least
 *   seconds   how much longer the other ranks wait per step (their median)
 *
 * Threads    no locks of its own
 */

typedef struct dt_straggler_rank {
    bool heard; /* reported since the last finding */
    double waited_seconds;
    double sorted_seconds; /* scratch: [i] is the i-th shortest wait of all */
} dt_straggler_rank;

typedef struct dt_straggler {
    int64_t rank_count;
    dt_straggler_rank *ranks; /* borrowed */
} dt_straggler;

typedef struct dt_straggler_finding {
    int64_t rank;
    double seconds;
} dt_straggler_finding;

/* ranks: rank_count entries that must outlive the straggler; overwritten. */
void dt_straggler_init(dt_straggler *straggler, dt_straggler_rank *ranks, int64_t rank_count);
/* Adds the wait of a rank per step. Returns true if all ranks have now reported, and fills in
 * *out. */
bool dt_straggler_add(dt_straggler *straggler, int64_t rank, double waited_seconds,
                      dt_straggler_finding *out);

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
 * "and" means the longer of the two. An unusual silence is not a verdict: the watchdog, below,
 * decides what it means.
 *
 * Gaps are measured by the clock of rank 0's node. Silence is the sum of the times that its agent reported
 * (dt_silence_pass): delays by a cut connection, or by a pause of this process or the whole machine, do not
 * count as silence.
 * Units      seconds; time_ms of events
 * Threads    no locks of its own
 */

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

typedef struct dt_watchdog_fact {
    char state;         /* process state as in runner/agent/process/describe.h */
    double cpu_seconds; /* processor time of all its threads so far */
    int64_t work;       /* counter of its disk I/O */
    int64_t progress;   /* progress count of the engine; -1: not reported */
    bool waiting;       /* waits for other ranks in a collective */
} dt_watchdog_fact;

typedef enum dt_watchdog_condition {
    DT_WATCHDOG_UNKNOWN,
    DT_WATCHDOG_ADVANCES,
    DT_WATCHDOG_RUNS,
    DT_WATCHDOG_STARVES,
    DT_WATCHDOG_WORKS,
    DT_WATCHDOG_STOPPED,
    DT_WATCHDOG_BLOCKED,
    DT_WATCHDOG_WAITS,
    DT_WATCHDOG_SLEEPS,
    DT_WATCHDOG_GONE /* it has exited and is ignored */
} dt_watchdog_condition;

typedef struct dt_watchdog_rank {
    dt_watchdog_condition condition;
    dt_watchdog_fact last;
    bool known;               /* a previous fact exists */
    bool device;              /* it computes on a device */
    double threads;           /* at least 1 */
    double still_seconds;     /* time without progress */
    double busy_seconds;      /* processor time of that */
    double condition_seconds; /* time stopped or blocked without a break */
    /* time waiting or sleeping; starving neither interrupts it nor counts */
    double quiet_seconds;
} dt_watchdog_rank;

typedef struct dt_watchdog {
    double hang_seconds, ideal_step_seconds; /* ideal_step_seconds 0: unknown */
    /* most processor time between two signs of progress, of any rank */
    double longest_busy_seconds;
    int64_t rank_count;
    dt_watchdog_rank *ranks; /* borrowed */
} dt_watchdog;

/* ranks: rank_count entries that must outlive the watchdog; overwritten. */
void dt_watchdog_init(dt_watchdog *dog, dt_watchdog_rank *ranks, int64_t rank_count,
                      double hang_seconds);
/* Adds a fact of a rank, and the time since its previous fact by the node's own clock. */
void dt_watchdog_observe(dt_watchdog *dog, int64_t rank, const dt_watchdog_fact *fact,
                         double passed_seconds);
void dt_watchdog_exited(dt_watchdog *dog, int64_t rank);
/* Call when a step was made or a phase entered: all ranks have advanced. */
void dt_watchdog_advanced(dt_watchdog *dog);

typedef enum dt_watchdog_verdict {
    DT_WATCHDOG_FINE,  /* the silence is not unusual */
    DT_WATCHDOG_SLOW,  /* unusual silence without evidence of a hang */
    DT_WATCHDOG_HANGS, /* a rank hangs */
} dt_watchdog_verdict;

/* silent_seconds, limit_seconds: of the silence (above). *rank: the rank that hangs, -1 if none. */
dt_watchdog_verdict dt_watchdog_decide(const dt_watchdog *dog, double silent_seconds,
                                       double limit_seconds, int64_t *rank);

/* The same of programs that dtrun knows nothing of: ranks hang if one was stopped for hang_seconds, or if none has used
 * processor time, waited for a disk or written anything for so long. */
dt_watchdog_verdict dt_watchdog_decide_program(const dt_watchdog *dog, int64_t *rank);

/* Returns "advances", "waits for other ranks", ... for messages. */
const char *dt_watchdog_condition_text(dt_watchdog_condition condition);

#endif
