/* provenance: records where an attempt comes from: command, versions, git commit, data, weights, and what
 * --set changed.
 *
 *   {"command": ["dtrun", "launch", "gpt.yaml"], "folder": "/home/ada",
 *    "dtrun": "0.1.0", "commit": "c04f92d", "host": "gpu-a", "user": "ada",
 *    "git": {"commit": "8cf8...", "changed": 0},      of the recipe's folder; null: not a repository
 *    "files": 2,                                      number of data files; `data` has the first DATA_MOST
 *    "data": [{"path": "/d/corpus.txt", "bytes": 120000, "modified": "2026-...", "xxh3_128": "..."}],
 *    "weights": {"from": "/m/gpt2", "kind": "huggingface",     only if parameters start from files
 *                "files": [{"path": ..., "bytes": ..., "xxh3_128": ...}]}}
 *
 * Collected before a run has a row, in bounded time: git gets a few seconds, data are hashed as in
 * engine/data/fingerprint.h. Unknown values are null or missing: nothing here prevents a launch.
 */
#ifndef DT_RUNNER_LAUNCH_PROVENANCE_H
#define DT_RUNNER_LAUNCH_PROVENANCE_H

#include "base/json.h"
#include "recipes/read/reader.h"
#include "runner/launch/preflight.h"
#include "runner/term/term.h"
#include "store/run.h"

/* Returns the provenance, a new reference. flight: the recipe of its plan has data at paths of this machine. */
json_t *dt_provenance_make(const char *recipe_path, const dt_preflight *flight, dt_arena *arena);
dt_status dt_provenance_store(dt_store *store, const char *run, const json_t *provenance,
                              dt_error *err);

/* Returns the provenance of each attempt that has one, with "attempt" first. New reference. */
json_t *dt_provenance_to_json(const dt_attempt *attempts, int64_t count);
/* Adds rows of two columns, label and value. */
void dt_provenance_add(dt_table *table, const dt_attempt *attempts, int64_t count);

/* Returns the commit of the repository that the folder is in; "": unknown. */
const char *dt_provenance_commit(const char *folder, dt_arena *arena);

/* overrides: finds, stores and prints what --set changed.
 *
 * A launch is compared with the recipe file, a resume with the recipe of the previous attempt. If the file alone
 * is not a complete recipe (--set gave what is missing), the arguments of --set are used instead.
 */

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
