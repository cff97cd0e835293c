/* verify: replays recorded steps of a run in a folder of its own, and compares them with the record to the bit.
 *
 * Start      a checkpoint of the run that is on disk and undamaged, or its beginning; never one that is newer than the
 *            steps to replay
 * Replay     a run of its own in a private state folder below the user's, with the plan of the attempt that is verified
 *            (the same ranks, threads and instruction set), without evaluations and saves but for the last step. The run
 *            and its history are only read
 * Compared   every line of the record (record_file.h), and the last step's checkpoint with the run's, if it has one there
 * Errors     DT_ERR_NOT_FOUND: no record, or nothing to start from; DT_ERR_UNSUPPORTED: bits of these machines cannot be
 *            compared
 */
#ifndef DT_RUNNER_VERIFY_VERIFY_H
#define DT_RUNNER_VERIFY_VERIFY_H

#include "recipes/plan/plan.h"
#include "runner/cli/command.h"
#include "runner/verify/record_file.h"
#include "store/event.h"
#include "store/run.h"

/* --- checkpoints.c: checkpoints on disk */

typedef struct dt_verified_checkpoint {
    int64_t attempt, step;
    const char *path;
    const char *damage; /* what the digests show; NULL: nothing */
} dt_verified_checkpoint;

typedef struct dt_verified_checkpoints {
    dt_verified_checkpoint *items; /* by step, then attempt */
    int64_t count;
} dt_verified_checkpoints;

/* Lists the checkpoints of the run that are on disk, and checks every byte of them. */
dt_status dt_verify_checkpoints(dt_verified_checkpoints *out, dt_store *store, const dt_run *run,
                                dt_arena *arena, dt_error *err);
/* Compares the tensors of two checkpoints of the same ranks. *text: the first that differs, with element and bits; NULL:
 * all are equal. *elems: elements that were compared; *differ: elements that differ. */
dt_status dt_verify_tensors(const char **text, int64_t *elems, int64_t *differ,
                            const char *recorded, const char *replayed, dt_arena *arena,
                            dt_error *err);

/* --- start.c: what is replayed */

/* The record of an attempt. */
typedef struct dt_verified_attempt {
    int64_t attempt, ranks;
    int64_t after, last;   /* steps before its first, and its last recorded one */
    dt_record_file *files; /* [ranks] */
    dt_plan plan;
} dt_verified_attempt;

typedef struct dt_verified_record {
    dt_verified_attempt *attempts; /* those with a record, in their order */
    int64_t count;
} dt_verified_record;

dt_status dt_verify_record_read(dt_verified_record *out, const dt_run *run, dt_arena *arena,
                                dt_error *err);
void dt_verify_record_release(dt_verified_record *record); /* accepts a zeroed struct */

/* Steps that two attempts computed: *text says which differ first, NULL: none. *steps: how many steps are in both, on the
 * same arrangement of ranks. */
dt_status dt_verify_repeated(const char **text, int64_t *steps, const dt_verified_record *record,
                             dt_arena *arena, dt_error *err);

typedef struct dt_verify_wish {
    int64_t from;  /* -1: the newest start that has recorded steps after it */
    int64_t steps; /* how many to replay after it */
} dt_verify_wish;

typedef struct dt_verify_task {
    const dt_verified_attempt *attempt;
    const char *path; /* of the checkpoint; "": from the beginning */
    int64_t from, until;
} dt_verify_task;

dt_status dt_verify_choose(dt_verify_task *out, const dt_verified_record *record,
                           const dt_verified_checkpoints *checkpoints, const dt_verify_wish *wish,
                           dt_arena *arena, dt_error *err);

/* --- replay.c */

typedef struct dt_verify_replay {
    const char *folder;     /* private, below the state folder */
    const char *run_folder; /* of the replay's run */
    const char *run;        /* its id; NULL: not started */
    const char *checkpoint; /* of its last step; "" if there is none */
    dt_record_file *files;  /* [ranks], after its end */
    int64_t ranks;
    const char *failure; /* why it did not finish; NULL: it did */
} dt_verify_replay;

/* on: a node, or NULL for those of the attempt. Waits for the end of the replay. */
dt_status dt_replay_run(dt_verify_replay *out, const dt_run *run, const dt_verify_task *task,
                        const char *on, const dt_call *call, dt_error *err);
/* Removes the folder. */
void dt_replay_close(dt_verify_replay *replay);

#endif
