/* gguf_int: what the files of this folder share: the tables of kinds, the values of a header, open tensors. */
#ifndef DT_ENGINE_GGUF_GGUF_INT_H
#define DT_ENGINE_GGUF_GGUF_INT_H

#include <stddef.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "engine/gguf/gguf.h"

/* --- kinds.c */

typedef enum dt_gguf_turn {
    DT_GGUF_AS_IS,
    DT_GGUF_TRANSPOSED,  /* stored as (in, out) */
    DT_GGUF_PLUS_ONE,    /* a norm that multiplies by 1 + w */
    DT_GGUF_QUERY_PAIRS, /* rows i and i + D/2 of a head become rows 2i and 2i + 1 */
    DT_GGUF_KEY_PAIRS
} dt_gguf_turn;

/* A tensor without ".weight" or ".bias"; '*' is the number of the block. */
typedef struct dt_gguf_tensor_row {
    const char *theirs, *ours;
    dt_gguf_turn turn;
    bool wide; /* F32 in files of every type */
} dt_gguf_tensor_row;

typedef enum dt_gguf_value_type {
    DT_GGUF_U32 = 4,
    DT_GGUF_I32 = 5,
    DT_GGUF_FLOAT = 6,
    DT_GGUF_BOOL = 7,
    DT_GGUF_TEXT = 8,
    DT_GGUF_ARRAY = 9
} dt_gguf_value_type;

/* A key of config.json, and its key in the file after "ARCHITECTURE.". */
typedef struct dt_gguf_key_row {
    const char *theirs, *ours;
    dt_gguf_value_type type;
    double fallback; /* if config.json lacks it; NaN: then the key is left out */
} dt_gguf_key_row;

/* A key of config.json for which llama.cpp computes only some values: JSON texts with '|' between them, "a number"
 * for any. A key that is missing has one of them. */
typedef struct dt_gguf_need_row {
    const char *key, *values;
} dt_gguf_need_row;

/* Windows of attention. */
typedef enum dt_gguf_windows {
    DT_GGUF_WINDOWS_NONE,  /* the architecture computes none */
    DT_GGUF_WINDOWS_MAYBE, /* if the file has their length */
    DT_GGUF_WINDOWS_ALWAYS /* the file needs their length */
} dt_gguf_windows;

typedef struct dt_gguf_kind dt_gguf_kind;
struct dt_gguf_kind {
    const char *model_type, *architecture;
    const char *prefix;                            /* of names, which a file can leave out */
    const dt_gguf_tensor_row *tensors;             /* end with theirs NULL */
    const dt_gguf_key_row *keys;                   /* end with theirs NULL */
    const dt_gguf_need_row *needs;                 /* end with key NULL */
    int64_t (*feed_forward)(const json_t *config); /* NULL: among the keys */
    const char *ropes;       /* the types of rope scaling; NULL: no rotary positions */
    bool own_head;           /* the file needs a head also if the model shares the embedding's */
    bool head_width_derived; /* heads are as wide as the embedding divided by their number */
    dt_gguf_windows windows;
    bool same_base;        /* blocks with a window have the rotary base of the others */
    int window_pattern;    /* without a list, every this many-th block has no window */
    int unrotated_pattern; /* above 0: every this many-th block is not rotated */
    int64_t
        derived_scale; /* above 0: with this many blocks, scores scale as if heads had the derived width */
};

/* DT_ERR_RECIPE naming the kinds that there are. */
dt_status dt_gguf_find_kind(const dt_gguf_kind **out, const json_t *config, dt_error *err);
/* The row of a tensor; *name: its name in the file. NULL: there is none. */
const dt_gguf_tensor_row *dt_gguf_find_tensor(const char **name, const dt_gguf_kind *kind,
                                              const char *theirs, dt_arena *arena);

/* --- settings.c: what config.json says */

/* DT_ERR_RECIPE naming a setting that llama.cpp cannot compute. */
dt_status dt_gguf_check_settings(const dt_gguf_kind *kind, const json_t *config, dt_error *err);
int64_t dt_gguf_number(const json_t *config, const char *key); /* 0 if it is missing */
int64_t dt_gguf_head_width(const json_t *config);
/* The tokens that a block sees; 0: no block has a window. */
int64_t dt_gguf_window(const json_t *config);
bool dt_gguf_has_window(const dt_gguf_kind *kind, const json_t *config, int64_t block);

/* --- write.c: keys and values of a header */

typedef struct dt_gguf_header {
    dt_strbuf text; /* keys and values */
    uint64_t count;
    dt_arena *arena;
    json_t *notes; /* texts: in which respects llama.cpp differs */
    bool strips;   /* the tokenizer removes white space after its added tokens as Phi-3's does */
} dt_gguf_header;

void dt_gguf_add_u32(dt_gguf_header *out, const char *key, uint32_t value);
void dt_gguf_add_float(dt_gguf_header *out, const char *key, float value);
void dt_gguf_add_bool(dt_gguf_header *out, const char *key, bool value);
void dt_gguf_add_text(dt_gguf_header *out, const char *key, const char *value, size_t length);
/* Begins an array, whose `count` items follow with the next two. */
void dt_gguf_begin_array(dt_gguf_header *out, const char *key, dt_gguf_value_type type,
                         uint64_t count);
void dt_gguf_add_item(dt_gguf_header *out, const char *value, size_t length);
void dt_gguf_add_item_i32(dt_gguf_header *out, int32_t value);
void dt_gguf_add_item_float(dt_gguf_header *out, float value);
void dt_gguf_add_item_bool(dt_gguf_header *out, bool value);
void dt_gguf_note(dt_gguf_header *out, const char *text);

/* --- vocabulary.c: adds the tokenizer and the chat template of the folder. vocab: tokens of the model. */
dt_status dt_gguf_add_vocabulary(dt_gguf_header *out, const char *folder, int64_t vocab,
                                 const json_t *config, dt_error *err);

/* --- word_split.c: the name of a byte-level tokenizer's split into words; NULL: llama.cpp has none that is equal.
 * *ignores: it then takes a word that is a token without merges. */
const char *dt_gguf_word_split(bool *ignores, const json_t *tokenizer, dt_arena *arena);

/* --- pieces.c: SentencePiece's BPE, whose merges llama.cpp derives from scores of tokens. */

typedef struct dt_gguf_pieces {
    float *scores; /* [tokens] */
    bool prefix;   /* a space before each text */
} dt_gguf_pieces;

/* Whether an added token has marks for spaces: it is then made by merges, and not cut out before. */
bool dt_gguf_is_spaces(const json_t *added);
/* Whether a tokenizer.json has such a model, with tokens for bytes. */
bool dt_gguf_is_pieces(const json_t *tokenizer);
/* DT_ERR_RECIPE naming what differs from SentencePiece. */
dt_status dt_gguf_read_pieces(dt_gguf_pieces *out, dt_gguf_header *header, const json_t *tokenizer,
                              int64_t tokens, dt_error *err);

/* --- tensors.c */

enum { DT_GGUF_DIMS = 4, DT_GGUF_ALIGNMENT = 32 };

typedef struct dt_gguf_tensor {
    const char *name; /* in the file */
    const dt_gguf_tensor_row *row;
    int64_t dim[DT_GGUF_DIMS]; /* as it will be written, outermost first */
    int ndim;
    dt_gguf_type type;
    const void *values; /* F32, unaligned; as they are stored */
    int64_t elems, bytes, offset;
    int64_t heads; /* of pairs */
} dt_gguf_tensor;

int64_t dt_gguf_bytes(dt_gguf_type type, int64_t elems);
/* Converts the values of a tensor. out: [bytes]; work: [2 * elems]. DT_ERR_RECIPE if F16 cannot hold one. */
dt_status dt_gguf_convert(void *out, float *work, const dt_gguf_tensor *tensor, dt_error *err);

/* --- rope.c: the scaling of rotary positions */

/* "default" if config.json has none. */
const char *dt_gguf_rope_type(const json_t *config);
dt_status dt_gguf_check_rope(const dt_gguf_kind *kind, const json_t *config, dt_error *err);
void dt_gguf_add_rope(dt_gguf_header *out, const dt_gguf_kind *kind, const json_t *config);
enum { DT_GGUF_ROPE_TENSORS = 2 };
/* Factors of frequencies, without offsets; returns how many there are. */
size_t dt_gguf_rope_tensors(dt_gguf_tensor *out, const json_t *config, dt_arena *arena);

#endif
