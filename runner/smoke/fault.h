/* fault: defines the faults that a smoke test can inject, and what must happen.
 *
 *   --kill rank=1@3      killed after step 3: the run restarts and reaches the same bits
 *   --hang rank=0@5      suspended after step 5: it is noticed, the run restarts and reaches the same bits
 *   --slow rank=1@2x4    four times slower from step 2 on: no restart, the same bits
 *   --disk-full rank=0@6 saves fail and are reported; existing checkpoints stay intact
 *   --bitflip rank=1@7   noticed before it is saved; the run restarts and reaches the same bits
 *   --cut node=2@4:10s   no data from the second node for 10 s: no restart, the same bits
 */
#ifndef DT_SMOKE_FAULT_H
#define DT_SMOKE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_smoke_fault_kind {
    const char *option; /* "disk-full" */
    const char *word;   /* for the engine (engine/train/fault.h): "full"; "": for the supervisor */
    const char *promise;
    bool restarts, same_bits;
    bool has_times;         /* takes "x4" at the end */
    bool of_node;           /* "node=2@4:10s" */
    const char *event_kind; /* kind of the event that reports it; "": none */
    const char *reason;     /* part of the reason with which the first attempt ended; "": any */
} dt_smoke_fault_kind;

enum { DT_SMOKE_FAULT_KINDS = 6 };
extern const dt_smoke_fault_kind dt_smoke_fault_kinds[DT_SMOKE_FAULT_KINDS];

typedef struct dt_smoke_fault {
    const dt_smoke_fault_kind *kind;
    int64_t rank, step;
    int64_t node;          /* from 0; options count from 1 */
    double times, seconds; /* factor of a slow rank, length of a cut */
    const char *name;      /* "kill rank=1@3" */
    const char *planted;   /* "DTRUN_FAULT=kill 1@3": in the environment of the launch */
} dt_smoke_fault;

/* Parses "rank=1@3", "1@3", "@3" (rank 0), "rank=1@2x4" or "node=2@4:10s". DT_ERR_USAGE with the option. */
dt_status dt_smoke_fault_read(dt_smoke_fault *out, const dt_smoke_fault_kind *kind,
                              const char *text, dt_arena *arena, dt_error *err);

#endif
