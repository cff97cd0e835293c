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
    DT_GGUF_QUERY_PAIRS, /* rows i and i + D/2 of a head become rows 2i and 2i + 1 */
    DT_GGUF_KEY_PAIRS
} dt_gguf_turn;

/* A tensor without ".weight" or ".bias"; '*' is the number of the block. */
typedef struct dt_gguf_tensor_row {
    const char *theirs, *ours; /* ours NULL: left out of the file */
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

/* A key of config.json ("a.b" is b of a), and its key in the file after "ARCHITECTURE.". */
typedef struct dt_gguf_key_row {
    const char *theirs, *ours;
    dt_gguf_value_type type;
    double fallback; /* if config.json lacks it; NaN: then the key is left out */
} dt_gguf_key_row;

typedef struct dt_gguf_kind {
    const char *model_type, *architecture;
    const char *prefix;                            /* of names, which a file can leave out */
    const dt_gguf_tensor_row *tensors;             /* end with theirs NULL */
    const dt_gguf_key_row *keys;                   /* end with theirs NULL */
    int64_t (*feed_forward)(const json_t *config); /* NULL: among the keys */
} dt_gguf_kind;

/* DT_ERR_RECIPE naming the kinds that there are, or a setting that the file cannot have. */
dt_status dt_gguf_find_kind(const dt_gguf_kind **out, const json_t *config, dt_error *err);
/* The row of a tensor; *name: its name in the file. NULL: there is none. */
const dt_gguf_tensor_row *dt_gguf_find_tensor(const char **name, const dt_gguf_kind *kind,
                                              const char *theirs, dt_arena *arena);
const json_t *dt_gguf_config_value(const json_t *config, const char *path);

/* The rope type, "default" if config.json has none, and a value of it, in either of its spellings. */
const char *dt_gguf_rope_type(const json_t *config);
const json_t *dt_gguf_rope_value(const json_t *config, const char *key);

/* --- write.c: keys and values of a header */

typedef struct dt_gguf_header {
    dt_strbuf text; /* keys and values */
    uint64_t count;
    dt_arena *arena;
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

/* --- vocabulary.c: adds the tokenizer and the chat template of the folder. vocab: tokens of the model. */
dt_status dt_gguf_add_vocabulary(dt_gguf_header *out, const char *folder, int64_t vocab,
                                 const json_t *config, dt_error *err);

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

#endif
