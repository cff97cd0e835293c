/* huggingface_int: what reading config.json (huggingface.c) and writing it (huggingface_write.c) share: keys of a
 * family's table, and where they stand in the file. A key may be "map.key": then it stands in an object.
 */
#ifndef DT_RECIPES_HUGGINGFACE_INT_H
#define DT_RECIPES_HUGGINGFACE_INT_H

#include "recipes/huggingface.h"

#define DT_HUGGINGFACE_NAME_SIZE 64

/* Whether it is the row that ends a table. */
bool dt_huggingface_ends(const dt_published_key *key);

/* "map" of "map.key"; "key" of itself. room: DT_HUGGINGFACE_NAME_SIZE. */
const char *dt_huggingface_map_of(char *room, const char *key);
const json_t *dt_huggingface_json_at(const json_t *object, const char *key);

/* The key that says of what kind the object is which this one stands in: the first of it. */
const dt_published_key *dt_huggingface_kind_key(const dt_published_key *keys,
                                                const dt_published_key *key);

/* Whether the word is one of those in a text. */
bool dt_huggingface_has_word(const char *words, const char *word);

/* As it stands in a recipe; NULL: it cannot. */
const char *dt_huggingface_text_of(const json_t *value, const dt_published_key *key,
                                   dt_arena *arena);

#endif
