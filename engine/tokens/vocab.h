/* vocab: tokens as bytes, by number and by what they are.
 *
 * Numbers may have holes. A token may be known by its number alone (one that no text becomes).
 */
#ifndef DT_ENGINE_TOKENS_VOCAB_H
#define DT_ENGINE_TOKENS_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_VOCAB_MAX ((int64_t)1 << 24) /* tokens; model.vocab's bound */

typedef struct dt_vocab_token {
    uint64_t start;
    uint32_t length;
    bool there;
} dt_vocab_token;

typedef struct dt_vocab {
    dt_strbuf bytes;        /* of all tokens */
    dt_vocab_token *tokens; /* [capacity], zeroed behind `size` */
    int64_t size, capacity; /* the largest number + 1 */
    int32_t *slots;         /* number + 1; 0: free */
    uint64_t found, mask;   /* tokens that can be found by their bytes */
} dt_vocab;

dt_status dt_vocab_init(dt_vocab *out, dt_error *err);
void dt_vocab_release(dt_vocab *vocab); /* accepts a zeroed one */

/* `findable`: by its bytes too. DT_ERR_CORRUPT where the number is taken or out of range, or the
 * bytes are those of another token that can be found. */
dt_status dt_vocab_add(dt_vocab *vocab, int64_t id, const char *bytes, size_t length, bool findable,
                       dt_error *err);

/* -1 where there is none. */
int32_t dt_vocab_find(const dt_vocab *vocab, const void *bytes, size_t length);

/* NULL where no token has that number. Borrowed until the next token is added. */
const char *dt_vocab_text(const dt_vocab *vocab, int64_t id, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
