/* overrides: what --set changed, kept with the attempt and shown before anything else of a run.
 *
 * A launch is compared with its recipe as the file has it, a resume with the recipe of the attempt
 * before. Where the file alone is no recipe (--set gave what it lacks), the words of --set stand
 * in.
 */
#ifndef DT_RUNNER_LAUNCH_OVERRIDES_H
#define DT_RUNNER_LAUNCH_OVERRIDES_H

#include "base/json.h"
#include "recipes/reader.h"
#include "runner/term/term.h"
#include "store/store.h"

/* [{"key", "old", "new"}, ...]. New references. */
json_t *dt_overrides_of_launch(const dt_recipe_source *source, const dt_recipe *recipe,
                               dt_arena *arena);
json_t *dt_overrides_of_resume(const dt_run *before, const dt_recipe *recipe, dt_arena *arena);

dt_status dt_overrides_store(dt_store *store, const char *run, const json_t *changes,
                             dt_error *err);

/* Those of all attempts, each with "attempt". New reference. */
json_t *dt_overrides_to_json(const dt_attempt *attempts, int64_t count);
/* A line each: "optimizer.lr  0.0003 -> 0.001  (attempt 2)"; nothing where nothing was changed. */
void dt_overrides_add(dt_strbuf *out, const dt_term *term, const dt_attempt *attempts,
                      int64_t count, dt_arena *arena);

#endif
