/* place: a state folder that lives as long as one smoke test, and dtrun as a person calls it there.
 *
 * What is done goes through the programs that are installed, so that what is seen is what a run
 * does: dtrun launches, its supervisor, agent and engine train, and the history has the rest.
 * Ownership  close ends whatever still runs there, and removes the folder unless it is to be kept
 */
#ifndef DT_SMOKE_PLACE_H
#define DT_SMOKE_PLACE_H

#include "base/arena.h"
#include "base/json.h"
#include "recipes/recipe.h"
#include "store/store.h"

typedef struct dt_smoke_place {
    const char *folder, *dtrun;
    double limit_seconds; /* for one call */
    dt_store *store;      /* NULL until the first run */
    dt_arena *arena;      /* borrowed */
} dt_smoke_place;

/* A folder below TMPDIR, which becomes XDG_STATE_HOME of this process and of all that it starts. */
dt_status dt_smoke_place_open(dt_smoke_place *out, double limit_seconds, dt_arena *arena,
                              dt_error *err);
/* DT_ERR_IO, and the folder stays: something there could not be ended, or removed. */
dt_status dt_smoke_place_close(dt_smoke_place *place, bool keep, dt_error *err);

/* One call, words ended by NULL, with --json added: its exit code and its object (NULL: none), which is
 * the caller's. DT_ERR_IO where it cannot be run, DT_ERR_TIMEOUT. */
dt_status dt_smoke_place_call(json_t **out, int *exit_code, dt_smoke_place *place,
                              const char *const *words, dt_error *err);

/* Writes the recipe as NAME.yaml there; *path lives in the arena. */
dt_status dt_smoke_place_write(const char **path, const dt_smoke_place *place, const char *name,
                               const dt_recipe *recipe, dt_error *err);

#endif
