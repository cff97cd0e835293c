/* tree: parses YAML into nodes with their positions.
 *
 * Accepts the subset of YAML that reader.h describes and refuses the rest: aliases, anchors and tags (which
 * also rules out anchor bombs), a second document, deep nesting. The reader finds duplicate
 * keys, because it knows the valid keys.
 * Ownership  nodes and their text live in the arena
 */
#ifndef DT_RECIPES_READ_TREE_H
#define DT_RECIPES_READ_TREE_H

#include "base/memory.h"
#include "recipes/fields/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_yaml_kind { DT_YAML_SCALAR, DT_YAML_LIST, DT_YAML_MAP } dt_yaml_kind;

typedef struct dt_yaml_node {
    dt_yaml_kind kind;
    dt_text_mark mark;
    const char *text;           /* of a scalar */
    const char *written;        /* text before references were filled in; NULL: no references */
    bool plain;                 /* a scalar without quotes, which may be a number or null */
    struct dt_yaml_node *key;   /* of an entry of a map */
    struct dt_yaml_node *first; /* of a list or a map */
    struct dt_yaml_node *next;  /* sibling */
} dt_yaml_node;

/* *out is NULL if the text is empty. DT_ERR_RECIPE. Nodes and errors have line and column if `start` has
 * line 1, else the mark `start`. */
dt_status dt_tree_parse(dt_yaml_node **out, const char *text, const dt_text_mark *start,
                        dt_arena *arena, dt_error *err);

/* Returns a plain scalar with the text at `mark`. */
dt_yaml_node *dt_tree_scalar(const char *text, const dt_text_mark *mark, dt_arena *arena);

/* Returns whether a scalar is null: "key:", "~", "null". */
bool dt_yaml_node_is_null(const dt_yaml_node *node);

/* Returns "text", "a list" or "a map" for messages. */
const char *dt_yaml_kind_name(const dt_yaml_node *node);

#ifdef __cplusplus
}
#endif
#endif
