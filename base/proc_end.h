/* proc_end: finds processes by their files in /proc, and kills them until none is left.
 *
 * Sees only processes whose /proc files this user can read; skips this process and zombies.
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

/* Returns true if a process matches. state: letter of /proc/PID/stat; words: contents of `file`, each word ended by a
 * zero byte; length: bytes of all words. */
typedef bool dt_proc_match_fn(const void *context, char state, const char *words, size_t length);

/* Sends SIGKILL to every process whose `file` ("cmdline", "environ") matches, repeatedly for up to `seconds`.
 * Returns how many are left. */
int64_t dt_proc_end_all(const char *file, dt_proc_match_fn *matches, const void *context,
                        double seconds);

/* Returns the pid of a matching process; 0: none. */
int64_t dt_proc_find(const char *file, dt_proc_match_fn *matches, const void *context);

/* Returns true for a process that is stopped by a signal, or held by a debugger. */
static inline bool dt_proc_is_paused(char state)
{
    return state == 'T' || state == 't';
}

#ifdef __cplusplus
}
#endif
#endif
