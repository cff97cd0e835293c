/* fault: what `dtrun smoke` plants in a rank, to see that a run keeps what is promised of it.
 *
 * DTRUN_FAULT  "kill 1@3", "hang 0@5", "slow 1@2x4", "full 0@6", "flip 1@7", with ';' between several: what
 *              happens to which rank once it has done so many steps
 *                kill  it ends at once (SIGKILL)
 *                hang  it stands still (SIGSTOP)
 *                slow  from there on a step takes so many times as long
 *                full  its files take no byte more, as on a full disk; never again what they took
 *                flip  one bit of its parameters is the other (replicas.h)
 * Only the first attempt has them, so that what is done about a fault is seen to help. Nobody sets the
 * variable by accident: it is in no documentation but that of smoke.
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
    double times; /* slow */
} dt_fault;

enum { DT_FAULTS_MAX = 16 };

typedef struct dt_faults {
    dt_fault items[DT_FAULTS_MAX];
    int count; /* of this rank */
} dt_faults;

/* Those of `rank` in `text` (NULL: none). DT_ERR_USAGE where it cannot be read. */
dt_status dt_faults_read(dt_faults *out, const char *text, int64_t rank, dt_error *err);

/* After so many steps of the run, the last of which took so long: does what is due, but for a flip, which is
 * the caller's to do where it gives true. */
bool dt_faults_step(const dt_faults *faults, int64_t step, double seconds);

#ifdef __cplusplus
}
#endif
#endif
