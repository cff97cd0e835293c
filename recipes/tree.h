/* tree: YAML as nodes that remember where they stood.
 *
 * Takes what reader.h says a recipe may be made of and refuses the rest of YAML: aliases, anchors
 * and tags (an anchor bomb is an alias that is expanded), further documents, nesting deeper than
 * any recipe. Duplicate keys are the reader's to find: it knows which keys there are.
 * Ownership  nodes and their text live in the arena
 */
#ifndef DT_RECIPES_TREE_H
#define DT_RECIPES_TREE_H

#include "base/arena.h"
#include "recipes/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_yaml_kind { DT_YAML_SCALAR, DT_YAML_LIST, DT_YAML_MAP } dt_yaml_kind;

typedef struct dt_yaml_node {
    dt_yaml_kind kind;
    dt_text_mark mark;
    const char *text;           /* of a scalar */
    const char *written;        /* before references were filled in; NULL: there are none */
    bool plain;                 /* a scalar without quotes: may be a number or nothing */
    struct dt_yaml_node *key;   /* of an entry of a map */
    struct dt_yaml_node *first; /* of a list or a map */
    struct dt_yaml_node *next;  /* sibling */
} dt_yaml_node;

/* *out is NULL where the text holds nothing. DT_ERR_RECIPE. Nodes and errors have line and column
 * where the text starts at line 1 of its source, and stand at `start` where that has none. */
dt_status dt_tree_parse(dt_yaml_node **out, const char *text, const dt_text_mark *start,
                        dt_arena *arena, dt_error *err);

/* A plain scalar of the given text that stands at `mark`; NULL without memory. */
dt_yaml_node *dt_tree_scalar(const char *text, const dt_text_mark *mark, dt_arena *arena);

/* Whether a scalar stands for nothing: "key:", "~", "null". */
bool dt_yaml_node_is_null(const dt_yaml_node *node);

/* "text", "a list", "a map": for messages. */
const char *dt_yaml_kind_name(const dt_yaml_node *node);

#ifdef __cplusplus
}
#endif
#endif
