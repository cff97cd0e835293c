/* samples: prints the texts that a run has generated for the prompts of 'evaluate.samples'.
 *
 *   step 400
 *
 *   the quick
 *   | brown fox jumps
 *   100 tokens, cut at the limit
 */
#ifndef DT_RUNNER_VIEW_RUNS_SAMPLES_H
#define DT_RUNNER_VIEW_RUNS_SAMPLES_H

#include "base/json.h"
#include "runner/term/term.h"
#include "store/event.h"

/* Adds the texts, with a heading for each step. */
void dt_samples_add(dt_strbuf *out, const dt_term *term, const dt_store_sample *samples,
                    int64_t count, dt_arena *arena);
/* [{"attempt", "step", "time_ms", "index", "prompt", "text", "tokens", "ended"}]. New reference. */
json_t *dt_samples_to_json(const dt_store_sample *samples, int64_t count);

#endif
