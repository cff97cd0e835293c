/* gpu_claims: which GPUs of this machine are in use, by a run of any user or by another program.
 *
 * A claim is an abstract Unix socket "dtrun-gpu/KEY" that listens. The kernel gives a name to one socket only, needs no
 * folder, file or free space for it, and frees it with the last descriptor: the agent has one, and so has every process
 * of a rank on the GPU. A claim therefore ends with the last process of the run, also after kill -9 of the agent. Who
 * connects gets a line of JSON from the agent (run, owner, since), and from the kernel the user of the claim.
 *
 * Key       the UUID of the GPU, else its number; of a MIG device its name in CUDA_VISIBLE_DEVICES
 * Owner     machine and state folder of the launch. Runs of one owner may share a GPU, whose claim they then share:
 *           their own launch machine decides (docs/queue.md)
 * Limits    one network namespace: a container with a network of its own has its own claims
 * Hostile   another user can claim a GPU without using it, as he can use it; the message names him
 */
#ifndef DT_RUNNER_NODE_SETUP_REMOTE_HELPER_GPU_CLAIMS_H
#define DT_RUNNER_NODE_SETUP_REMOTE_HELPER_GPU_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"

enum { DT_CLAIM_KEY_SIZE = 96, DT_CLAIM_TEXT_SIZE = 256, DT_CLAIM_GPUS_MOST = 64 };

typedef struct dt_claim_holder {
    uid_t uid;
    char run[64], owner[DT_CLAIM_TEXT_SIZE]; /* "": it did not answer */
    char who[DT_CLAIM_TEXT_SIZE];            /* "alice (run r12, since 14:05)" */
    int shared; /* the claim itself, if the holder is of this user; the caller closes it. -1: none */
} dt_claim_holder;

/* Claims a GPU: *fd listens until its last copy is closed. DT_ERR_BUSY: it is claimed; DT_ERR_IO: this machine allows no
 * claim, and none is held. Both without waiting. */
dt_status dt_claim_take(int *fd, const char *key, dt_error *err);
/* Answers who has connected to a claim: accepts, sends `line`, and to processes of this user the claim. */
void dt_claim_answer(int fd, const char *line);
/* Asks for the holder, for a second at most. Returns false if the GPU is not claimed. */
bool dt_claim_ask(dt_claim_holder *out, const char *key);

/* Closes a shared claim that is not wanted. */
void dt_claim_close(int fd);
/* Finds the name of a user; "user 1004" if the file of users does not have it. */
void dt_claim_user(char *out, size_t size, uid_t uid);

/* Finds the UUID of GPU N in the files of the driver; "" if they do not have it. */
void dt_claim_uuid(char uuid[DT_CLAIM_KEY_SIZE], int64_t gpu);

/* Returns whether any GPU of this machine is claimed; costs nothing. */
bool dt_gpus_are_claimed(void);
/* Returns what uses the GPUs now: [{"gpu", "who", "run", "owner"}], without those that nothing uses. run and owner are
 * "" for a program outside dtrun. New reference. */
json_t *dt_gpu_uses(void);
/* Prints it as one line; watch: again whenever it changes, and at least every ten seconds, until nobody reads. */
dt_status dt_remote_helper_gpus(bool watch, dt_error *err);

#endif
