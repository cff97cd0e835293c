#include "runner/supervisor/watch.h"

#include <string.h>

#include "base/banned.h"

#define TIMES        5.0  /* the usual, before it is a hang */
#define SETUP_TIMES  60.0 /* of hang_seconds */
#define SELDOM_TIMES 10.0

void dt_watch_init(dt_watch *watch, double hang_seconds, double now_seconds)
{
    *watch = (dt_watch){.hang_seconds = hang_seconds, .since_seconds = now_seconds};
}

static double since(const dt_watch *watch, int64_t time_ms)
{
    return watch->since_ms == 0 || time_ms < watch->since_ms
               ? 0
               : (double)(time_ms - watch->since_ms) / 1000.0;
}

static void progress(dt_watch *watch, dt_watch_phase phase, int64_t time_ms, double now_seconds)
{
    watch->phase = phase;
    watch->since_ms = time_ms;
    watch->since_seconds = now_seconds;
}

void dt_watch_step(dt_watch *watch, int64_t step, int64_t time_ms, double now_seconds)
{
    if (step <= watch->step)
        return;
    if (watch->phase == DT_WATCH_TRAIN)
        watch->gaps[watch->gaps_count++ % DT_WATCH_GAPS] = since(watch, time_ms);
    watch->step = step;
    progress(watch, DT_WATCH_TRAIN, time_ms, now_seconds);
}

void dt_watch_enter(dt_watch *watch, const char *phase, int64_t time_ms, double now_seconds)
{
    double took = since(watch, time_ms);
    dt_watch_phase next;

    if (strcmp(phase, "evaluate") == 0)
        next = DT_WATCH_EVALUATE;
    else if (strcmp(phase, "save") == 0)
        next = DT_WATCH_SAVE;
    else if (strcmp(phase, "train") == 0)
        next = watch->step > 0 ? DT_WATCH_TRAIN : DT_WATCH_FIRST;
    else
        return;
    if (took > watch->longest[watch->phase])
        watch->longest[watch->phase] = took;
    progress(watch, next, time_ms, now_seconds);
}

void dt_watch_finished(dt_watch *watch, double now_seconds)
{
    progress(watch, DT_WATCH_ENDING, 0, now_seconds);
}

void dt_watch_excuse(dt_watch *watch, double now_seconds)
{
    watch->since_seconds = now_seconds;
}

const char *dt_watch_phase_name(dt_watch_phase phase)
{
    static const char *const names[DT_WATCH_PHASE_COUNT] = {
        "setting up", "making the first step", "training", "evaluating", "saving", "ending"};

    return names[phase];
}

static double longest_gap(const dt_watch *watch)
{
    double longest = 0;

    for (int64_t i = 0; i < DT_WATCH_GAPS && i < watch->gaps_count; i++)
        longest = watch->gaps[i] > longest ? watch->gaps[i] : longest;
    return longest;
}

double dt_watch_limit(const dt_watch *watch)
{
    double least = SELDOM_TIMES * watch->hang_seconds, usual = watch->longest[watch->phase];

    if (watch->phase == DT_WATCH_SETUP)
        return SETUP_TIMES * watch->hang_seconds;
    if (watch->phase == DT_WATCH_TRAIN) {
        least = watch->hang_seconds;
        usual = longest_gap(watch);
    }
    return TIMES * usual > least ? TIMES * usual : least;
}

double dt_watch_silent(const dt_watch *watch, double now_seconds)
{
    return now_seconds - watch->since_seconds;
}
