/* startup: sets what a program inherits from its parent, and what its children inherit from it.
 *
 * A parent can hand down ignored signals, blocked signals and closed standard streams. Each breaks a program that
 * does not expect it: with SIGCHLD ignored waitpid loses exit codes, with SIGTERM blocked nobody can end the
 * program, and with fd 2 closed error messages go into the next database that is opened.
 *
 * Threads    dt_startup before there are threads; the others any
 * Errors     none: a setting that cannot be changed is left alone
 */
#ifndef DT_BASE_STARTUP_H
#define DT_BASE_STARTUP_H

#include <spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first call of every main. Afterwards no signal but `held` (0: none) is blocked, so that one which is pending
 * already is not lost, and none is ignored except:
 *   SIGHUP, SIGINT, SIGQUIT   if the parent ignored them: nohup, or '&' in a script
 *   SIGXFSZ                   a file at the limit of 'ulimit -f' then fails with EFBIG, like ENOSPC on a full disk
 * Standard streams that were closed are opened on /dev/null. A soft limit of the stack below 8 MiB is raised as far
 * as the hard limit allows; with less than 128 KiB the program ends with a message and DT_EXIT_SYSTEM. */
void dt_startup(int held);

/* In a child between fork and exec: no blocked signal, and default dispositions except an ignored SIGHUP, SIGINT or
 * SIGQUIT as above. Calls only functions that are safe there. */
void dt_startup_child(void);

/* The same without the exception, for a child in a session of its own (a supervisor, a rank). */
void dt_startup_child_detached(void);

/* Makes exec close every descriptor above 2: a lock or a pipe of the caller that reached a supervisor would be held as
 * long as the run. Not part of dt_startup, because `dtrun launch <(...)` reads one. Safe between fork and exec. */
void dt_startup_close_on_exec(void);
/* Closes `first` and every higher descriptor. Safe between fork and exec. */
void dt_startup_close_from(int first);

/* In the parent, with the reading end of a pipe that exec closes in the child: waits for exec, or for the errno that
 * the child writes when exec fails, and returns it; 0: the program runs. */
int dt_startup_wait_for_exec(int fd);

/* dt_startup_child for posix_spawn: initializes `attributes` and adds `flags` (POSIX_SPAWN_SETPGROUP or 0). Returns 0
 * or an errno; the caller destroys the attributes after 0. */
int dt_startup_spawn_attributes(posix_spawnattr_t *attributes, short flags);

#ifdef __cplusplus
}
#endif

#endif
