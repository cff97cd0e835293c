/* added: finds added tokens, such as <|endoftext|>, which are cut out of a text before it is split into words:
 * from left to right, the longest token at each place.
 */
#ifndef DT_ENGINE_TOKENS_ADDED_H
#define DT_ENGINE_TOKENS_ADDED_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/tokens/pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_added_token {
    int32_t id;          /* -1: no token ends at this node */
    bool lstrip, rstrip; /* white space before it, after it, belongs to it */
} dt_added_token;

/* A tree of bytes. Node 0 is its root. */
typedef struct dt_added {
    dt_pairs edges;
    dt_added_token *nodes;
    size_t count, capacity;
    unsigned char first[256]; /* bytes that a token begins with, each once */
    int first_count;
} dt_added;

dt_status dt_added_init(dt_added *out, dt_error *err);
void dt_added_release(dt_added *added); /* accepts a zeroed one */
bool dt_added_is_empty(const dt_added *added);
/* Adds a token, which must not be empty, and replaces one with the same text. */
dt_status dt_added_put(dt_added *added, const char *text, size_t length,
                       const dt_added_token *token, dt_error *err);

/* Finds the first added token at or after text[from]. start .. end are its bytes, including the
 * white space that belongs to it, but none before `from`. Returns false if there is none. */
bool dt_added_next(const dt_added *added, const char *text, size_t length, size_t from,
                   size_t *start, size_t *end, int32_t *id);

#ifdef __cplusplus
}
#endif
#endif
