/* launch_env: the environment that a run was launched or resumed in, kept for its supervisors.
 *
 * Whoever meets a run without its supervisor starts another, from a login, a crontab or a service
 * where ssh, its agent or a home may be unavailable. What is started therefore gets the environment
 * of the launch, and not that of the command that happened to look.
 *
 * runs/ID/environment, mode 0600: NAME=value, each ended by NUL as in /proc/PID/environ; first what
 * is no variable: DTRUN_LAUNCH_DIRECTORY, DTRUN_LAUNCH_UMASK, DTRUN_LAUNCH_SECRETS.
 *
 * Kept     the names and prefixes of one table (launch_env.c), and those that DTRUN_KEEP_ENV names
 * Secrets  are not: neither what is not in the table, nor a proxy with a password, nor what the
 *          recipe refers to by ${env:...}; of these the names are kept, and the values come from
 *          whoever starts the supervisor, where they are set there
 * Errors   DT_ERR_NOT_FOUND from read where the file is missing
 */
#ifndef DT_FOLDER_LAUNCH_ENV_H
#define DT_FOLDER_LAUNCH_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_launch_env {
    char **items; /* NAME=value, ended by NULL; in the arena, with room for what revive adds */
    size_t count;
    const char *directory; /* NULL: not said */
    int umask;             /* -1: not said */
    const char *secrets;   /* names that the recipe refers to, with commas between; "" none */
} dt_launch_env;

/* Whether a variable is kept. also: what DTRUN_KEEP_ENV holds ("NAME,PREFIX*"), or NULL. */
bool dt_launch_env_keeps(const char *assignment, const char *also);

/* The names in the ${env:NAME} of `text`, with commas between; in the arena. */
dt_status dt_launch_env_references(const char **out, const char *text, dt_arena *arena,
                                   dt_error *err);

/* What this process has, into FOLDER/environment. text: of the recipe, with its references. */
dt_status dt_launch_env_save(const char *folder, const char *text, dt_error *err);
dt_status dt_launch_env_read(dt_launch_env *out, const char *folder, dt_arena *arena,
                             dt_error *err);

/* For a supervisor that another process starts: what was kept, with the secrets of this process,
 * and the state folder that the run was found in (its parent). deliberate: a person acts on the
 * run, and hands over an ssh-agent that lives where that of the launch is gone. */
dt_status dt_launch_env_for_revival(dt_launch_env *out, const char *folder, const char *state_home,
                                    bool deliberate, dt_arena *arena, dt_error *err);

/* A person acts on the run: where the ssh-agent that was kept is gone and that of this process lives,
 * it is kept in its place. Good where nothing was kept. */
dt_status dt_launch_env_hand_over(const char *folder, dt_error *err);

/* Whether something listens on the Unix socket. */
bool dt_launch_env_is_alive(const char *socket_path);

#endif
