#include "runner/queue/order.h"

#include <stdlib.h>
#include <string.h>

/* What is free on a machine, and what of it is kept for runs that wait. */
typedef struct room {
    uint64_t free, kept; /* masks of GPUs; `kept` may name GPUs that are not free yet */
    int64_t cores, kept_cores;
    int64_t kept_from_ms; /* when the first of what is kept is needed; 0: now, or unknown */
    int64_t kept_for;     /* run */
    bool open;
} room;

typedef struct view {
    dt_order *order;
    dt_arena *arena;
    room *rooms;           /* by machine */
    room *trial, *scratch; /* the same, to try something */
    int64_t *running;      /* by group */
    int64_t *by_end;       /* runs with a place, by their expected end; unknown ends last */
    int64_t *by_worth;     /* those that had it before, in the order in which they are preempted */
    int64_t active, before;
    bool preempts;   /* a run was chosen to be preempted */
    int64_t blocked; /* the first run that did not start for lack of slots; -1: none */
} view;

static uint64_t all_gpus(const dt_order_machine *machine)
{
    return machine->gpus >= DT_ORDER_GPUS_MOST ? ~UINT64_C(0) : (UINT64_C(1) << machine->gpus) - 1;
}

/* --- rooms */

static room empty_room(const dt_order_machine *machine, bool also_closed)
{
    return (room){.free = all_gpus(machine) & (also_closed ? ~UINT64_C(0) : ~machine->foreign),
                  .cores = machine->cores,
                  .kept_for = -1,
                  .open = also_closed || !machine->closed};
}

static void take(room *rooms, const dt_order_part *parts, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        rooms[parts[i].machine].free &= ~parts[i].gpus;
        rooms[parts[i].machine].cores -= parts[i].cores;
    }
}

static void give(const dt_order_machine *machines, room *rooms, const dt_order_part *parts,
                 int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        rooms[parts[i].machine].free |= parts[i].gpus & ~machines[parts[i].machine].foreign;
        rooms[parts[i].machine].cores += parts[i].cores;
    }
}

/* Keeps a place for the run, which needs it from `from_ms` on. */
static void keep(room *rooms, const dt_order_run *run, int64_t index, int64_t from_ms)
{
    for (int64_t i = 0; i < run->part_count; i++) {
        room *of = &rooms[run->parts[i].machine];

        of->kept_from_ms =
            of->kept_for < 0 || from_ms < of->kept_from_ms ? from_ms : of->kept_from_ms;
        of->kept_for = of->kept_for < 0 ? index : of->kept_for;
        of->kept |= run->parts[i].gpus;
        of->kept_cores += run->parts[i].cores;
    }
}

static room *copy_rooms(const view *v)
{
    memcpy(v->trial, v->rooms, (size_t)v->order->machine_count * sizeof(*v->trial));
    return v->trial;
}

/* --- places */

/* GPUs and processors that a run may use that ends by `end_ms` (0: unknown). */
static uint64_t usable_gpus(const room *of, int64_t end_ms)
{
    bool before = end_ms != 0 && end_ms <= of->kept_from_ms;

    return of->open ? of->free & ~(before ? 0 : of->kept) : 0;
}

static int64_t usable_cores(const room *of, int64_t end_ms)
{
    bool before = end_ms != 0 && end_ms <= of->kept_from_ms;

    return of->open ? of->cores - (before ? 0 : of->kept_cores) : -1;
}

/* The mask of the lowest `count` adjacent GPUs from `from` on; 0: there are none. */
static uint64_t find_row(uint64_t usable, int64_t from, int64_t count)
{
    uint64_t row = count >= DT_ORDER_GPUS_MOST ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;

    for (int64_t first = from; first >= 0 && first + count <= DT_ORDER_GPUS_MOST; first++)
        if ((usable & row << first) == row << first)
            return row << first;
    return 0;
}

/* Needs of named machines: as many as wanted, the first that fit. Rooms are used up on the way. */
static bool place_needs(dt_order_run *run, room *rooms, int64_t end_ms)
{
    int64_t wanted = run->wanted > 0 ? run->wanted : run->need_count;

    for (int64_t i = 0; i < run->need_count && run->part_count < wanted; i++) {
        const dt_order_need *need = &run->needs[i];
        room *of = &rooms[need->machine];
        dt_order_part part = {.machine = need->machine, .cores = need->cores, .need = i};

        if (need->gpus > 0)
            part.gpus = find_row(usable_gpus(of, end_ms), need->from_gpu, need->gpus);
        if (!of->open || (need->gpus > 0 && part.gpus == 0) ||
            (need->cores > 0 && need->cores > usable_cores(of, end_ms)))
            continue;
        take(rooms, &part, 1);
        run->parts[run->part_count++] = part;
    }
    return run->part_count == wanted;
}

/* How many units of the run the machine has room for. */
static int64_t units_in(const dt_order_run *run, const dt_order_machine *machine, const room *of,
                        int64_t end_ms)
{
    int64_t most = run->units;

    if (!machine->shared || !of->open)
        return 0;
    while (most > 0 && run->unit_gpus > 0 &&
           find_row(usable_gpus(of, end_ms), 0, most * run->unit_gpus) == 0)
        most--;
    if (run->unit_cores > 0 && usable_cores(of, end_ms) < most * run->unit_cores)
        most = usable_cores(of, end_ms) / run->unit_cores;
    return most > 0 ? most : 0;
}

/* The machine with the least room that is enough for `units`, of those not used yet; -1: none. */
static int64_t tightest(const view *v, const dt_order_run *run, const room *rooms, int64_t units,
                        int64_t end_ms)
{
    int64_t best = -1, best_room = 0;

    for (int64_t i = 0; i < v->order->machine_count; i++) {
        int64_t has = units_in(run, &v->order->machines[i], &rooms[i], end_ms);
        bool used = false;

        for (int64_t j = 0; j < run->part_count; j++)
            used = used || run->parts[j].machine == i;
        has = has < units || used  ? 0
              : run->unit_gpus > 0 ? __builtin_popcountll(usable_gpus(&rooms[i], end_ms))
                                   : usable_cores(&rooms[i], end_ms) + 1;
        if (has > 0 && (best < 0 || has < best_room)) {
            best = i;
            best_room = has;
        }
    }
    return best;
}

/* A run without nodes: on one machine, else on two, ..., the same number on each. */
static bool place_units(const view *v, dt_order_run *run, room *rooms, int64_t end_ms)
{
    for (int64_t machines = 1; machines <= run->units && machines <= v->order->machine_count;
         machines++) {
        int64_t each = run->units / machines;

        if (run->units % machines != 0)
            continue;
        run->part_count = 0;
        while (run->part_count < machines) {
            int64_t machine = tightest(v, run, rooms, each, end_ms);
            dt_order_part part = {.machine = machine, .units = each};

            if (machine < 0)
                break;
            part.cores = each * run->unit_cores;
            if (run->unit_gpus > 0)
                part.gpus =
                    find_row(usable_gpus(&rooms[machine], end_ms), 0, each * run->unit_gpus);
            run->parts[run->part_count++] = part;
        }
        if (run->part_count == machines) {
            take(rooms, run->parts, run->part_count);
            return true;
        }
    }
    return false;
}

/* Finds a place in the rooms, which are used up only if there is one. */
static bool find_place(const view *v, dt_order_run *run, const room *rooms, int64_t end_ms)
{
    int64_t most = run->need_count > 0 ? run->need_count : v->order->machine_count;
    bool found;

    memcpy(v->scratch, rooms, (size_t)v->order->machine_count * sizeof(*rooms));
    if (run->parts == NULL)
        run->parts = dt_arena_alloc_array(v->arena, (size_t)most + 1, sizeof(run->parts[0]));
    run->part_count = 0;
    found = run->need_count > 0 ? place_needs(run, v->scratch, end_ms)
                                : place_units(v, run, v->scratch, end_ms);
    if (!found)
        run->part_count = 0;
    return found;
}

bool dt_order_fits_alone(const dt_order *order, const dt_order_run *run, bool also_closed,
                         dt_arena *arena)
{
    size_t count = (size_t)order->machine_count + 1;
    room *rooms = dt_arena_alloc_array(arena, count, sizeof(*rooms));
    view v = {.order = (dt_order *)order,
              .arena = arena,
              .scratch = dt_arena_alloc_array(arena, count, sizeof(*rooms))};
    dt_order_run copy = *run;

    for (int64_t i = 0; i < order->machine_count; i++)
        rooms[i] = empty_room(&order->machines[i], also_closed);
    copy.parts = NULL;
    return find_place(&v, &copy, rooms, 0);
}

/* --- sorting */

int dt_order_compare(const dt_order_run *a, const dt_order_run *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->place != b->place ? (a->place < b->place ? -1 : 1) : strcmp(a->id, b->id);
}

static _Thread_local const dt_order_run *sorting; /* for qsort, within dt_order_decide */

static int by_order(const void *a, const void *b)
{
    return dt_order_compare(&sorting[*(const int64_t *)a], &sorting[*(const int64_t *)b]);
}

static int by_end(const void *a, const void *b)
{
    const dt_order_run *x = &sorting[*(const int64_t *)a], *y = &sorting[*(const int64_t *)b];
    int64_t ends[] = {x->stopping ? 1 : x->end_ms, y->stopping ? 1 : y->end_ms};

    if (ends[0] != ends[1])
        return ends[1] == 0 || (ends[0] != 0 && ends[0] < ends[1]) ? -1 : 1;
    return strcmp(x->id, y->id);
}

/* The lowest priority first, then what started last. */
static int by_worth(const void *a, const void *b)
{
    const dt_order_run *x = &sorting[*(const int64_t *)a], *y = &sorting[*(const int64_t *)b];

    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return x->started_ms != y->started_ms ? (x->started_ms > y->started_ms ? -1 : 1)
                                          : strcmp(x->id, y->id);
}

/* --- a run that does not fit now */

static int64_t wake_at(int64_t a, int64_t b)
{
    return b != 0 && (a == 0 || b < a) ? b : a;
}

static bool may_be_preempted(const dt_order_run *victim, const dt_order_run *run)
{
    return !victim->waits && !victim->stopping && victim->verdict != DT_ORDER_PREEMPT &&
           victim->preemptible && victim->priority < run->priority;
}

/* Waits for what is being stopped already. */
static bool wait_for_stops(view *v, dt_order_run *run)
{
    room *rooms = copy_rooms(v);
    int64_t about = -1;

    for (int64_t i = 0; i < v->active; i++) {
        const dt_order_run *other = &v->order->runs[v->by_end[i]];

        if (!other->stopping && other->verdict != DT_ORDER_PREEMPT)
            continue;
        give(v->order->machines, rooms, other->parts, other->part_count);
        about = v->by_end[i];
    }
    if (about < 0 || !find_place(v, run, rooms, 0))
        return false;
    run->verdict = DT_ORDER_STOPPING;
    run->about = about;
    run->expected_ms = v->order->now_ms;
    return true;
}

/* Preempts as few runs as are enough, the least important first. */
static bool preempt(view *v, dt_order_run *run, int64_t index)
{
    int64_t now_ms = v->order->now_ms, count = 0;
    int64_t *victims = dt_arena_alloc_array(v->arena, (size_t)v->active + 1, sizeof(victims[0]));
    room *rooms = copy_rooms(v);
    bool fits = false;

    for (int64_t i = 0; i < v->active; i++) {
        const dt_order_run *other = &v->order->runs[v->by_end[i]];

        if (other->stopping || other->verdict == DT_ORDER_PREEMPT)
            give(v->order->machines, rooms, other->parts, other->part_count);
    }
    for (int64_t i = 0; !fits && i < v->before; i++) {
        const dt_order_run *other = &v->order->runs[v->by_worth[i]];

        if (!may_be_preempted(other, run))
            continue;
        if (other->guaranteed_until_ms > now_ms) {
            run->verdict = DT_ORDER_GUARANTEED;
            run->about = run->about < 0 ? v->by_worth[i] : run->about;
            v->order->wake_ms = wake_at(v->order->wake_ms, other->guaranteed_until_ms);
            continue;
        }
        give(v->order->machines, rooms, other->parts, other->part_count);
        victims[count++] = v->by_worth[i];
        fits = find_place(v, run, rooms, 0);
    }
    if (!fits)
        return false;
    for (int64_t i = count - 1; i >= 0; i--) { /* the most important that is not needed is spared */
        dt_order_run *other = &v->order->runs[victims[i]];

        take(rooms, other->parts, other->part_count);
        if (find_place(v, run, rooms, 0))
            continue;
        give(v->order->machines, rooms, other->parts, other->part_count);
        other->verdict = DT_ORDER_PREEMPT;
        v->preempts = true;
        other->about = index;
        run->about = victims[i];
    }
    (void)find_place(v, run, rooms, 0);
    run->verdict = DT_ORDER_STOPPING;
    run->expected_ms = now_ms;
    return true;
}

/* Waits for runs to end, in the order in which they are expected to. Returns when the place is needed from; 0: unknown,
 * or there is none without the slots that others keep. */
static int64_t wait_for_ends(view *v, dt_order_run *run)
{
    room *rooms = copy_rooms(v);

    for (int64_t i = 0; i < v->active; i++) {
        const dt_order_run *other = &v->order->runs[v->by_end[i]];
        bool soon = other->stopping || other->verdict == DT_ORDER_PREEMPT;

        give(v->order->machines, rooms, other->parts, other->part_count);
        if (!find_place(v, run, rooms, 0))
            continue;
        if (run->verdict != DT_ORDER_GUARANTEED) {
            run->verdict = DT_ORDER_FULL;
            run->about = v->by_end[i];
        }
        run->expected_ms = soon                               ? v->order->now_ms
                           : other->end_ms == 0               ? 0
                           : other->end_ms < v->order->now_ms ? v->order->now_ms
                                                              : other->end_ms;
        return run->expected_ms;
    }
    return 0;
}

/* Whether the run would fit if every run had ended, next to the slots that others keep. */
static bool would_fit(view *v, dt_order_run *run)
{
    room *rooms = copy_rooms(v);

    for (int64_t i = 0; i < v->active; i++) {
        const dt_order_run *other = &v->order->runs[v->by_end[i]];

        give(v->order->machines, rooms, other->parts, other->part_count);
    }
    return find_place(v, run, rooms, 0);
}

static void block(view *v, dt_order_run *run, int64_t index)
{
    int64_t from_ms = 0;

    if (v->blocked < 0)
        v->blocked = index;
    run->about = -1;
    if (would_fit(v, run) && !wait_for_stops(v, run) && !preempt(v, run, index))
        from_ms = wait_for_ends(v, run);
    if (run->part_count > 0) {
        keep(v->rooms, run, index, from_ms);
        return;
    }
    run->verdict = DT_ORDER_BEHIND;
    run->about = v->blocked;
}

/* --- one run */

static void note_active(view *v, int64_t index)
{
    const dt_order_run *run = &v->order->runs[index];

    v->by_end[v->active++] = index;
    take(v->rooms, run->parts, run->part_count);
    if (run->group >= 0)
        v->running[run->group]++;
}

/* The same for a run that starts now, between those that run already. */
static void note_started(view *v, int64_t index)
{
    int64_t at = v->active;

    note_active(v, index);
    for (; at > 0 && by_end(&v->by_end[at - 1], &index) > 0; at--)
        v->by_end[at] = v->by_end[at - 1];
    v->by_end[at] = index;
}

/* What keeps the run from starting whatever is free; DT_ORDER_NONE: nothing. */
static dt_order_verdict obstacle_of(view *v, dt_order_run *run)
{
    if (run->after == DT_AFTER_FAILED)
        return DT_ORDER_DROPPED;
    if (run->held)
        return DT_ORDER_HELD;
    if (run->after == DT_AFTER_OPEN)
        return DT_ORDER_AFTER;
    if (run->not_before_ms > v->order->now_ms) {
        v->order->wake_ms = wake_at(v->order->wake_ms, run->not_before_ms);
        return DT_ORDER_EARLY;
    }
    if (run->group >= 0 && v->running[run->group] >= v->order->group_limits[run->group])
        return DT_ORDER_LIMIT;
    if (!dt_order_fits_alone(v->order, run, true, v->arena))
        return DT_ORDER_NEVER;
    if (!dt_order_fits_alone(v->order, run, false, v->arena))
        return DT_ORDER_CLOSED;
    return DT_ORDER_NONE;
}

static void look_at(view *v, int64_t index)
{
    dt_order_run *run = &v->order->runs[index];
    int64_t end_ms = run->lasts_ms > 0 ? v->order->now_ms + run->lasts_ms : 0;

    run->verdict = obstacle_of(v, run);
    run->about = -1;
    run->expected_ms = run->verdict == DT_ORDER_EARLY ? run->not_before_ms : 0;
    if (run->verdict != DT_ORDER_NONE)
        return;
    /* What is preempted now changes when earlier runs can start: later ones are looked at once it has ended. */
    if (v->blocked >= 0 && (v->order->strict || v->preempts)) {
        run->verdict = DT_ORDER_BEHIND;
        run->about = v->blocked;
        return;
    }
    if (!find_place(v, run, v->rooms, end_ms)) {
        block(v, run, index);
        return;
    }
    run->verdict = DT_ORDER_START;
    run->expected_ms = v->order->now_ms;
    run->end_ms = end_ms;
    note_started(v, index);
}

void dt_order_decide(dt_order *io, dt_arena *arena)
{
    size_t machines = (size_t)io->machine_count + 1, runs = (size_t)io->run_count + 1;
    view v = {.order = io, .arena = arena, .blocked = -1};
    int64_t *waiting = dt_arena_alloc_array(arena, runs, sizeof(*waiting)), count = 0, groups = 0;

    io->wake_ms = 0;
    v.rooms = dt_arena_alloc_array(arena, machines, sizeof(*v.rooms));
    v.trial = dt_arena_alloc_array(arena, machines, sizeof(*v.rooms));
    v.scratch = dt_arena_alloc_array(arena, machines, sizeof(*v.rooms));
    v.by_end = dt_arena_alloc_array(arena, runs, sizeof(*v.by_end));
    v.by_worth = dt_arena_alloc_array(arena, runs, sizeof(*v.by_worth));
    for (int64_t i = 0; i < io->machine_count; i++)
        v.rooms[i] = empty_room(&io->machines[i], false);
    for (int64_t i = 0; i < io->run_count; i++)
        groups = io->runs[i].group >= groups ? io->runs[i].group + 1 : groups;
    v.running = dt_arena_alloc_array(arena, (size_t)groups + 1, sizeof(*v.running));
    memset(v.running, 0, ((size_t)groups + 1) * sizeof(*v.running));
    for (int64_t i = 0; i < io->run_count; i++) {
        io->runs[i].verdict = DT_ORDER_NONE;
        io->runs[i].about = -1;
        io->runs[i].expected_ms = 0;
        if (io->runs[i].waits)
            waiting[count++] = i;
        else
            note_active(&v, i);
    }
    sorting = io->runs;
    qsort(waiting, (size_t)count, sizeof(*waiting), by_order);
    v.before = v.active;
    memcpy(v.by_worth, v.by_end, (size_t)v.before * sizeof(*v.by_end));
    qsort(v.by_end, (size_t)v.active, sizeof(*v.by_end), by_end);
    qsort(v.by_worth, (size_t)v.before, sizeof(*v.by_worth), by_worth);
    for (int64_t i = 0; i < count; i++)
        look_at(&v, waiting[i]);
}
