/* read_int: declares what the files of recipes/read/ share: paths, suggestions, remedies, references. */
#ifndef DT_RECIPES_READ_READ_INT_H
#define DT_RECIPES_READ_READ_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/read/reading.h"

#ifdef __cplusplus
extern "C" {
#endif

/* paths: makes file names of a recipe absolute, so that they mean the same wherever it is read. */

/* Returns the current folder, absolute. */
dt_status dt_path_current(const char **out, dt_arena *arena, dt_error *err);

/* Returns the folder of a file, absolute; the file need not exist. */
dt_status dt_path_folder(const char **out, const char *file, dt_arena *arena, dt_error *err);

/* Resolves `path` relative to the absolute `folder`; "~/x" starts at HOME. Links are not followed and globs
 * not expanded. DT_ERR_RECIPE if the result is not UTF-8 (a plan is JSON). */
dt_status dt_path_resolve(const char **out, const char *path, const char *folder, dt_arena *arena,
                          dt_error *err);

/* suggest: finds the field that an unknown key probably stands for. */

/* Returns the path of the field or map most similar to `key` in the map `group` ("": top level), such as
 * "batch.sequences", or NULL if nothing is similar. Returns a static string, or for groups `out`, which has
 * DT_SUGGEST_SIZE bytes. */
#define DT_SUGGEST_SIZE 64
const char *dt_suggest_field(char *out, const char *group, const char *key);

/* Returns what to do about a key that other programs know, in a sentence; NULL: the key is not known. Static. */
const char *dt_suggest_hint(const char *key);

/* tree_int: explains the errors of libyaml. Private to recipes/read/.
 *
 * libyaml names the rule of YAML that a text breaks, at the place where the rule breaks, which is often behind the
 * mistake. A remedy names the mistake, its place and what to write.
 */

/* What libyaml reports. Line and column are counted from 0, the column in characters. */
typedef struct dt_yaml_fault {
    const char *text; /* the whole text */
    const char *problem, *context;
    size_t line, column;
} dt_yaml_fault;

typedef struct dt_yaml_remedy {
    dt_strbuf message; /* the caller releases it */
    size_t line, column;
} dt_yaml_remedy;

void dt_yaml_remedy_find(dt_yaml_remedy *out, const dt_yaml_fault *fault);

/* Adds "a key is followed by a colon and a blank: 'seed: 1'" for "seed:1". Returns false for another text. */
bool dt_yaml_missing_blank(dt_strbuf *out, const char *text, size_t length);

/* references: fills in "${env:NAME}" and "${env:NAME:-default}" in the values of a recipe.
 *
 * References are filled in when the recipe is read, and the resolved recipe has the values. If a variable is
 * unset or empty, the default is used; without a default this is an error. References in the environment's
 * values are not expanded. A value that is a single reference may be a number, with or without quotes:
 * `lr: "${env:LR:-1e-4}"`; inside {} and [], YAML requires the quotes.
 * Fields that keep references (notify.webhook) are filled in where they are used, and never stored, because they
 * hold secrets. Reading such a field only checks that its variables are set.
 */

/* Fills in the scalars of the node and those below it, once. DT_ERR_RECIPE at the mark of the reference. */
dt_status dt_references_fill(dt_reading *reading, dt_yaml_node *node);
/* The same errors for a scalar whose field keeps references; the node does not change. */
dt_status dt_references_check(dt_reading *reading, const dt_yaml_node *node);

/* Refuses "${NAME}" and "$NAME/..." in a value of the field, which were meant for the environment's NAME. Texts for
 * programs and shells may have them, and a file that has such a name is found. */
dt_status dt_references_refuse_shell(const dt_reading *reading, const dt_field *field,
                                     const dt_yaml_node *node);

#ifdef __cplusplus
}
#endif

#endif
