/* proc_stat: reads /proc/PID/stat (proc(5)).
 *
 * Threads    any
 */
#ifndef DT_BASE_PROC_STAT_H
#define DT_BASE_PROC_STAT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_proc_stat {
    char command[64]; /* as the process set it: any bytes, at most 63 */
    char state;       /* one letter of ps(1) */
    int64_t parent;   /* its pid */
    int64_t major_faults;
    int64_t cpu_ticks;      /* user and system */
    int64_t children_ticks; /* of children that have ended and were waited for */
    uint64_t start_ticks;   /* since boot; pid and start_ticks identify one process of this boot */
} dt_proc_stat;

/* Returns false if there is no such process, or its file cannot be read. */
bool dt_proc_stat_read(dt_proc_stat *out, int64_t pid);

#ifdef __cplusplus
}
#endif
#endif
