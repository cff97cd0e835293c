/* origins: records where each value of a recipe comes from, and which values it overrides.
 *
 *   optimizer.lr   1e-3   --set optimizer.lr=1e-3
 *                  3e-4   sweep.yaml:7:14
 *                  6e-4   base.yaml:3:9
 *
 * Kept with an attempt as origins.json:
 *   {"origins": 1, "fields": {"optimizer.lr": [{"value": "1e-3", "source": "--set optimizer.lr=1e-3"},
 *                                              {"value": "3e-4", "source": "sweep.yaml", "line": 7,
 *                                               "column": 14}, ...]}}
 * The first value is the effective one. A value derived from another field has "from" ("model.preset"); a
 * missing field has its default.
 *
 * Values   as written, including references to the environment; URLs with secrets are left out
 *            (reading.h)
 * Ownership  everything lives in the arena of the reading
 */
#ifndef DT_RECIPES_READ_ORIGINS_H
#define DT_RECIPES_READ_ORIGINS_H

#include "base/json.h"
#include "recipes/fields/fields.h"
#include "recipes/read/problems.h"
#include "recipes/read/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_ORIGINS_VERSION 1
/* A generated recipe X.yaml, such as a point of a sweep, may have the origins of its values in this file. */
#define DT_ORIGINS_ENDING ".origins.json"
/* Maximum number of texts of a recipe: itself, those it extends, and those applied on top. */
#define DT_ORIGIN_SOURCES 32

typedef struct dt_origin {
    const char *value;
    dt_text_mark mark;
    const char *from; /* the field that the value derives from; NULL: it was written */
    const struct dt_origin *before; /* the overridden value; NULL: the default */
} dt_origin;

typedef struct dt_origins {
    const dt_origin *of[DT_FIELDS_MAX]; /* by row of the table; NULL: the default */
    dt_problem_source sources[DT_ORIGIN_SOURCES];
    size_t sources_count;
} dt_origins;

/* Returns the value of a node as messages and origins show it. */
const char *dt_origin_value(const dt_field *field, const dt_yaml_node *node, dt_arena *arena);

/* Adds a value that overrides the field's current one. */
void dt_origins_add(dt_origins *origins, const dt_field *field, const char *value,
                    const dt_text_mark *mark, const char *from, dt_arena *arena);

/* Returns whether the field `path` has another value than its default, or one that was written. origins may be NULL. */
bool dt_origins_has(const dt_origins *origins, const char *path);

/* Returns {"optimizer.lr": [...], ...}. New reference. */
json_t *dt_origins_to_json(const dt_origins *origins);
/* Returns the document, with the origins of an earlier attempt (NULL: none) below. New reference. */
json_t *dt_origins_document(const dt_origins *origins, const json_t *earlier);
/* Returns the origins stored for the generated recipe `path`; NULL: there are none. New reference. */
json_t *dt_origins_beside(const char *path, dt_arena *arena);
/* Removes the entries of the file `source` from a document. */
void dt_origins_leave_out(json_t *document, const char *source);
/* Returns the document of the newest attempt up to this one in a run's folder; NULL: none. New reference. */
json_t *dt_origins_read(const char *folder, int64_t attempt, dt_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
