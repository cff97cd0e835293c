/* provenance: where an attempt comes from, kept with it.
 *
 *   {"command": ["dtrun", "launch", "gpt.yaml"], "folder": "/home/ada",
 *    "dtrun": "0.1.0", "commit": "c04f92d", "host": "gpu-a", "user": "ada",
 *    "git": {"commit": "8cf8...", "changed": 0},      of the recipe's folder; null: no repository
 *    "files": 2,                                      of data; `data` has the first DATA_MOST
 *    "data": [{"path": "/d/corpus.txt", "bytes": 120000, "modified": "2026-...", "xxh3_128": "..."}],
 *    "weights": {"from": "/m/gpt2", "kind": "huggingface",     only where parameters begin from files
 *                "files": [{"path": ..., "bytes": ..., "xxh3_128": ...}]}}
 *
 * Made before a run has a row, in bounded time: git is asked for seconds at most, data are digested
 * as engine/data/fingerprint.h has it. What cannot be told is null or missing: nothing here keeps a
 * run from starting.
 */
#ifndef DT_RUNNER_LAUNCH_PROVENANCE_H
#define DT_RUNNER_LAUNCH_PROVENANCE_H

#include "base/json.h"
#include "recipes/plan.h"
#include "runner/term/table.h"
#include "store/store.h"

/* plan: its recipe with data at paths of this machine. New reference. */
json_t *dt_provenance_make(const char *recipe_path, const dt_plan *plan, dt_arena *arena);
dt_status dt_provenance_store(dt_store *store, const char *run, const json_t *provenance,
                              dt_error *err);

/* Those of the attempts that have one, each with "attempt" first. New reference. */
json_t *dt_provenance_to_json(const dt_attempt *attempts, int64_t count);
/* Rows of a table of two columns, a label and what it says. */
void dt_provenance_add(dt_table *table, const dt_attempt *attempts, int64_t count);

#endif
