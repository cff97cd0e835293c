/* tokenizer_int: what the dataset knows of a tokenizer beyond data.h. */
#ifndef DT_ENGINE_TOKENIZER_INT_H
#define DT_ENGINE_TOKENIZER_INT_H

#include <stdbool.h>

#include "engine/data/chars.h"
#include "engine/data/data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_tokenizer_kind {
    DT_TOKENIZER_CHAR,
    DT_TOKENIZER_BYTE,
    DT_TOKENIZER_IDS,
    DT_TOKENIZER_ROWS /* none: samples are rows of numbers */
} dt_tokenizer_kind;

struct dt_tokenizer {
    dt_tokenizer_kind kind;
    int64_t vocab;
    uint32_t *characters; /* [vocab], ascending; NULL unless CHAR */
    int32_t ascii[128];   /* code point → token, -1 where it has none; CHAR only */
};

/* Each: the caller owns *out. The set must not be empty; vocab 1 to 2^31-1. */
dt_status dt_tokenizer_new_char(dt_tokenizer **out, const dt_char_set *set, dt_error *err);
dt_status dt_tokenizer_new_byte(dt_tokenizer **out, dt_error *err);
dt_status dt_tokenizer_new_ids(dt_tokenizer **out, int64_t vocab, dt_error *err);
dt_status dt_tokenizer_new_rows(dt_tokenizer **out, dt_error *err);
dt_status dt_tokenizer_copy(dt_tokenizer **out, const dt_tokenizer *from, dt_error *err);

const char *dt_tokenizer_kind_name(dt_tokenizer_kind kind);

/* The token of a code point, -1 where the vocabulary lacks it. CHAR only. */
int32_t dt_tokenizer_find(const dt_tokenizer *tokenizer, uint32_t code);

#ifdef __cplusplus
}
#endif
#endif
