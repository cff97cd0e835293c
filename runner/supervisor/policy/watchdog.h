/* watchdog: whether ranks that make no step hang, told from evidence alone.
 *
 * A pure function of facts: it knows no clock but the seconds that it is given with them, asks
 * nobody, and does nothing. Facts come with every `alive` of an agent (runner/PROTOCOL.md); each is
 * held against the one before it of the same rank:
 *
 *   between two facts                                  the rank  so long, and it hangs
 *   its count of progress moved (micro-step, layer,    ADVANCES  never
 *     op, piece of a collective or a checkpoint)
 *   not so, but it got processor time                  RUNS      10 x the longest honest op,
 *                                                                in time that it really got
 *   got none, though it would run                      STARVES   never
 *   got none, a disk or swap served it                 WORKS     never
 *   got none, stopped by a signal                      STOPPED   limit; inside a collective only
 *                                                                where all others wait or sleep
 *   got none, in a wait that nothing interrupts, or    BLOCKED   2 x limit, 10 x hang_seconds
 *     held by a debugger
 *   got none, waits for other ranks                    WAITS     2 x limit, and no other rank
 *   got none, sleeps                                   SLEEPS      runs, starves or works
 *   the same, and computes on a device that may be               5 x limit, 10 x hang_seconds
 *     what it waits for
 *
 * limit: of silence.h, at least. A rank that advances clears all: whoever waits for it is not
 * hanging either. The longest honest op: hang_seconds, what a step takes at least on all threads of
 * the rank, or the most processor time that was seen between two signs of progress. Since it is
 * compared with the time that the rank got, one that gets a tenth of a processor has ten times as
 * long. Nothing is known of a rank of which no fact has come, and no fact comes from a machine that
 * is paused or cannot be heard: nothing is then decided.
 *
 * On a device ops are counted when they are given to it, so that one long kernel looks like SLEEPS
 * or, where the driver polls, like RUNS: hence the last line. (Not yet seen on a card.)
 */
#ifndef DT_POLICY_WATCHDOG_H
#define DT_POLICY_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_watchdog_fact {
    char state;         /* of the process, as runner/agent/process/activity.h has it */
    double cpu_seconds; /* that all its threads have used so far */
    int64_t work;       /* grows with what disks do for it */
    int64_t progress;   /* of the engine; -1: it does not say */
    bool waiting;       /* for other ranks, in a collective */
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
    DT_WATCHDOG_GONE /* it has exited: not asked about any more */
} dt_watchdog_condition;

typedef struct dt_watchdog_rank {
    dt_watchdog_condition condition;
    dt_watchdog_fact last;
    bool known;               /* there is a last fact */
    bool device;              /* it computes on one */
    double threads;           /* at least 1 */
    double still_seconds;     /* without progress */
    double busy_seconds;      /* ... of which it got a processor */
    double condition_seconds; /* stopped or blocked, without a break */
    double quiet_seconds;     /* waits or sleeps; starving does not break it, nor count */
} dt_watchdog_rank;

typedef struct dt_watchdog {
    double hang_seconds, ideal_step_seconds; /* the latter 0: not known */
    double longest_busy_seconds;             /* between two signs of progress, of any rank */
    int64_t rank_count;
    dt_watchdog_rank *ranks; /* borrowed */
} dt_watchdog;

/* ranks: rank_count of them, which live as long as the watchdog; overwritten. */
void dt_watchdog_init(dt_watchdog *dog, dt_watchdog_rank *ranks, int64_t rank_count,
                      double hang_seconds);
/* A fact, and how much time has passed since the one before it as its own node saw it. */
void dt_watchdog_observe(dt_watchdog *dog, int64_t rank, const dt_watchdog_fact *fact,
                         double passed_seconds);
void dt_watchdog_exited(dt_watchdog *dog, int64_t rank);
/* A step was made, or a phase entered: all have advanced. */
void dt_watchdog_advanced(dt_watchdog *dog);

typedef enum dt_watchdog_verdict {
    DT_WATCHDOG_FINE,  /* not silent for longer than usual */
    DT_WATCHDOG_SLOW,  /* silent, and no evidence that anything hangs */
    DT_WATCHDOG_HANGS, /* no honest explanation is left */
} dt_watchdog_verdict;

/* silent_seconds, limit_seconds: of silence.h. *rank: whose evidence it is. */
dt_watchdog_verdict dt_watchdog_decide(const dt_watchdog *dog, double silent_seconds,
                                       double limit_seconds, int64_t *rank);

/* "advances", "gets processor time": for people. */
const char *dt_watchdog_condition_words(dt_watchdog_condition condition);

#endif
