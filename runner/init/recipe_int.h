/* recipe_int: defines the draft of a recipe of `dtrun init`, filled by recipe.c and written by
 * recipe_text.c. */
#ifndef DT_RUNNER_INIT_RECIPE_INT_H
#define DT_RUNNER_INIT_RECIPE_INT_H

#include "runner/init/recipe.h"

/* least_tokens: with fewer, the model memorises the data. */
typedef struct dt_init_size {
    int64_t layers, heads, embed, tokens, sequences;
    const char *lr;
    int64_t least_tokens, steps_most;
    bool gpus; /* would take days on a CPU */
} dt_init_size;

/* A draft of the recipe. */
typedef struct dt_init_draft {
    const dt_init_wish *wish;
    dt_arena *arena;
    dt_init_size of;
    int64_t items; /* tokens or rows of all training files; estimated if `guessed` */
    bool guessed, gpus;
    int64_t steps;
    dt_fit fit;
    dt_preflight flight;
} dt_init_draft;

bool dt_init_is_rows(const dt_init_draft *d);

/* Writes the recipe without its head: the comments of the head are known after it was checked. */
void dt_init_add_recipe(dt_strbuf *out, const dt_init_draft *d);
void dt_init_add_head(dt_strbuf *out, const dt_init_draft *d);

#endif
