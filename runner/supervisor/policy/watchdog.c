/* watchdog: finds ranks that slow down the others, measures how long no step has come, and decides whether
 * ranks hang. */
#include "runner/supervisor/policy/watchdog.h"

#include <math.h>
#include <string.h>

/* --- straggler */

void dt_straggler_init(dt_straggler *straggler, dt_straggler_rank *ranks, int64_t rank_count)
{
    *straggler = (dt_straggler){.rank_count = rank_count, .ranks = ranks};
    for (int64_t i = 0; i < rank_count; i++)
        ranks[i] = (dt_straggler_rank){0};
}

/* Returns the median wait; sorts in the scratch fields of the ranks. */
static double median_waited(dt_straggler *straggler)
{
    dt_straggler_rank *ranks = straggler->ranks;

    for (int64_t i = 0; i < straggler->rank_count; i++) {
        int64_t at = i;

        for (; at > 0 && ranks[at - 1].sorted_seconds > ranks[i].waited_seconds; at--)
            ranks[at].sorted_seconds = ranks[at - 1].sorted_seconds;
        ranks[at].sorted_seconds = ranks[i].waited_seconds;
    }
    return ranks[straggler->rank_count / 2].sorted_seconds;
}

static bool all_heard(const dt_straggler *straggler)
{
    bool all = true;

    for (int64_t i = 0; i < straggler->rank_count; i++)
        all = all && straggler->ranks[i].heard;
    return all;
}

bool dt_straggler_add(dt_straggler *straggler, int64_t rank, double waited_seconds,
                      dt_straggler_finding *out)
{
    dt_straggler_rank *ranks = straggler->ranks;

    ranks[rank].waited_seconds = waited_seconds;
    ranks[rank].heard = true;
    if (!all_heard(straggler))
        return false;
    out->rank = 0;
    for (int64_t i = 0; i < straggler->rank_count; i++) {
        ranks[i].heard = false;
        if (ranks[i].waited_seconds < ranks[out->rank].waited_seconds)
            out->rank = i;
    }
    out->seconds = median_waited(straggler) - ranks[out->rank].waited_seconds;
    return true;
}

/* --- silence */

#define TIMES        5.0  /* a silence is unusual after this many times the usual time */
#define SETUP_TIMES  60.0 /* times hang_seconds */
#define SELDOM_TIMES 10.0

void dt_silence_init(dt_silence *silence, double hang_seconds)
{
    *silence = (dt_silence){.hang_seconds = hang_seconds};
}

static double since(const dt_silence *silence, int64_t time_ms)
{
    return silence->since_ms == 0 || time_ms < silence->since_ms
               ? 0
               : (double)(time_ms - silence->since_ms) / 1000.0;
}

static void progress(dt_silence *silence, dt_silence_phase phase, int64_t time_ms)
{
    silence->phase = phase;
    silence->recalled = false;
    silence->since_ms = time_ms;
    silence->seconds = 0;
    silence->counts = false;
}

bool dt_silence_step(dt_silence *silence, int64_t step, int64_t time_ms)
{
    if (step <= silence->step)
        return false;
    if (silence->phase == DT_SILENCE_TRAIN)
        silence->gaps[silence->gaps_count++ % DT_SILENCE_GAPS] = since(silence, time_ms);
    silence->step = step;
    progress(silence, DT_SILENCE_TRAIN, time_ms);
    return true;
}

bool dt_silence_enter(dt_silence *silence, const char *phase, int64_t time_ms)
{
    double took = since(silence, time_ms);
    dt_silence_phase next;

    if (strcmp(phase, "evaluate") == 0)
        next = DT_SILENCE_EVALUATE;
    else if (strcmp(phase, "save") == 0)
        next = DT_SILENCE_SAVE;
    else if (strcmp(phase, "train") == 0 || strcmp(phase, "generate") == 0 ||
             strcmp(phase, "score") == 0)
        next = silence->step > 0 ? DT_SILENCE_TRAIN : DT_SILENCE_FIRST;
    else
        return false;
    if (took > silence->longest[silence->phase])
        silence->longest[silence->phase] = took;
    /* otherwise the clock was set back, and the duration is unknown */
    if (time_ms >= silence->since_ms)
        silence->ended[silence->phase] = true;
    progress(silence, next, time_ms);
    return true;
}

void dt_silence_finished(dt_silence *silence)
{
    progress(silence, DT_SILENCE_ENDING, 0);
}

void dt_silence_recall(dt_silence *silence)
{
    silence->recalled = silence->phase == DT_SILENCE_TRAIN;
}

void dt_silence_pass(dt_silence *silence, double seconds)
{
    if (silence->counts)
        silence->seconds += seconds;
    silence->counts = true;
}

const char *dt_silence_phase_name(dt_silence_phase phase)
{
    static const char *const names[DT_SILENCE_PHASE_COUNT] = {
        "setting up", "making the first step", "training", "evaluating", "saving", "ending"};

    return names[phase];
}

static double longest_gap(const dt_silence *silence)
{
    double longest = silence->gaps_count == 0 ? silence->ideal_step_seconds : 0;

    for (int64_t i = 0; i < DT_SILENCE_GAPS && i < silence->gaps_count; i++)
        longest = silence->gaps[i] > longest ? silence->gaps[i] : longest;
    return longest;
}

double dt_silence_limit(const dt_silence *silence)
{
    double least = SELDOM_TIMES * silence->hang_seconds, usual = silence->longest[silence->phase];

    if (silence->phase == DT_SILENCE_SETUP)
        return SETUP_TIMES * silence->hang_seconds;
    if (silence->phase == DT_SILENCE_FIRST)
        usual = silence->ideal_step_seconds;
    if (silence->phase == DT_SILENCE_TRAIN) {
        least = silence->hang_seconds;
        usual = longest_gap(silence);
    }
    return TIMES * usual > least ? TIMES * usual : least;
}

/* True if the duration of the current phase is known. */
static bool is_known(const dt_silence *silence)
{
    switch (silence->phase) {
    case DT_SILENCE_FIRST:
        return false;
    case DT_SILENCE_TRAIN:
        return silence->gaps_count > 0;
    case DT_SILENCE_EVALUATE:
    case DT_SILENCE_SAVE:
        return silence->ended[silence->phase];
    default:
        return true; /* no step is due */
    }
}

double dt_silence_usual(const dt_silence *silence)
{
    double gap = longest_gap(silence), phase = silence->longest[silence->phase];
    bool seldom = silence->phase == DT_SILENCE_EVALUATE || silence->phase == DT_SILENCE_SAVE;

    if (silence->recalled) /* the run may be at its first save */
        return fmax(SELDOM_TIMES * silence->hang_seconds, TIMES * gap);
    if (!is_known(silence))
        return dt_silence_limit(silence);
    return seldom && phase > gap ? phase : gap;
}

/* --- watchdog */

#define RUNS_TIMES    10.0 /* times the longest legitimate op */
#define BLOCKED_TIMES 2.0  /* times the limit */
#define QUIET_TIMES   2.0
#define DEVICE_TIMES  5.0
#define PATIENT_TIMES 10.0 /* times hang_seconds */

/* Share of processor time that listening and polling threads use: below it a rank does not count
 * as running. A rank that waits for many peers polls each of them. */
#define IDLE_SHARE    0.02
#define WAITING_SHARE 0.05
#define IDLE_SECONDS  0.02 /* two kernel clock ticks */

void dt_watchdog_init(dt_watchdog *dog, dt_watchdog_rank *ranks, int64_t rank_count,
                      double hang_seconds)
{
    *dog = (dt_watchdog){.hang_seconds = hang_seconds, .rank_count = rank_count, .ranks = ranks};
    for (int64_t i = 0; i < rank_count; i++)
        ranks[i] = (dt_watchdog_rank){.threads = 1, .last = {.progress = -1}};
}

/* --- facts */

static void clear(dt_watchdog_rank *rank)
{
    rank->still_seconds = rank->busy_seconds = 0;
    rank->condition_seconds = rank->quiet_seconds = 0;
}

static dt_watchdog_condition condition_of(const dt_watchdog_rank *rank,
                                          const dt_watchdog_fact *fact, double used, double passed)
{
    double idle = (fact->waiting ? WAITING_SHARE : IDLE_SHARE) * passed;

    if (fact->progress >= 0 && rank->last.progress >= 0 && fact->progress != rank->last.progress)
        return DT_WATCHDOG_ADVANCES;
    if (fact->state == 'T' && used <= 0)
        return DT_WATCHDOG_STOPPED;
    if (fact->state == 'T' || used > fmax(idle, IDLE_SECONDS))
        return DT_WATCHDOG_RUNS; /* also a rank that is stopped repeatedly */
    if (fact->work != rank->last.work)
        return DT_WATCHDOG_WORKS;
    if (fact->state == 'D' || fact->state == 't')
        return DT_WATCHDOG_BLOCKED;
    if (fact->state == 'R')
        return DT_WATCHDOG_STARVES;
    return fact->waiting ? DT_WATCHDOG_WAITS : DT_WATCHDOG_SLEEPS;
}

static bool is_quiet(dt_watchdog_condition condition)
{
    return condition == DT_WATCHDOG_WAITS || condition == DT_WATCHDOG_SLEEPS;
}

/* Adds the time to the counters of the condition that lasts; other conditions start again from
 * 0. */
static void count(dt_watchdog_rank *rank, dt_watchdog_condition now, double used, double passed)
{
    rank->still_seconds += passed;
    if (now == DT_WATCHDOG_RUNS)
        rank->busy_seconds += used < passed ? used : passed;
    if (now != rank->condition)
        rank->condition_seconds = 0;
    if (now == DT_WATCHDOG_STOPPED || now == DT_WATCHDOG_BLOCKED)
        rank->condition_seconds += passed;
    if (is_quiet(now))
        rank->quiet_seconds += passed;
    else if (now != DT_WATCHDOG_STARVES)
        rank->quiet_seconds = 0;
}

void dt_watchdog_observe(dt_watchdog *dog, int64_t at, const dt_watchdog_fact *fact,
                         double passed_seconds)
{
    dt_watchdog_rank *rank = &dog->ranks[at];
    double used = fact->cpu_seconds - rank->last.cpu_seconds;
    dt_watchdog_condition now;

    if (rank->condition == DT_WATCHDOG_GONE)
        return;
    now = rank->known ? condition_of(rank, fact, used, passed_seconds) : DT_WATCHDOG_UNKNOWN;
    if (now == DT_WATCHDOG_ADVANCES) {
        dog->longest_busy_seconds = fmax(dog->longest_busy_seconds, rank->busy_seconds);
        clear(rank);
    } else if (rank->known) {
        count(rank, now, used, passed_seconds);
    }
    rank->condition = now;
    rank->last = (dt_watchdog_fact){fact->state, fact->cpu_seconds, fact->work,
                                    fact->progress >= 0 ? fact->progress : rank->last.progress,
                                    fact->waiting};
    rank->known = true;
}

void dt_watchdog_exited(dt_watchdog *dog, int64_t rank)
{
    dog->ranks[rank].condition = DT_WATCHDOG_GONE;
}

void dt_watchdog_advanced(dt_watchdog *dog)
{
    for (int64_t i = 0; i < dog->rank_count; i++) {
        dog->longest_busy_seconds = fmax(dog->longest_busy_seconds, dog->ranks[i].busy_seconds);
        clear(&dog->ranks[i]);
    }
}

/* --- conclusions */

static double longest_honest_op(const dt_watchdog *dog, const dt_watchdog_rank *rank)
{
    return fmax(fmax(dog->hang_seconds, dog->ideal_step_seconds * rank->threads),
                dog->longest_busy_seconds);
}

/* True if this rank alone proves a hang, whatever the others do. */
static bool hangs_alone(const dt_watchdog *dog, const dt_watchdog_rank *rank, double limit)
{
    double patient = PATIENT_TIMES * dog->hang_seconds;

    switch (rank->condition) {
    case DT_WATCHDOG_STOPPED:
        return !rank->last.waiting && rank->condition_seconds > limit;
    case DT_WATCHDOG_BLOCKED:
        return rank->condition_seconds > fmax(BLOCKED_TIMES * limit, patient);
    case DT_WATCHDOG_RUNS:
        return rank->busy_seconds > fmax(limit, RUNS_TIMES * longest_honest_op(dog, rank));
    default:
        return false;
    }
}

/* True if the rank has been quiet long enough to count as hanging, provided that all others are
 * too. */
static bool is_quiet_for_long(const dt_watchdog *dog, const dt_watchdog_rank *rank, double limit)
{
    double enough = QUIET_TIMES * limit;

    if (rank->device)
        enough = fmax(fmax(DEVICE_TIMES * limit, PATIENT_TIMES * dog->hang_seconds),
                      RUNS_TIMES * dog->ideal_step_seconds);
    return is_quiet(rank->condition) && rank->quiet_seconds > enough;
}

/* Returns the rank that was stopped first inside a collective, provided that all other ranks
 * wait or sleep, so that only this rank can let them advance; -1 if there is none. A rank that
 * is throttled by repeated stops, and otherwise waits, looks the same; hence the condition on
 * the others. */
static int64_t stopped_in_collective(const dt_watchdog *dog, double limit)
{
    int64_t found = -1;

    for (int64_t i = 0; i < dog->rank_count; i++) {
        const dt_watchdog_rank *rank = &dog->ranks[i];

        if (rank->condition != DT_WATCHDOG_GONE && !is_quiet(rank->condition) &&
            !rank->last.waiting)
            return -1;
        if (rank->condition == DT_WATCHDOG_STOPPED && rank->condition_seconds > limit &&
            (found < 0 || rank->condition_seconds > dog->ranks[found].condition_seconds))
            found = i;
    }
    return found;
}

/* Returns the rank that the others wait for: one that sleeps, else any. */
static int64_t culprit(const dt_watchdog *dog)
{
    int64_t found = -1;

    for (int64_t i = 0; i < dog->rank_count; i++)
        if (dog->ranks[i].condition != DT_WATCHDOG_GONE &&
            (found < 0 || (dog->ranks[i].condition == DT_WATCHDOG_SLEEPS &&
                           dog->ranks[found].condition != DT_WATCHDOG_SLEEPS)))
            found = i;
    return found;
}

static double shortest_still(const dt_watchdog *dog, double silent)
{
    for (int64_t i = 0; i < dog->rank_count; i++)
        if (dog->ranks[i].condition != DT_WATCHDOG_GONE)
            silent = fmin(silent, dog->ranks[i].still_seconds);
    return silent;
}

dt_watchdog_verdict dt_watchdog_decide(const dt_watchdog *dog, double silent_seconds,
                                       double limit_seconds, int64_t *rank)
{
    bool all_quiet = true;

    *rank = -1;
    if (silent_seconds <= limit_seconds)
        return DT_WATCHDOG_FINE;
    if (shortest_still(dog, silent_seconds) <= limit_seconds)
        return DT_WATCHDOG_SLOW; /* a rank has advanced since, or its condition is unknown */
    for (int64_t i = 0; i < dog->rank_count; i++) {
        if (hangs_alone(dog, &dog->ranks[i], limit_seconds)) {
            *rank = i;
            return DT_WATCHDOG_HANGS;
        }
        all_quiet = all_quiet && (dog->ranks[i].condition == DT_WATCHDOG_GONE ||
                                  is_quiet_for_long(dog, &dog->ranks[i], limit_seconds));
    }
    *rank = stopped_in_collective(dog, limit_seconds);
    if (*rank >= 0)
        return DT_WATCHDOG_HANGS;
    *rank = culprit(dog);
    return all_quiet && *rank >= 0 ? DT_WATCHDOG_HANGS : DT_WATCHDOG_SLOW;
}

/* Returns how long the program has done nothing at all. */
static double idle_seconds(const dt_watchdog_rank *rank)
{
    if (rank->condition == DT_WATCHDOG_STOPPED || rank->condition == DT_WATCHDOG_BLOCKED)
        return fmin(rank->condition_seconds, rank->still_seconds);
    return is_quiet(rank->condition) ? rank->quiet_seconds : 0;
}

dt_watchdog_verdict dt_watchdog_decide_program(const dt_watchdog *dog, int64_t *rank)
{
    bool all_idle = true;

    *rank = -1;
    for (int64_t i = 0; i < dog->rank_count; i++) {
        const dt_watchdog_rank *one = &dog->ranks[i];

        if (one->condition == DT_WATCHDOG_GONE)
            continue;
        all_idle = all_idle && idle_seconds(one) > dog->hang_seconds;
        if (one->condition == DT_WATCHDOG_STOPPED && one->condition_seconds > dog->hang_seconds) {
            *rank = i;
            return DT_WATCHDOG_HANGS;
        }
        if (*rank < 0)
            *rank = i;
    }
    return all_idle && *rank >= 0 ? DT_WATCHDOG_HANGS : DT_WATCHDOG_FINE;
}

const char *dt_watchdog_condition_text(dt_watchdog_condition condition)
{
    static const char *const texts[] = {
        [DT_WATCHDOG_UNKNOWN] = "has not reported yet",
        [DT_WATCHDOG_ADVANCES] = "advances",
        [DT_WATCHDOG_RUNS] = "computes",
        [DT_WATCHDOG_STARVES] = "waits for a processor",
        [DT_WATCHDOG_WORKS] = "waits for disk I/O",
        [DT_WATCHDOG_STOPPED] = "is stopped",
        [DT_WATCHDOG_BLOCKED] = "is blocked in the kernel",
        [DT_WATCHDOG_WAITS] = "waits for other ranks",
        [DT_WATCHDOG_SLEEPS] = "sleeps",
        [DT_WATCHDOG_GONE] = "has ended",
    };

    return texts[condition];
}
