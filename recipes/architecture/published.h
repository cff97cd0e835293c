/* published: a kind of model as Hugging Face's transformers write it down: the fields of config.json
 * and the names of its tensors. One table a family, read both ways: into dtrun and out of it.
 *
 * Source     the configuration and modeling files of https://github.com/huggingface/transformers
 * Adding one a table beside the kind's arithmetic (gpt2_published.c), a line in dt_architecture
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

#define DT_PUBLISHED_ALSO 3

/* A field of config.json; "map.key" stands in an object. With `path` it says what a field of the recipe
 * says; else it must be `must`, or changes nothing that is computed. */
typedef struct dt_published_key {
    const char *key; /* NULL: the family is so, and config.json does not say it */
    const char *also[DT_PUBLISHED_ALSO]; /* other names that it has had; never written */
    const char *path;                    /* of the recipe; NULL: none */
    /* the field's text in a recipe where config.json leaves it out; NULL: it must be there. Without a
     * key: what it always is */
    const char *absent;
    const char *must;               /* as JSON: what it is where it is there; NULL: anything */
    bool each;                      /* `must` is of each item of a list */
    const dt_published_word *words; /* theirs for values of the recipe's; NULL: the same text */
    /* of an object's: read and written only where the first of its keys, which says of what kind it is,
     * has one of these values ("linear llama3") */
    const char *when;
    bool
        needed; /* of `must`: config.json has to say it, as the class takes another value without it */
    bool at_most; /* the recipe may have less of it */
    bool least;   /* the recipe may have more of it or less; written: the larger */
} dt_published_key;

/* A parameter. In names '*' is the number of a block; theirs without the prefix begin with '/'. */
typedef struct dt_published_tensor {
    const char *ours, *theirs;
    bool transposed; /* theirs is (in, out), ours (out, in) */
    bool longer;     /* theirs may have more rows: the first are taken */
    bool paired;     /* rows of a head: theirs 2i and 2i + 1 are ours i and i + D/2, the two that a
                      * rotary position turns together, for i < D/2 (D: rows of a head) */
} dt_published_tensor;

typedef struct dt_published {
    const char *model_type;       /* "gpt2" */
    const char *architecture;     /* the class that makes text of it: "GPT2LMHeadModel" */
    const char *prefix;           /* of their names, where the class writes them; files of the bare
                                       * model lack it */
    const dt_published_key *keys; /* ends with neither key nor path */
    const dt_published_tensor *tensors; /* ends with NULL */
    const char *const *buffers;         /* tensors that hold nothing learned; ends with NULL */
    const char *head, *embedding; /* theirs: a tied model may hold the head too, the same values */
} dt_published;

/* Of files that have no config.json (recipes/architecture/weights_bin.h): without keys. */
extern const dt_published dt_published_llmc, dt_published_llama2c;

/* Fields of every config.json that change nothing of what is computed. Ends with NULL. */
extern const char *const dt_published_ignored[];
/* Fields of every config.json, with what they must be. Ends as keys do. */
extern const dt_published_key dt_published_common[];

#ifdef __cplusplus
}
#endif
#endif
