/* boot: identifies the current boot of this machine, to distinguish a reboot from a node that does not respond.
 *
 * The kernel draws a new id at every boot (/proc/sys/kernel/random/boot_id). No process survives a reboot, so a process
 * identity (pid, start ticks) that was recorded under another id is invalid.
 */
#ifndef DT_BASE_BOOT_H
#define DT_BASE_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BOOT_ID_SIZE 40
/* Writes the boot id to `out` (DT_BOOT_ID_SIZE bytes), "" if it cannot be read. Returns `out`. */
char *dt_boot_id(char *out);

/* Returns milliseconds since boot, including suspend. This clock cannot be set. */
int64_t dt_boot_ms(void);

/* Returns true if both ids are known and differ; NULL is unknown. */
bool dt_boot_differs(const char *before, const char *now);

#ifdef __cplusplus
}
#endif
#endif
