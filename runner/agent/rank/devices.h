/* devices: the memory of the GPUs that the ranks use, before they start and after they end.
 *
 * A process that is gone may leave its memory held for a moment, or for good where the driver hangs
 * or a process in another container holds it: "no process is left" does not prove it. Asked of
 * nvidia-smi, which comes with the driver: a static program cannot load its library.
 *
 * Errors  DT_ERR_CORRUPT: not what nvidia-smi prints
 */
#ifndef DT_RUNNER_AGENT_RANK_DEVICES_H
#define DT_RUNNER_AGENT_RANK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

#define DT_DEVICES_MAX         64
#define DT_DEVICES_SLACK_BYTES ((int64_t)512 << 20) /* what the driver may keep for itself */

typedef struct dt_device_memory {
    int64_t index; /* as nvidia-smi counts */
    char uuid[64];
    int64_t baseline_bytes, used_bytes;
} dt_device_memory;

typedef struct dt_devices {
    dt_device_memory items[DT_DEVICES_MAX];
    int64_t count;
} dt_devices;

/* The question: its answer has a line "0, GPU-1234, 5120" (MiB) for each device. */
extern const char *const dt_devices_question[];

/* All devices of an answer, used_bytes set. */
dt_status dt_devices_parse(dt_devices *out, const char *answer, dt_error *err);

/* Keeps those that `visible` (CUDA_VISIBLE_DEVICES; NULL: all) lets a process see, in its order: the N-th is
 * a rank's cuda:N. */
void dt_devices_keep_visible(dt_devices *devices, const char *visible);

/* Of those that are visible keeps the ones that are used: others may be another run's. All, where one is
 * used that is not among them. */
void dt_devices_keep_used(dt_devices *devices, const bool used[DT_DEVICES_MAX]);

/* used_bytes of the same devices; one that is not in the answer keeps what it had. */
void dt_devices_update(dt_devices *devices, const dt_devices *now);

bool dt_devices_are_free(const dt_devices *devices); /* all at most the slack above baseline */

/* New reference: [{"index", "baseline_bytes", "used_bytes"}]. */
json_t *dt_devices_to_json(const dt_devices *devices);

#endif
