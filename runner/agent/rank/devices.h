/* devices: compares the memory use of the GPUs before the ranks start and after they have ended.
 *
 * A process that is gone may hold memory for a moment, or for good if the driver hangs or a process in another
 * container uses it: that no process is left does not prove that memory is free. nvidia-smi, which comes
 * with the driver, is used because a static program cannot load the driver's library.
 *
 * Errors  DT_ERR_CORRUPT: unexpected output of nvidia-smi
 */
#ifndef DT_RUNNER_AGENT_RANK_DEVICES_H
#define DT_RUNNER_AGENT_RANK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

#define DT_DEVICES_MAX         64
#define DT_DEVICES_SLACK_BYTES ((int64_t)512 << 20) /* memory that the driver may keep */

typedef struct dt_device_memory {
    int64_t index; /* index as in nvidia-smi */
    char uuid[64];
    int64_t baseline_bytes, used_bytes;
} dt_device_memory;

typedef struct dt_devices {
    dt_device_memory items[DT_DEVICES_MAX];
    int64_t count;
} dt_devices;

/* The command; its output has a line "0, GPU-1234, 5120" (MiB) for each device. */
extern const char *const dt_devices_question[];

/* Parses all devices of the output and sets their used_bytes. */
dt_status dt_devices_parse(dt_devices *out, const char *answer, dt_error *err);

/* Keeps the devices that `visible` (CUDA_VISIBLE_DEVICES; NULL: all) makes visible, in its
 * order: the N-th is cuda:N of a rank. */
void dt_devices_keep_visible(dt_devices *devices, const char *visible);

/* Keeps the visible devices that are used: the others may belong to another run. Keeps all if a
 * used one is not among them. */
void dt_devices_keep_used(dt_devices *devices, const bool used[DT_DEVICES_MAX]);

/* Updates used_bytes of the same devices; a device that is missing in `now` keeps its value. */
void dt_devices_update(dt_devices *devices, const dt_devices *now);

/* all are at most the slack above their baseline */
bool dt_devices_are_free(const dt_devices *devices);

/* The command that writes a line "GPU-1234, 35, 5120, 81559, 250.31, 45" for each device every DT_DEVICES_WATCH_SECONDS:
 * utilization in percent, memory in use and in total (MiB), power (W) and temperature (degrees Celsius). */
#define DT_DEVICES_WATCH_SECONDS "10"
extern const char *const dt_devices_watch[];

/* Returns a new reference: the values of such a line by the names of metrics without "system/", such as
 * "gpu_busy_percent", with the device's "index". Values that it does not have are left out. NULL: the line is of none of
 * these devices. */
json_t *dt_devices_watched(const dt_devices *devices, const char *line);

/* Returns a new reference: [{"index", "baseline_bytes", "used_bytes"}]. */
json_t *dt_devices_to_json(const dt_devices *devices);

#endif
