/* launch_env: saves the environment that a run was launched or resumed in, for its supervisors.
 *
 * A command that finds a run without a supervisor starts one, perhaps from a login, a crontab or a service
 * where ssh, its agent or the home directory may be unavailable. So a supervisor always gets the environment
 * of the launch, not that of the command that started it.
 *
 * File runs/ID/environment, mode 0600: NAME=value, each ended by NUL as in /proc/PID/environ. The first items
 * are not variables: DTRUN_LAUNCH_DIRECTORY, DTRUN_LAUNCH_UMASK, DTRUN_LAUNCH_SECRETS.
 *
 * Kept     variables whose name matches the table in launch_env.c, or that DTRUN_KEEP_ENV names
 * Secrets  are not kept: variables outside the table, proxies with a password, and variables outside the table
 *          that the recipe references as ${env:...}. The names of the referenced variables are kept, and their values
 *          come from the process that starts the supervisor, if they are set there
 * Errors   DT_ERR_NOT_FOUND from read if the file is missing
 */
#ifndef DT_FOLDER_LAUNCH_ENV_H
#define DT_FOLDER_LAUNCH_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"

typedef struct dt_launch_env {
    /* NAME=value, ended by NULL; in the arena, with room for items that a revival adds */
    char **items;
    size_t count;
    const char *directory; /* NULL: unknown */
    int umask;             /* -1: unknown */
    const char *secrets;   /* names that the recipe references, separated by commas; "" if none */
} dt_launch_env;

/* True if the variable is kept. also: value of DTRUN_KEEP_ENV ("NAME,PREFIX*"), or NULL. */
bool dt_launch_env_keeps(const char *assignment, const char *also);

/* Returns the names in the ${env:NAME} references of `text`, separated by commas, in the arena. */
void dt_launch_env_references(const char **out, const char *text, dt_arena *arena);

/* Returns the texts of a recipe whose references are filled in when they are used: `also` (the webhook, or "") and
 * those of `env`. In the arena. */
const char *dt_launch_env_text(const char *also, const dt_string_list *env, dt_arena *arena);

/* Saves this process's environment to FOLDER/environment. text: the recipe with its references. */
dt_status dt_launch_env_save(const char *folder, const char *text, dt_error *err);

/* Builds the environment of a supervisor that another process starts: the saved variables, the
 * secrets of this process, and the state folder that the run was found in (state_home is its
 * parent). deliberate: a person acts on the run; then the ssh-agent of this process replaces the
 * saved one if that is gone. */
dt_status dt_launch_env_for_revival(dt_launch_env *out, const char *folder, const char *state_home,
                                    bool deliberate, dt_arena *arena, dt_error *err);

/* Replaces the saved ssh-agent by that of this process if the saved one is gone and this one
 * works. For commands by which a person acts on the run. Succeeds if nothing was saved. */
dt_status dt_launch_env_hand_over(const char *folder, dt_error *err);

/* True if a process listens on the Unix socket. */
bool dt_launch_env_is_alive(const char *socket_path);

#endif
