/* huggingface_int: what reading and writing config.json share: rows of a family's table, and where their keys are. A key
 * "map.key" is in a nested object. */
#ifndef DT_RECIPES_FOREIGN_HUGGINGFACE_INT_H
#define DT_RECIPES_FOREIGN_HUGGINGFACE_INT_H

#include "recipes/foreign/huggingface.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_HUGGINGFACE_NAME_SIZE 64

/* Names of the object with the fields of rotary positions. */
#define DT_HUGGINGFACE_ROPE     "rope_scaling"    /* as in the families' tables */
#define DT_HUGGINGFACE_ROPE_NEW "rope_parameters" /* since version 5 of transformers */

/* Returns whether the row ends a table. */
bool dt_huggingface_ends(const dt_published_key *key);
/* Whether a family's table has a field of the recipe. */
bool dt_huggingface_names(const dt_published *family, const char *path);
/* Returns the key that `when` is about: that of the scaling of rotary positions. */
const dt_published_key *dt_huggingface_kind_key(const dt_published_key *keys);
/* Returns whether the word is in a list of words separated by spaces. */
bool dt_huggingface_has_word(const char *words, const char *word);
/* Whether the recipe's field is a list, of numbers in config.json. */
bool dt_huggingface_is_list(const dt_published_key *key);

/* Returns "map" for "map.key", and "key" for "key". room: DT_HUGGINGFACE_NAME_SIZE. */
const char *dt_huggingface_map_of(char *room, const char *key);
const json_t *dt_huggingface_json_at(const json_t *object, const char *key);
/* Returns the value as text of a recipe; NULL: not possible. */
const char *dt_huggingface_text_of(const json_t *value, const dt_published_key *key,
                                   dt_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
