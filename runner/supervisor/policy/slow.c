/* slow: makes windows of counters, the parts of a step and their floors, and decides which findings count. */
#include "runner/supervisor/policy/slow_int.h"

#include <string.h>

const char *const dt_slow_place_names[DT_SLOW_PLACES] = {
    [DT_SLOW_LOOP] = "loop",         [DT_SLOW_INPUT] = "input",   [DT_SLOW_FORWARD] = "forward",
    [DT_SLOW_BACKWARD] = "backward", [DT_SLOW_UPDATE] = "update", [DT_SLOW_SAVE] = "save",
};

const char *const dt_slow_part_names[DT_SLOW_PARTS] = {
    [DT_SLOW_PRODUCTS] = "products",
    [DT_SLOW_ATTENTION] = "attention",
    [DT_SLOW_ARITHMETIC] = "other arithmetic",
    [DT_SLOW_MESSAGES] = "messages",
    [DT_SLOW_WAITING] = "waiting for other ranks",
    [DT_SLOW_READING] = "input",
    [DT_SLOW_SAVING] = "saving",
    [DT_SLOW_HOST] = "host",
};

const char *const dt_slow_cause_names[DT_SLOW_BY_UNKNOWN + 1] = {
    [DT_SLOW_BY_LIMIT] = "processor_limit",
    [DT_SLOW_BY_STEAL] = "stolen_processor",
    [DT_SLOW_BY_SHARING] = "shared_processor",
    [DT_SLOW_BY_FREQUENCY] = "throttled_processor",
    [DT_SLOW_BY_INPUT] = "input",
    [DT_SLOW_BY_SAVING] = "saving",
    [DT_SLOW_BY_NETWORK] = "network",
    [DT_SLOW_BY_SLEEP] = "sleep",
    [DT_SLOW_BY_COMPUTING] = "computing",
    [DT_SLOW_BY_UNKNOWN] = "unknown",
};

void dt_slow_init(dt_slow *slow, dt_slow_rank *ranks, int64_t rank_count, bool is_command,
                  double least_seconds, const char *(*node_of)(const void *context, int64_t rank),
                  const void *context)
{
    *slow = (dt_slow){.is_command = is_command,
                      .least_seconds = least_seconds,
                      .rank_count = rank_count,
                      .ranks = ranks,
                      .node_of = node_of,
                      .context = context};
    for (int64_t i = 0; i < rank_count; i++)
        ranks[i] = (dt_slow_rank){0};
}

/* --- windows */

/* Sets *out to the difference, by `unit`; unknown if one of the two is. */
static double per(double now, double before, double unit)
{
    return now < 0 || before < 0 ? -1 : now < before ? 0 : (now - before) / unit;
}

/* Sums of steps become seconds a step, sums from outside become shares of the time. */
static void make_window(dt_slow_rank *rank, bool is_command)
{
    const dt_slow_reading *now = &rank->last, *before = &rank->before;
    double seconds = now->at_seconds - before->at_seconds;
    double steps = is_command ? 1 : (double)(now->steps - before->steps);
    dt_slow_reading *out = &rank->window;

    *out = *now;
    rank->window_seconds = seconds;
    rank->window_steps = steps;
    for (int i = 0; i < DT_SLOW_PLACES; i++)
        out->own[i] = per(now->own[i], before->own[i], steps);
    for (int i = 0; i < DT_SLOW_UNITS; i++)
        out->unit[i] = per(now->unit[i], before->unit[i], steps);
    out->blocked = per(now->blocked, before->blocked, steps);
    out->products = per(now->products, before->products, steps);
    out->attention = per(now->attention, before->attention, steps);
    out->arithmetic = per(now->arithmetic, before->arithmetic, steps);
    out->host = per(now->host, before->host, steps);
    out->products_flops = per(now->products_flops, before->products_flops, steps);
    out->attention_flops = per(now->attention_flops, before->attention_flops, steps);
    out->sent_bytes = per(now->sent_bytes, before->sent_bytes, steps);

    out->run = per(now->run, before->run, seconds);
    out->delay = per(now->delay, before->delay, seconds);
    out->first_run = per(now->first_run, before->first_run, seconds);
    out->first_delay = per(now->first_delay, before->first_delay, seconds);
    out->limited = per(now->limited, before->limited, seconds);
    out->busy = per(now->busy, before->busy, seconds);
    out->stolen = per(now->stolen, before->stolen, seconds);
    out->heat_stops = per(now->heat_stops, before->heat_stops, seconds);
    out->read_bytes = per(now->read_bytes, before->read_bytes, seconds);
    out->written_bytes = per(now->written_bytes, before->written_bytes, seconds);
    out->samples = per(now->samples, before->samples, 1);
    out->samples_asleep = per(now->samples_asleep, before->samples_asleep, 1);
}

/* --- a judgement */

static void make_parts(dt_slow *slow)
{
    double blocked = -1, count = (double)slow->rank_count, most_waiting = 0;
    double *parts = slow->parts;

    memset(slow->parts, 0, sizeof(slow->parts));
    slow->step_seconds = 0;
    for (int64_t i = 0; i < slow->rank_count; i++) {
        double of_rank = slow->ranks[i].window.blocked;

        blocked = blocked < 0 || of_rank < blocked ? of_rank : blocked;
    }
    for (int64_t i = 0; i < slow->rank_count; i++) {
        const dt_slow_reading *window = &slow->ranks[i].window;

        parts[DT_SLOW_PRODUCTS] += window->products / count;
        parts[DT_SLOW_ATTENTION] += window->attention / count;
        parts[DT_SLOW_ARITHMETIC] += window->arithmetic / count;
        parts[DT_SLOW_MESSAGES] += blocked / count;
        parts[DT_SLOW_WAITING] += (window->blocked - blocked) / count;
        parts[DT_SLOW_READING] += window->own[DT_SLOW_INPUT] / count;
        parts[DT_SLOW_SAVING] += window->own[DT_SLOW_SAVE] / count;
        parts[DT_SLOW_HOST] += window->host / count;
        slow->step_seconds += (dt_slow_own(window, 0) + window->blocked) / count;
        most_waiting =
            window->blocked - blocked > most_waiting ? window->blocked - blocked : most_waiting;
    }
    slow->waiting_seconds = most_waiting;
}

/* The floors: operations at the measured rate of products, bytes at the measured bandwidth. */
static void make_floors(dt_slow *slow)
{
    const dt_slow_reading *window = &slow->ranks[0].window;
    double rate = window->flops_per_second, memory = window->memory_bytes_per_second;

    for (int i = 0; i < DT_SLOW_PARTS; i++)
        slow->least[i] = -1;
    if (rate > 0 && !window->is_device) {
        slow->least[DT_SLOW_PRODUCTS] = window->products_flops / rate;
        slow->least[DT_SLOW_ATTENTION] = window->attention_flops / rate;
    }
    if (memory > 0)
        slow->least[DT_SLOW_ARITHMETIC] = window->step_bytes / memory;
    if (slow->rank_count < 2)
        slow->least[DT_SLOW_MESSAGES] = 0;
    else if (window->best_bytes_per_second > 0)
        slow->least[DT_SLOW_MESSAGES] = window->sent_bytes / window->best_bytes_per_second;
    slow->least[DT_SLOW_WAITING] = slow->least[DT_SLOW_READING] = slow->least[DT_SLOW_SAVING] = 0;
    slow->least[DT_SLOW_HOST] = 0;
}

/* How many of the last judgements have such a finding. */
static int count_recent(const dt_slow *slow, const dt_slow_finding *finding)
{
    int found = 0;

    for (int at = 0; at < DT_SLOW_LAST; at++)
        for (int i = 0; i < slow->recent_count[at]; i++)
            if (slow->recent[at][i].cause == finding->cause &&
                slow->recent[at][i].rank == finding->rank) {
                found++;
                break;
            }
    return found;
}

/* Keeps the findings of this judgement that recent ones had too; the worst first. */
static void confirm(dt_slow *slow)
{
    int now = (int)(slow->judgements % DT_SLOW_LAST);

    slow->finding_count = 0;
    for (int i = 0; i < slow->recent_count[now]; i++) {
        const dt_slow_finding *finding = &slow->recent[now][i];
        int at = slow->finding_count;

        if (count_recent(slow, finding) < DT_SLOW_OF_LAST)
            continue;
        for (; at > 0 && slow->findings[at - 1].share < finding->share; at--)
            slow->findings[at] = slow->findings[at - 1];
        slow->findings[at] = *finding;
        slow->finding_count++;
    }
}

static void judge(dt_slow *slow)
{
    slow->recent_count[slow->judgements % DT_SLOW_LAST] = 0;
    if (slow->is_command) {
        dt_slow_judge_programs(slow);
    } else {
        make_parts(slow);
        make_floors(slow);
        dt_slow_judge_last(slow);
        if (!dt_slow_has(slow, DT_SLOW_BY_INPUT, DT_SLOW_BY_INPUT))
            dt_slow_judge_place(slow, DT_SLOW_READING, DT_SLOW_BY_INPUT, "reading input");
        if (!dt_slow_has(slow, DT_SLOW_BY_SAVING, DT_SLOW_BY_SAVING))
            dt_slow_judge_place(slow, DT_SLOW_SAVING, DT_SLOW_BY_SAVING, "saving");
    }
    dt_slow_judge_processor(slow);
    if (!slow->is_command)
        dt_slow_judge_messages(slow);
    confirm(slow);
    slow->judgements++;
}

bool dt_slow_add(dt_slow *slow, int64_t rank, const dt_slow_reading *reading)
{
    dt_slow_rank *of = &slow->ranks[rank];
    bool all = true;

    if (!of->known || reading->steps < of->before.steps ||
        reading->at_seconds < of->before.at_seconds) {
        of->before = *reading;
        of->known = true;
        of->heard = false;
        return false;
    }
    if (reading->at_seconds - of->before.at_seconds < slow->least_seconds ||
        (!slow->is_command && (reading->steps == of->before.steps || of->before.steps == 0))) {
        if (!slow->is_command && of->before.steps == 0)
            of->before = *reading;
        return false;
    }
    of->last = *reading;
    make_window(of, slow->is_command);
    of->before = of->last;
    of->heard = true;
    for (int64_t i = 0; i < slow->rank_count; i++)
        all = all && slow->ranks[i].heard;
    if (!all)
        return false;
    for (int64_t i = 0; i < slow->rank_count; i++)
        slow->ranks[i].heard = false;
    judge(slow);
    return true;
}
