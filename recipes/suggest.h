/* suggest: which field was meant by a key that does not exist. */
#ifndef DT_RECIPES_SUGGEST_H
#define DT_RECIPES_SUGGEST_H

#ifdef __cplusplus
extern "C" {
#endif

/* The path of the field or map that `key`, written in the map `group` ("" at the top), is most
 * likely to mean ("batch.sequences"), or NULL where nothing comes near. Static string or the
 * table's; groups are written into `out`, which takes DT_SUGGEST_SIZE bytes. */
#define DT_SUGGEST_SIZE 64
const char *dt_suggest_field(char *out, const char *group, const char *key);

#ifdef __cplusplus
}
#endif
#endif
