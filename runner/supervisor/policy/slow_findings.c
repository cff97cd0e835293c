/* slow_findings: who is last, where and why; what all ranks lack; the network; and programs. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runner/supervisor/policy/slow_int.h"

#define LATE_SHARE    0.10 /* of a step: less is not worth a sentence */
#define COMMON_SHARE  0.20 /* of a step, of something that all ranks lack */
#define EVIDENT_SHARE 0.30 /* of a delay, that a cause explains */
#define ONE_PLACE     0.70 /* of a delay, that is in one place */
#define SLOW_CLOCK    0.85 /* of the frequency that a processor can have */
#define LATE_LINK     5.0  /* times the median round trip */
#define LINK_SECONDS  0.005

static const char *const place_words[DT_SLOW_PLACES] = {
    [DT_SLOW_LOOP] = "between the steps",      [DT_SLOW_INPUT] = "reading its input",
    [DT_SLOW_FORWARD] = "in the forward pass", [DT_SLOW_BACKWARD] = "in the backward pass",
    [DT_SLOW_UPDATE] = "in the update",        [DT_SLOW_SAVE] = "saving",
};

/* --- numbers of several ranks */

static double median_of(double *values, int64_t count)
{
    for (int64_t i = 1; i < count; i++)
        for (int64_t j = i; j > 0 && values[j - 1] > values[j]; j--) {
            double swap = values[j];

            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    return count == 0       ? 0
           : count % 2 != 0 ? values[count / 2]
                            : (values[count / 2 - 1] + values[count / 2]) / 2;
}

enum { COMPARED = 4096 }; /* ranks; of more, the first are compared */

typedef double number_of(const dt_slow_reading *window, int which);

/* Median over the ranks except one (-1: all). Unknown values are left out; negative if none is known. */
static double median_but(const dt_slow *slow, int64_t besides, number_of *number, int which)
{
    double values[COMPARED];
    int64_t count = 0;

    for (int64_t i = 0; i < slow->rank_count && count < COMPARED; i++) {
        double value = number(&slow->ranks[i].window, which);

        if (i != besides && value >= 0)
            values[count++] = value;
    }
    return count > 0 ? median_of(values, count) : -1;
}

double dt_slow_own(const dt_slow_reading *window, int which)
{
    double sum = 0;

    for (int i = 0; i < DT_SLOW_PLACES; i++)
        sum += window->own[i];
    return sum;
}

static double place_of(const dt_slow_reading *window, int which)
{
    return window->own[which];
}

static double unit_of(const dt_slow_reading *window, int which)
{
    return window->unit[which];
}

static double delay_of(const dt_slow_reading *window, int which)
{
    return window->delay;
}

/* Share of the time in which the rank had work: of its busiest threads together, at most all of it. */
static double working_of(const dt_slow_reading *window, int which)
{
    double working = window->first_run + window->first_delay, all = window->run + window->delay;

    if (window->run < 0 || window->delay < 0)
        return -1;
    working = all > working ? all : working;
    return working > 1 ? 1 : working;
}

static double clock_of(const dt_slow_reading *window, int which)
{
    return window->mhz > 0 && window->mhz_most > 0 ? window->mhz / window->mhz_most : -1;
}

static double at_least_0(double value)
{
    return value > 0 ? value : 0;
}

/* --- findings */

static void write_text(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void write_text(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;

    va_start(args, format);
    vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

#define SAY(finding, ...) write_text((finding)->text, sizeof((finding)->text), __VA_ARGS__)
#define EVIDENCE(finding, ...) \
    write_text((finding)->evidence, sizeof((finding)->evidence), __VA_ARGS__)

/* Writes a time with its unit; returns `out`. */
static const char *write_time(char out[24], double seconds)
{
    snprintf(out, 24, seconds < 1 ? "%.3g ms" : "%.3g s", seconds < 1 ? 1e3 * seconds : seconds);
    return out;
}

#define TIME(seconds) write_time((char[24]){""}, seconds)

static double percent(double share)
{
    return 100 * (share > 1 ? 1 : share);
}

static const char *name_of(const dt_slow *slow, int64_t rank)
{
    return slow->node_of(slow->context, rank);
}

static dt_slow_finding *new_finding(dt_slow *slow, int64_t rank)
{
    int *count = &slow->recent_count[slow->judgements % DT_SLOW_LAST];
    dt_slow_finding *out =
        &slow->recent[slow->judgements % DT_SLOW_LAST]
                     [*count < DT_SLOW_FINDINGS ? (*count)++ : DT_SLOW_FINDINGS - 1];

    *out = (dt_slow_finding){.rank = rank, .place = -1, .unit = -1, .cause = DT_SLOW_BY_UNKNOWN};
    return out;
}

/* Processor time, by the second, of the ranks that may use the same processors. */
static double run_of_ranks(const dt_slow *slow, int64_t rank, int64_t *ranks)
{
    const dt_slow_reading *window = &slow->ranks[rank].window;
    double run = 0;

    *ranks = 0;
    for (int64_t i = 0; i < slow->rank_count; i++) {
        const dt_slow_reading *other = &slow->ranks[i].window;

        if (strcmp(name_of(slow, i), name_of(slow, rank)) != 0 ||
            strcmp(other->processors, window->processors) != 0)
            continue;
        run += at_least_0(other->run);
        (*ranks)++;
    }
    return run;
}

/* Says who uses the processors of the rank. */
static void add_processors(dt_slow_finding *out, const dt_slow *slow, int64_t rank)
{
    const dt_slow_reading *window = &slow->ranks[rank].window;
    const char *noun = window->processor_count == 1 ? "processor" : "processors";
    int64_t ranks;
    double run = run_of_ranks(slow, rank, &ranks);

    if (window->busy < 0 || window->run < 0 || window->processor_count <= 0)
        return;
    EVIDENCE(out, "; it may use only %s %s, of which ", noun, window->processors);
    if (ranks > 1)
        EVIDENCE(out, "%lld ranks of this run use %.0f %% and ", (long long)ranks,
                 percent(run / window->processor_count));
    else
        EVIDENCE(out, "it uses %.0f %% and ", percent(run / window->processor_count));
    EVIDENCE(out, "other processes %.0f %%",
             percent(at_least_0(window->busy - run) / window->processor_count));
}

/* Finds a lack of processor time that explains `share` of the time. others: delay of the other ranks. */
static bool explain_by_processor(dt_slow_finding *out, const dt_slow *slow, int64_t rank,
                                 double share, double others, double others_clock)
{
    const dt_slow_reading *window = &slow->ranks[rank].window;
    const char *it = out->rank >= 0 ? "it" : "they", *its = out->rank >= 0 ? "its" : "their";
    double delay = at_least_0(window->delay) - at_least_0(others), needed = EVIDENT_SHARE * share;
    double clock = clock_of(window, 0);

    if (window->limited > needed) {
        out->cause = DT_SLOW_BY_LIMIT;
        SAY(out, "the processor limit of %s control group stops %s", its,
            out->rank >= 0 ? "it" : "them");
        EVIDENCE(out, "throttled_usec of its cpu.stat grew for %.0f %% of the time",
                 percent(window->limited));
        return true;
    }
    if (window->processor_count > 0 && window->stolen / window->processor_count > needed) {
        out->cause = DT_SLOW_BY_STEAL;
        SAY(out, "the host of the virtual machine takes processor time from %s",
            out->rank >= 0 ? "it" : "them");
        EVIDENCE(out, "%.0f %% of the time of processor %s was stolen (/proc/stat)",
                 percent(window->stolen / window->processor_count), window->processors);
        return true;
    }
    if (window->delay >= 0 && delay > needed) {
        out->cause = DT_SLOW_BY_SHARING;
        SAY(out, out->rank >= 0 ? "%s lacks a processor" : "%s lack processors", it);
        EVIDENCE(out, "%s threads could run but had no processor for %.0f %% of the time",
                 out->rank >= 0 ? "its" : "the", percent(window->delay));
        if (others >= 0)
            EVIDENCE(out, " (the other ranks %.0f %%)", percent(others));
        add_processors(out, slow, rank);
        return true;
    }
    if (clock > 0 && clock < SLOW_CLOCK &&
        (others_clock < 0 || clock < SLOW_CLOCK * others_clock)) {
        out->cause = DT_SLOW_BY_FREQUENCY;
        SAY(out, "%s processor is throttled (%.1f of %.1f GHz)", its, window->mhz / 1e3,
            window->mhz_most / 1e3);
        EVIDENCE(out, "cpufreq of processor %s%s", window->processors,
                 window->heat_stops > 0 ? "; heat throttled it meanwhile" : "");
        return true;
    }
    return false;
}

/* Sets the place of a delay, and the unit if it is in the backward pass. */
static void find_place(dt_slow_finding *out, const dt_slow *slow, int64_t rank, double late)
{
    const dt_slow_reading *window = &slow->ranks[rank].window;
    double most = 0, most_of_unit = 0;
    int place = -1, unit = -1;

    for (int i = 0; i < DT_SLOW_PLACES; i++) {
        double more = window->own[i] - median_but(slow, rank, place_of, i);

        if (more > most) {
            most = more;
            place = i;
        }
    }
    if (most < ONE_PLACE * late)
        return;
    out->place = place;
    for (int i = 0; place == DT_SLOW_BACKWARD && i < window->units; i++) {
        double more = window->unit[i] - median_but(slow, rank, unit_of, i);

        if (more > most_of_unit) {
            most_of_unit = more;
            unit = i;
        }
    }
    if (window->units > 1 && most_of_unit > ONE_PLACE * late)
        out->unit = unit;
}

static void say_place(dt_slow_finding *out, const dt_slow_reading *window)
{
    if (out->place < 0)
        SAY(out, "in all that it computes");
    else
        SAY(out, "%s", place_words[out->place]);
    if (out->unit == 0)
        SAY(out, ", in the embedding or the head");
    else if (out->unit > 0 && window->units < DT_SLOW_UNITS)
        SAY(out, ", in block %d of %d", out->unit, window->units - 1);
    else if (out->unit > 0) /* units share entries */
        SAY(out, ", in part %d of %d of its blocks", out->unit, window->units - 1);
}

static void explain_by_place(dt_slow_finding *out, const dt_slow *slow, int64_t rank)
{
    const dt_slow_reading *window = &slow->ranks[rank].window;
    double working = working_of(window, 0);
    double own_share = dt_slow_own(window, 0) / (dt_slow_own(window, 0) + window->blocked);
    bool sleeps = working >= 0 && working < own_share - EVIDENT_SHARE * out->share;

    if (out->place == DT_SLOW_INPUT || out->place == DT_SLOW_SAVE) {
        out->cause = out->place == DT_SLOW_INPUT ? DT_SLOW_BY_INPUT : DT_SLOW_BY_SAVING;
        SAY(out,
            out->place == DT_SLOW_INPUT ? "its input is slow" : "its disk or snapshot is slow");
        EVIDENCE(out, "%s takes %s of its step, %s on the other ranks",
                 out->place == DT_SLOW_INPUT ? "input" : "saving", TIME(window->own[out->place]),
                 TIME(median_but(slow, rank, place_of, out->place)));
        if (out->place == DT_SLOW_INPUT && window->read_bytes >= 0)
            EVIDENCE(out, "; its process reads %.3g MB/s from the disk", window->read_bytes / 1e6);
        if (out->place == DT_SLOW_SAVE && window->written_bytes >= 0)
            EVIDENCE(out, "; its process writes %.3g MB/s to the disk",
                     window->written_bytes / 1e6);
        return;
    }
    out->cause = sleeps ? DT_SLOW_BY_SLEEP : DT_SLOW_BY_COMPUTING;
    SAY(out, sleeps ? "the cause is not known: it sleeps outside of collectives"
                    : "the cause is not known: it computes longer than the others");
    if (working < 0)
        EVIDENCE(out, "its own time by its stopwatch; its processor time is not readable here");
    else
        EVIDENCE(out,
                 "it used a processor for %.0f %% of the time and lacked one for %.0f %%; no "
                 "counter tells why",
                 percent(window->run), percent(at_least_0(window->delay)));
}

/* Finds the rank that arrives last at the collectives. */
void dt_slow_judge_last(dt_slow *slow)
{
    const dt_slow_reading *window;
    int64_t last = 0;
    dt_slow_finding *out;
    double late, step;

    if (slow->rank_count < 2)
        return;
    for (int64_t i = 1; i < slow->rank_count; i++)
        if (dt_slow_own(&slow->ranks[i].window, 0) > dt_slow_own(&slow->ranks[last].window, 0))
            last = i;
    window = &slow->ranks[last].window;
    late = dt_slow_own(window, 0) - median_but(slow, last, dt_slow_own, 0);
    step = dt_slow_own(window, 0) + window->blocked;
    if (step <= 0 || late < LATE_SHARE * step)
        return;
    out = new_finding(slow, last);
    out->seconds = late;
    out->share = late / step;
    find_place(out, slow, last, late);
    SAY(out, "rank %lld on %s arrives last: the others wait %s of a step of %s (%.0f %%). ",
        (long long)last, name_of(slow, last), TIME(late), TIME(step), percent(out->share));
    SAY(out, "It loses the time ");
    say_place(out, window);
    SAY(out, "; ");
    if (out->place == DT_SLOW_INPUT || out->place == DT_SLOW_SAVE ||
        !explain_by_processor(out, slow, last, out->share, median_but(slow, last, delay_of, 0),
                              median_but(slow, last, clock_of, 0)))
        explain_by_place(out, slow, last);
}

/* --- what all ranks lack */

void dt_slow_judge_place(dt_slow *slow, dt_slow_part part, dt_slow_cause cause, const char *words)
{
    double share = slow->parts[part] / slow->step_seconds, bytes = 0;
    dt_slow_finding *out;

    if (share < COMMON_SHARE)
        return;
    for (int64_t i = 0; i < slow->rank_count; i++) {
        const dt_slow_reading *window = &slow->ranks[i].window;

        bytes += at_least_0(part == DT_SLOW_READING ? window->read_bytes : window->written_bytes);
    }
    out = new_finding(slow, -1);
    out->cause = cause;
    out->seconds = slow->parts[part];
    out->share = share;
    SAY(out, "%s takes %s of a step of %s (%.0f %%)", words, TIME(out->seconds),
        TIME(slow->step_seconds), percent(share));
    EVIDENCE(out, "stopwatch of the ranks; all together %s %.3g MB/s %s the disk",
             part == DT_SLOW_READING ? "read" : "write", bytes / 1e6,
             part == DT_SLOW_READING ? "from" : "to");
}

bool dt_slow_has(const dt_slow *slow, dt_slow_cause first, dt_slow_cause last)
{
    int at = (int)(slow->judgements % DT_SLOW_LAST);

    for (int i = 0; i < slow->recent_count[at]; i++)
        if (slow->recent[at][i].cause >= first && slow->recent[at][i].cause <= last)
            return true;
    return false;
}

/* All ranks, or the only one, lack processor time. */
void dt_slow_judge_processor(dt_slow *slow)
{
    int64_t typical = 0;
    dt_slow_finding found = {.rank = slow->rank_count == 1 ? 0 : -1, .place = -1, .unit = -1};
    double delay = median_but(slow, -1, delay_of, 0);
    const dt_slow_reading *window;

    if (dt_slow_has(slow, DT_SLOW_BY_LIMIT, DT_SLOW_BY_FREQUENCY))
        return;
    for (int64_t i = 1; i < slow->rank_count; i++)
        if (fabs(slow->ranks[i].window.delay - delay) <
            fabs(slow->ranks[typical].window.delay - delay))
            typical = i;
    window = &slow->ranks[typical].window;
    if (slow->rank_count == 1)
        SAY(&found, "rank 0 on %s is slow: ", name_of(slow, 0));
    else
        SAY(&found, "all ranks are slow, as rank %lld on %s: ", (long long)typical,
            name_of(slow, typical));
    if (!explain_by_processor(&found, slow, typical, COMMON_SHARE / EVIDENT_SHARE, -1, -1))
        return;
    found.share = found.cause == DT_SLOW_BY_LIMIT     ? window->limited
                  : found.cause == DT_SLOW_BY_STEAL   ? window->stolen / window->processor_count
                  : found.cause == DT_SLOW_BY_SHARING ? window->delay
                                                      : 1 - clock_of(window, 0);
    found.share = found.share > 1 ? 1 : found.share;
    found.seconds = found.share * (slow->is_command ? 1 : slow->step_seconds);
    *new_finding(slow, found.rank) = found;
}

/* --- the network */

static int64_t rank_with_address(const dt_slow *slow, const char *address)
{
    for (int64_t i = 0; i < slow->rank_count; i++)
        for (int p = 0; p < slow->ranks[i].window.peer_count; p++)
            if (strcmp(slow->ranks[i].window.peers[p].local, address) == 0)
                return i;
    return -1;
}

/* The slowest connection between two nodes; *usual: median round trip of those that join other nodes. */
static const dt_slow_peer *slowest_link(const dt_slow *slow, int64_t *rank, double *usual)
{
    const dt_slow_peer *slowest = NULL;
    double values[COMPARED];
    int64_t count = 0;

    for (int64_t i = 0; i < slow->rank_count; i++)
        for (int p = 0; p < slow->ranks[i].window.peer_count; p++) {
            const dt_slow_peer *peer = &slow->ranks[i].window.peers[p];

            if (slowest == NULL || peer->round_trip_seconds > slowest->round_trip_seconds) {
                slowest = peer;
                *rank = i;
            }
        }
    for (int64_t i = 0; slowest != NULL && i < slow->rank_count; i++)
        for (int p = 0; p < slow->ranks[i].window.peer_count && count < COMPARED; p++) {
            const dt_slow_peer *peer = &slow->ranks[i].window.peers[p];
            bool same = (strcmp(peer->local, slowest->local) == 0 &&
                         strcmp(peer->remote, slowest->remote) == 0) ||
                        (strcmp(peer->local, slowest->remote) == 0 &&
                         strcmp(peer->remote, slowest->local) == 0);

            if (!same)
                values[count++] = peer->round_trip_seconds;
        }
    *usual = count > 0 ? median_of(values, count) : -1;
    return slowest;
}

/* A rank without a processor also delays the messages that it takes part in, however early it arrives. Returns
 * whether one is found. */
static bool judge_rank_in_messages(dt_slow *slow, double share)
{
    dt_slow_finding found = {.place = -1, .unit = -1};
    int64_t worst = 0;

    for (int64_t i = 1; i < slow->rank_count; i++)
        if (slow->ranks[i].window.delay > slow->ranks[worst].window.delay)
            worst = i;
    found.rank = worst;
    found.share = share;
    found.seconds = slow->parts[DT_SLOW_MESSAGES];
    SAY(&found, "messages take %s of a step of %s (%.0f %%): rank %lld on %s delays them; ",
        TIME(found.seconds), TIME(slow->step_seconds), percent(share), (long long)worst,
        name_of(slow, worst));
    if (!explain_by_processor(&found, slow, worst, share, median_but(slow, worst, delay_of, 0),
                              median_but(slow, worst, clock_of, 0)))
        return false;
    *new_finding(slow, worst) = found;
    return true;
}

void dt_slow_judge_messages(dt_slow *slow)
{
    double share = slow->parts[DT_SLOW_MESSAGES] / slow->step_seconds, usual;
    const dt_slow_peer *link;
    dt_slow_finding *out;
    int64_t rank = -1, other = -1;

    if (slow->rank_count < 2 || share < COMMON_SHARE)
        return;
    link = slowest_link(slow, &rank, &usual);
    if (link != NULL && (link->round_trip_seconds < LINK_SECONDS ||
                         (usual >= 0 && link->round_trip_seconds < LATE_LINK * usual)))
        link = NULL;
    if (link == NULL && (dt_slow_has(slow, DT_SLOW_BY_LIMIT, DT_SLOW_BY_FREQUENCY) ||
                         judge_rank_in_messages(slow, share)))
        return;
    out = new_finding(slow, -1);
    out->cause = DT_SLOW_BY_NETWORK;
    out->seconds = slow->parts[DT_SLOW_MESSAGES];
    out->share = share;
    SAY(out, "messages take %s of a step of %s (%.0f %%)", TIME(out->seconds),
        TIME(slow->step_seconds), percent(share));
    if (link != NULL) {
        other = rank_with_address(slow, link->remote);
        SAY(out, "; the network between %s and %s is slow", name_of(slow, rank),
            other >= 0 ? name_of(slow, other) : link->remote);
        EVIDENCE(out, "a round trip between the two takes %s", TIME(link->round_trip_seconds));
        if (usual >= 0)
            EVIDENCE(out, ", %s between other nodes", TIME(usual));
        EVIDENCE(out, " (TCP); ");
    }
    EVIDENCE(out, "every rank is blocked for at least so long, also the one that arrives last");
    if (slow->least[DT_SLOW_MESSAGES] > 0)
        EVIDENCE(out, "; at the best rate of this run its bytes would take %s",
                 TIME(slow->least[DT_SLOW_MESSAGES]));
}

/* --- programs */

void dt_slow_judge_programs(dt_slow *slow)
{
    const dt_slow_reading *window;
    int64_t last = -1;
    double others, late;
    dt_slow_finding *out;

    for (int64_t i = 0; i < slow->rank_count; i++)
        if (last < 0 ||
            working_of(&slow->ranks[i].window, 0) > working_of(&slow->ranks[last].window, 0))
            last = i;
    if (slow->rank_count < 2)
        return;
    window = &slow->ranks[last].window;
    others = median_but(slow, last, working_of, 0);
    late = working_of(window, 0) - others;
    if (others < 0 || late < COMMON_SHARE)
        return;
    out = new_finding(slow, last);
    out->seconds = out->share = late;
    SAY(out, "rank %lld on %s holds the others up: they sleep %.0f %% of the time, it %.0f %%; ",
        (long long)last, name_of(slow, last), percent(1 - others),
        percent(1 - working_of(window, 0)));
    for (int64_t i = 0; i < slow->rank_count; i++) {
        const dt_slow_reading *other = &slow->ranks[i].window;

        if (i == last || other->asleep_in[0] == '\0' || other->samples_asleep < 1)
            continue;
        EVIDENCE(out, "rank %lld slept in the kernel's %s in %.0f of %.0f samples; ", (long long)i,
                 other->asleep_in, other->samples_asleep, other->samples);
        break;
    }
    if (explain_by_processor(out, slow, last, late, median_but(slow, last, delay_of, 0),
                             median_but(slow, last, clock_of, 0)))
        return;
    out->cause = DT_SLOW_BY_COMPUTING;
    SAY(out, "it computes longer, the cause is not known");
    EVIDENCE(out, "it used a processor for %.0f %% of the time and lacked one for %.0f %%",
             percent(window->run), percent(at_least_0(window->delay)));
}
