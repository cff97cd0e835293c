/* vocab: stores the bytes of tokens, and finds a token by id or by its bytes.
 *
 * Ids may have holes. A token that is never encoded from text is found by its id only.
 */
#ifndef DT_ENGINE_TOKENS_VOCAB_H
#define DT_ENGINE_TOKENS_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_VOCAB_MAX ((int64_t)1 << 24) /* tokens; also the upper bound of model.vocab */

typedef struct dt_vocab_token {
    uint64_t start;
    uint32_t length;
    bool there;
} dt_vocab_token;

typedef struct dt_vocab {
    dt_strbuf bytes;        /* the bytes of all tokens */
    dt_vocab_token *tokens; /* [capacity], zeroed from `size` on */
    int64_t size, capacity; /* size: the largest id + 1 */
    int32_t *slots;         /* id + 1; 0: free */
    uint64_t found, mask;   /* found: tokens that can be found by their bytes */
} dt_vocab;

dt_status dt_vocab_init(dt_vocab *out, dt_error *err);
void dt_vocab_release(dt_vocab *vocab); /* accepts a zeroed one */

/* Adds a token; `findable`: also by its bytes. DT_ERR_CORRUPT if the id is in use or out of range, or if the bytes
 * are those of another findable token. */
dt_status dt_vocab_add(dt_vocab *vocab, int64_t id, const char *bytes, size_t length, bool findable,
                       dt_error *err);

/* Returns the id of the token with these bytes; -1: none. */
int32_t dt_vocab_find(const dt_vocab *vocab, const void *bytes, size_t length);

/* Returns the bytes of a token; NULL if no token has the id. Borrowed until the next token is added. */
const char *dt_vocab_text(const dt_vocab *vocab, int64_t id, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
