/* recipe_int: a draft of the recipe of `dtrun init`: its numbers are chosen by recipe.c, written by recipe_text.c. */
#ifndef DT_RUNNER_INIT_RECIPE_INT_H
#define DT_RUNNER_INIT_RECIPE_INT_H

#include "runner/init/recipe.h"

/* least_tokens: fewer are learned by heart. */
typedef struct dt_init_size {
    int64_t layers, heads, embed, tokens, sequences;
    const char *lr;
    int64_t least_tokens, steps_most;
    bool gpus; /* a processor takes days */
} dt_init_size;

/* What a draft says, in the making. */
typedef struct dt_init_draft {
    const dt_init_wish *wish;
    dt_arena *arena;
    dt_init_size of;
    int64_t items; /* tokens or rows to train on, all of the files; estimated where `guessed` */
    bool guessed, gpus;
    int64_t steps;
    dt_fit fit;
    dt_preflight flight;
} dt_init_draft;

bool dt_init_is_rows(const dt_init_draft *d);

/* All but the head with its comments, which are known once this has been read. */
void dt_init_add_recipe(dt_strbuf *out, const dt_init_draft *d);
void dt_init_add_head(dt_strbuf *out, const dt_init_draft *d);

#endif
