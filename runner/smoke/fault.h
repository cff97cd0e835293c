/* fault: what people have planted in a smoke test, and what a run must make of it.
 *
 *   --kill rank=1@3      after step 3 it is started again, and comes to the same bits
 *   --hang rank=0@5      it is noticed, and so is that
 *   --slow rank=1@2x4    from step 2 on, four times: nothing is given up, the bits are the same
 *   --disk-full rank=0@6 saves fail, are reported, and harm none that is there
 *   --bitflip rank=1@7   it is noticed before it is saved, and comes to the same bits
 *   --cut node=2@4:10s   nothing comes from the second node for so long: nothing restarts, all is the same
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
    bool has_times;      /* "x4" behind it */
    bool of_node;        /* "node=2@4:10s" */
    const char *told_by; /* kind of the event that tells of it; "": none */
    const char *reason;  /* what the first attempt ended by has this; "": whatever */
} dt_smoke_fault_kind;

enum { DT_SMOKE_FAULT_KINDS = 6 };
extern const dt_smoke_fault_kind dt_smoke_fault_kinds[DT_SMOKE_FAULT_KINDS];

typedef struct dt_smoke_fault {
    const dt_smoke_fault_kind *kind;
    int64_t rank, step;
    int64_t node;          /* from 0; the first is 1 in an option */
    double times, seconds; /* of a slow rank, of a cut */
    const char *name;      /* "kill rank=1@3" */
    const char *planted;   /* "DTRUN_FAULT=kill 1@3": in the environment of the launch */
} dt_smoke_fault;

/* "rank=1@3", "1@3", "@3" (rank 0), "rank=1@2x4", "node=2@4:10s". DT_ERR_USAGE naming the option. */
dt_status dt_smoke_fault_read(dt_smoke_fault *out, const dt_smoke_fault_kind *kind,
                              const char *text, dt_arena *arena, dt_error *err);

#endif
