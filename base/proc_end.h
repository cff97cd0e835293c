/* proc_end: finds processes that /proc shows to match, and ends them until none is left.
 *
 * Only processes whose files in /proc this user may read are seen; this process and zombies are left out.
 *
 * Threads    any
 */
#ifndef DT_BASE_PROC_END_H
#define DT_BASE_PROC_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* state: the letter of /proc/PID/stat; words: of `file`, each ended by a zero byte; length: of all of them. */
typedef bool dt_proc_match_fn(const void *context, char state, const char *words, size_t length);

/* SIGKILL for every process whose `file` ("cmdline", "environ") matches, again and again for so many seconds. Returns how
 * many are left then. */
int64_t dt_proc_end_all(const char *file, dt_proc_match_fn *matches, const void *context,
                        double seconds);

/* The pid of a process that matches; 0: none does. */
int64_t dt_proc_find(const char *file, dt_proc_match_fn *matches, const void *context);

/* Stopped by a signal, or held by a debugger. */
static inline bool dt_proc_is_paused(char state)
{
    return state == 'T' || state == 't';
}

#ifdef __cplusplus
}
#endif
#endif
