/* tokenizer_int: declares what only the dataset knows about a tokenizer. */
#ifndef DT_ENGINE_TOKENIZER_INT_H
#define DT_ENGINE_TOKENIZER_INT_H

#include <stdbool.h>

#include "engine/data/chars.h"
#include "engine/data/data.h"
#include "engine/data/sides.h"
#include "engine/tokens/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_tokenizer_kind {
    DT_TOKENIZER_CHAR,
    DT_TOKENIZER_BYTE,
    DT_TOKENIZER_IDS,
    DT_TOKENIZER_ROWS, /* no tokenizer: samples are rows of numbers */
    DT_TOKENIZER_BPE,  /* trained by another program; has a file of its own */
    DT_TOKENIZER_PAIRS /* for sentence pairs; `vocab` is the target's */
} dt_tokenizer_kind;

struct dt_tokenizer {
    dt_tokenizer_kind kind;
    int64_t vocab;
    uint32_t *characters; /* [vocab] code points, ascending; NULL unless CHAR */
    int32_t ascii[128];   /* code point → token, -1 if it has none; CHAR only */
    dt_bpe *bpe;          /* tokenizer of kind BPE; NULL until its file is read */
    dt_sides *sides;      /* tokenizers of kind PAIRS; NULL until its file is read */
    dt_strbuf file;       /* contents of the tokenizer's file; BPE and PAIRS */
    char file_name[64];   /* name of the file in a checkpoint */
    char digest[33];      /* XXH3-128 digest of the file */
};

/* Create a tokenizer; the caller owns *out. The set must not be empty; vocab 1 to 2^31-1. */
dt_status dt_tokenizer_new_char(dt_tokenizer **out, const dt_char_set *set, dt_error *err);
dt_status dt_tokenizer_new_byte(dt_tokenizer **out, dt_error *err);
dt_status dt_tokenizer_new_ids(dt_tokenizer **out, int64_t vocab, dt_error *err);
dt_status dt_tokenizer_new_rows(dt_tokenizer **out, dt_error *err);
/* Allocate a tokenizer; `characters`: with zeroed memory for them. */
dt_status dt_tokenizer_make(dt_tokenizer **out, dt_tokenizer_kind kind, int64_t vocab,
                            bool characters, dt_error *err);
dt_status dt_tokenizer_copy(dt_tokenizer **out, const dt_tokenizer *from, dt_error *err);

/* Whether its kind has a file. */
static inline bool dt_tokenizer_has_file(const dt_tokenizer *tokenizer)
{
    return tokenizer->kind == DT_TOKENIZER_BPE || tokenizer->kind == DT_TOKENIZER_PAIRS;
}

/* tokenizer_bpe.c: the parts of tokenizer.c's functions for kinds with a file. */
void dt_tokenizer_bpe_to_json(json_t *out, const dt_tokenizer *tokenizer);
dt_status dt_tokenizer_bpe_from_json(dt_tokenizer **out, const json_t *json, dt_tokenizer_kind kind,
                                     int64_t vocab, dt_error *err);
dt_status dt_tokenizer_bpe_encode(int32_t **tokens, int64_t *count, const dt_tokenizer *tokenizer,
                                  const char *text, size_t length, dt_error *err);
/* DT_ERR_RECIPE if the checkpoint's tokenizer differs from the recipe's. */
dt_status dt_tokenizer_bpe_same(const dt_tokenizer *checkpoint, const dt_tokenizer *recipe,
                                dt_error *err);

const char *dt_tokenizer_kind_name(dt_tokenizer_kind kind);

/* The token of a code point, -1 if it has none. CHAR only. */
int32_t dt_tokenizer_find(const dt_tokenizer *tokenizer, uint32_t code);

#ifdef __cplusplus
}
#endif
#endif
