/* published: defines tables of the config.json fields and tensor names of Hugging Face's transformers. Each
 * family has one table, used to read and to write.
 *
 * Source     the configuration and modeling files of https://github.com/huggingface/transformers
 * Adding one a table next to the kind's arithmetic (gpt2_published.c), a line in dt_architecture
 */
#ifndef DT_RECIPES_ARCHITECTURE_PUBLISHED_H
#define DT_RECIPES_ARCHITECTURE_PUBLISHED_H

#include <stdbool.h>
#include <stddef.h>

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
    const char *const *buffers;         /* tensors without learned values; ends with NULL */
    const char *head,
        *embedding; /* their names: a tied model may also contain the head, with equal values */
} dt_published;

/* Families of files without config.json (recipes/architecture/weights_bin.h), without keys. */
extern const dt_published dt_published_llmc, dt_published_llama2c;

/* Fields of any config.json that do not change the computation. Ends with NULL. */
extern const char *const dt_published_ignored[];
/* Fields of any config.json with required values. Ends like keys. */
extern const dt_published_key dt_published_common[];

#ifdef __cplusplus
}
#endif
#endif
