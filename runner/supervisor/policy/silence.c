#include "runner/supervisor/policy/silence.h"

#include <math.h>
#include <string.h>

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
