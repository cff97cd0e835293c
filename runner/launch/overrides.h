/* overrides: finds, stores and prints what --set changed.
 *
 * A launch is compared with the recipe file, a resume with the recipe of the previous attempt. If the file alone
 * is not a complete recipe (--set gave what is missing), the arguments of --set are used instead.
 */
#ifndef DT_RUNNER_LAUNCH_OVERRIDES_H
#define DT_RUNNER_LAUNCH_OVERRIDES_H

#include "base/json.h"
#include "recipes/read/reader.h"
#include "runner/term/term.h"
#include "store/store.h"

/* Return [{"key", "old", "new"}, ...], a new reference. */
json_t *dt_overrides_of_launch(const dt_recipe_source *source, const dt_recipe *recipe,
                               dt_arena *arena);
json_t *dt_overrides_of_resume(const dt_run *before, const dt_recipe *recipe, dt_arena *arena);

dt_status dt_overrides_store(dt_store *store, const char *run, const json_t *changes,
                             dt_error *err);

/* Returns the changes of all attempts, each with "attempt". New reference. */
json_t *dt_overrides_to_json(const dt_attempt *attempts, int64_t count);
/* Appends a line per change: "optimizer.lr 0.0003 -> 0.001 (attempt 2)"; nothing if there is
 * none. */
void dt_overrides_add(dt_strbuf *out, const dt_term *term, const dt_attempt *attempts,
                      int64_t count, dt_arena *arena);

#endif
