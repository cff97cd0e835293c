/* place: creates a temporary state folder for a smoke test, and runs dtrun commands in it.
 *
 * Everything is done by the installed programs, as in a real run: dtrun launches; supervisor, agent and engine train;
 * the history has the results.
 * Ownership  close stops all runs in the folder, and removes the folder unless it is kept
 */
#ifndef DT_SMOKE_PLACE_H
#define DT_SMOKE_PLACE_H

#include "base/arena.h"
#include "base/json.h"
#include "recipes/fields/recipe.h"
#include "store/store.h"

typedef struct dt_smoke_place {
    const char *folder, *dtrun;
    double limit_seconds; /* for one call */
    bool remove_runs;     /* on other nodes, at the end */
    dt_store *store;      /* NULL until the first run */
    dt_arena *arena;      /* borrowed */
} dt_smoke_place;

/* Creates a folder in TMPDIR and makes it XDG_STATE_HOME of this process and its children. */
dt_status dt_smoke_place_open(dt_smoke_place *out, double limit_seconds, dt_arena *arena,
                              dt_error *err);
/* DT_ERR_IO if a run could not be stopped or the folder not be removed; the folder then stays. */
dt_status dt_smoke_place_close(dt_smoke_place *place, bool keep, dt_error *err);

/* Runs one command (NULL-terminated words) with --json. Returns its exit code and its object (NULL:
 * none), owned by the caller. DT_ERR_IO if it cannot be run; DT_ERR_TIMEOUT. */
dt_status dt_smoke_place_call(json_t **out, int *exit_code, dt_smoke_place *place,
                              const char *const *words, dt_error *err);

/* Writes the recipe to NAME.yaml in the folder; *path lives in the arena. */
dt_status dt_smoke_place_write(const char **path, const dt_smoke_place *place, const char *name,
                               const dt_recipe *recipe, dt_error *err);

/* --- copy.c */
/* Copies the recipe's workdir to NAME-workdir in the folder, so that the program writes nothing into the user's, and
 * makes it the workdir of *io. Checkpoints of earlier runs are left out: a program might continue from them.
 * DT_ERR_RECIPE: it is not here, or larger than workdir.max_mb. */
dt_status dt_smoke_place_copy(dt_recipe *io, const dt_smoke_place *place, const char *name,
                              dt_error *err);

#endif
