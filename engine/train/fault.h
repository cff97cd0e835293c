/* fault: injects the faults that `dtrun smoke` uses to check how a run recovers.
 *
 * DTRUN_FAULT  "kill 1@3", "hang 0@5", "slow 1@2x4", "full 0@6", "flip 1@7", separated by ';': FAULT RANK@STEP,
 *              the fault happens to that rank after that step
 *                kill  the process gets SIGKILL
 *                hang  the process gets SIGSTOP
 *                slow  every later step takes the given number of times as long
 *                full  files can no longer grow, as on a full disk, for the rest of the process
 *                flip  one bit of the rank's parameters is inverted (replicas.h)
 * Only the first attempt of a run has faults, so that a test sees the recovery. The variable is documented
 * only with smoke, so that nobody sets it by accident.
 */
#ifndef DT_ENGINE_TRAIN_FAULT_H
#define DT_ENGINE_TRAIN_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_fault_kind {
    DT_FAULT_KILL,
    DT_FAULT_HANG,
    DT_FAULT_SLOW,
    DT_FAULT_FULL,
    DT_FAULT_FLIP
} dt_fault_kind;

typedef struct dt_fault {
    dt_fault_kind kind;
    int64_t rank, step;
    double times; /* factor of the step time, for a slow fault */
} dt_fault;

enum { DT_FAULTS_MAX = 16 };

typedef struct dt_faults {
    dt_fault items[DT_FAULTS_MAX];
    int count; /* number of faults of this rank */
} dt_faults;

/* Parse `text` and keep the faults of `rank`. `text` can be NULL: no faults. DT_ERR_USAGE if it is
 * malformed. */
dt_status dt_faults_read(dt_faults *out, const char *text, int64_t rank, dt_error *err);

/* Trigger the faults that are due after `step` steps of the run, the last of which took `seconds`.
 * Returns true if a flip is due, which the caller must perform. */
bool dt_faults_step(const dt_faults *faults, int64_t step, double seconds);

#ifdef __cplusplus
}
#endif
#endif
