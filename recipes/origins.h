/* origins: where each value of a recipe comes from, and what it stands over.
 *
 *   optimizer.lr   1e-3   --set optimizer.lr=1e-3
 *                  3e-4   sweep.yaml:7:14
 *                  6e-4   base.yaml:3:9
 *
 * Kept with an attempt as origins.json:
 *   {"origins": 1, "fields": {"optimizer.lr": [{"value": "1e-3", "source": "--set optimizer.lr=1e-3"},
 *                                              {"value": "3e-4", "source": "sweep.yaml", "line": 7,
 *                                               "column": 14}, ...]}}
 * The first is the one that counts. A value that follows from another field says so as "from"
 * ("model.preset"); a field that is not there has its default.
 *
 * Values   as they were written, references to the environment too; an address is not repeated
 *          (secret.h)
 * Ownership  everything lives in the arena of the reading
 */
#ifndef DT_RECIPES_ORIGINS_H
#define DT_RECIPES_ORIGINS_H

#include "base/json.h"
#include "recipes/fields.h"
#include "recipes/problems.h"
#include "recipes/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_ORIGINS_VERSION 1
/* X.yaml that was made of other recipes, as a sweep's point, may have the document of its values beside it. */
#define DT_ORIGINS_ENDING ".origins.json"
/* Texts that a recipe may be made of: itself, what it extends, and what is laid on top. */
#define DT_ORIGIN_SOURCES 32

typedef struct dt_origin {
    const char *value;
    dt_text_mark mark;
    const char *from;               /* the field that it follows from; NULL: it was written */
    const struct dt_origin *before; /* what it stands over; NULL: the default */
} dt_origin;

typedef struct dt_origins {
    const dt_origin *of[DT_FIELDS_MAX]; /* by row of the table; NULL: the default */
    dt_problem_source sources[DT_ORIGIN_SOURCES];
    size_t sources_count;
} dt_origins;

/* The value of a node as messages and origins show it. NULL without memory. */
const char *dt_origin_value(const dt_field *field, const dt_yaml_node *node, dt_arena *arena);

/* On top of what the field has. DT_ERR_NOMEM. */
dt_status dt_origins_add(dt_origins *origins, const dt_field *field, const char *value,
                         const dt_text_mark *mark, const char *from, dt_arena *arena,
                         dt_error *err);

/* {"optimizer.lr": [...], ...}. New reference. */
json_t *dt_origins_to_json(const dt_origins *origins);
/* The document; with what an earlier attempt had (NULL: nothing) below. New reference. */
json_t *dt_origins_document(const dt_origins *origins, const json_t *earlier);
/* The document beside the recipe `path` that was made of others; NULL: there is none. New reference. */
json_t *dt_origins_beside(const char *path, dt_arena *arena);
/* Leaves out of a document what it says of the file `source`. */
void dt_origins_leave_out(json_t *document, const char *source);
/* That of the newest attempt, up to this one, in a run's folder that has one; NULL: none has. New
 * reference. */
json_t *dt_origins_read(const char *folder, int64_t attempt, dt_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
