/* boot: which boot of this machine this is, so that a reboot can be told from a silence.
 *
 * The kernel draws a new id at every boot (/proc/sys/kernel/random/boot_id). No process outlives
 * one: a process identity (pid, start ticks) that was written down under another id names nobody.
 */
#ifndef DT_BASE_BOOT_H
#define DT_BASE_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_BOOT_ID_SIZE 40
/* Into out (DT_BOOT_ID_SIZE bytes); "" where it cannot be read. Returns out. */
char *dt_boot_id(char *out);

/* Since the machine was started, its sleep included; nobody sets this clock. */
int64_t dt_boot_ms(void);

/* Whether both ids are known and differ; NULL is unknown. */
bool dt_boot_differs(const char *before, const char *now);

#ifdef __cplusplus
}
#endif
#endif
