/* reason: says in words what a run needs and why it waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "runner/queue/queue.h"
#include "runner/term/term.h"

enum { OTHERS_MOST = 2 }; /* uses of one machine that are named */

static const char *count_text(int64_t count, const char *what, dt_arena *arena)
{
    return dt_arena_printf(arena, "%lld %s%s", (long long)count, what, count == 1 ? "" : "s");
}

static const char *slots_text(int64_t gpus, int64_t cores, dt_arena *arena)
{
    return gpus > 0 || cores == 0 ? count_text(gpus, "GPU", arena)
                                  : count_text(cores, "processor", arena);
}

const char *dt_queue_needs(const dt_order *order, const dt_order_run *run, dt_arena *arena)
{
    const char *text = "";

    if (run->units > 0)
        return slots_text(run->units * run->unit_gpus, run->units * run->unit_cores, arena);
    for (int64_t i = 0; i < run->need_count; i++) {
        int64_t gpus = run->needs[i].gpus, cores = run->needs[i].cores;
        bool before = false; /* nodes on one machine count together */

        for (int64_t j = 0; j < i; j++)
            before = before || run->needs[j].machine == run->needs[i].machine;
        for (int64_t j = i + 1; j < run->need_count; j++)
            if (run->needs[j].machine == run->needs[i].machine) {
                gpus += run->needs[j].gpus;
                cores += run->needs[j].cores;
            }
        if (!before)
            text = dt_arena_printf(arena, "%s%s%s on %s", text, text[0] != '\0' ? ", " : "",
                                   slots_text(gpus, cores, arena),
                                   order->machines[run->needs[i].machine].name);
    }
    if (run->wanted > 0 && run->wanted < run->need_count)
        text = dt_arena_printf(arena, "%lld of: %s", (long long)run->wanted, text);
    return text;
}

/* --- what is free */

static bool uses(const dt_order_run *run, int64_t machine, bool *gpus)
{
    bool used = run->units > 0;

    *gpus = run->unit_gpus > 0;
    for (int64_t i = 0; i < run->need_count; i++)
        if (run->needs[i].machine == machine) {
            used = true;
            *gpus = *gpus || run->needs[i].gpus > 0;
        }
    return used;
}

static const char *free_text(const dt_order *order, const dt_order_run *run, dt_arena *arena)
{
    const char *text = "";

    for (int64_t m = 0; m < order->machine_count; m++) {
        const dt_order_machine *machine = &order->machines[m];
        int64_t gpus = machine->gpus - __builtin_popcountll(machine->foreign);
        int64_t cores = machine->cores;
        bool of_gpus;

        if (!uses(run, m, &of_gpus) || (run->units > 0 && !machine->shared) || machine->closed)
            continue;
        for (int64_t i = 0; i < order->run_count; i++)
            for (int64_t p = 0; !order->runs[i].waits && p < order->runs[i].part_count; p++)
                if (order->runs[i].parts[p].machine == m) {
                    gpus -= __builtin_popcountll(order->runs[i].parts[p].gpus);
                    cores -= order->runs[i].parts[p].cores;
                }
        text = dt_arena_printf(arena, "%s%s%s free on %s", text, text[0] != '\0' ? ", " : "",
                               of_gpus ? count_text(gpus, "GPU", arena)
                                       : count_text(cores > 0 ? cores : 0, "processor", arena),
                               machine->name);
    }
    return text;
}

/* Adds who else uses GPUs of the machine: "GPU 3 of gpu1 is used by pid 4711 (python, user bob)". */
static const char *add_others(const char *text, const dt_queue_facts *facts, int64_t machine,
                              dt_arena *arena)
{
    const char *name = facts->order.machines[machine].name;
    int64_t said = 0, more = 0;

    for (int64_t i = 0; i < facts->gpu_count; i++) {
        if (strcmp(facts->gpus[i].machine, name) != 0)
            continue;
        if (said++ < OTHERS_MOST)
            text = dt_arena_printf(arena, "%s%sGPU %lld of %s is used by %s", text,
                                   text[0] != '\0' ? "; " : "", (long long)facts->gpus[i].gpu, name,
                                   facts->gpus[i].who);
        else
            more++;
    }
    return more == 0 ? text : dt_arena_printf(arena, "%s and %lld more", text, (long long)more);
}

/* The same for all machines that the run may use. */
static const char *others_text(const dt_queue_facts *facts, const dt_order_run *run,
                               dt_arena *arena)
{
    const char *text = "";
    bool gpus;

    for (int64_t m = 0; m < facts->order.machine_count; m++)
        if (uses(run, m, &gpus) && gpus && (run->units == 0 || facts->order.machines[m].shared) &&
            !facts->order.machines[m].closed)
            text = add_others(text, facts, m, arena);
    return text;
}

static const char *closed_text(const dt_queue_facts *facts, const dt_order_run *run,
                               dt_arena *arena)
{
    const dt_order *order = &facts->order;
    const char *text = "", *others;

    for (int64_t m = 0; m < order->machine_count; m++) {
        bool gpus;

        if (uses(run, m, &gpus) && (run->units == 0 || order->machines[m].shared) &&
            order->machines[m].closed)
            text = dt_arena_printf(arena, "%s%s%s is drained", text, text[0] != '\0' ? ", " : "",
                                   order->machines[m].name);
    }
    others = others_text(facts, run, arena);
    return dt_arena_printf(arena, "%s%s%s", text, text[0] != '\0' && others[0] != '\0' ? "; " : "",
                           others);
}

/* --- times */

static const char *wait_text(int64_t ms, dt_arena *arena)
{
    char text[DT_FORMAT_SIZE];

    return dt_arena_strdup(arena,
                           dt_format_seconds(text, sizeof(text), (double)(ms > 0 ? ms : 0) / 1000));
}

static const char *time_text(int64_t ms, int64_t now_ms, dt_arena *arena)
{
    time_t seconds = (time_t)(ms / 1000);
    char text[64];
    struct tm when;

    localtime_r(&seconds, &when);
    strftime(text, sizeof(text), ms - now_ms < 12 * 3600000 ? "%H:%M" : "%Y-%m-%d %H:%M", &when);
    return dt_arena_strdup(arena, text);
}

static const char *name_of(const dt_queue_facts *facts, int64_t index, dt_arena *arena)
{
    return index < 0
               ? "another run"
               : dt_arena_printf(arena, "%s (%s)", facts->runs[index].id, facts->runs[index].name);
}

/* --- the line */

const char *dt_queue_reason(const dt_queue_facts *facts, int64_t index, dt_arena *arena)
{
    const dt_order *order = &facts->order;
    const dt_order_run *run = &order->runs[index],
                       *other = run->about >= 0 ? &order->runs[run->about] : NULL;
    const dt_queue_entry *entry = dt_queue_entry_find(&facts->file, run->id);
    const char *name = name_of(facts, run->about, arena);
    const char *rest = "", *others;

    switch (run->verdict) {
    case DT_ORDER_START:
        return "starts now";
    case DT_ORDER_STOPPING:
        return dt_arena_printf(arena, "%s is being stopped for it", name);
    case DT_ORDER_FULL:
        rest = other->end_ms > 0 ? dt_arena_printf(arena, "; %s ends in about %s", name,
                                                   wait_text(other->end_ms - order->now_ms, arena))
                                 : dt_arena_printf(arena, "; %s uses it", name);
        others = others_text(facts, run, arena);
        return dt_arena_printf(arena, "%s%s%s%s", free_text(order, run, arena), rest,
                               others[0] != '\0' ? "; " : "", others);
    case DT_ORDER_GUARANTEED:
        return dt_arena_printf(arena, "%s; %s may be preempted in %s", free_text(order, run, arena),
                               name, wait_text(other->guaranteed_until_ms - order->now_ms, arena));
    case DT_ORDER_BEHIND:
        return dt_arena_printf(arena, "would delay %s", name);
    case DT_ORDER_HELD:
        return "held: 'dtrun queue release' lets it start";
    case DT_ORDER_EARLY:
        if (entry != NULL && entry->not_before_ms != run->not_before_ms &&
            entry->refused[0] != '\0')
            return entry->refused;
        return dt_arena_printf(arena, "not before %s",
                               time_text(run->not_before_ms, order->now_ms, arena));
    case DT_ORDER_AFTER:
        return dt_arena_printf(arena, "after %s", entry != NULL ? entry->after : "another run");
    case DT_ORDER_DROPPED:
        return dt_arena_printf(arena, "%s did not finish",
                               entry != NULL ? entry->after : "another run");
    case DT_ORDER_LIMIT:
        return "as many runs of its group run as may at once";
    case DT_ORDER_CLOSED:
        return closed_text(facts, run, arena);
    case DT_ORDER_NEVER:
        return "no machine has what it needs";
    case DT_ORDER_NONE:
    case DT_ORDER_PREEMPT:
        break;
    }
    return "";
}

/* --- the order */

static _Thread_local const dt_order_run *sorting;

static int by_order(const void *a, const void *b)
{
    return dt_order_compare(&sorting[*(const int64_t *)a], &sorting[*(const int64_t *)b]);
}

void dt_queue_sorted(int64_t **out, int64_t *count, const dt_queue_facts *facts, dt_arena *arena)
{
    *out = dt_arena_alloc_array(arena, (size_t)facts->order.run_count + 1, sizeof(**out));
    *count = 0;
    for (int64_t i = 0; i < facts->order.run_count; i++)
        if (facts->order.runs[i].waits)
            (*out)[(*count)++] = i;
    sorting = facts->order.runs;
    qsort(*out, (size_t)*count, sizeof(**out), by_order);
}
