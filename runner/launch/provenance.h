/* provenance: records where an attempt comes from.
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
#include "recipes/plan/plan.h"
#include "runner/term/table.h"
#include "store/store.h"

/* Returns the provenance, a new reference. plan: its recipe has data at paths of this machine. */
json_t *dt_provenance_make(const char *recipe_path, const dt_plan *plan, dt_arena *arena);
dt_status dt_provenance_store(dt_store *store, const char *run, const json_t *provenance,
                              dt_error *err);

/* Returns the provenance of each attempt that has one, with "attempt" first. New reference. */
json_t *dt_provenance_to_json(const dt_attempt *attempts, int64_t count);
/* Adds rows of two columns, label and value. */
void dt_provenance_add(dt_table *table, const dt_attempt *attempts, int64_t count);

/* Returns the commit of the repository that the folder is in; "": unknown. */
const char *dt_provenance_commit(const char *folder, dt_arena *arena);

#endif
