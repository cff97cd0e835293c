/* recipe_report: prints what is known of a recipe: the origins of its values, its problems as SARIF, and
 * the predictions of `dtrun plan`. */
#ifndef DT_RUNNER_VIEW_RECIPE_RECIPE_REPORT_H
#define DT_RUNNER_VIEW_RECIPE_RECIPE_REPORT_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/read/problems.h"
#include "runner/predict/predict.h"
#include "runner/term/term.h"

/* origins: prints where the values of a recipe come from (recipes/read/origins.h). */

/* Adds one line a value: field, value, place; overridden values follow below it. `fields` is the result of
 * dt_origins_to_json. */
void dt_origins_view(dt_strbuf *out, const dt_term *term, const json_t *fields, dt_arena *arena);

/* sarif: writes the problems of recipes as SARIF 2.1.0, for code hosts and editors.
 *
 * One document for all recipes, with the rules of recipes/rules/rules.h. Paths are written as given, absolute ones as
 * file URIs.
 */

/* Returns an empty document. New reference. */
json_t *dt_sarif_new(void);
/* Adds the problems of one recipe. */
void dt_sarif_add(json_t *sarif, const dt_problems *problems);
/* Adds the error of a recipe that could not be read at all. */
void dt_sarif_add_error(json_t *sarif, const char *path, const char *message);

/* plan_report: prints the predictions of `dtrun plan` as text or JSON. */

#define DT_PLANNED_MOST 16

typedef struct dt_planned_size {
    int64_t nodes;
    dt_prediction prediction;
} dt_planned_size;

typedef struct dt_planned {
    dt_recipe recipe;
    int64_t vocab; /* 0: unknown without reading all data */
    const dt_gpu_spec *gpu;
    const dt_network *network;
    bool given_peak, given_node, given_network; /* values that options override */
    dt_machine machine;                         /* without its number of nodes */
    dt_planned_size sizes[DT_PLANNED_MOST];
    int sizes_count;
    int64_t overlap_end; /* dt_predict_overlap_end */
} dt_planned;

dt_status dt_plan_report_text(const dt_planned *planned, dt_arena *arena, dt_error *err);
/* {"version", "model", "machine", "sizes": [...], "overlap_end_gpus"} */
dt_status dt_plan_report_json(const dt_planned *planned, dt_error *err);

#endif
