/* suggest: finds the field that an unknown key probably stands for. */
#ifndef DT_RECIPES_READ_SUGGEST_H
#define DT_RECIPES_READ_SUGGEST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the path of the field or map most similar to `key` in the map `group` ("": top level), such as
 * "batch.sequences", or NULL if nothing is similar. Returns a static string, or for groups `out`, which has
 * DT_SUGGEST_SIZE bytes. */
#define DT_SUGGEST_SIZE 64
const char *dt_suggest_field(char *out, const char *group, const char *key);

/* Returns what to do about a key that other programs know, in a sentence; NULL: the key is not known. Static. */
const char *dt_suggest_hint(const char *key);

#ifdef __cplusplus
}
#endif
#endif
