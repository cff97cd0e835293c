/* recipe: the recipe that `dtrun init` writes for data: a model of a size that they and the machine bear.
 *
 * Model    the largest of sizes (recipe.c) that has as many tokens as it asks for, fits the memory by the
 *          forecast of recipes/memory.h, and on processors is trained within an hour, if things go well
 * Length   some passes over the data, within bounds, each by the size
 * Checked  it is read and looked at as `dtrun validate` does: facts, memory and time in its comments are
 *          of that
 */
#ifndef DT_RUNNER_INIT_RECIPE_H
#define DT_RUNNER_INIT_RECIPE_H

#include "runner/init/look.h"
#include "runner/launch/fit.h"

typedef struct dt_init_wish {
    const dt_look *look;
    const char *tokenizer; /* a file or folder; NULL: what the data need none of */
    const char *nodes;     /* as in a recipe: "a,b"; NULL: this machine */
    const char *gpus_as;   /* as --gpus-as takes it; NULL: what is here */
    const char *path;      /* where it will stand, for messages */
} dt_init_wish;

/* Appends the recipe. DT_ERR_USAGE, or DT_ERR_RECIPE for data that no recipe takes. */
dt_status dt_init_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena, dt_error *err);

#endif
