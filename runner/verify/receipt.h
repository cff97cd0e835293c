/* receipt: what a resumed run continues with, compared with the record of the step that follows its checkpoint.
 *
 * Before     position in the data, and the seed of the random numbers, which have no other state
 * After      once the next attempt has recorded its first step: the loss, and whether the step is the recorded one to the
 *            bit: its input, gradients, parameters and moments. The engine has then checked every byte of the checkpoint.
 *            If the recipe or the ranks have changed, only the losses are put side by side
 */
#ifndef DT_RUNNER_VERIFY_RECEIPT_H
#define DT_RUNNER_VERIFY_RECEIPT_H

#include "runner/cli/command.h"
#include "store/run.h"

typedef struct dt_receipt {
    const char *run, *folder;
    int64_t step;    /* of the checkpoint */
    int64_t attempt; /* the one that recorded the step after it; 0: none did */
    bool done;       /* the part after the first step was printed */
} dt_receipt;

/* Prints the part before. path: the checkpoint. Never fails: what cannot be read is not printed. */
void dt_receipt_begin(dt_receipt *out, const dt_run *run, const char *path, const dt_call *call);
/* Prints the part after, once attempt `attempt` has recorded a step; waits at most `seconds` for it, and not for a run
 * that has ended. */
void dt_receipt_end(dt_receipt *receipt, dt_store *store, int64_t attempt, double seconds,
                    const dt_call *call);

#endif
