/* origins: where the values of a recipe come from, for people (recipes/origins.h). */
#ifndef DT_RUNNER_VIEW_ORIGINS_H
#define DT_RUNNER_VIEW_ORIGINS_H

#include "base/arena.h"
#include "base/json.h"
#include "runner/term/term.h"

/* A line a value: field, value, place; what it stands over below it. `fields` as dt_origins_to_json
 * gives them. */
void dt_origins_view(dt_strbuf *out, const dt_term *term, const json_t *fields, dt_arena *arena);

#endif
