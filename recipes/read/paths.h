/* paths: makes file names of a recipe absolute, so that they mean the same wherever it is read. */
#ifndef DT_RECIPES_READ_PATHS_H
#define DT_RECIPES_READ_PATHS_H

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the current folder, absolute. */
dt_status dt_path_current(const char **out, dt_arena *arena, dt_error *err);

/* Returns the folder of a file, absolute; the file need not exist. */
dt_status dt_path_folder(const char **out, const char *file, dt_arena *arena, dt_error *err);

/* Resolves `path` relative to the absolute `folder`; "~/x" starts at HOME. Links are not followed and globs
 * not expanded. DT_ERR_RECIPE if the result is not UTF-8 (a plan is JSON). */
dt_status dt_path_resolve(const char **out, const char *path, const char *folder, dt_arena *arena,
                          dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
