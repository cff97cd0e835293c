/* dirs: where dtrun keeps its things (XDG base directories), and where its programs are.
 *
 *   state   $XDG_STATE_HOME/dtrun    store.db, runs/ID/
 *   cache   $XDG_CACHE_HOME/dtrun    agents, bundles, data, tokens, digests, tuned algorithms
 *
 * An XDG variable that is not an absolute path is ignored, as its specification says; then HOME,
 * then the password file.
 */
#ifndef DT_BASE_DIRS_H
#define DT_BASE_DIRS_H

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_dir { DT_DIR_STATE, DT_DIR_CACHE } dt_dir;

/* The folder, whether or not it is there. */
dt_status dt_dir_path(const char **out, dt_dir dir, dt_arena *arena, dt_error *err);

/* The folder, made with mode 0700 where missing. The text lives in the arena. */
dt_status dt_dir_make(const char **out, dt_dir dir, dt_arena *arena, dt_error *err);

/* The path of a program that is beside this one ("dtrun-engine"), or in ../libexec/dtrun where this
 * one is in a folder `bin`; the variable `override` wins where it is set (may be NULL). */
dt_status dt_dir_program(const char **out, const char *name, const char *override, dt_arena *arena,
                         dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
