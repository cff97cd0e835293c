/* order: decides which waiting runs start, where, and which running ones are preempted for them. A pure function of what
 * machines have, what runs need and use, and the time.
 *
 * Order      by priority (higher first), then by place in the queue. A run that does not fit keeps slots for itself: the
 *            first ones that will be free together, by the expected ends of the runs that use them. A later run may use
 *            kept slots only if it is expected to end before they are needed ("backfilling", Feitelson and Weil 1998,
 *            with a reservation for every run), so that no run is delayed by a later one
 * Preemption of a run that does not fit: runs of a lower priority that may be preempted, the lowest first, then the one
 *            that started last; as few as are enough. A run whose guaranteed time is not over is not preempted
 * Slots      GPUs of a machine, and its processors for ranks that use no GPU. A run holds its slots until it has ended,
 *            which is after its processes are gone
 * Ownership  everything is the caller's; `parts` of waiting runs that start are in the arena
 */
#ifndef DT_RUNNER_QUEUE_ORDER_H
#define DT_RUNNER_QUEUE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

enum { DT_ORDER_GPUS_MOST = 64 }; /* GPUs of a machine: bits of a mask */

typedef struct dt_order_machine {
    const char *name;
    int64_t gpus, cores;
    uint64_t foreign; /* GPUs that programs outside dtrun use */
    bool shared;      /* runs without nodes of their own may get it */
    bool closed;      /* drained: nothing starts there */
} dt_order_machine;

/* What a run uses of one machine. */
typedef struct dt_order_part {
    int64_t machine;
    uint64_t gpus; /* mask */
    int64_t cores;
    int64_t units; /* of a run without nodes: its ranks or GPUs here */
    int64_t need;  /* of another run: the need that this is for */
} dt_order_part;

/* What a run needs of one machine: so many adjacent GPUs from `from_gpu` on, or processors. */
typedef struct dt_order_need {
    int64_t machine, gpus, from_gpu, cores;
} dt_order_need;

typedef enum dt_order_after { DT_AFTER_GOOD, DT_AFTER_OPEN, DT_AFTER_FAILED } dt_order_after;

/* What happens to a waiting run, or to a running one. `about` is the index of a run, or -1. */
typedef enum dt_order_verdict {
    DT_ORDER_NONE,       /* it runs on */
    DT_ORDER_START,      /* at `parts` */
    DT_ORDER_PREEMPT,    /* a running one: it makes room for `about` */
    DT_ORDER_STOPPING,   /* it waits for runs that are being stopped, such as `about` */
    DT_ORDER_FULL,       /* other runs use what it needs; `about` is the last that it waits for */
    DT_ORDER_GUARANTEED, /* the same, and `about` may be preempted for it later */
    DT_ORDER_BEHIND,     /* it would delay `about`, which comes before it */
    DT_ORDER_HELD,
    DT_ORDER_EARLY,   /* not_before_ms has not come */
    DT_ORDER_AFTER,   /* it comes after a run that has not ended */
    DT_ORDER_DROPPED, /* it comes after a run that did not finish: it never starts */
    DT_ORDER_LIMIT,   /* as many runs of its group run as may */
    DT_ORDER_CLOSED,  /* it would fit on machines that are drained, or whose GPUs others use */
    DT_ORDER_NEVER,   /* no machine has what it needs */
} dt_order_verdict;

typedef struct dt_order_run {
    const char *id;
    int64_t priority;
    int64_t place; /* lower is earlier */
    bool waits;    /* else it uses `parts` */
    bool stopping; /* it is being stopped: its slots will be free soon */
    bool held;     /* by a person */
    bool preemptible;
    int64_t not_before_ms, guaranteed_until_ms;
    int64_t started_ms, end_ms; /* of a running one; expected end, 0: unknown */
    int64_t lasts_ms;           /* of a waiting one: expected; 0: unknown */
    dt_order_after after;
    int64_t group; /* -1: none */
    const dt_order_need *needs;
    int64_t need_count;
    int64_t wanted; /* so many of the needs, the first that fit; 0: all */
    /* of a run without nodes, need_count 0: units with GPUs or processors each, on one shared machine, or the same
     * number on each of as few as possible */
    int64_t units, unit_gpus, unit_cores;
    dt_order_part *parts;
    int64_t part_count;
    /* out */
    dt_order_verdict verdict;
    int64_t about;
    int64_t expected_ms; /* when a waiting run is expected to start; 0: unknown */
} dt_order_run;

typedef struct dt_order {
    const dt_order_machine *machines;
    int64_t machine_count;
    dt_order_run *runs;
    int64_t run_count;
    const int64_t *group_limits; /* runs of a group at the same time */
    bool strict;                 /* no run overtakes another */
    int64_t now_ms;
    int64_t wake_ms; /* out: when to decide again if nothing happens before; 0: never */
} dt_order;

/* Compares as strcmp does: the run that starts first is less. */
int dt_order_compare(const dt_order_run *a, const dt_order_run *b);
void dt_order_decide(dt_order *io, dt_arena *arena);

/* After a decision: fills in expected_ms of waiting runs that have none, by deciding again at each expected end, at most
 * `decisions` times. Runs whose duration is unknown do not end, and nothing is preempted. */
void dt_order_expect(dt_order *io, int64_t decisions, dt_arena *arena);

/* Whether the run would fit if nothing else ran: on open machines, or on all. */
bool dt_order_fits_alone(const dt_order *order, const dt_order_run *run, bool also_closed,
                         dt_arena *arena);

#endif
