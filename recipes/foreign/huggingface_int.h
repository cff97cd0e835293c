/* huggingface_int: declares functions shared by reading (huggingface.c) and writing (huggingface_write.c)
 * config.json, for keys of a family's table. A key "map.key" is in a nested object.
 */
#ifndef DT_RECIPES_FOREIGN_HUGGINGFACE_INT_H
#define DT_RECIPES_FOREIGN_HUGGINGFACE_INT_H

#include "recipes/foreign/huggingface.h"

#define DT_HUGGINGFACE_NAME_SIZE 64

/* Names of the object with the fields of rotary positions. */
#define DT_HUGGINGFACE_ROPE     "rope_scaling"    /* as in the families' tables */
#define DT_HUGGINGFACE_ROPE_NEW "rope_parameters" /* since version 5 of transformers */

/* Returns whether the row ends a table. */
bool dt_huggingface_ends(const dt_published_key *key);

/* Returns "map" for "map.key", and "key" for "key". room: DT_HUGGINGFACE_NAME_SIZE. */
const char *dt_huggingface_map_of(char *room, const char *key);
const json_t *dt_huggingface_json_at(const json_t *object, const char *key);

/* Returns the key with the kind of the object that contains this key: the object's first key. */
const dt_published_key *dt_huggingface_kind_key(const dt_published_key *keys,
                                                const dt_published_key *key);

/* Returns whether the word is in a list of words separated by spaces. */
bool dt_huggingface_has_word(const char *words, const char *word);

/* Returns the value as text of a recipe; NULL: not possible. */
const char *dt_huggingface_text_of(const json_t *value, const dt_published_key *key,
                                   dt_arena *arena);

#endif
