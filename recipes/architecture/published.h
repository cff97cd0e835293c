/* published: defines the tables of published weights: config.json and tensor names of Hugging Face's
 * transformers, and .bin files without names.
 *
 * Source     the configuration and modeling files of https://github.com/huggingface/transformers
 * Adding one of kind llama: a row in families.c. Of another kind: a table next to its arithmetic (published.c), a line
 *            in dt_architecture
 */
#ifndef DT_RECIPES_ARCHITECTURE_PUBLISHED_H
#define DT_RECIPES_ARCHITECTURE_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_published_word {
    const char *theirs, *ours; /* a NULL ends the list */
} dt_published_word;

#define DT_PUBLISHED_ALSO 1

/* A field of config.json; "map.key" is in an object. With `path` it corresponds to a field of the recipe;
 * else its value must be `must`, or it does not change the computation. */
typedef struct dt_published_key {
    const char *key;                     /* NULL: fixed by the family, not in config.json */
    const char *also[DT_PUBLISHED_ALSO]; /* older names; never written */
    const char *path;                    /* path of the recipe's field; NULL: none */
    /* the recipe's text if config.json leaves the field out; NULL: required. Without a key: the fixed
     * value */
    const char *absent;
    const char *must; /* as JSON: the required value if present; NULL: any */
    bool each;        /* `must` applies to each item of a list */
    bool or_null;     /* with `must`: null is the same */
    const char *null; /* the recipe's text for null, which is written for it */
    bool positive;    /* the family has no word for 0 */
    bool letters; /* a list with a word for each block; the recipe has a pattern of their letters */
    const dt_published_word
        *words; /* config.json's words for the recipe's values; NULL: the same text */
    /* for keys of an object: read and written only if the object's first key, its kind, has one of these
     * values ("linear llama3") */
    const char *when;
    bool
        needed; /* with `must`: config.json must contain it, because the class has another default */
    bool at_most; /* the recipe may have a smaller value */
    bool least;   /* the recipe may differ; the larger value is written */
} dt_published_key;

/* A parameter. In names '*' is the number of a block; their names without the prefix begin with '/'. */
typedef struct dt_published_tensor {
    const char *ours, *theirs;
    bool transposed; /* theirs is (in, out), ours (out, in) */
    bool longer;     /* theirs may have more rows: the first are used */
    /* theirs consists of `parts` of ours, which follow each other; this is number `part` */
    int part, parts;
    bool
        paired; /* rows of a head: their 2i and 2i + 1 are our i and i + D/2, the pair that a rotary
                      * position rotates, for i < D/2 (D: rows of a head) */
} dt_published_tensor;

typedef struct dt_published {
    const char *model_type;   /* "gpt2" */
    const char *architecture; /* class of the language model: "GPT2LMHeadModel" */
    const char
        *prefix; /* prefix of their names in files of this class; files of the bare model lack it */
    const dt_published_key *keys;       /* ends with neither key nor path */
    const dt_published_tensor *tensors; /* ends with NULL */
    /* MAY: replaces what is left out of config.json by what the class puts there, before the table is read */
    void (*settle)(json_t *config);
    /* MAY: completes config.json after the table has written it */
    void (*finish)(json_t *config);
    const char *const *buffers; /* tensors without learned values; ends with NULL */
    const char *head,
        *embedding; /* their names: a tied model may also contain the head, with equal values */
} dt_published;

/* Families of files without config.json, without keys. */
extern const dt_published dt_published_llmc, dt_published_llama2c;

/* Fields of any config.json that do not change the computation. Ends with NULL. */
extern const char *const dt_published_ignored[];
/* Fields of any config.json with required values. Ends like keys. */
extern const dt_published_key dt_published_common[];

/* weights_bin: parses the .bin files of models of llm.c and llama2.c: a header of numbers, then all matrices,
 * with those of all layers together.
 *
 *   llm.c      256 int32: 20240326, version (3: fp32, 5: bf16), T, V, L, NH, C, Vp; GPT-2, whose token
 *              embedding has Vp >= V rows and is the head
 *   llama2.c   version 0: 7 int32: C, F, L, H, G, V (below 0: the head is a separate matrix), T; fp32
 *              version 1: "24ka", 1, the same 7 with V > 0, a byte: the head is the embedding; 256 bytes
 *
 * Source     train_gpt2.py of https://github.com/karpathy/llm.c, export.py of
 *            https://github.com/karpathy/llama2.c. All numbers are little-endian
 * Meaning    converted to the config.json and safetensors header of a Hugging Face folder, so that all
 *            other code treats both alike. The family has the differences: llm.c's matrices
 *            are not transposed, and llama2.c's queries and keys are in Meta's order (`paired`)
 * Errors     DT_ERR_RECIPE naming the file: an unknown format, another version, or a size that differs from
 *            the header's
 */

#define DT_WEIGHTS_BIN_HEADER_BYTES 1024 /* bytes of the longest header */

typedef struct dt_weights_bin {
    const dt_published *family; /* family that defines the names of the tensors */
    json_t *config;             /* equivalent of config.json */
    json_t *tensors;            /* equivalent of the header of a safetensors file */
    int64_t header_bytes;       /* offset of the first tensor */
    int64_t head_width;         /* width of a head of queries or keys */
} dt_weights_bin;

/* Parses the first `length` bytes of a file of file_bytes: a header, or the whole file. The caller releases
 * *out. */
dt_status dt_weights_bin_parse(dt_weights_bin *out, const unsigned char *start, size_t length,
                               int64_t file_bytes, const char *where, dt_error *err);
dt_status dt_weights_bin_read(dt_weights_bin *out, const char *path, dt_error *err);
void dt_weights_bin_release(dt_weights_bin *bin); /* accepts a zeroed struct */

#ifdef __cplusplus
}
#endif

#endif
