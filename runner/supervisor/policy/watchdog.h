/* watchdog: decides whether ranks that make no step hang, from evidence alone.
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
 * limit: from silence.h. With two times, the longer counts. A rank that advances clears all ranks: those
 * that wait for it do not hang either. The longest legitimate op is the longest of hang_seconds, the least
 * duration of a step on all threads of the rank, and the most processor time seen between two signs of
 * progress. It is compared with processor time, so a rank that gets a tenth of a processor has ten times
 * as long. A rank without facts is unknown, and a paused or unreachable machine sends no facts: then
 * nothing is decided.
 *
 * On a device, ops are counted when they are submitted, so one long kernel looks like SLEEPS or, if the
 * driver polls, like RUNS: hence the last line. (Not yet observed on a GPU.)
 */
#ifndef DT_POLICY_WATCHDOG_H
#define DT_POLICY_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dt_watchdog_fact {
    char state;         /* process state as in runner/agent/process/activity.h */
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

/* silent_seconds, limit_seconds: from silence.h. *rank: the rank that hangs, -1 if none. */
dt_watchdog_verdict dt_watchdog_decide(const dt_watchdog *dog, double silent_seconds,
                                       double limit_seconds, int64_t *rank);

/* The same of programs that dtrun knows nothing of: ranks hang if one was stopped for hang_seconds, or if none has used
 * processor time, waited for a disk or written anything for so long. */
dt_watchdog_verdict dt_watchdog_decide_program(const dt_watchdog *dog, int64_t *rank);

/* Returns "advances", "waits for other ranks", ... for messages. */
const char *dt_watchdog_condition_words(dt_watchdog_condition condition);

#endif
