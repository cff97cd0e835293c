/* dirs: finds the state and cache directories (XDG base directories), and dtrun's programs.
 *
 *   state   $XDG_STATE_HOME/dtrun    store.db, runs/ID/
 *   cache   $XDG_CACHE_HOME/dtrun    agents, bundles, data, tokens, digests, tuned algorithms
 *
 * An XDG variable that is not an absolute path is ignored, as its specification says; then HOME,
 * then the password file.
 */
#ifndef DT_BASE_DIRS_H
#define DT_BASE_DIRS_H

#include "base/error.h"
#include "base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_dir { DT_DIR_STATE, DT_DIR_CACHE } dt_dir;

/* Returns the path of the directory, which need not exist. */
dt_status dt_dir_path(const char **out, dt_dir dir, dt_arena *arena, dt_error *err);

/* Returns the path of the directory, and creates it with mode 0700 if missing. The path lives in the arena. */
dt_status dt_dir_make(const char **out, dt_dir dir, dt_arena *arena, dt_error *err);

/* Returns the path of another program ("dtrun-engine"): in the folder of this program, or in ../libexec/dtrun if this
 * program is in a folder `bin`. The environment variable named by `override`, if set, replaces the path (NULL:
 * none). */
dt_status dt_dir_program(const char **out, const char *name, const char *override, dt_arena *arena,
                         dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
