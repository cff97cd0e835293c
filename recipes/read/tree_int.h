/* tree_int: explains the errors of libyaml. Private to recipes/read/.
 *
 * libyaml names the rule of YAML that a text breaks, at the place where the rule breaks, which is often behind the
 * mistake. A remedy names the mistake, its place and what to write.
 */
#ifndef DT_RECIPES_READ_TREE_INT_H
#define DT_RECIPES_READ_TREE_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

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

#endif
