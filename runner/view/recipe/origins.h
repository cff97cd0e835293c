/* origins: prints where the values of a recipe come from (recipes/read/origins.h). */
#ifndef DT_RUNNER_VIEW_ORIGINS_H
#define DT_RUNNER_VIEW_ORIGINS_H

#include "base/arena.h"
#include "base/json.h"
#include "runner/term/term.h"

/* Adds one line a value: field, value, place; overridden values follow below it. `fields` is the result of
 * dt_origins_to_json. */
void dt_origins_view(dt_strbuf *out, const dt_term *term, const json_t *fields, dt_arena *arena);

#endif
